// What every page needs of the browser and Streamlit does not give.

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

// P presents what the page shows, where it has that button.
function onPresent(event) {
  if (event.key !== "P" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.composedPath().some((one) => one.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(one.tagName || ""))) return;
  document.querySelector(".st-key-present button")?.click();
}

// Each block of text has the direction of its own first letters. What is inside a list, a quotation or a table has the
// direction of the whole, so that bullets and columns stand where its readers look for them.
const BLOCKS = "ul, ol, blockquote, table";
const TEXTS = `[data-testid="stMarkdownContainer"] :is(p, h1, h2, h3, h4, h5, h6, ${BLOCKS}):not(:is(${BLOCKS}) *),
  [data-testid="stText"], textarea, input[type="text"]`;

function giveDirection(root) {
  if (root.matches?.(TEXTS)) root.dir = "auto";
  for (const text of root.querySelectorAll?.(TEXTS) ?? []) text.dir = "auto";
}

export default function () {
  if (window.forkbookFrame) return;
  window.forkbookFrame = true;
  document.addEventListener("keydown", onKey, true);
  document.addEventListener("keydown", onPresent);
  giveDirection(document.body);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) addedNodes.forEach(giveDirection);
  }).observe(document.body, { childList: true, subtree: true });
}
