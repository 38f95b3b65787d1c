// Shows a comparison that was made as HTML in Python, where every text of it was escaped; sends what is clicked, and
// walks through the differences.
const FALLBACK = ["#6366f1", "#0ea5a4", "#d97706", "#be5a8b"];

function send(state, button) {
  const { act, id, message, turn } = button.dataset, what = { act };
  if (id !== undefined) what.id = id;
  if (act === "open") what.message = message === undefined ? null : Number(message);
  if (turn !== undefined) what.turn = Number(turn);
  state.send("pick", what);
}

// The next row that differs, from the one that was walked to last, else from what is on the screen.
function walk(root, step) {
  const rows = [...root.querySelectorAll(".row.differs")];
  if (!rows.length) return;
  const now = rows.findIndex((row) => row.classList.contains("at"));
  const seen = step > 0 ? rows.findIndex((row) => row.getBoundingClientRect().top > 120) : rows.findLastIndex((row) => row.getBoundingClientRect().top < 100);
  const next = now >= 0 ? now + step : seen < 0 ? (step > 0 ? 0 : rows.length - 1) : seen;
  const row = rows[(next + rows.length) % rows.length];
  rows.forEach((one) => one.classList.toggle("at", one === row));
  const count = root.querySelector(".fork .count");
  count.dataset.all ??= count.textContent;
  count.textContent = `${rows.indexOf(row) + 1} of ${count.dataset.all}`;
  row.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function clicked(root, state, event) {
  const button = event.target.closest("[data-act]");
  if (!button) return;
  const { act } = button.dataset;
  if (act === "next" || act === "previous") walk(root, act === "next" ? 1 : -1);
  else if (act === "unfold") {
    for (const cell of button.closest(".line").children) {
      cell.classList.remove("folded");
      cell.querySelector(".unfold")?.remove();
    }
  } else send(state, button);
}

// What is opened in one branch is opened beside it, too.
function toggled(event) {
  const kind = event.target.className, line = event.target.closest(".line");
  if (line) for (const other of line.querySelectorAll(`details.${kind}`)) other.open = event.target.open;
}

function pressed(root, event) {
  const isTyping = event.composedPath().some((one) => one.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(one.tagName || ""));
  if (!root.isConnected || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "n" || event.key === "p") walk(root, event.key === "n" ? 1 : -1);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".comparison");
  const isNew = !root.__state, state = (root.__state ??= {});
  state.send = setTriggerValue;
  if (isNew) {
    root.addEventListener("click", (event) => clicked(root, state, event));
    root.addEventListener("toggle", toggled, true);
    state.pressed = (event) => state.walks && pressed(root, event);
    document.addEventListener("keydown", state.pressed);
  }
  if (state.html !== data.html) {
    state.html = data.html;
    const given = getComputedStyle(root).getPropertyValue("--st-chart-categorical-colors").split(",");
    FALLBACK.forEach((fallback, at) => root.style.setProperty(`--branch-${at}`, (given[at] || "").trim() || fallback));
    const header = document.querySelector("[data-testid=stHeader]");
    if (header) root.style.setProperty("--top", `${header.getBoundingClientRect().height}px`);
    root.innerHTML = data.html;
    state.walks = root.querySelector("[data-act=next]") !== null;
    const scroller = root.querySelector(".scroller"), top = root.querySelector(".top");
    scroller?.addEventListener("scroll", () => { top.scrollLeft = scroller.scrollLeft; });
    if (data.here !== null && state.here !== data.here) {
      requestAnimationFrame(() => root.querySelector(".row.here")?.scrollIntoView({ block: "center" }));
    }
    state.here = data.here;
  }
  return () => document.removeEventListener("keydown", state.pressed);
}
