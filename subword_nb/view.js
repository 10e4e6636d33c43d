// Shows an explanation, `tok.explain(text).to_dict()`: tokens, counts, and why each word became its pieces, step by step.
// An ES module without page globals and without network; all text goes in by textContent, so no text can become markup.

const MOST_TOKENS = 3000, MOST_ROWS = 400, MOST_SYMBOLS = 60, MOST_COLUMNS = 64, LONGEST_LABEL = 40;
const MARKS = { " ": "·", "\n": "⏎", "\t": "⇥", "\r": "⇤" };
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Z}\u034F\u115F\u1160\u17B4\u17B5\u180B-\u180F\u2800\u3164\uFE00-\uFE0F\uFFA0\u{E0100}-\u{E01EF}]/u;
const COMBINING = /\p{M}/u;

// ---------- text that is safe to look at ----------

/** A label without controls, invisible characters, marks without a base, or towers of marks. */
export function printable(text, limit = LONGEST_LABEL) {
  const out = [];
  let run = 0, seated = false, length = 0;
  for (const ch of text) {
    const combining = COMBINING.test(ch) && !HIDDEN.test(ch);
    if (!combining) {
      if (run > 4) out.push(`⟨+${run - 4}⟩`);
      if (length >= limit) { out.push("…"); return out.join(""); }
      const hidden = !(ch in MARKS) && HIDDEN.test(ch);
      out.push(MARKS[ch] ?? (hidden ? `⟨U+${ch.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩` : ch));
      run = 0; seated = !(ch in MARKS) && !hidden; length += 1;
      continue;
    }
    if (!seated) { out.push("◌"); seated = true; }
    run += 1;
    if (run <= 4) out.push(ch);
  }
  if (run > 4) out.push(`⟨+${run - 4}⟩`);
  return out.join("");
}

const number = (n) => n.toLocaleString("en");
const plural = (n, word) => `${number(n)} ${word}${n === 1 || word === "more" ? "" : "s"}`;
const score = (x) => (x === null || x === undefined ? "–" : x.toFixed(Math.abs(x) < 100 ? 3 : 1).replace("-", "−"));
const share = (x) => (x === null || x === undefined ? "–" : x >= 0.0005 ? x.toFixed(3) : x === 0 ? "0" : x.toExponential(1).replace("-", "−"));
const place = (start, end) => (end - start === 1 ? `character ${start}` : end === start ? `before character ${start}` : `characters ${start} to ${end - 1}`);

// ---------- elements ----------

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}
const code = (text, limit) => el("code", { dir: "ltr" }, printable(text, limit) || "⟨empty⟩");

function table(caption, heads, rows) {
  const cell = (c, i) => el(i ? "td" : "th", i ? {} : { scope: "row" }, c);
  const shown = rows.slice(0, MOST_ROWS);
  return el("div", { class: "sw-table", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...shown.map((r) => el("tr", r.current ? { "aria-current": "step" } : {}, ...r.cells.map(cell))))),
    rows.length > shown.length ? el("p", { class: "sw-quiet" }, `… and ${plural(rows.length - shown.length, "more row")}.`) : null);
}
/** A part that is filled when it is first opened. */
function folded(summary, fill) {
  const box = el("details", { class: "sw-fold" }, el("summary", {}, summary));
  box.addEventListener("toggle", () => { if (box.open && box.childElementCount === 1) box.append(fill()); });
  return box;
}

/** Previous, a slider, next: one way through n + 1 states. */
function stepper(label, last, at, onChange) {
  const go = (k) => { at = Math.max(0, Math.min(last, k)); update(); onChange(at); };
  const back = el("button", { type: "button", class: "sw-button", onclick: () => go(at - 1) }, "‹ Previous");
  const on = el("button", { type: "button", class: "sw-button", onclick: () => go(at + 1) }, "Next ›");
  const slider = el("input", { type: "range", min: 0, max: last, step: 1, "aria-label": label, oninput: () => go(Number(slider.value)) });
  function update() {
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", `${label} ${at} of ${last}`);
    back.setAttribute("aria-disabled", String(at === 0));
    on.setAttribute("aria-disabled", String(at === last));
  }
  update();
  return el("div", { class: "sw-steps", role: "group", "aria-label": label, hidden: last === 0 }, back, slider, on);
}

// ---------- BPE: the merges in their order ----------

