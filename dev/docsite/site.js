// What a page does beyond being read: theme, menu, contents, copying, search. Without scripts everything stays readable.
"use strict";
const root = document.documentElement;
const one = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

// ---------- theme: the button names the theme it would switch to ----------
const night = matchMedia("(prefers-color-scheme: dark)");
const themeButton = one(".theme");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : night.matches);
function labelTheme() {
  const name = isDark() ? "Light" : "Dark";
  one(".word", themeButton).textContent = name;
  themeButton.setAttribute("aria-label", `${name} theme`);
}
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch (e) { /* private windows may refuse */ }
  labelTheme();
});
night.addEventListener("change", labelTheme);
labelTheme();
themeButton.hidden = false;

// ---------- the pages on a narrow screen ----------
const menuButton = one(".menu");
function showPages(open) {
  root.classList.toggle("pages-open", open);
  menuButton.setAttribute("aria-expanded", String(open));
}
menuButton.addEventListener("click", () => showPages(!root.classList.contains("pages-open")));
const here = one(".pages [aria-current]");
if (here && one(".pages").scrollHeight > one(".pages").clientHeight) here.scrollIntoView({ block: "nearest", behavior: "instant" });

// ---------- headings get a link to themselves; the contents follow the reading ----------
for (const h of all(".text :is(h2, h3, h4)[id]")) {
  const a = document.createElement("a");
  a.className = "anchor";
  a.href = `#${h.id}`;
  a.textContent = "#";
  a.setAttribute("aria-label", `Link to ${h.textContent}`);
  h.append(a);
}
const entries = new Map(all(".toc a").map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
const seen = new IntersectionObserver((changes) => {
  for (const c of changes) {
    const a = entries.get(c.target.id);
    if (a && c.isIntersecting) {
      all(".toc a.now").forEach((x) => x.classList.remove("now"));
      a.classList.add("now");
    }
  }
}, { rootMargin: "-10% 0px -75% 0px" });
entries.forEach((_, id) => { const h = document.getElementById(id); if (h) seen.observe(h); });

// ---------- code: copy it; let the keyboard scroll what is too wide ----------
for (const block of all("div.sourceCode")) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(one("code", block).textContent); button.textContent = "Copied"; }
    catch (e) { button.textContent = "Not allowed"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}
function reachable(from) {
  for (const box of [...(from.matches?.("pre, .out, .equation") ? [from] : []), ...all("pre, .out, .out *, .equation", from)])
    if (box.scrollWidth > box.clientWidth && box instanceof HTMLElement && /auto|scroll/.test(getComputedStyle(box).overflowX)) box.tabIndex = 0;
}
reachable(document);
document.addEventListener("toggle", (e) => { if (e.target.open) reachable(e.target); }, true);

// ---------- a lesson that can run: nothing is loaded before its button is pressed ----------
const runBar = one(".run-bar");
if (runBar && location.protocol.startsWith("http")) {
  const button = one("button", runBar), status = one("p", runBar);
  try {
    const { solved } = JSON.parse(localStorage.getItem(`lesson ${runBar.dataset.lesson}`) ?? "{}");
    if (solved?.length) status.textContent = `You solved ${solved.length} of ${runBar.dataset.exercises} exercises. ${status.textContent}`;
  } catch (e) { /* private windows may refuse */ }
  button.addEventListener("click", async () => {
    status.tabIndex = -1;
    status.focus({ preventScroll: true }); // a disabled button would lose the reader's place
    button.disabled = true;
    try {
      const { begin } = await import(new URL(`${root.dataset.root}playground/lesson.js`, location.href));
      await begin(runBar);
    } catch (e) {
      status.textContent = `The lesson could not start: ${e.message}.`;
      button.disabled = false;
    }
  });
  runBar.hidden = false;
}

