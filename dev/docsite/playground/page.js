// The playground: choose a tokenizer, type, look. The tokenizers run in a worker, which is ended when it takes too long.
import { chatPanel } from "./chat.js";
import { Broken, Engine, el } from "./engine.js";
import { printable, render } from "./view.js";

const MOST_TEXT = 5000; // code points of a text
const MOST_FILE = 64 << 20; // bytes of a tokenizer's files
const WAIT = 150; // milliseconds after a key before the text is explained
const LIMITS = { start: 180, fetch: 90, load: 90, learn: 120, explain: 30, compare: 30, chat: 60 }; // seconds
const MOST_LINK = 8000; // characters of an address
const ALGORITHMS = { // name → label, the smallest and the largest size, the size to begin with
  bpe: ["Byte-level BPE", 256, 600, 320],
  wordpiece: ["WordPiece", 40, 400, 120],
  unigram: ["Unigram", 40, 400, 120],
};
const CORPUS = `the hug of a pug, and a pug in a hug
hugs and pugs, a bun and some buns
the pug hugged the bun, the bun did not hug the pug
hugging, hugged, unhugged: who hugs whom?
`;
const SAMPLES = {
  "Words": null,
  "Code": "def greet(name):\n    return f\"Hello, {name}!\"  # 3 spaces?\n",
  "Numbers": "3.14159265, 1,000,000 and 2026-02-28",
  "Languages": "Größe, Straße, señor, мир, 東京, שלום, สวัสดี",
  "Emoji and marks": "👩‍👩‍👧‍👦 🇺🇳 e\u0301 é ﬁ ½ n\u0303\u0323",
  "Markup": "<b onclick=\"alert(1)\">bold</b> &amp; <img src=x>",
};
const PATTERNS = ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "whitespace_split"]; // what a list of ranks may be read with
const here = new URL(".", import.meta.url);

// ---------- the page ----------