function bpeStates(reason) {
  const cache = new Map([[0, reason.symbols]]);
  return (k) => {
    let from = k;
    while (!cache.has(from)) from -= 1;
    let symbols = cache.get(from).slice();
    for (let i = from; i < k; i++) {
      const s = reason.steps[i];
      symbols.splice(s.at, 2, s.piece);
      if (i % 64 === 63) cache.set(i + 1, symbols.slice());
    }
    return symbols;
  };
}
const order = (s) => (s.rank !== null && s.rank !== undefined ? `rank ${number(s.rank)}` : s.score !== null && s.score !== undefined ? `score ${score(s.score)}` : "");
const bracketed = (text) => (text ? ` (${text})` : "");

function bpePanel(reason, at, remember, word, focus) {
  const { steps } = reason, last = steps.length, states = bpeStates(reason);
  const stage = el("ol", { class: "sw-stage", "aria-label": "Symbols" });
  const said = el("p", { class: "sw-said", role: "status" }), rows = el("div");
  const show = (k) => {
    remember(k);
    const symbols = states(k), done = k ? steps[k - 1] : null, next = k < last ? steps[k] : null;
    const near = next ? next.at : focus ?? done?.at ?? 0, from = Math.max(0, Math.min(near - MOST_SYMBOLS / 2, symbols.length - MOST_SYMBOLS));
    const drawn = symbols.slice(from, from + MOST_SYMBOLS).map((s, j) => {
      const i = from + j, made = next ? done && i === done.at : i === (focus ?? done?.at), left = next && i === next.at, right = next && i === next.at + 1;
      return el("li", { class: ["sw-symbol", made ? "sw-made" : "", left ? "sw-left" : "", right ? "sw-right" : ""].join(" ").trim() }, code(s));
    });
    stage.replaceChildren(from > 0 ? el("li", { class: "sw-more" }, `${from} before …`) : "", ...drawn,
      from + MOST_SYMBOLS < symbols.length ? el("li", { class: "sw-more" }, `… ${symbols.length - from - MOST_SYMBOLS} more`) : "");
    const parts = done ? [`After merge ${k} of ${last}: `, code(done.left), " + ", code(done.right), " became ", code(done.piece), `${bracketed(order(done))}. `]
      : last ? [`Start: ${plural(symbols.length, "symbol")}. `] : [];
    if (next) parts.push("Next: ", code(next.left), " + ", code(next.right), bracketed(order(next)), ".");
    else parts.push(last ? "No rule fits two neighbours any more." : "No merge rule fits: the symbols are the pieces.");
    said.replaceChildren(...parts);
    if (!last) return;
    rows.replaceChildren(mergeTable(steps, k));
    const box = rows.firstChild, row = box.querySelector("[aria-current]");
    if (row) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  };
  show(at = Math.min(at ?? last, last));
  return [stage, said, stepper("Merge", last, at, show), last ? rows : null];
}
function mergeTable(steps, k) {
  const from = Math.max(0, Math.min(k - 100, steps.length - 200)), part = steps.slice(from, from + 200);
  return table("Merges in their order", ["Merge", "Rule", "Piece", steps[0].rank === null || steps[0].rank === undefined ? "Score" : "Rank"],
    part.map((s, j) => ({ current: from + j === k - 1, cells: [number(from + j + 1), el("span", {}, code(s.left), " + ", code(s.right)), code(s.piece), s.rank === null || s.rank === undefined ? score(s.score) : number(s.rank)] })));
}

// ---------- WordPiece: longest match first ----------

const columns = (chars) => chars.map((c, i) => put(el("span", { class: "sw-char", "aria-hidden": "true" }, printable(c)), i, i + 1, 1));
function put(node, start, end, row) {
  node.style.gridColumn = `${start + 1} / ${end + 1}`;
  node.style.gridRow = String(row);
  return node;
}

