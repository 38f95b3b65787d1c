// Draws a comparison. All text comes in as data and is set with textContent; nothing is parsed as HTML.
const FALLBACK = ["#6366f1", "#0ea5a4", "#d97706", "#be5a8b"];
const CHANGED = new Set(["changed", "different", "spacing changed", "arguments changed", "result changed", "status changed", "only here"]);
const LONG = 1500; // characters from which a text is folded
const SVG = "http://www.w3.org/2000/svg";

function el(name, className, text = null) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== null) made.textContent = text;
  return made;
}

function button(className, text, act) {
  const made = el("button", className, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

function plural(number, one) { return `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`; }

function badge(branch, at) {
  const made = el("span", "badge", branch.letter);
  made.style.setProperty("--branch", `var(--branch-${at})`);
  return made;
}

// Where a text has Markdown: [start, end, class]. Nothing is taken away; signs only become quieter, words louder.
const FENCE = /^(```|~~~)[^\n]*\n([\s\S]*?)(?:^\1[^\n]*$|$(?![\s\S]))/gm;
const INLINE = /(`)([^`\n]+)\1|(\*\*)(?=\S)([^*\n]+?)\3|^(#{1,6} )([^\n]+)$/gm;

function markdownSpans(text) {
  const spans = [], fences = [];
  if (text.length > 40000) return { spans, fences };
  for (const found of text.matchAll(FENCE)) fences.push([found.index, found.index + found[0].length]);
  for (const found of text.matchAll(INLINE)) {
    const at = found.index, end = at + found[0].length;
    if (fences.some(([from, to]) => at < to && end > from)) continue;
    const sign = (found[1] || found[3] || found[5]).length, isHead = Boolean(found[5]);
    spans.push([at, at + sign, "sign"], [at + sign, isHead ? end : end - sign, found[1] ? "inline-code" : "strong"]);
    if (!isHead) spans.push([end - sign, end, "sign"]);
  }
  for (const [from, to] of fences) {
    const first = text.indexOf("\n", from), last = text.lastIndexOf("\n", to - 1);
    spans.push([from, first < 0 ? to : first, "sign"]);
    if (last > first && /^(```|~~~)/.test(text.slice(last + 1, to))) spans.push([last + 1, to, "sign"]);
  }
  return { spans, fences };
}

// A text, or its segments: [text, 0 common | 1 changed | 2 left out].
function textOf(value, { className = "text", plain = false } = {}) {
  const box = el("div", className);
  box.dir = "auto";
  const segments = typeof value === "string" ? [[value, 0]] : value;
  const whole = segments.map(([text]) => text).join("");
  const { spans, fences } = plain ? { spans: [], fences: [] } : markdownSpans(whole);
  const edges = [...spans, ...fences].flatMap(([from, to]) => [from, to]);
  let at = 0, fence = null;
  for (const [text, kind] of segments) {
    const cuts = [...new Set([0, ...edges.map((edge) => edge - at).filter((edge) => edge > 0 && edge < text.length), text.length])];
    cuts.sort((a, b) => a - b);
    for (let i = 0; i + 1 < cuts.length; i++) {
      const from = at + cuts[i], piece = text.slice(cuts[i], cuts[i + 1]);
      const classes = spans.filter(([start, end]) => start <= from && from < end).map((span) => span[2]);
      if (kind) classes.push(kind === 1 ? "mark" : "left-out");
      const node = classes.length ? el("span", classes.join(" "), piece) : document.createTextNode(piece);
      const inside = fences.find(([start, end]) => start <= from && from < end);
      if (!inside) { fence = null; box.append(node); continue; }
      if (!fence || fence.range !== inside) {
        fence = { range: inside, box: el("span", "fence") };
        box.append(fence.box);
      }
      fence.box.append(node);
    }
    at += text.length;
  }
  return box;
}

function lengthOf(value) {
  return typeof value === "string" ? value.length : value.reduce((sum, segment) => sum + segment[0].length, 0);
}

