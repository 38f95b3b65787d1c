// Draws the branch map as SVG. All text comes in as data and goes out as text nodes; nothing is parsed as HTML.
const SVG = "http://www.w3.org/2000/svg";
const FALLBACK = ["#6366f1", "#0ea5a4", "#d97706", "#be5a8b"];
const NAMES = 290, RIGHT = 205, LETTERS = "ABCD";

function el(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function html(name, className, text = null) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== null) made.textContent = text;
  return made;
}

// The theme's chart colours, in the order of the branches.
function colours(host) {
  const given = getComputedStyle(host).getPropertyValue("--st-chart-categorical-colors").split(",");
  return FALLBACK.map((fallback, i) => (given[i] || "").trim() || fallback);
}

function draw(root, state) {
  const { data } = state;
  const many = data.lanes.length > 8;
  const height = many ? 25 : 32, top = 12, largest = many ? 7.5 : 9.5;
  const wide = Math.max(root.clientWidth - 2, 320);
  const names = Math.min(NAMES, wide * 0.4);
  const step = Math.min(84, Math.max(19, (wide - names - RIGHT) / Math.max(data.width, 1)));
  const x = (place) => names + 18 + place * step;
  const y = (lane) => top + (lane + 0.5) * height;
  const total = Math.max(wide, x(data.width) + RIGHT - step);
  const palette = colours(root), { fontFamily: font } = getComputedStyle(root);
  const colour = (lane) => (lane.place === null ? "var(--quiet)" : palette[lane.place]);
  const svg = el("svg", {
    width: total, height: top * 2 + data.lanes.length * height, role: "group",
    "aria-label": "Branch map. Arrow keys move between turns, Enter opens one.",
    style: "--quiet: color-mix(in srgb, var(--st-text-color) 34%, var(--st-background-color))",
  });

  data.lanes.forEach((lane, number) => {
    svg.append(el("rect", { class: "band" + (lane.place === null ? "" : " shown"), x: 5, y: y(number) - height / 2 + 1, width: total - 10, height: height - 2, rx: 7 }));
  });

  for (const link of data.links) {
    const lane = data.lanes[link.lane], x0 = x(link.fromX), x1 = x(link.x), y0 = y(link.fromLane), y1 = y(link.lane);
    const bend = Math.min(10, Math.max(x1 - x0, 0), (y1 - y0) / 2);
    const path = x1 > x0
      ? `M${x0} ${y0} V${y1 - bend} Q${x0} ${y1} ${x0 + bend} ${y1} H${x1}`
      : `M${x0} ${y0} V${y1}`;
    svg.append(el("path", { class: "link", d: path, stroke: colour(lane) }));
  }

  const groups = data.lanes.map((lane, number) => {
    const group = el("g", { class: "lane" + (lane.place === null ? "" : " shown"), "data-id": lane.id });
    svg.append(group);
    if (lane.x !== null && lane.end > lane.x) {
      // A lane is one line, but for the stretches that are shortened.
      let at = lane.x;
      const cuts = data.stretches.filter((s) => s.lane === number);
      for (const cut of [...cuts, null]) {
        const until = cut ? cut.x : lane.end;
        if (until > at) {
          group.append(el("line", { class: "line" + (lane.missing ? " missing" : ""), x1: x(at), x2: x(until), y1: y(number), y2: y(number), stroke: colour(lane) }));
        }
        if (cut) {
          const { end } = cut;
          group.append(el("line", { class: "line stretch", x1: x(until), x2: x(end), y1: y(number), y2: y(number), stroke: colour(lane) }));
          group.append(el("text", { class: "count", x: (x(until) + x(end)) / 2, y: y(number) - 5 }, `${cut.turns} turns`));
          at = end;
        }
      }
    }
    const indent = 14 + Math.min(lane.depth, 4) * 9;
    if (lane.place !== null) {
      group.append(el("circle", { cx: indent + 8, cy: y(number), r: 9, fill: colour(lane) }));
      group.append(el("text", { class: "badge", x: indent + 8, y: y(number) + 4 }, LETTERS[lane.place]));
    } else {
      group.append(el("circle", { cx: indent + 8, cy: y(number), r: 3, fill: "var(--quiet)" }));
    }
    const name = el("text", {
      class: "name" + (lane.place === null ? "" : " shown") + (lane.missing ? " missing" : ""), x: indent + 24, y: y(number) + 4.5,
      role: lane.missing ? "note" : "button", "aria-label": lane.title,
    }, fitted(lane.title, names - indent - 24, `${lane.place === null ? 400 : 600} 13px ${font}`));
    name.append(el("title", {}, lane.title));
    if (!lane.missing) name.addEventListener("click", () => card(root, state, lane, null, indent + 24, y(number)));
    group.append(name);
    const from = lane.end === null ? linkEnd(data, number) : lane.end;
    group.append(el("text", { class: "sum", x: x(from) + 18, y: y(number) + 4 }, (lane.running ? "answering now · " : "") + lane.own));
    return group;
  });

  state.hits = data.dots.map((dot, index) => {
    const lane = data.lanes[dot.lane];
    const r = 3.6 + (largest - 3.6) * Math.sqrt(dot.size || 0);
    const said = `Turn ${dot.turn}${dot.rest ? " (the rest of it)" : ""} of ${lane.title}. ${dot.prompt}. ${dot.tokens}`;
    const hit = el("circle", {
      class: "hit", cx: x(dot.x), cy: y(dot.lane), r: Math.min(height / 2 - 1, r + 4), tabindex: "-1",
      role: "button", "aria-label": said, "data-id": lane.id, "data-turn": dot.turn,
    });
    hit.append(el("title", {}, `Turn ${dot.turn} · ${dot.tokens}\n${dot.prompt}`));
    const unknown = dot.size === null;
    const mark = el("circle", { class: "dot" + (unknown ? " unknown" : ""), cx: x(dot.x), cy: y(dot.lane), r, fill: colour(lane), "pointer-events": "none" });
    if (unknown) mark.style.stroke = colour(lane);
    const open = () => { state.at = index; roving(state); card(root, state, lane, dot, x(dot.x), y(dot.lane)); };
    hit.addEventListener("click", open);
    hit.addEventListener("keydown", (event) => keyed(event, state, index, open));
    groups[dot.lane].append(hit, mark);
    if (dot.failed) groups[dot.lane].append(el("text", { class: "failed", x: x(dot.x), y: y(dot.lane) - r - 1 }, "✕"));
    return hit;
  });
  const first = data.dots.findIndex((dot) => data.lanes[dot.lane].place !== null);
  state.at = Math.min(state.at ?? Math.max(first, 0), Math.max(data.dots.length - 1, 0));
  roving(state);

  const scroll = html("div", "scroll" + (state.tall ? " tall" : ""));
  scroll.append(svg);
  root.replaceChildren(scroll, ...foot(root, state));
  const shown = data.lanes.findIndex((lane) => lane.place !== null);
  if (!state.tall && shown > 0) scroll.scrollTop = Math.max(0, y(shown) - height * 3);
}

