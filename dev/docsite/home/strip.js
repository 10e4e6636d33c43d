// The strip of tokens on the home page: three tokenizers in plain JavaScript, each as its page defines it.
// Their files are loaded when the reader begins to type; until then the page shows what the package said when it was built.
// tests/test_site_home.py compares the pieces with the package's.

const SPACE = /\p{White_Space}/u;

// ---------- byte-level BPE ----------

const PRETOKEN = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

function byteAlphabet() {
  // byte → the visible character that stands for it in the vocabulary
  const visible = [];
  let next = 256;
  for (let b = 0; b < 256; b++) {
    const printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    visible.push(String.fromCodePoint(printable ? b : next++));
  }
  return visible;
}

function byteLevelBPE(model) {
  const visible = byteAlphabet();
  const rank = new Map(model.merges.map(([a, b], i) => [`${a} ${b}`, i]));
  const encoder = new TextEncoder();
  const byte = new Map(visible.map((ch, b) => [ch, b]));
  return (text) => {
    const out = [];
    for (const [pretoken] of text.matchAll(PRETOKEN)) {
      const pieces = [...encoder.encode(pretoken)].map((b) => visible[b]);
      for (;;) {
        let best = Infinity, at = -1;
        for (let i = 0; i + 1 < pieces.length; i++) {
          const r = rank.get(`${pieces[i]} ${pieces[i + 1]}`);
          if (r < best) [best, at] = [r, i];
        }
        if (at < 0) break;
        pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
      }
      out.push(...pieces);
    }
    return out.map((piece) => ({ piece, shown: asText(Uint8Array.from([...piece], (ch) => byte.get(ch))) }));
  };
}

function asText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (e) {
    return [...bytes].map((b) => `⟨${b.toString(16).toUpperCase().padStart(2, "0")}⟩`).join("");
  }
}

// ---------- WordPiece ----------

const CONTROL = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u;
const CHINESE = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u;
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}]/u;

function bertWords(text) {
  let clean = "";
  for (const ch of text) {
    if ("\t\n\r".includes(ch)) clean += " ";
    else if (ch === "\0" || ch === "\ufffd" || CONTROL.test(ch)) continue;
    else if (SPACE.test(ch)) clean += " ";
    else clean += CHINESE.test(ch) ? ` ${ch} ` : ch;
  }
  const plain = clean.normalize("NFD").replace(/\p{Mn}/gu, "");
  const words = [];
  let word = "";
  const end = () => { if (word) words.push(word); word = ""; };
  for (const ch of [...plain].map((c) => c.toLowerCase()).join("")) {
    if (SPACE.test(ch)) end();
    else if (PUNCTUATION.test(ch)) { end(); words.push(ch); }
    else word += ch;
  }
  end();
  return words;
}

function wordPiece(model) {
  const known = new Set(Object.keys(model.vocab));
  return (text) => {
    const out = [];
    for (const word of bertWords(text)) {
      const chars = [...word], pieces = [];
      let at = 0;
      while (at < chars.length && chars.length <= model.max_input_chars_per_word) {
        let end = chars.length, piece = "";
        for (; end > at; end--) {
          piece = (at ? model.continuing_subword_prefix : "") + chars.slice(at, end).join("");
          if (known.has(piece)) break;
        }
        if (end === at) break;
        pieces.push(piece);
        at = end;
      }
      out.push(...(at === chars.length ? pieces : [model.unk_token]));
    }
    return out.map((piece) => ({ piece, shown: piece }));
  };
}

// ---------- Unigram ----------

function unigram(model) {
  const score = new Map(model.vocab);
  const longest = Math.max(...model.vocab.map(([piece]) => [...piece].length));
  const unknown = Math.min(...score.values()) - 10;
  const encoder = new TextEncoder();
  function segment(word) {
    const chars = [...word];
    const best = [{ score: 0 }];
    for (let a = 0; a < chars.length; a++) {
      const reach = (end, piece, s) => {
        const total = best[a].score + s;
        if (!best[end] || total > best[end].score) best[end] = { score: total, from: a, piece };
      };
      for (let end = a + 1; end <= Math.min(chars.length, a + longest); end++) {
        const piece = chars.slice(a, end).join("");
        if (score.has(piece)) reach(end, piece, score.get(piece));
      }
      if (!score.has(chars[a])) reach(a + 1, null, unknown);
    }
    const pieces = [];
    for (let end = chars.length; end > 0; end = best[end].from) {
      const { piece, from } = best[end];
      if (piece !== null) pieces.unshift(piece);
      else pieces.unshift(...[...encoder.encode(chars[from])].map((b) => `<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`));
    }
    return pieces;
  }
  return (text) => {
    const words = text ? `▁${text.replaceAll(" ", "▁")}`.match(/▁?[^▁]*/gu).filter((w) => w) : [];
    return words.flatMap(segment).map((piece) => ({ piece, shown: piece }));
  };
}

const MAKERS = { BPE: byteLevelBPE, WordPiece: wordPiece, Unigram: unigram };

export function tokenizerOf(file) {
  // file: a tokenizer.json of the site, read; returns text → [{piece, shown}]
  return MAKERS[file.model.type](file.model);
}

// ---------- the strip ----------

const MOST = 400; // tokens that a row shows

function show(row, tokens) {
  const list = row.querySelector(".strip-tokens");
  list.replaceChildren(...tokens.slice(0, MOST).map(({ shown }) => {
    const chip = document.createElement("span");
    chip.textContent = shown.replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "→");
    return chip;
  }));
  if (tokens.length > MOST) list.append(` … and ${tokens.length - MOST} more`);
  row.querySelector(".strip-count").textContent = tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
}

function start(strip) {
  const field = strip.querySelector("textarea");
  const status = strip.querySelector(".strip-status");
  const rows = [...strip.querySelectorAll("[data-file]")];
  let ready = null;
  const load = () => ready ??= Promise.all(rows.map(async (row) => {
    const answer = await fetch(row.dataset.file);
    if (!answer.ok) throw new Error(`${row.dataset.file}: ${answer.status}`);
    return tokenizerOf(await answer.json());
  })).catch((e) => {
    ready = null;
    throw e;
  });
  const update = async () => {
    try {
      const tokenizers = await load();
      rows.forEach((row, i) => show(row, tokenizers[i](field.value.toWellFormed())));
      status.textContent = "";
    } catch (e) {
      status.textContent = `The tokenizers could not be loaded: ${e.message}`;
    }
  };
  field.readOnly = false;
  field.addEventListener("focus", () => load().catch(() => {}), { once: true });
  field.addEventListener("input", update);
}

if (typeof document !== "undefined") for (const strip of document.querySelectorAll(".strip")) start(strip);