function figures(data) {
  const box = el("div", "figures"), table = el("table"), head = el("tr");
  head.append(el("th", "who", data.of));
  for (const figure of data.figures) {
    const cell = el("th", "", figure.title);
    cell.title = figure.meaning;
    head.append(cell);
  }
  table.append(head);
  data.branches.forEach((branch, at) => {
    const row = el("tr"), who = el("td", "who"), name = el("div", "name");
    row.style.setProperty("--branch", `var(--branch-${at})`);
    name.append(badge(branch, at), el("span", "", branch.title));
    who.append(name);
    row.append(who);
    for (const figure of data.figures) {
      const found = figure.cells[at], cell = el("td");
      cell.title = [found.note, figure.meaning].filter(Boolean).join(" ");
      const kind = found.text === "unknown" ? " unknown" : figure.failures && found.share > 0 ? " failed" : "";
      cell.append(el("span", "value" + kind, found.text));
      const bar = el("span", "bar"), part = el("i");
      part.style.width = `${Math.round(found.share * 100)}%`;
      bar.append(part);
      cell.append(bar);
      if (at) cell.append(el("span", "delta", found.delta === "" ? "\u00a0" : found.delta === "=" ? "= A" : `${found.delta} vs A`));
      row.append(cell);
    }
    table.append(row);
  });
  box.append(table);
  return box;
}

function sharedStart(data, send) {
  const { shared } = data;
  const box = el("section", "shared" + (shared.open ? " open" : ""));
  const line = button("", null, () => send({ act: "shared" }));
  line.setAttribute("aria-expanded", String(shared.open));
  const rings = el("span", "rings");
  data.branches.forEach((_, at) => {
    const ring = el("i");
    ring.style.setProperty("--branch", `var(--branch-${at})`);
    rings.append(ring);
  });
  line.append(el("span", "chevron", "▶"), rings, el("span", "label", "Shared start"), el("span", "detail", shared.line));
  box.append(line);
  if (shared.open) {
    const said = el("div", "said");
    if (shared.earlier) {
      said.append(button("more", `${plural(shared.earlier, "earlier message")}: read them in chat`, () => send({ act: "open", id: shared.id, message: 0 })));
    }
    for (const message of shared.messages) {
      const one = el("div");
      one.append(el("div", "role", `turn ${message.turn} · ${message.role}`));
      if (message.text) one.append(textOf(message.text));
      for (const call of message.calls) one.append(el("div", "code", call));
      said.append(one);
    }
    box.append(said);
  }
  return box;
}

function forkLine(data) {
  const line = el("div", "fork");
  const mark = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ width: 18, height: 18, viewBox: "0 0 18 18", fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round", "aria-hidden": "true" })) mark.setAttribute(key, value);
  for (const d of ["M4 2v14", "M4 6c0 4 9 2 9 7v3"]) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    mark.append(path);
  }
  line.append(mark, el("span", "", data.parted));
  return line;
}

function effects(data) {
  if (!data.effects.length) return [];
  const box = el("div", "effects");
  box.append(el("b", "", "Before the fork, once for all: "));
  box.append(document.createTextNode("forks copy the history, not the world. These calls happened one time, and every branch builds on them."));
  const list = el("ul"), most = 12;
  for (const one of data.effects.slice(0, most)) list.append(el("li", one.failed ? "failed" : "", one.text));
  if (data.effects.length > most) list.append(el("li", "", `and ${data.effects.length - most} more`));
  box.append(list);
  return [box];
}

function heads(data, send) {
  const row = el("div", "heads");
  row.append(el("span"));
  data.branches.forEach((branch, at) => {
    const head = el("div", "head"), names = el("div");
    const title = button("title", branch.title, () => send({ act: "open", id: branch.id, message: null }));
    title.title = `${branch.title}\nOpen in chat`;
    names.append(title, el("div", "note", branch.note + (branch.running ? " · answering now" : "")));
    head.append(badge(branch, at), names);
    row.append(head);
  });
  return row;
}

const MISSING = { tool: "no such call", said: "nothing on the way", answer: "no answer", prompt: "no prompt", system: "no such message", stray: "no such result" };
const DIFFERENT = { prompt: "different prompt", answer: "different answer", said: "different text", system: "different text", stray: "different text" };

function stateLabel(line, cell) {
  if (cell.state === "same" || cell.state === "base" || cell.state === "changed") return "";
  if (cell.state === "different") return DIFFERENT[line.kind] || "different";
  return cell.state === "spacing changed" ? "only spacing differs" : cell.state;
}

function chevronOf(node, open) { node.setAttribute("aria-expanded", String(open)); }