function linkEnd(data, lane) {
  const link = data.links.find((one) => one.lane === lane);
  return link ? link.x : 0;
}

const pen = document.createElement("canvas").getContext("2d");

// The name, cut at a word to what fits; the whole is in its title.
function fitted(name, width, font) {
  pen.font = font;
  if (pen.measureText(name).width <= width) return name;
  let cut = name;
  while (cut.length > 4 && pen.measureText(cut + "…").width > width) {
    const space = cut.lastIndexOf(" ");
    cut = (space > 8 ? cut.slice(0, space) : cut.slice(0, -1)).replace(/[ ,;:.…–—-]+$/, "");
  }
  return cut + "…";
}

function foot(root, state) {
  const { data } = state;
  const canFold = !data.isFew && data.canFold;
  if (data.lanes.length <= 11 && !data.leftOut && !canFold) return [];
  const row = html("div", "foot");
  row.append(html("span", "", `${data.lanes.length} branches` + (data.leftOut && !data.isFew ? `, ${data.leftOut} others not drawn` : "")));
  if (data.isFew || canFold) {
    const others = html("button", "others", data.isFew ? `${data.leftOut} ${data.leftOut === 1 ? "other" : "others"}` : "Fewer lanes");
    others.type = "button";
    others.addEventListener("click", () => state.send("pick", { act: "lanes", id: "" }));
    row.append(others);
  }
  const button = html("button", "", state.tall ? "Show less" : "Show all lanes");
  button.type = "button";
  button.addEventListener("click", () => { state.tall = !state.tall; draw(root, state); });
  if (data.lanes.length > 11) row.append(button);
  return [row];
}