async function begin(root) {
  const list = await (await fetch(new URL("tokenizers.json", here))).json();
  const limits = { ...LIMITS, ...JSON.parse(root.dataset.limits ?? "{}") }, engine = new Engine(limits);
  const state = { kind: list.tokenizers[0], own: null, kept: null, loaded: null, wanted: 0, place: 0, waiting: 0 };

  // choosing
  const radio = (value, label, checked) => el("label", { class: "pg-choice" }, el("input", { type: "radio", name: "pg-tokenizer", value, checked }), el("span", {}, label));
  const choices = el("fieldset", { class: "pg-choices" }, el("legend", {}, "Tokenizer"), ...list.tokenizers.map((t, i) => radio(t.name, t.label, i === 0)));
  const ownChoice = radio("own", "Your file", false);
  ownChoice.hidden = true;
  const input = el("input", { type: "file", id: "pg-file", multiple: true, class: "pg-hidden", accept: ".json,.tiktoken,.model,.txt,.vocab,.bpe,.codes,.gguf" });
  const open = el("label", { class: "pg-open", for: "pg-file" }, "Open a file …");
  choices.append(ownChoice, input, open);
  const about = el("p", { class: "pg-about" });

  // a list of ranks does not say how text is split
  const pattern = el("select", { id: "pg-pattern" }, el("option", { value: "" }, "choose …"), ...PATTERNS.map((p) => el("option", { value: p }, p)));
  const asks = el("p", { class: "pg-asks", hidden: true }, el("label", { for: "pg-pattern" }, "Split text as "), pattern);
  pattern.addEventListener("change", () => { if (pattern.value) openFiles(state.asked, { pattern: pattern.value }); });

  // learning
  const corpus = el("textarea", { id: "pg-corpus", class: "pg-typed", rows: 6, spellcheck: "false", dir: "auto" });
  corpus.value = CORPUS;
  const algorithm = el("select", { id: "pg-algorithm" }, ...Object.entries(ALGORITHMS).map(([name, [label]]) => el("option", { value: name }, label)));
  const size = el("input", { type: "range", id: "pg-size" }), shownSize = el("output", { for: "pg-size" });
  const sizes = () => { // what the slider offers for an algorithm
    [, size.min, size.max, size.value] = ALGORITHMS[algorithm.value];
    shownSize.textContent = size.value;
  };
  sizes();
  size.addEventListener("input", () => { shownSize.textContent = size.value; });
  size.addEventListener("change", () => { if (state.own?.learn) learn(); });
  algorithm.addEventListener("change", sizes);
  const training = el("details", { class: "pg-train" }, el("summary", {}, "Train one on your own text"),
    el("label", { class: "pg-label", for: "pg-corpus" }, "Text to learn from; each line is a document"), corpus,
    el("div", { class: "pg-options" },
      el("label", {}, "Algorithm ", algorithm), el("label", {}, "Vocabulary size ", size), shownSize,
      el("button", { type: "button", id: "pg-learn", class: "pg-button", onclick: () => learn() }, "Train")));

  // comparing, and sharing
  const other = el("select", { id: "pg-other" }, el("option", { value: "" }, "nothing"), ...list.tokenizers.map((t) => el("option", { value: t.name }, t.label)));
  const drawn = el("pre", { class: "pg-compare", tabindex: 0, role: "region", "aria-label": "Comparison", hidden: true });
  other.addEventListener("change", () => changed(0));
  const link = el("button", { type: "button", id: "pg-link", class: "pg-button", onclick: () => share() }, "Link to this");
  const more = el("div", { class: "pg-options" }, el("label", {}, "Compare with ", other), link);

  // a chat: its tokens are those of the tokenizer that is chosen above
  const chat = chatPanel({
    async ask(request) {
      if (!list.pyodide) throw new Error("this site was built without Pyodide, so it cannot render a chat");
      await engine.line;
      if (state.loaded === null) await load();
      return engine.ask("chat", request);
    },
    hasOwn: () => Boolean(state.facts?.chats),
    broken: (e) => recover(e.message),
  });

  // typing
  const area = el("textarea", { id: "pg-text", rows: 3, spellcheck: "false", autocomplete: "off", autocapitalize: "off", dir: "auto" });
  area.value = list.text;
  const samples = el("div", { class: "pg-samples", role: "group", "aria-label": "Texts to try" }, ...Object.entries(SAMPLES).map(([name, text]) => el("button", { type: "button", class: "pg-sample", onclick: () => { area.value = text ?? list.text; changed(0); } }, name)));
  const status = el("p", { class: "pg-status", role: "status" }), alert = el("p", { class: "pg-alert", role: "alert" }), view = el("div", { class: "pg-view" });
  root.replaceChildren(choices, about, training, el("label", { class: "pg-label", for: "pg-text" }, "Text"), area, samples, more, alert, asks, status, drawn, view, chat.node);
  root.classList.add("pg-ready");

  const say = (text) => { status.textContent = text; };
  const warn = (text) => { alert.textContent = text ? printable(text, 700).replaceAll("·", " ") : ""; };
  const title = () => (state.own?.learn ? state.own.name : state.own ? printable(state.own.name, 60) : state.kind.label);
  const describe = () => {
    const facts = state.facts, parts = facts ? [`${facts.model} with ${facts.pieces.toLocaleString("en")} ids`, `normalizer: ${facts.normalizer ?? "none"}`, `pre-tokenizer: ${facts.pre_tokenizer ?? "none"}`] : [`${state.kind.label} with ${state.kind.pieces.toLocaleString("en")} pieces, trained on the manual that comes with Python`];
    about.textContent = (facts && state.own ? `${title()}: ` : "") + parts.join("; ") + ".";
  };
  const draw = (data) => {
    const word = Math.max(0, data.words.findIndex((w) => w.end > state.place)); // the word at the same place as before
    render(view, data, { word, heading: 2, onChange: ({ word: w }) => { state.place = w === null ? 0 : data.words[w].start; } });
    view.removeAttribute("aria-busy");
    root.dataset.shown = String(Number(root.dataset.shown ?? 0) + 1); // for whoever waits for a drawing
  };

  /** The text as far as it is shown. */
  function clipped() {
    const chars = area.value.length > MOST_TEXT ? [...area.value.slice(0, 2 * MOST_TEXT)].slice(0, MOST_TEXT) : null;
    const cut = chars !== null && chars.join("").length < area.value.length;
    if (cut) area.value = chars.join("");
    return cut;
  }
  function changed(wait = WAIT) {
    clearTimeout(state.waiting);
    const cut = clipped();
    say(cut ? `The text was cut: this page shows ${MOST_TEXT.toLocaleString("en")} characters; the package has no such limit.` : "");
    state.waiting = setTimeout(explain, wait);
  }

  async function explain() {
    const wanted = ++state.wanted, text = area.value;
    view.setAttribute("aria-busy", "true");
    try {
      if (!list.pyodide) throw new Broken("this site was built without Pyodide, so only the first text can be shown; `npm ci --prefix dev/web` gets it for the next build");
      await engine.line; // of the texts that wait, only the last is explained
      if (wanted !== state.wanted) return;
      if (state.loaded === null) await load();
      if (wanted !== state.wanted) return;
      const data = await engine.ask("explain", { text });
      if (wanted !== state.wanted) return; // a newer text is on its way
      if (!state.keep) warn("");
      state.keep = false;
      draw(data);
      await compare(text, wanted);
      chat.changed(state.loaded);
    } catch (e) {
      if (wanted !== state.wanted) return;
      drawn.hidden = true;
      view.removeAttribute("aria-busy");
      view.replaceChildren();
      if (e instanceof Broken) { recover(e.message); return; }
      warn(`This text has no ids: ${e.message}`);
    }
  }
  /** Draw where the other tokenizer divides the text differently, if there is one. */
  async function compare(text, wanted) {
    const kind = list.tokenizers.find((t) => t.name === other.value);
    drawn.hidden = !kind;
    if (!kind) return;
    if (state.other !== kind || state.otherIn !== engine.worker) await engine.ask("fetch", { file: kind.file, place: "other" });
    Object.assign(state, { other: kind, otherIn: engine.worker }); // a worker that was ended took it along
    const found = await engine.ask("compare", { text, names: [title(), kind.label] });
    if (wanted === state.wanted) drawn.textContent = found.drawn;
  }
  /** After an end of the worker: the next text starts a new one, with a small tokenizer. */
  function recover(why) {
    const own = state.own !== null;
    state.loaded = state.facts = null;
    if (own) { state.kept = null; choose(list.tokenizers[0].name); }
    warn(own ? `${printable(state.lastOwn ?? "The file", 60)}: ${why}. The small tokenizer is back.` : `Nothing to show: ${why}.`);
    if (own) { state.keep = true; changed(0); }
  }
  async function load() {
    const first = !engine.worker, own = state.own, wanted = own ?? state.kind;
    if (first) say("Python is starting in this page …");
    const facts = own?.learn ? await engine.ask("learn", own.learn) : own ? await engine.ask("load", { files: await contents(own.files), options: own.options }) : await engine.ask("fetch", { file: state.kind.file });
    if (first && status.textContent.startsWith("Python")) say("");
    if (wanted !== (state.own ?? state.kind)) return; // another was chosen meanwhile
    state.facts = facts;
    state.loaded = wanted;
    describe();
  }
  const contents = (files) => Promise.all(files.map(async (f) => ({ name: f.name, data: await f.arrayBuffer() })));

  function choose(name) {
    state.own = name === "own" ? state.kept : null;
    if (!state.own) state.kind = list.tokenizers.find((t) => t.name === name);
    ownChoice.hidden = !state.kept;
    for (const r of choices.querySelectorAll("[type=radio]")) r.checked = r.value === name;
    state.loaded = state.facts = null;
    describe();
  }
  choices.addEventListener("change", (e) => {
    if (e.target.type !== "radio") return;
    warn("");
    state.keep = false;
    choose(e.target.value);
    changed(0);
  });

  async function openFiles(files, options = {}) {
    if (files.length) await readFiles(files, options);
    root.dataset.read = String(Number(root.dataset.read ?? 0) + 1); // for whoever waits for it
  }
  async function readFiles(files, options) {
    asks.hidden = true;
    const size = files.reduce((n, f) => n + f.size, 0), name = files.length === 1 ? files[0].name : `${files.length} files`;
    warn("");
    if (!list.pyodide) { warn("This site was built without Pyodide, so it cannot read files."); return; }
    if (size > MOST_FILE) { warn(`${name} has ${(size / 2 ** 20).toFixed(0)} MiB; this page reads up to ${MOST_FILE >> 20} MiB. The package has no such limit.`); return; }
    const before = state.own ? "own" : state.kind.name;
    state.lastOwn = name;
    say(`Reading ${printable(name, 60)} …`);
    try {
      const facts = await engine.ask("load", { files: await contents(files), options });
      asks.hidden = true;
      state.kept = { name, files, options };
      ownChoice.lastChild.textContent = printable(name, 30);
      choose("own");
      state.facts = facts;
      state.loaded = state.own;
      describe();
      say("");
      changed(0);
    } catch (e) {
      say("");
      choose(before);
      changed(0);
      warn(`${name} was not loaded: ${e.message}`);
      asks.hidden = !/pass pattern=|pattern must be given for /.test(e.message);
      state.asked = files;
      pattern.value = "";
      state.keep = true;
    }
  }

  async function learn() {
    const [label] = ALGORITHMS[algorithm.value], before = state.own ? "own" : state.kind.name;
    const wanted = { text: corpus.value, algorithm: algorithm.value, size: Number(size.value) };
    warn("");
    if (!list.pyodide) { warn("This site was built without Pyodide, so it cannot train."); return; }
    say("Training in this page …");
    state.lastOwn = "Training";
    try {
      const facts = await engine.ask("learn", wanted);
      state.kept = { name: `${label}, ${facts.pieces} pieces`, learn: wanted };
      ownChoice.lastChild.textContent = "Trained here";
      choose("own");
      state.facts = facts;
      state.loaded = state.own;
      describe();
    } catch (e) {
      choose(before);
      warn(`Nothing was learned: ${e.message}`);
      state.keep = true;
    }
    say("");
    changed(0);
    root.dataset.learned = String(Number(root.dataset.learned ?? 0) + 1); // for whoever waits for it
  }

  /** Put tokenizer and text into the address, behind the #, which no server sees. */
  function share() {
    if (state.own && !state.own.learn) { warn("A link cannot hold a file: send the file, too, or choose another tokenizer."); return; }
    const { text: learnedFrom, ...options } = state.own?.learn ?? {};
    const source = state.own ? { ...options, corpus: learnedFrom } : { tokenizer: state.kind.name };
    const parts = new URLSearchParams({ text: area.value, ...source, ...(other.value ? { other: other.value } : {}) });
    if (String(parts).length > MOST_LINK) { warn(`The link would have ${String(parts).length.toLocaleString("en")} characters; shorten the text, or what was learned from.`); return; }
    history.replaceState(null, "", `#${parts}`);
    navigator.clipboard?.writeText(location.href).catch(() => {});
    say("The address of this page now holds the tokenizer and the text; copy it.");
  }
  /** What an address asks for: is there a text in it? */
  function follow(parts) {
    if (!parts.has("text")) return false;
    area.value = parts.get("text");
    const known = (name) => list.tokenizers.some((t) => t.name === name);
    if (known(parts.get("tokenizer"))) choose(parts.get("tokenizer"));
    if (known(parts.get("other"))) other.value = parts.get("other");
    if (parts.has("corpus") && Object.hasOwn(ALGORITHMS, parts.get("algorithm"))) {
      corpus.value = parts.get("corpus");
      algorithm.value = parts.get("algorithm");
      sizes();
      size.value = parts.get("size");
      shownSize.textContent = size.value;
      training.open = true;
      learn();
    }
    return true;
  }
  input.addEventListener("change", () => { const files = [...input.files]; input.value = ""; openFiles(files); });
  for (const kind of ["dragenter", "dragover"]) root.addEventListener(kind, (e) => { if (e.dataTransfer?.types.includes("Files")) { e.preventDefault(); root.classList.add("pg-over"); } });
  for (const kind of ["dragleave", "drop"]) root.addEventListener(kind, () => root.classList.remove("pg-over"));
  root.addEventListener("drop", (e) => { if (e.dataTransfer?.files.length) { e.preventDefault(); openFiles([...e.dataTransfer.files]); } });
  area.addEventListener("input", () => changed());

  // before Python has started: what it said of the first text when the site was built
  describe();
  const linked = list.pyodide && follow(new URLSearchParams(location.hash.slice(1)));
  if (!linked) draw(await (await fetch(new URL(state.kind.first, here))).json());
  if (list.pyodide) changed(0);
  else say("This site was built without Pyodide: only the first text is shown. `npm ci --prefix dev/web` gets it for the next build.");
}

const root = document.getElementById("playground");
if (root) begin(root).catch((e) => { root.prepend(el("p", { class: "pg-alert", role: "alert" }, `The playground could not start: ${e.message}`)); });
