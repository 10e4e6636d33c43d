// Python in a worker, asked one question at a time, each with a time limit; the playground and the lessons share it.

const here = new URL(".", import.meta.url);

/** The end of the worker: it took too long, or it could not go on. */
export class Broken extends Error {}

export class Engine {
  constructor(limits) { this.limits = limits; this.worker = null; this.count = 0; this.line = Promise.resolve(); }

  /** Ask the worker; questions wait for each other. A refusal is an Error, an end of the worker is a Broken. */
  ask(operation, args = {}, moved = []) {
    const answer = this.line.then(() => this.#ask(operation, args, moved));
    this.line = answer.catch(() => {});
    return answer;
  }
  async #ask(operation, args, moved) {
    if (!this.worker) {
      this.worker = new Worker(new URL("worker.js", here), { type: "module" });
      await this.#once("start", {}, []);
    }
    const found = JSON.parse(await this.#once(operation, args, moved));
    if (found.error !== undefined) throw new Error(found.error);
    return found;
  }
  #once(operation, args, moved) {
    const id = ++this.count, { worker } = this, seconds = this.limits[operation];
    return new Promise((resolve, reject) => {
      const end = (why) => { clearTimeout(timer); worker.terminate(); if (this.worker === worker) this.worker = null; reject(new Broken(why)); };
      const timer = setTimeout(() => end(`it took more than ${seconds} seconds and was stopped`), seconds * 1000);
      worker.onmessage = ({ data }) => {
        if (data.id !== id) return;
        if (data.broken !== undefined) { end(`Python in this page stopped (${data.broken})`); return; }
        clearTimeout(timer);
        resolve(data.json);
      };
      worker.onerror = (e) => { e.preventDefault(); end(`Python could not start in this page${e.message ? ` (${e.message})` : ""}`); };
      worker.postMessage({ id, operation, args }, moved);
    });
  }
}

/** An element with attributes (those that begin with `on` are listeners) and children. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}
