// A chat in the playground: messages with roles, a template that writes them down, and who wrote each token.
import { Broken, el } from "./engine.js";
import { printable } from "./view.js";

const ROLES = ["system", "user", "assistant", "tool"];
const MOST_MESSAGES = 20;
const WAIT = 300; // milliseconds after a key
const here = new URL(".", import.meta.url);

const WORDS = { special: "special token", template: "text of the template", message: "text of a message" };

/** The panel; `ask` encodes a chat, `hasOwn` says whether the tokenizer has a template, `broken` is told of the worker's end. */
export function chatPanel({ ask, hasOwn, broken }) {
  const body = el("div", {}), node = el("details", { class: "pg-train pg-chat" }, el("summary", {}, "Write a chat"), body);
  const state = { list: null, tokenizer: undefined, wanted: 0, waiting: 0 };

  // messages
  const turns = el("ol", { class: "pg-turns" });
  const number = () => turns.querySelectorAll("li").forEach((li, i) => {
    li.querySelector("textarea").setAttribute("aria-label", `Message ${i + 1}`);
    li.querySelector("select").setAttribute("aria-label", `Role of message ${i + 1}`);
    li.querySelector("button").setAttribute("aria-label", `Remove message ${i + 1}`);
  });
  function addMessage({ role, content }) {
    const area = el("textarea", { class: "pg-typed", rows: Math.min(6, content.split("\n").length), spellcheck: "false", dir: "auto", oninput: () => later() });
    area.value = content;
    const roles = el("select", { onchange: () => later(0) }, ...ROLES.map((r) => el("option", { value: r, selected: r === role }, r)));
    const item = el("li", {}, roles, area, el("button", { type: "button", class: "pg-button", onclick: () => { item.remove(); number(); later(0); } }, "Remove"));
    turns.append(item);
    number();
  }
  const messages = () => [...turns.children].map((li) => ({ role: li.querySelector("select").value, content: li.querySelector("textarea").value }));
  const more = el("button", { type: "button", class: "pg-button", id: "pg-message", onclick: () => {
    const now = messages();
    if (now.length >= MOST_MESSAGES) return;
    addMessage({ role: now.at(-1)?.role === "user" ? "assistant" : "user", content: "" });
    turns.lastChild.querySelector("textarea").focus();
    later(0);
  } }, "Add a message");
  const examples = el("div", { class: "pg-samples", role: "group", "aria-label": "Chats to try" });

  // template
  const template = el("select", { id: "pg-template", onchange: () => { chosen(); later(0); } });
  const prompt = el("input", { type: "checkbox", checked: true, onchange: () => later(0) });
  const source = el("textarea", { id: "pg-source", class: "pg-typed", rows: 8, spellcheck: "false", wrap: "off", oninput: () => later() });
  const special = el("input", { type: "text", id: "pg-special", class: "pg-line", spellcheck: "false", autocomplete: "off", oninput: () => later() });
  const own = el("option", { value: "own", hidden: true, disabled: true }, "The tokenizer's own");
  const detail = el("details", { class: "pg-source" }, el("summary", {}, "The template, to read or to change"),
    el("label", { class: "pg-label", for: "pg-source" }, "Source, in Jinja"), source,
    el("label", { class: "pg-label", for: "pg-special" }, "Its special tokens, separated by spaces; those that the tokenizer lacks get the next ids"), special);
  const known = () => state.list.templates.find((t) => t.name === template.value);
  function chosen() {
    detail.hidden = !known();
    if (known()) { source.value = known().source; special.value = known().special.join(" "); }
  }

  // result
  const status = el("p", { class: "pg-status", role: "status" }), alert = el("p", { class: "pg-alert", role: "alert" });
  const drawn = el("div", { class: "pg-drawn" });
  const legend = el("ul", { class: "pg-legend", "aria-label": "Who wrote a token" }, ...Object.entries(WORDS).map(([by, words]) => el("li", { class: `pg-tok pg-by-${by}` }, words)));
  body.append(examples, turns, el("div", { class: "pg-options" }, more, el("label", {}, "Template ", template), el("label", {}, prompt, " end with the opening of an answer")), detail, alert, status, legend, drawn);

  const token = ({ id, text, by }) => el("span", { class: `pg-tok pg-by-${by}`, title: `${WORDS[by]}, id ${id}`, "data-id": id, "data-by": by }, el("span", {}, printable(text, 40)), el("span", { class: "pg-id" }, String(id)));
  function draw(found, sent) {
    const blocks = [];
    for (const t of found.tokens) {
      if (blocks.at(-1)?.message !== t.message) blocks.push({ message: t.message, tokens: [] });
      blocks.at(-1).tokens.push(t);
    }
    drawn.replaceChildren(...blocks.map(({ message, tokens }) => {
      const name = sent[message] ? `${message + 1}. ${sent[message].role}` : "template";
      const count = `${tokens.length} ${tokens.length === 1 ? "token" : "tokens"}`;
      return el("section", { class: "pg-part", "data-role": sent[message]?.role ?? "template" }, el("h3", { class: "pg-role" }, `${name}: ${count}`), el("p", { class: "pg-strip", translate: "no" }, ...tokens.map(token)));
    }));
    const spelled = [...new Set(found.spelled)].map((s) => printable(s, 40));
    status.textContent = `${found.tokens.length} tokens.` + (spelled.length ? ` A message spells ${spelled.join(" and ")}: only the template can write special tokens, so this stays text.` : "");
  }

  function later(wait = WAIT) {
    clearTimeout(state.waiting);
    if (node.open && state.list) state.waiting = setTimeout(render, wait);
  }
  async function render() {
    const wanted = ++state.wanted, sent = messages();
    const request = { messages: sent, source: known() ? source.value : null, special: known() ? special.value.split(/\s+/).filter(Boolean) : [], variables: known()?.variables ?? {}, prompt: prompt.checked };
    drawn.setAttribute("aria-busy", "true");
    try {
      const found = await ask(request);
      if (wanted !== state.wanted) return;
      alert.textContent = "";
      draw(found, sent);
    } catch (e) {
      if (wanted !== state.wanted) return;
      drawn.replaceChildren();
      status.textContent = "";
      alert.textContent = printable(`This chat has no ids: ${e.message}`, 600).replaceAll("·", " ");
      if (e instanceof Broken) broken(e);
    }
    drawn.removeAttribute("aria-busy");
    node.dataset.shown = String(Number(node.dataset.shown ?? 0) + 1); // for whoever waits for a drawing
  }
  async function begin() {
    if (!state.list) {
      const answer = await fetch(new URL("chats.json", here));
      state.list = await answer.json();
      template.replaceChildren(own, ...state.list.templates.map((t) => el("option", { value: t.name }, t.label)));
      template.value = state.list.templates[0].name;
      const use = (example) => { turns.replaceChildren(); example.messages.forEach(addMessage); };
      examples.replaceChildren(...state.list.examples.map((e) => el("button", { type: "button", class: "pg-sample", onclick: () => { use(e); later(0); } }, e.label)));
      use(state.list.examples[0]);
      chosen();
    }
    offer();
    later(0);
  }
  /** Offer the tokenizer's own template, if it has one. */
  function offer() {
    own.hidden = own.disabled = !hasOwn();
    if (own.disabled && template.value === "own") { template.value = state.list.templates[0].name; chosen(); }
  }
  node.addEventListener("toggle", () => { if (node.open) begin().catch((e) => { alert.textContent = `The templates could not be read: ${e.message}`; }); });

  return {
    node,
    /** Another tokenizer was chosen. */
    changed(tokenizer) {
      if (tokenizer === state.tokenizer) return;
      state.tokenizer = tokenizer;
      if (state.list) { offer(); later(0); }
    },
  };
}
