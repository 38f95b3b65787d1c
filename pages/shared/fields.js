// Streamlit marks the first option of a list by itself, so an Enter too many would choose it, or all of them.
// In a field of many choices, Enter takes what was typed, or what the arrow keys went to, and nothing else.
function onKey(event) {
  const field = event.target.closest?.('[data-testid="stMultiSelect"] input');
  if (!field) return;
  if (event.key !== "Enter") {
    field.forkbookMoved = event.key.startsWith("Arrow");
    return;
  }
  if (!field.value && !field.forkbookMoved) {
    event.preventDefault();
    event.stopPropagation();
  }
  field.forkbookMoved = false;
}

export default function () {
  if (window.forkbookFields) return;
  window.forkbookFields = true;
  document.addEventListener("keydown", onKey, true);
}