function toolCell(line, cell, toggle, isAlone, isMarked) {
  const { tool } = cell, box = document.createDocumentFragment();
  const head = button("step", null, toggle);
  chevronOf(head, false);
  head.append(el("span", "chevron", "▶"), el("span", "code", tool.label));
  if (tool.status !== "done") head.append(el("span", `chip ${tool.status === "failed" ? "failed" : "unknown"}`, tool.status));
  const label = isAlone && cell.state === "only here" ? "" : stateLabel(line, cell);
  if (label && isMarked) head.append(el("span", "chip changed", label));
  box.append(head);
  return box;
}

function reasoningFold(text, toggle) {
  const box = el("div", "reasoning"), head = button("thought", null, toggle);
  chevronOf(head, false);
  head.append(el("span", "chevron", "▶"), document.createTextNode("Reasoning"));
  box.append(head);
  box.__text = text;
  return box;
}

function toolDetail(tool) {
  const box = el("div", "detail-box");
  box.append(el("div", "role", "Arguments"), textOf(lengthOf(tool.arguments) ? tool.arguments : "none", { plain: true }));
  const ending = { done: "Result", failed: "Result, failed", "no result": "No result was recorded" }[tool.status];
  box.append(el("div", "role" + (tool.status === "failed" ? " failed" : ""), ending + (tool.time ? ` · ${tool.time}` : "")));
  if (lengthOf(tool.result)) box.append(textOf(tool.result, { plain: true }));
  return box;
}

function lineCells(line, data, send, number, last, aloneInRow) {
  const cells = [], open = { now: false };
  const toggle = () => {
    open.now = !open.now;
    cells.forEach((box, at) => {
      const cell = line.cells[at];
      if (!cell?.tool) return;
      chevronOf(box.querySelector(".step"), open.now);
      box.querySelector(".detail-box")?.remove();
      if (open.now) box.append(toolDetail(cell.tool));
    });
  };
  const thoughts = [], think = () => {
    open.thoughts = !open.thoughts;
    for (const box of thoughts) {
      chevronOf(box.firstChild, open.thoughts);
      box.querySelector(".thought-text")?.remove();
      if (open.thoughts) box.append(textOf(box.__text, { className: "text thought-text", plain: true }));
    }
  };
  const unfold = () => cells.forEach((box) => { box.classList.remove("folded"); box.querySelector(".unfold")?.remove(); });
  line.cells.forEach((cell, at) => {
    const box = el("div", `cell ${line.kind}` + (number === 0 ? " first" : "") + (last ? " last" : ""));
    box.style.setProperty("--branch", `var(--branch-${at})`);
    cells.push(box);
    if (!cell) { box.className = aloneInRow[at] ? "nothing" : "slot"; box.textContent = MISSING[line.kind] || ""; return; }
    if (cell.reasoning) {
      thoughts.push(reasoningFold(cell.reasoning, think));
      box.append(thoughts[thoughts.length - 1]);
    }
    if (cell.tool) { box.append(toolCell(line, cell, toggle, aloneInRow.some(Boolean), data.view !== "aligned")); return; }
    const label = aloneInRow.some(Boolean) && cell.state === "only here" ? "" : stateLabel(line, cell);
    const kind = { said: "on the way", system: "system", note: "note", stray: "result without a call" }[line.kind];
    const said = [kind, cell.interrupted ? "cut off" : ""].filter(Boolean).join(" · ");
    if (label && data.view !== "aligned") box.append(el("span", "chip changed aside", label));
    if (said) box.append(el("span", "state", said));
    box.append(lengthOf(cell.text) ? textOf(cell.text, { className: "text" + (line.same && data.view !== "aligned" && line.kind === "answer" ? " same-text" : ""), plain: line.kind === "prompt" }) : el("div", "state", "nothing was said"));
    if (lengthOf(cell.text) > LONG) {
      box.classList.add("folded");
      box.append(button("more unfold", "Show all", unfold));
    }
    if (cell.cut) box.append(button("more", `${cell.cut.toLocaleString("en")} characters: read all in chat`, () => send({ act: "open", id: data.branches[at].id, message: cell.message })));
  });
  return cells;
}