// ---------- search: titles and pagefind's index of all words, loaded at the first use; a page opened as a file has titles only ----------
const served = location.protocol.startsWith("http");
const finder = one(".finder"), query = one("#site--query"), found = one(".found"), count = one(".count"), searchButton = one(".search");
let engine;
function escapeText(text) {
  const span = document.createElement("span");
  span.textContent = text;
  return span.innerHTML;
}
async function load() {
  if (!engine) {
    engine = await import(new URL(`${root.dataset.root}pagefind/pagefind.js`, location.href));
    await engine.init();
  }
  return engine;
}
function entry(href, title, excerpt) {
  const li = document.createElement("li"), a = document.createElement("a"), b = document.createElement("b"), small = document.createElement("small");
  a.href = href;
  b.textContent = title;
  small.innerHTML = excerpt; // pagefind escapes the text and adds <mark>
  a.append(b, small);
  li.append(a);
  return li;
}
// Titles, members of the API and other words for them, which go before words in the text (dev/docsite_search.py).
// They are in a script, because a page opened as a file may load one, and may not fetch.
let titles;
function loadTitles() {
  titles ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(`${root.dataset.root}pages.js`, location.href);
    script.onload = () => resolve(globalThis.sitePages);
    script.onerror = reject;
    document.head.append(script);
  });
  return titles;
}
const FILLERS = new Set("a an and are can do does for how i in is it me my of on or the to use using what when why with".split(" "));
const wordsOf = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
function titleScore(words, p) {
  const title = wordsOf(p.t), parts = title.flatMap((w) => w.split("_")), others = wordsOf(`${p.k} ${p.l}`), keys = wordsOf(p.k);
  let score = 0;
  for (const w of words) {
    if (title.includes(w)) score += 4;
    else if (keys.includes(w)) score += 4.5; // chosen by hand
    else if (parts.includes(w)) score += 3.8; // batch finds encode_batch
    else if (title.some((t) => t.startsWith(w))) score += 2.5;
    else if (others.some((t) => t.startsWith(w))) score += 1;
    else return 0; // every word must be there
  }
  return (score / words.length) * p.w + (title.length === words.length ? 1 : 0);
}
function byTitle(text, list) {
  const typed = wordsOf(text), telling = typed.filter((w) => !FILLERS.has(w));
  const words = telling.length ? telling : typed;
  if (!words.length) return [];
  return list.map((p) => ({ p, score: titleScore(words, p) })).filter((x) => x.score > 0).sort((a, b) => b.score - a.score);
}
async function search() {
  const text = query.value.trim();
  if (!text) { found.replaceChildren(); count.textContent = ""; return; }
  const [hits, list] = await Promise.all([served ? load().then((e) => e.debouncedSearch(text, {}, 120)) : { results: [] }, loadTitles()]);
  if (!hits) return; // a newer search is on its way
  const top = new URL(root.dataset.root, location.href);
  const named = byTitle(text, list).filter((x) => x.score >= 2).slice(0, 6);
  const first = named.map(({ p }) => entry(new URL(p.u, top).href, p.t, escapeText(p.l)));
  const weights = new Map(list.map((p) => [new URL(p.u, top).pathname, p.w]));
  const most = await Promise.all(hits.results.slice(0, 20).map(async (r) => ({ score: r.score, page: await r.data() })));
  const weighed = ({ score, page }) => score * (weights.get(new URL(page.url, location.href).pathname) ?? 1);
  const pages = most.sort((a, b) => weighed(b) - weighed(a)).slice(0, 8).map((x) => x.page);
  const items = pages.flatMap((p) => {
    const named = (s) => s.title.toLowerCase().includes(text.toLowerCase()) ? 0 : 1; // a heading with the words goes first
    const parts = p.sub_results.filter((s) => s.url.includes("#")).sort((a, b) => named(a) - named(b)).slice(0, 3);
    return parts.length ? parts.map((s) => entry(s.url, `${p.meta.title} › ${s.title}`, s.excerpt)) : [entry(p.url, p.meta.title, p.excerpt)];
  });
  found.replaceChildren(...first, ...items);
  const n = Math.max(hits.results.length, named.length);
  const scope = served ? "" : " Only titles are searched in a page that is opened as a file.";
  count.textContent = (n ? `${n} ${n === 1 ? "page" : "pages"}, the best places first.` : `Nothing found for “${text}”.`) + scope;
}
function openFinder() { if (!finder.open) { finder.showModal(); query.select(); } }
searchButton.hidden = false;
searchButton.addEventListener("click", openFinder);
query.addEventListener("input", () => search().catch(() => { count.textContent = "The search index could not be loaded."; }));
query.addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); one("a", found)?.click(); } });
found.addEventListener("click", () => finder.close());
finder.addEventListener("click", (e) => { if (e.target === finder) finder.close(); });
finder.addEventListener("keydown", (e) => {
  if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
  const stops = [query, ...all("a", found)];
  const next = stops[stops.indexOf(document.activeElement) + (e.key === "ArrowDown" ? 1 : -1)];
  if (next) { e.preventDefault(); next.focus(); }
});
addEventListener("keydown", (e) => {
  const typing = e.target.closest?.("input, textarea, [contenteditable]");
  if ((e.key === "/" && !typing && !e.ctrlKey && !e.metaKey) || (e.key === "k" && (e.ctrlKey || e.metaKey))) { e.preventDefault(); openFinder(); }
  if (e.key === "Escape" && root.classList.contains("pages-open")) { showPages(false); menuButton.focus(); }
});
