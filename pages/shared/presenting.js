// Shows slides that were made as HTML in Python, where every text was escaped: one at a time, with a pointer.
const FALLBACK = ["#6366f1", "#0ea5a4", "#d97706", "#be5a8b"];
const POINTS = ".point, .line";

function show(root, state, at) {
  const slides = [...root.querySelectorAll(".slide")];
  state.at = Math.max(0, Math.min(at, slides.length - 1));
  slides.forEach((slide, number) => slide.classList.toggle("now", number === state.at));
  slides[state.at].scrollTop = 0;
  point(root, state, -1);
  root.querySelector(".keys .where").textContent = `${state.at + 1} / ${slides.length}`;
}

function point(root, state, at) {
  const points = [...root.querySelectorAll(`.slide.now :is(${POINTS})`)].filter((one) => !one.closest(".corner"));
  state.point = Math.max(-1, Math.min(at, points.length - 1));
  points.forEach((one, number) => one.classList.toggle("pointed", number === state.point));
  points[state.point]?.scrollIntoView({ block: "nearest" });
}

function keys(root, state, send) {
  const box = document.createElement("nav");
  box.className = "keys";
  const made = [["‹", "Previous slide", () => show(root, state, state.at - 1)], ["›", "Next slide", () => show(root, state, state.at + 1)], ["✕", "End (Escape)", () => send("end", true)]];
  const where = document.createElement("span");
  where.className = "where";
  box.append(where, ...made.map(([text, name, act]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.title = name;
    button.setAttribute("aria-label", name);
    button.addEventListener("click", act);
    return button;
  }));
  return box;
}

function pressed(root, state, event) {
  if (!root.isConnected || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    ArrowRight: () => show(root, state, state.at + 1), PageDown: () => show(root, state, state.at + 1), " ": () => show(root, state, state.at + 1),
    ArrowLeft: () => show(root, state, state.at - 1), PageUp: () => show(root, state, state.at - 1),
    Home: () => show(root, state, 0), End: () => show(root, state, Infinity),
    ArrowDown: () => point(root, state, state.point + 1), ArrowUp: () => point(root, state, state.point - 1),
    Escape: () => state.send("end", true),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".presentation");
  const state = (root.__state ??= { at: 0, point: -1 });
  state.send = setTriggerValue;
  if (state.html !== data.html) {
    state.html = data.html;
    const given = getComputedStyle(root).getPropertyValue("--st-chart-categorical-colors").split(",");
    FALLBACK.forEach((fallback, at) => root.style.setProperty(`--branch-${at}`, (given[at] || "").trim() || fallback));
    root.innerHTML = data.html;
    root.append(keys(root, state, (name, value) => state.send(name, value)));
    root.addEventListener("mouseover", (event) => {
      const found = event.target.closest(POINTS);
      const points = [...root.querySelectorAll(`.slide.now :is(${POINTS})`)].filter((one) => !one.closest(".corner"));
      if (found && points.includes(found)) points.forEach((one) => one.classList.toggle("pointed", one === found)), (state.point = points.indexOf(found));
    });
    show(root, state, state.at);
    root.focus();
  }
  const listen = (event) => pressed(root, state, event);
  document.addEventListener("keydown", listen, true);
  return () => document.removeEventListener("keydown", listen, true);
}
