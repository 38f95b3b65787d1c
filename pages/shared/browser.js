// What only the browser can do for the Chat page: copy, scroll to a turn, the keys that move between turns.
// Everything that comes in is data; nothing of it is ever read as HTML.
const CELLS = '[class*="st-key-chat-cell-"]';
const PROMPT = '[data-testid="stChatInputTextArea"]';

function cells() {
  return [...document.querySelectorAll(CELLS)].sort(
    (a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
}

function show(element, behavior) {
  element.scrollIntoView({ block: "start", behavior });
}

function step(direction) {
  const all = cells();
  const top = 80; // below the navigation
  const tops = all.map((cell) => cell.getBoundingClientRect().top - top);
  const next = direction > 0 ? tops.findIndex((y) => y > 8) : tops.findLastIndex((y) => y < -8);
  if (next >= 0) show(all[next], "auto");
}

function onKey(event) {
  if (!event.altKey || event.ctrlKey || event.metaKey) return;
  const act = { KeyP: () => document.querySelector(PROMPT)?.focus(), ArrowDown: () => step(1), ArrowUp: () => step(-1) };
  const action = act[event.code];
  if (!action || (event.code.startsWith("Arrow") && document.activeElement?.closest("textarea, input"))) return;
  event.preventDefault();
  action();
}

export default function ({ data, setTriggerValue }) {
  const page = window;
  if (!page.forkbookKeys) {
    page.forkbookKeys = true;
    document.addEventListener("keydown", onKey);
  }
  if (data.copy && page.forkbookCopied !== data.copy.id) {
    page.forkbookCopied = data.copy.id;
    const failed = () => setTriggerValue("failed", data.copy.id);
    if (navigator.clipboard?.writeText) navigator.clipboard.writeText(data.copy.text).catch(failed);
    else failed();
  }
  if (data.scroll && page.forkbookScrolled !== data.scroll.id) {
    page.forkbookScrolled = data.scroll.id;
    let tries = 0;
    const look = () => {
      const found = document.querySelector(`.st-key-${CSS.escape(data.scroll.key)}`);
      if (found) show(found, "auto");
      // Elements above are still being laid out on the first look.
      if ((!found || tries < 6) && tries++ < 40) setTimeout(look, 100);
    };
    look();
  }
}