function roving(state) {
  state.hits?.forEach((hit, index) => hit.setAttribute("tabindex", index === state.at ? "0" : "-1"));
}

function keyed(event, state, index, open) {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); return; }
  const { dots } = state.data, here = dots[index];
  const near = (test, by) => dots.map((dot, i) => [dot, i]).filter(([dot]) => test(dot)).sort((a, b) => by(a[0]) - by(b[0]))[0];
  const across = (dot) => Math.abs(dot.x - here.x);
  const found = {
    ArrowRight: () => near((d) => d.lane === here.lane && d.x > here.x, across),
    ArrowLeft: () => near((d) => d.lane === here.lane && d.x < here.x, across),
    ArrowDown: () => near((d) => d.lane > here.lane, (d) => (d.lane - here.lane) * 1000 + across(d)),
    ArrowUp: () => near((d) => d.lane < here.lane, (d) => (here.lane - d.lane) * 1000 + across(d)),
  }[event.key]?.();
  if (!found) return;
  event.preventDefault();
  state.at = found[1];
  roving(state);
  state.hits[state.at].focus();
}

function card(root, state, lane, dot, x, y) {
  close(root, state);
  const box = html("div", "card"), send = (act) => {
    close(root, state);
    state.send("pick", { act, id: lane.id, turn: dot ? dot.turn : null, message: dot ? dot.message : null });
  };
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-label", dot ? `Turn ${dot.turn} of ${lane.title}` : lane.title);
  const what = html("div", "what");
  what.append(html("span", "", dot ? `Turn ${dot.turn}${dot.rest ? ", the rest of it" : ""}` : lane.turns));
  what.append(html("span", "", dot ? dot.tokens : lane.tokens));
  box.append(what, html("div", "title", lane.title));
  if (dot && dot.prompt) box.append(html("p", "prompt", dot.prompt));
  const acts = html("div", "acts");
  const add = (label, act) => {
    const button = html("button", "", label);
    button.type = "button";
    button.dataset.act = act;
    button.addEventListener("click", () => send(act));
    acts.append(button);
  };
  if (lane.place !== null && dot) add("Show in the comparison", "turn");
  if (lane.place === null && !lane.missing) {
    add("Compare as B", "second");
    if (state.data.canAdd) add("Add a column", "add");
  }
  if (lane.place !== 0 && !lane.missing) add(lane.place === null ? "As A" : "Make it A", "base");
  if (!lane.missing) add("Open in chat", "open");
  if (acts.children.length) box.append(acts);
  root.append(box);
  const scroll = root.querySelector(".scroll");
  const left = Math.min(Math.max(8, x - scroll.scrollLeft - 24), root.clientWidth - box.offsetWidth - 8);
  box.style.left = `${Math.max(8, left)}px`;
  box.style.top = `${y - scroll.scrollTop + 16}px`;
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { close(root, state); state.hits?.[state.at]?.focus(); }
  });
  state.outside = (event) => { if (!event.composedPath().includes(box)) close(root, state); };
  setTimeout(() => document.addEventListener("pointerdown", state.outside), 0);
  (acts.querySelector("button") || box).focus();
}

function close(root, state) {
  root.querySelector(".card")?.remove();
  if (state.outside) document.removeEventListener("pointerdown", state.outside);
  state.outside = null;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".map");
  const state = (root.__state ??= { tall: false });
  state.send = setTriggerValue;
  const version = JSON.stringify(data);
  if (state.version !== version) {
    state.version = version;
    state.data = data;
    draw(root, state);
  }
  if (!state.watcher) {
    let before = root.clientWidth;
    state.watcher = new ResizeObserver(() => {
      if (Math.abs(root.clientWidth - before) < 2) return;
      before = root.clientWidth;
      draw(root, state);
    });
    state.watcher.observe(root);
  }
  return () => { close(root, state); state.watcher?.disconnect(); state.watcher = null; };
}
