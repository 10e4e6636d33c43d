// A lesson that runs where it is read: its cells can be edited and run, its exercises answered and checked.
// site.js imports this when the reader asks for it. What is written and solved is kept in this browser only.
import { Broken, Engine, el } from "./engine.js";

const LIMITS = { start: 180, begin: 60, run: 120, check: 120 }; // seconds
const here = new URL(".", import.meta.url);

/** What the reader wrote and solved in a lesson; a private window may refuse to keep it. */
class Progress {
  constructor(name) {
    this.key = `lesson ${name}`;
    this.data = { edits: {}, answers: {}, solved: [] };
    try { Object.assign(this.data, JSON.parse(localStorage.getItem(this.key) ?? "{}")); } catch (e) { /* begins empty */ }
  }
  keep(part, id, value) {
    if (value === null) delete this.data[part][id]; else this.data[part][id] = value;
    this.write();
  }
  solve(id) {
    if (!this.data.solved.includes(id)) this.data.solved.push(id);
    this.write();
  }
  write() {
    try { localStorage.setItem(this.key, JSON.stringify(this.data)); } catch (e) { /* kept until the page is left */ }
  }
}

/** A place to write Python, as high as its wrapped lines: Ctrl+Enter or Shift+Enter runs it, and a new line is indented like the one before. */
function editor(label, value, onrun, oninput) {
  const area = el("textarea", { class: "ls-code", rows: 2, "aria-label": label, spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  const fit = () => {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + area.offsetHeight - area.clientHeight}px`;
  };
  area.value = value;
  area.addEventListener("input", () => { fit(); oninput(area.value); });
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(area);
  area.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.altKey || e.metaKey) return;
    e.preventDefault();
    if (e.ctrlKey || e.shiftKey) { onrun(); return; }
    const line = area.value.slice(0, area.selectionStart).split("\n").pop();
    area.setRangeText(`\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(":") ? "    " : ""}`, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
  });
  return area;
}

/** One output of a cell. Markup is what the package draws, or what the reader's own code does. */
function output({ kind, data }) {
  if (kind !== "html") return el("pre", { class: `out out-${kind}`, tabindex: 0 }, el("code", {}, data));
  const box = el("div", { class: "out out-html" });
  box.innerHTML = data;
  return box;
}

export async function begin(bar) {
  const name = bar.dataset.lesson, progress = new Progress(name), engine = new Engine(LIMITS);
  const status = bar.querySelector("[role=status]");
  const say = (text) => { status.textContent = text; };
  say("Python is starting in this page …");
  const answer = await fetch(new URL(`lessons/${name}.json`, here));
  if (!answer.ok) throw new Error(`the lesson's cells could not be read (${answer.status})`);
  const cells = (await answer.json()).map((cell) => ({ ...cell, now: progress.data.edits[cell.id] ?? cell.source, ran: null, node: document.querySelector(`[data-cell="${cell.id}"]`) }));
  await engine.ask("begin");

  const count = () => {
    const all = cells.filter((c) => c.check), solved = all.filter((c) => progress.data.solved.includes(c.id)).length;
    say(all.length ? `Python runs in this page. ${solved} of ${all.length} exercises solved.` : "Python runs in this page.");
  };
  const forget = () => { for (const c of cells) c.ran = null; };

  async function once(cell, drawn) {
    const found = await engine.ask("run", { source: cell.now });
    cell.ran = cell.now;
    if (drawn) draw(cell, found.shows);
    return found;
  }
  function draw(cell, shows) {
    if (!cell.node) return;
    cell.kept ??= [...cell.node.querySelectorAll(":scope > .out")];
    for (const node of cell.node.querySelectorAll(":scope > .out")) node.remove();
    cell.node.append(...shows.map(output));
    globalThis.startSteppers?.();
  }
  /** Run the cells above that have not run as they are now. Those that the reader has edited show what comes of it; those that only test are not needed. */
  async function prepare(cell) {
    if (!engine.worker) { forget(); await engine.ask("begin"); }
    for (const before of cells.slice(0, cells.indexOf(cell))) {
      const edited = before.now !== before.source;
      if (before.ran !== before.now && (edited || !before.tests)) await once(before, edited);
    }
  }
  async function attempt(cell, button, work) {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    say("Running …");
    try {
      await prepare(cell);
      await work();
      count();
    } catch (e) {
      if (!(e instanceof Broken)) throw e;
      forget();
      say(`Stopped: ${e.message}. The next run starts again from the first cell.`);
    } finally {
      button.removeAttribute("aria-disabled");
      bar.dataset.ran = String(Number(bar.dataset.ran ?? 0) + 1); // for whoever waits for it
    }
  }

  function tools(cell) {
    const code = cell.node.querySelector("div.sourceCode");
    if (!code) return;
    const runs = () => attempt(cell, run, () => once(cell, true));
    const run = el("button", { type: "button", class: "ls-button", onclick: runs }, "Run");
    const edit = el("button", { type: "button", class: "ls-button", onclick: () => open(true) }, "Edit");
    const reset = el("button", { type: "button", class: "ls-button", hidden: true, onclick: () => undo() }, "Undo edits");
    let area;
    function open(focus) {
      if (area) { area.focus(); return; }
      area = editor("Code of this cell", cell.now, runs, (text) => { cell.now = text; progress.keep("edits", cell.id, text === cell.source ? null : text); reset.hidden = false; });
      code.hidden = true;
      code.after(area);
      edit.hidden = true;
      reset.hidden = cell.now === cell.source;
      if (focus) area.focus();
    }
    function undo() {
      cell.now = cell.source;
      progress.keep("edits", cell.id, null);
      area?.remove();
      area = undefined;
      code.hidden = edit.hidden = false;
      reset.hidden = true;
      if (cell.kept) { for (const node of cell.node.querySelectorAll(":scope > .out")) node.remove(); cell.node.append(...cell.kept); }
      edit.focus();
    }
    code.after(el("div", { class: "ls-tools" }, run, edit, reset));
    if (cell.now !== cell.source) open(false);
  }

  function exercise(cell) {
    const verdict = el("p", { class: "ls-verdict", role: "status" }), shows = el("div", {});
    const solved = () => { verdict.textContent = "Solved."; verdict.className = "ls-verdict ls-right"; };
    const check = () => attempt(cell, button, async () => {
      await once(cell, false);
      const found = await engine.ask("check", { source: area.value, name: cell.check });
      shows.replaceChildren(...found.shows.map(output));
      if (found.ok) { progress.solve(cell.id); solved(); return; }
      verdict.className = "ls-verdict ls-wrong";
      verdict.textContent = area.value.includes("=...") ? "Write your answer in place of the dots." : found.hint;
    });
    const button = el("button", { type: "button", class: "ls-button ls-main", onclick: check }, "Check");
    const area = editor(`Your answer, which ${cell.check} checks`, progress.data.answers[cell.id] ?? cell.call, check, (text) => progress.keep("answers", cell.id, text));
    if (progress.data.solved.includes(cell.id)) solved();
    cell.node.after(el("div", { class: "ls-exercise" }, el("p", { class: "ls-label", "aria-hidden": "true" }, "Your answer"), area, el("div", { class: "ls-tools" }, button), verdict, shows));
  }

  for (const cell of cells) {
    if (!cell.node) continue;
    tools(cell);
    if (cell.check) exercise(cell);
  }
  bar.querySelector("button").remove();
  document.documentElement.classList.add("running");
  count();
}
