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
    try { await navigator.clipboard.writeText(one("code", block).innerText); button.textContent = "Copied"; }
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

// ---------- search: pagefind's index, loaded at the first use; a page opened as a file has none ----------
const finder = one(".finder"), query = one("#site--query"), found = one(".found"), count = one(".count"), searchButton = one(".search");
let engine;
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
async function search() {
  const text = query.value.trim();
  if (!text) { found.replaceChildren(); count.textContent = ""; return; }
  const hits = await (await load()).debouncedSearch(text, {}, 120);
  if (!hits) return; // a newer search is on its way
  const pages = await Promise.all(hits.results.slice(0, 8).map((r) => r.data()));
  const items = pages.flatMap((p) => {
    const named = (s) => s.title.toLowerCase().includes(text.toLowerCase()) ? 0 : 1; // a heading with the words goes first
    const parts = p.sub_results.filter((s) => s.url.includes("#")).sort((a, b) => named(a) - named(b)).slice(0, 3);
    return parts.length ? parts.map((s) => entry(s.url, `${p.meta.title} › ${s.title}`, s.excerpt)) : [entry(p.url, p.meta.title, p.excerpt)];
  });
  found.replaceChildren(...items);
  const n = hits.results.length;
  count.textContent = n ? `${n} ${n === 1 ? "page" : "pages"}, the best places first` : `Nothing found for “${text}”`;
}
function openFinder() { if (!finder.open) { finder.showModal(); query.select(); } }
if (location.protocol.startsWith("http")) {
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
}
addEventListener("keydown", (e) => {
  const typing = e.target.closest?.("input, textarea, [contenteditable]");
  if (!searchButton.hidden && ((e.key === "/" && !typing && !e.ctrlKey && !e.metaKey) || (e.key === "k" && (e.ctrlKey || e.metaKey)))) { e.preventDefault(); openFinder(); }
  if (e.key === "Escape" && root.classList.contains("pages-open")) { showPages(false); menuButton.focus(); }
});