function wordpiecePanel(reason, at, remember, word) {
  const { trials } = reason, last = trials.length, chars = [...word.pretoken].slice(0, MOST_COLUMNS), width = chars.length;
  const stage = el("div", { class: "sw-grid sw-trials", role: "group", "aria-label": "The word and what was tried" }), said = el("p", { class: "sw-said", role: "status" });
  const show = (k) => {
    remember(k);
    const taken = trials.slice(0, k).filter((t) => t.found), now = k ? trials[k - 1] : null;
    stage.replaceChildren(...columns(chars),
      ...taken.filter((t) => t !== now && t.start < width).map((t) => put(el("span", { class: "sw-brick sw-taken" }, code(t.piece)), t.start, Math.min(t.end, width), 2)),
      now && now.start < width ? put(el("span", { class: `sw-brick ${now.found ? "sw-made" : "sw-refused"}` }, code(now.piece)), now.start, Math.min(now.end, width), now.found ? 2 : 3) : "");
    said.replaceChildren(...(now ? [`Trial ${k} of ${last}: `, code(now.piece), ...(now.found ? [" is in the vocabulary, and is taken."]
      : [" is not in the vocabulary. ", now.end - now.start > 1 ? "Try one character less." : "Nothing is left to try."])]
      : last ? ["Start: try the whole word first."] : ["No trial was needed."]));
  };
  show(at = Math.min(at ?? last, last));
  const links = reason.links && reason.links.length ? folded("The same in one pass, without going back", () => el("div", {},
    el("p", { class: "sw-quiet" }, "The matcher of linear time reads each character once. Where it cannot go on, a link says which pieces are certain and where to continue."),
    table("Walk of the matcher", ["Place", "Character", "From", "Pieces out", "To"], reason.links.map((l) => ({ cells: [number(l.at), code(l.char), code(l.from), list(l.pops), code(l.to)] }))))) : null;
  return [el("div", { class: "sw-scroll", tabindex: "0", role: "region", "aria-label": "Trials" }, stage), said, stepper("Trial", last, at, show), links];
}
const list = (pieces, limit = MOST_SYMBOLS) => (pieces && pieces.length ? el("span", {}, ...pieces.slice(0, limit).flatMap((p, i) => (i ? [" ", code(p)] : [code(p)])), pieces.length > limit ? ` … and ${plural(pieces.length - limit, "more")}` : "") : "–");

// ---------- Unigram: the lattice and its paths ----------

function rowsOf(arcs) {
  const ends = [], rows = [];
  for (const a of arcs) {
    let r = ends.findIndex((e) => e <= a.start);
    if (r < 0) r = ends.length;
    ends[r] = a.end;
    rows.push(r);
  }
  return rows;
}
/** Which arcs a path takes; a character that no piece spells is one arc, whatever stands for it. */
function taken(arcs, pieces) {
  const at = new Map(), found = new Set();
  arcs.forEach((a, i) => at.set(a.start, [...(at.get(a.start) ?? []), i]));
  let p = 0;
  const exact = (piece) => (at.get(p) ?? []).find((j) => arcs[j].piece === piece), unknown = () => (at.get(p) ?? []).find((j) => arcs[j].unknown);
  const take = (i) => { found.add(i); p = arcs[i].end; };
  pieces.forEach((piece, k) => {
    if (exact(piece) !== undefined) { take(exact(piece)); return; }
    while (unknown() !== undefined) { // several unknown characters may be one piece, and one of them several bytes
      take(unknown());
      if (k + 1 < pieces.length && exact(pieces[k + 1]) !== undefined) break;
    }
  });
  return found;
}

function unigramPanel(reason, at, remember, word, focus) {
  const { paths } = reason, chars = [...word.pretoken], all = reason.arcs.slice().sort((a, b) => a.start - b.start || b.end - a.end), best = all.filter((a) => a.best);
  const stage = el("div", { class: "sw-grid", role: "group", "aria-label": "Lattice of the word" });
  const said = el("p", { class: "sw-said", role: "status" }), cut = el("p", { class: "sw-quiet" }), last = Math.max(paths.length - 1, 0);
  const show = (k) => {
    remember(k);
    const path = paths[k], on = k ? new Set([...taken(all, path.pieces)].map((i) => all[i])) : new Set(best);
    const near = k ? (all.find((a) => a.best !== on.has(a))?.start ?? 0) : (best[focus]?.start ?? 0);
    const from = Math.max(0, Math.min(near - MOST_COLUMNS / 4, chars.length - MOST_COLUMNS)), to = Math.min(chars.length, from + MOST_COLUMNS);
    const arcs = all.filter((a) => a.start >= from && a.start < to), rows = rowsOf(arcs);
    const bricks = arcs.map((a, i) => {
      const brick = el("span", { class: `sw-brick sw-arc${a.unknown ? " sw-unknown" : ""}${on.has(a) ? " sw-made" : ""}`, title: `${printable(a.piece)} · score ${score(a.score)} · probability ${share(a.marginal)}` }, code(a.piece));
      brick.style.setProperty("--sw-share", `${Math.round(100 * (a.marginal ?? 0))}%`);
      return put(brick, a.start - from, Math.min(a.end, to) - from, rows[i] + 2);
    });
    stage.replaceChildren(...columns(chars.slice(from, to)), ...bricks);
    cut.textContent = to - from < chars.length ? `The picture shows characters ${from} to ${to - 1} of ${number(chars.length)}.` : "";
    if (!path) { said.textContent = "No path is listed."; return; }
    said.replaceChildren(k ? `Path ${k + 1} of ${paths.length}: ` : "The best path: ", list(path.pieces), ` with the score ${score(path.score)}`,
      k ? `, ${score(path.behind)} nats behind the best` : "", path.probability === null || path.probability === undefined ? "" : `; probability ${share(path.probability)} among all segmentations`, ".");
  };
  show(at = Math.min(at ?? 0, last));
  const every = folded(`Every piece that fits somewhere (${number(reason.arcs.length)})`, () => table("Pieces that fit", ["Place", "Piece", "Id", "Score", "Probability", "On the best path"],
    reason.arcs.map((a) => ({ cells: [`${a.start}–${a.end}`, code(a.piece), a.id === null || a.id === undefined ? "–" : String(a.id), score(a.score), share(a.marginal), a.best ? "yes" : ""] }))));
  const key = el("p", { class: "sw-quiet" }, "Each piece is filled in proportion to its probability, over all segmentations of the word.");
  return [el("div", { class: "sw-scroll", tabindex: "0", role: "region", "aria-label": "Lattice" }, stage), key, cut, said, stepper("Path", last, at, show), every];
}

