"""What the search box knows besides pagefind's index: titles, members of the API, other words for them, and which pages go first.

site.js loads the list at the first search. pagefind finds words anywhere in a page, but cannot know that a lesson matters more
to a reader than the kernel behind it, or that somebody who types "install" wants the first page.
"""

import html
import re

# Section of the sidebar → how much a match in it counts
WEIGHTS = {"Start": 1.3, "Learn": 1.2, "How-to": 1.25, "Reference": 1.0, "Inside": 0.7}
# Pages about the machinery behind another page, wherever they are listed
MACHINERY = re.compile(
    r"kernel|new spans|flat arrays|EM on arrays|independent words|measurement|Rounds of", re.I
)
# Notebook → words that readers type for it
KEYWORDS = {
    "tokenizer/02_convert.ipynb": "convert conversion tiktoken huggingface hf sentencepiece gguf export",
    "unigram/12_model.ipynb": "byte fallback byte_fallback",
    "book/glossary.ipynb": "what token definition meaning terms words",
    "tutorials/tour.ipynb": "tutorial introduction intro beginner basics quickstart example",
    "unigram/00_lattice.ipynb": "viterbi lattice best path dynamic programming",
    "unigram/02_em.ipynb": "em algorithm expectation maximization forward backward",
    "unigram/06_sampling.ipynb": "sampling sample regularization subword dropout nbest",
    "bpe/07_model.ipynb": "bpe-dropout dropout",
    "pipeline/11_decoding.ipynb": "decode decoding stream streaming incremental utf-8 detokenize",
    "pipeline/03_added_tokens.ipynb": "special added tokens bos eos",
    "text/08_normalizers.ipynb": "normalize normalizing normalization nfc nfkc lowercase accents",
    "text/10_pretokenizers.ipynb": "pretokenize pre-tokenizer pretokenization split whitespace",
    "text/06_regex.ipynb": "regex regexp pattern regular expression",
    "core/04_processes.ipynb": "fork multiprocessing processes locks deadlock",
    "book/limits.ipynb": "memory ram limit maximum size cost",
    "book/references.ipynb": "papers paper citation cite bibliography literature",
    "formats/09_hub.ipynb": "offline hub download cache",
    "tutorials/three_algorithms.ipynb": "compare comparison difference bpe wordpiece unigram",
    "tutorials/which_tokenizer.ipynb": "choose which best",
    "howto/hf_datasets.ipynb": "datasets map huggingface",
    "insight/04_compare.ipynb": "compare diff two",
    "insight/08_audit.ipynb": "glitch tokens undertrained unreachable audit",
    "index.ipynb": "install installing installation pip setup download start license licence quickstart python version requirements",
    "bench/speed.ipynb": "speed fast faster performance benchmark throughput slow",
    "howto/train_corpus.ipynb": "train training tokenizer learn corpus own",
    "howto/vocabulary_size.ipynb": "vocab size choose embedding",
    "howto/load_any_file.ipynb": (
        "load loading open read file from_pretrained llama2 llama3 "
        "tokenizer.model tokenizer.json model json spm vocab.txt tiktoken"
    ),
    "howto/other_code.ipynb": "compatibility drop-in replace import",
    "howto/server.ipynb": "serve server http rest api service fastapi uvicorn async deploy thread threads safe safety concurrency",
    "howto/gguf.ipynb": "llama.cpp llamacpp ollama export",
    "howto/chats.ipynb": "chat chats messages conversation template roles prompt",
    "howto/chat_tokens.ipynb": "chat count tokens billing price cost",
    "howto/strange_segmentation.ipynb": "debug wrong weird unexpected why unk unknown",
    "howto/shards.ipynb": "shards dataset pretraining bin",
    "howto/pytorch.ipynb": "torch dataloader collate pad padding batch",
    "howto/cluster.ipynb": "dask distributed scale spark parallel",
    "howto/reproducible.ipynb": "deterministic reproduce seed same",
    "howto/dna_and_logs.ipynb": "genome protein biology log numbers",
    "howto/grow_vocabulary.ipynb": "extend add tokens language resize embedding",
    "migrate/tokenizers.ipynb": "migrate migrating migration port switch convert huggingface hf",
    "migrate/tiktoken.ipynb": "migrate migrating migration port switch convert openai",
    "migrate/sentencepiece.ipynb": "migrate migrating migration port switch convert spm google",
    "migrate/transformers.ipynb": "migrate migrating migration port switch convert huggingface hf autotokenizer",
    "migrate/rules.ipynb": "migrate migrating migration nltk spacy moses blingfire words",
    "pipeline/04_encoding.ipynb": "pad padding truncate truncation mask offsets offset_mapping attention",
    "pipeline/16_chat_templates.ipynb": "chat jinja",
    "tokenizer/03_chat.ipynb": "chat injection security",
    "reference/api.ipynb": "api reference methods members class",
    "reference/commands.ipynb": "cli command line shell terminal options",
    "reference/formats.ipynb": "format convert export import file",
    "bpe/00_reference.ipynb": "bpe byte-pair merges algorithm by hand exercises",
    "wordpiece/00_reference.ipynb": "bert wordpiece algorithm by hand exercises",
    "unigram/01_reference.ipynb": "unigram sentencepiece algorithm by hand exercises",
}


def plain(text: str) -> str:
    "A title without markup."
    return text.replace("`", "").strip()


def search_list(
    sections: list,  # Sections of the sidebar, as docsite.py sorts them
    drafts: dict[str, str],  # Page → HTML
) -> list[
    dict
]:  # For each page and each member of the API: u, where; t, title; l, lead; k, other words; w, weight
    "All titles that the search box looks at first."
    pages = {page.source: (page, section.name) for section in sections for page in section.pages()}
    unknown = sorted(set(KEYWORDS) - set(pages))
    if unknown and len(pages) > 5:  # tests build sites of one page
        raise SystemExit(f"docsite_search.py has words for pages that are not there: {unknown}")
    found = []
    for source, (page, section) in pages.items():
        weight = WEIGHTS.get(section, 1.0)
        if MACHINERY.search(page.title):
            weight *= 0.6
        found.append(
            {
                "u": page.target,
                "t": plain(page.title),
                "l": plain(page.lead),
                "k": KEYWORDS.get(source, ""),
                "w": round(weight, 2),
            }
        )
        found += [
            {"u": f"{page.target}#{anchor}", "t": name, "l": says, "k": "api", "w": 1.4}
            for anchor, name, says in members(drafts.get(page.target, ""))
            if source == "reference/api.ipynb"
        ]
    return found


def members(text: str) -> list[tuple[str, str, str]]:  # Anchor, name such as tok.encode, what it says
    "The members of which a page has entries."
    entry = re.compile(
        r'<section class="member" id="(tok-\w+)"><h3><code>([\w.]+)[^<]*</code></h3><p>(.*?)</p>', re.S
    )
    return [(anchor, name, html.unescape(says)) for anchor, name, says in entry.findall(text)]
