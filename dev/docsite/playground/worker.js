// Runs the package itself, by Pyodide, apart from the page: what hangs here is ended from there.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL(".", import.meta.url).href;
const VERSION = "%VERSION%"; // of all that the worker loads; the build of the site writes it
const bytes = async (name) => {
  const answer = await fetch(`${here}${name}?${VERSION}`);
  if (!answer.ok) throw new Error(`${name} could not be read (${answer.status})`);
  return new Uint8Array(await answer.arrayBuffer());
};

const MODULES = ["archives.py", "chat.py", "glue.py", "learn.py", "lesson.py"]; // what is called in Python

// Python's memory after its start stays in this browser, so that the next page need not start it again. A browser
// that keeps nothing starts it each time.
const SHELF = "subword_nb playground", KEY = `${here}memory?${VERSION}`;

async function recall() {
  try {
    const kept = await (await caches.open(SHELF)).match(KEY);
    return kept ? new Uint8Array(await kept.arrayBuffer()) : null;
  } catch { return null; }
}
async function remember(memory) {
  try {
    const shelf = await caches.open(SHELF);
    for (const { url } of await shelf.keys()) if (url.startsWith(`${here}memory`)) await shelf.delete(url); // of an older version
    if (memory) await shelf.put(KEY, new Response(memory));
  } catch { /* no place, or not allowed */ }
}

const boot = (options) => loadPyodide({ indexURL: `${here}pyodide/`, stdout: () => {}, stderr: () => {}, ...options });

function unpack(py, [zip, ...modules]) {
  py.unpackArchive(zip, "zip", { extractDir: "/package" });
  modules.forEach((data, i) => py.FS.writeFile(`/package/${MODULES[i]}`, data));
}

async function start() {
  const [parts, kept] = await Promise.all([Promise.all(["first.zip", ...MODULES].map(bytes)), recall()]);
  if (kept) {
    try {
      const py = await boot({ _loadSnapshot: kept });
      unpack(py, parts);
      py.runPython("import random; random.seed()"); // the memory holds the state of another visit
      return py;
    } catch { await remember(null); }
  }
  const py = await boot({ _makeSnapshot: true });
  unpack(py, parts);
  py.runPython("import sys; sys.path.insert(0, '/package')");
  py.pyimport("archives").install(here, VERSION);
  py.pyimport("glue").import_first("/package");
  try { remember(py.makeMemorySnapshot()); } catch { /* the next page starts Python, too */ }
  return py;
}
const ready = start();

const LEVELS = 200; // of nesting, which the package refuses, too; its reader of JSON must not run out of this page's stack

/** Is this JSON nested deeper than any tokenizer? */
function tooDeep(data) {
  let depth = 0, inside = false, i = 0;
  while (data[i] === 0x20 || (data[i] >= 9 && data[i] <= 13)) i += 1;
  if (data[i] !== 0x7b && data[i] !== 0x5b) return false;
  for (; i < data.length; i++) {
    const c = data[i];
    if (inside) { if (c === 0x5c) i += 1; else if (c === 0x22) inside = false; }
    else if (c === 0x22) inside = true;
    else if (c === 0x7b || c === 0x5b) { if (++depth > LEVELS) return true; }
    else if (c === 0x7d || c === 0x5d) depth -= 1;
  }
  return false;
}
function load(py, files, options) {
  const deep = files.find(({ data }) => tooDeep(new Uint8Array(data)));
  if (deep) return JSON.stringify({ error: `${deep.name} is nested deeper than ${LEVELS} levels; no tokenizer file is` });
  return py.pyimport("glue").try_load(put(py, files), JSON.stringify(options ?? {}));
}

// The files of a tokenizer into an empty folder; a name keeps letters, digits, dots, dashes and underscores.
function put(py, files) {
  try { for (const name of py.FS.readdir("/given")) if (name !== "." && name !== "..") py.FS.unlink(`/given/${name}`); } catch { py.FS.mkdir("/given"); }
  const names = files.map(({ name }, i) => name.split(/[\\/]/).pop().replace(/[^\w.-]/g, "_").replace(/^\.+/, "").slice(-80) || `file${i}`);
  files.forEach(({ data }, i) => py.FS.writeFile(`/given/${names[i]}`, new Uint8Array(data)));
  return files.length === 1 ? `/given/${names[0]}` : "/given";
}

const OPERATIONS = {
  start: async () => "{}",
  fetch: async (py, { file, place }) => py.pyimport("glue").try_load(put(py, [{ name: file, data: await bytes(file) }]), "{}", place ?? "current"),
  load: async (py, { files, options }) => load(py, files, options),
  learn: async (py, { text, algorithm, size }) => py.pyimport("glue").try_learn(text, algorithm, size),
  explain: async (py, { text }) => py.pyimport("glue").try_explain(text),
  compare: async (py, { text, names }) => py.pyimport("glue").try_compare(text, ...names),
  chat: async (py, request) => py.pyimport("glue").try_chat(JSON.stringify(request)),
  begin: async (py) => py.pyimport("lesson").begin(),
  run: async (py, { source }) => py.pyimport("lesson").run(source),
  check: async (py, { source, name }) => py.pyimport("lesson").check(source, name),
};

addEventListener("message", async ({ data: { id, operation, args } }) => {
  try {
    const py = await ready;
    try {
      postMessage({ id, json: await OPERATIONS[operation](py, args) });
    } catch (e) {
      await remember(null); // the next worker starts Python anew, in case the memory was at fault
      throw e;
    }
  } catch (e) {
    postMessage({ id, broken: String(e?.message ?? e).slice(0, 300) });
  }
});