function wordlevelPanel(reason, at, remember, word) {
  return [el("p", { class: "sw-said" }, code(word.pretoken), reason.found ? " is in the vocabulary as a whole." : " is not in the vocabulary; the unknown piece replaces it.")];
}

function stepsPanel(reason) {
  const steps = reason.steps.map((step) => el("li", {}, printable(step, 300).replaceAll("·", " ")));
  return [el("ol", { class: "sw-said" }, ...steps)];
}

const PANELS = { bpe: bpePanel, wordpiece: wordpiecePanel, unigram: unigramPanel, wordlevel: wordlevelPanel, steps: stepsPanel };

// ---------- counts ----------

function graphemes(text) {
  if (typeof Intl === "undefined" || !Intl.Segmenter) return null;
  let n = 0;
  for (const _ of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)) n += 1; // eslint-disable-line no-unused-vars
  return n;
}
function countsOf(data) {
  const n = data.tokens.length, bytes = new TextEncoder().encode(data.text).length, seen = graphemes(data.text);
  const facts = [["tokens", number(n)], ["words", number(data.words.length)], ...(seen === null ? [] : [["graphemes", number(seen)]]),
    ["code points", number([...data.text].length)], ["bytes", number(bytes)], ["bytes per token", n ? (bytes / n).toFixed(2) : "–"]];
  return el("dl", { class: "sw-counts" }, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// ---------- the whole view ----------

/**
 * Fill `root` with an explanation.
 * options: word, step (where to begin), heading (level of headings, default 3), onChange({word, step}).
 */
export function render(root, data, options = {}) {
  const level = `h${options.heading ?? 3}`, { tokens, words, reasons } = data;
  const shown = Math.min(tokens.length, MOST_TOKENS);
  let word = words.length ? Math.max(0, Math.min(options.word ?? 0, words.length - 1)) : null, step = options.step ?? null, chosen = -1;
  const tell = () => options.onChange?.({ word, step });

  const chips = tokens.slice(0, shown).map((t, i) => el("span", {
    class: `sw-token sw-tint${i % 3}${t.special ? " sw-special" : ""}`, role: "option", tabindex: "-1", "aria-selected": "false",
    "data-id": t.id, "data-at": i }, el("span", { class: "sw-piece", dir: "ltr" }, printable(t.shown || t.piece) || "⟨empty⟩"), " ", el("span", { class: "sw-id" }, String(t.id))));
  const strip = el("div", { class: "sw-strip", role: "listbox", "aria-label": "Tokens, each with its id", "aria-orientation": "horizontal" });
  chips.forEach((c, i) => { strip.append(c); if ((tokens[i].bytes ?? "").endsWith("0a")) strip.append(el("span", { class: "sw-break", role: "presentation" })); });
  const detail = el("p", { class: "sw-detail", role: "status" }), why = el("div", { class: "sw-why" });

  function choose(i, focus) {
    if (chosen >= 0 && chips[chosen]) { chips[chosen].setAttribute("aria-selected", "false"); chips[chosen].tabIndex = -1; }
    chosen = i;
    if (!chips[i]) { detail.textContent = ""; return; }
    chips[i].setAttribute("aria-selected", "true");
    chips[i].tabIndex = 0;
    if (focus) chips[i].focus();
    const t = tokens[i], bytes = (t.bytes ?? "").match(/../g) ?? [];
    detail.replaceChildren(`Token ${i} is the piece `, code(t.piece), ` with the id ${t.id}; it spells `,
      t.end > t.start ? `${place(t.start, t.end)} of the text` : "no character of the text", bytes.length ? `, ${bytes.length > 1 ? "bytes" : "byte"} ${bytes.slice(0, 24).join(" ")}${bytes.length > 24 ? " …" : ""} in hexadecimal` : "", t.special ? "; a special token." : ".");
  }
  function showWord(w, s) {
    if (w !== word || s !== undefined) step = s ?? null;
    word = w;
    const mine = new Set();
    if (w !== null) for (let i = words[w].tokens[0]; i < words[w].tokens[1]; i++) mine.add(i);
    chips.forEach((c, i) => c.classList.toggle("sw-of-word", mine.has(i)));
    why.replaceChildren(...(w === null ? [] : wordParts(w)));
  }
  function toWord(w) {
    w = Math.max(0, Math.min(words.length - 1, w));
    if (words[w].tokens[0] < words[w].tokens[1]) choose(words[w].tokens[0], false);
    showWord(w);
    tell();
  }
  const backward = el("button", { type: "button", class: "sw-button", onclick: () => toWord(word - 1) }, "‹ Previous word");
  const forward = el("button", { type: "button", class: "sw-button", onclick: () => toWord(word + 1) }, "Next word ›");
  function wordParts(w) {
    const it = words[w], reason = reasons[it.why], panel = PANELS[reason.kind];
    backward.setAttribute("aria-disabled", String(w === 0));
    forward.setAttribute("aria-disabled", String(w === words.length - 1));
    head.replaceChildren(`Word ${w + 1} of ${words.length}: `, code(it.shown || it.pretoken, 60));
    const focus = chosen >= it.tokens[0] && chosen < it.tokens[1] ? chosen - it.tokens[0] : undefined;
    const body = panel ? panel(reason, step, (k) => { if (k !== step) { step = k; tell(); } }, it, focus) : [el("p", {}, `Nothing is known about models of the kind ${printable(String(reason.kind))}.`)];
    return [...body, reason.note ? el("p", { class: "sw-note" }, printable(reason.note, 300).replaceAll("·", " ")) : null,
      el("p", { class: "sw-result" }, "Pieces: ", list(reason.pieces))].filter((x) => x !== null);
  }
  const head = el(level, { class: "sw-head" });

  function pick(i, focus) {
    choose(i, focus);
    const w = tokens[i].word;
    if (w !== null && w !== undefined) showWord(w);
    tell();
  }
  strip.addEventListener("click", (e) => { const c = e.target.closest(".sw-token"); if (c) pick(Number(c.dataset.at), true); });
  strip.addEventListener("keydown", (e) => {
    const to = { ArrowRight: chosen + 1, ArrowDown: chosen + 1, ArrowLeft: chosen - 1, ArrowUp: chosen - 1, Home: 0, End: shown - 1 }[e.key];
    if (to === undefined || !chips[to]) return;
    e.preventDefault();
    pick(to, true);
  });

  const changes = data.parts.flatMap((p) => p.changes ?? []);
  const parts = [
    countsOf(data),
    tokens.length ? strip : el("p", { class: "sw-quiet" }, data.text ? "This text has no tokens." : "The text is empty, so there are no tokens."),
    tokens.length > shown ? el("p", { class: "sw-quiet" }, `… and ${plural(tokens.length - shown, "more token")}.`) : null,
    tokens.length ? detail : null,
    changes.length ? folded(`What the normalizer changed (${number(changes.length)})`, () => table("Changes", ["Place", "Before", "After"],
      changes.map((c) => ({ cells: [`${c.start}–${c.end}`, code(c.before, 60), c.after ? code(c.after, 60) : "nothing"] })))) : null,
    tokens.length ? folded("All tokens in a table", () => table("Tokens", ["Token", "Piece", "Id", "Place", "Bytes", "Word"],
      tokens.map((t, i) => ({ cells: [String(i), code(t.piece), String(t.id), t.end > t.start ? `${t.start}–${t.end}` : "–", el("span", { class: "sw-bytes" }, (t.bytes ?? "").match(/../g)?.slice(0, 48).join(" ") ?? ""), t.word === null || t.word === undefined ? "–" : String(t.word + 1)] })))) : null,
    words.length ? el("div", { class: "sw-panel" }, el("div", { class: "sw-bar" }, head, words.length > 1 ? el("div", { class: "sw-nav" }, backward, forward) : ""), why) : null,
  ];
  root.classList.add("sw-view");
  root.replaceChildren(...parts.filter((x) => x !== null));
  if (tokens.length) {
    const first = word === null ? 0 : words[word].tokens[0] < words[word].tokens[1] ? words[word].tokens[0] : 0;
    choose(Math.min(first, shown - 1), false);
  }
  if (word !== null) showWord(word, step ?? undefined);
}