function turnRow(row, data, send) {
  const box = el("section", "row"), shown = row.turns.filter(Boolean);
  const alone = row.turns.map((turn) => turn === null);
  const lines = data.view === "changes" && !row.same ? row.lines.filter((line) => !line.same || line.kind === "prompt") : row.lines;
  const count = Math.max(lines.length, 1);
  box.style.gridTemplateRows = `repeat(${count - 1}, auto) 1fr`;
  const first = shown[0].n;
  box.dataset.turn = first;
  if (data.here !== null && row === data.rows[data.here]) box.classList.add("here");
  const number = el("div", "number");
  const labels = [...new Set(shown.map((turn) => turn.n))];
  const link = button("", `Turn ${labels.join(" · ")}`, () => send({ act: "turn", turn: first, id: data.branches[row.turns.findIndex(Boolean)].id }));
  link.title = "Put this turn into the address, to share it";
  number.append(link);
  if (row.rest) number.append(el("small", "", "rest of it"));
  box.append(number);
  row.turns.forEach((turn, at) => {
    const column = el("div", "column" + (turn ? "" : " gap"), turn ? null : `no such turn in ${data.branches[at].letter}`);
    if (row.rest && !turn) column.textContent = `turn ${first} ends before the fork in ${data.branches[at].letter}`;
    column.style.gridColumn = String(at + 2);
    box.append(column);
  });
  lines.forEach((line, index) => {
    lineCells(line, data, send, index, index === lines.length - 1, alone).forEach((cell, at) => {
      if (cell.className === "nothing") return;
      cell.style.gridColumn = String(at + 2);
      cell.style.gridRow = String(index + 1);
      box.append(cell);
    });
  });
  return box;
}

function foldedRow(rows, data, send) {
  const box = el("div", "row");
  const first = rows[0].turns.find(Boolean).n, last = rows[rows.length - 1].turns.find(Boolean).n;
  const numbered = rows.every((row) => new Set(row.turns.map((turn) => turn?.n)).size === 1);
  const label = !numbered ? `${plural(rows.length, "turn")} the same` : first === last ? `Turn ${first} is the same` : `Turns ${first} to ${last} are the same`;
  const fold = button("fold", null, () => box.replaceWith(...rows.map((row) => turnRow(row, data, send))));
  fold.append(el("span", "chevron", "▶"), document.createTextNode(label));
  fold.setAttribute("aria-expanded", "false");
  box.append(el("div", "number"), fold);
  box.dataset.turn = first;
  return box;
}

function turns(data, send) {
  const frame = el("div", `turns columns-${data.branches.length}`), top = el("div", "top"), box = el("div", "scroller");
  frame.style.setProperty("--n", data.branches.length);
  top.append(heads(data, send));
  box.addEventListener("scroll", () => { top.scrollLeft = box.scrollLeft; });
  let same = [];
  const flush = () => {
    const hidesTarget = data.here !== null && same.includes(data.rows[data.here]);
    if (data.fold && same.length >= data.fold && !hidesTarget) box.append(foldedRow(same, data, send));
    else box.append(...same.map((row) => turnRow(row, data, send)));
    same = [];
  };
  for (const row of data.rows) {
    if (row.same) { same.push(row); continue; }
    flush();
    box.append(turnRow(row, data, send));
  }
  flush();
  if (data.more) {
    const end = el("div", "end");
    end.append(button("more", `Show ${plural(data.more, "more turn")}`, () => send({ act: "rows" })));
    box.append(end);
  }
  frame.append(top, box);
  return frame;
}

function draw(root, data, send) {
  const given = getComputedStyle(root).getPropertyValue("--st-chart-categorical-colors").split(",");
  FALLBACK.forEach((fallback, at) => root.style.setProperty(`--branch-${at}`, (given[at] || "").trim() || fallback));
  const header = document.querySelector("[data-testid=stHeader]");
  if (header) root.style.setProperty("--top", `${header.getBoundingClientRect().height}px`);
  root.replaceChildren(
    figures(data), ...(data.shared.count ? [sharedStart(data, send)] : []), ...effects(data),
    ...(data.rows.length ? [forkLine(data), turns(data, send)] : []),
  );
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".grid-root");
  const state = (root.__state ??= {});
  state.send = setTriggerValue;
  const version = JSON.stringify(data);
  if (state.version === version) return;
  state.version = version;
  draw(root, data, (what) => state.send("pick", what));
  if (data.here !== null && state.here !== data.here) {
    requestAnimationFrame(() => root.querySelector(".row.here")?.scrollIntoView({ block: "center" }));
  }
  state.here = data.here;
}
