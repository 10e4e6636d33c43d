"""Repositories by name: fetched from a server that speaks the hub's file API, found in a cache, and what is said when that fails."""

import hashlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from subword_nb.formats.hub import HUB_FILES, hub_folder, looks_like_repo

SHA, OLD = "a" * 40, "b" * 40
TOKENIZER = json.dumps(
    {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"hug": 0, "pug": 1, "[UNK]": 2}, "unk_token": "[UNK]"},
    }
).encode()
VOCAB = b"[PAD]\n[UNK]\nhug\n##s\n"
REPOS = {
    "org/whole": {"main": SHA, "v1": OLD},
    "org/bert": {"main": SHA},
    "org/chat": {"main": SHA},
    "org/weights": {"main": SHA},
    "org/odd": {"main": SHA},
    "org/gated": {"main": SHA},
    "org/empty": {"main": SHA},
}
FILES = {
    ("org/whole", SHA): {
        "tokenizer.json": TOKENIZER,
        "tokenizer_config.json": b"{}",
        "model.safetensors": b"x" * 1000,
        "README.md": b"hello",
        "onnx/tokenizer.json": b"no",
    },
    ("org/whole", OLD): {"tokenizer.json": TOKENIZER.replace(b"hug", b"bun")},
    ("org/bert", SHA): {
        "vocab.txt": VOCAB,
        "tokenizer_config.json": b'{"do_lower_case": false}',
        "pytorch_model.bin": b"x" * 1000,
    },
    ("org/chat", SHA): {
        "tokenizer.json": TOKENIZER,
        "chat_template.jinja": b"{{ messages }}",
        "chat_templates/tool_use.jinja": b"{{ tools }}",
        "additional_chat_templates/rag.jinja": b"{{ documents }}",
        "chat_templates/old/tool_use.jinja": b"no",
        "chat_templates_old/tool_use.jinja": b"no",
        "chat/tool_use.jinja": b"no",
    },
    ("org/weights", SHA): {"model.gguf": b"GGUF", "tokenizer_config.json": b"{}"},
    ("org/odd", SHA): {
        "../../evil.model": b"no",
        "a\\b.model": b"no",
        "sub/x.model": b"no",
        "spiece.model": b"yes",
        "tokenizer.model.v1": b"yes",
        "qwen.tiktoken": b"yes",
    },
    ("org/gated", SHA): {"tokenizer.json": TOKENIZER},
    ("org/empty", SHA): {},
}


class Hub(http.server.BaseHTTPRequestHandler):
    "What a hub answers about models: who they are, which files they have, and the files."

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(body)),
            "Content-Type": "application/json",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = unquote(urlsplit(self.path).path).strip("/")
        self.server.asked.append((self.command, path, self.headers.get("Authorization")))
        if self.server.down:
            return self.answer(self.server.down)
        if path.startswith("api/models/"):
            return self.info(path.removeprefix("api/models/"))
        org, name, resolve, revision, *file = path.split("/")
        repo, file = f"{org}/{name}", "/".join(file)
        if resolve != "resolve" or repo not in REPOS:
            return self.answer(404, X_Error_Code="RepoNotFound")
        if repo == "org/gated" and self.headers.get("Authorization") != "Bearer open":
            return self.answer(
                403, X_Error_Code="GatedRepo", X_Error_Message="Access to model org/gated is restricted"
            )
        sha = REPOS[repo].get(revision, revision)
        if file not in FILES.get((repo, sha), {}):
            return self.answer(404, X_Error_Code="EntryNotFound")
        data = FILES[repo, sha][file]
        return self.answer(
            200, data, ETag=f'"{hashlib.sha1(data).hexdigest()}"', X_Repo_Commit=sha, Accept_Ranges="bytes"
        )

    do_HEAD = do_GET

    def info(self, path):
        org, name, *more = path.split("/")
        repo = f"{org}/{name}"
        if repo not in REPOS:
            return self.answer(
                401 if name == "private" else 404,
                b'{"error": "Repository not found"}',
                X_Error_Code="RepoNotFound",
                X_Error_Message="Repository not found",
            )
        revision = "/".join(more[1:]) or "main"
        sha = REPOS[repo].get(revision, revision)
        if (repo, sha) not in FILES:
            return self.answer(
                404,
                b'{"error": "Invalid rev id"}',
                X_Error_Code="RevisionNotFound",
                X_Error_Message="Invalid rev id",
            )
        files = FILES[repo, sha]
        if more[:1] == ["tree"]:
            return self.answer(
                200,
                json.dumps(
                    [
                        {"type": "file", "path": f, "size": len(d), "oid": hashlib.sha1(d).hexdigest()}
                        for f, d in files.items()
                    ]
                ).encode(),
            )
        return self.answer(
            200,
            json.dumps(
                {
                    "_id": "1",
                    "id": repo,
                    "modelId": repo,
                    "sha": sha,
                    "private": False,
                    "tags": [],
                    "downloads": 0,
                    "likes": 0,
                    "siblings": [{"rfilename": f} for f in files],
                }
            ).encode(),
        )


@pytest.fixture
def library(monkeypatch):
    "huggingface_hub, and an environment that does not speak of this user."
    for name in (
        "HF_HUB_OFFLINE",
        "HF_TOKEN",
        "HF_ENDPOINT",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SUBWORD_NB_QUIET", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    found = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(
        "huggingface_hub.constants.HF_HUB_OFFLINE", False
    )  # read once, when another test may have imported it
    return found


@pytest.fixture
def server(library):
    "A hub on this machine; its address, and what it was asked."
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    served.asked, served.down = [], 0
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    served.endpoint = f"http://127.0.0.1:{served.server_address[1]}"
    yield served
    served.shutdown()
    served.server_close()


def names(folder) -> list[str]:
    "The files of a folder and of those in it."
    return sorted(p.relative_to(folder).as_posix() for p in Path(folder).rglob("*") if p.is_file())


@pytest.mark.parametrize(
    "repo, expected",
    [
        ("org/whole", ["tokenizer.json", "tokenizer_config.json"]),
        ("org/bert", ["tokenizer_config.json", "vocab.txt"]),
        (
            "org/chat",
            [
                "additional_chat_templates/rag.jinja",
                "chat_template.jinja",
                "chat_templates/tool_use.jinja",
                "tokenizer.json",
            ],
        ),
        ("org/odd", ["qwen.tiktoken", "spiece.model", "tokenizer.model.v1"]),
    ],
)
def test_only_the_tokenizer_is_fetched(server, tmp_path, repo, expected):
    folder = hub_folder(repo, cache_dir=tmp_path / "cache", endpoint=server.endpoint, token=False)
    assert names(folder) == expected
    assert folder.is_relative_to((tmp_path / "cache").resolve())
    assert not (tmp_path / "evil.model").exists()
    fetched = {
        path.split("/resolve/")[1].split("/", 1)[1] for _, path, _ in server.asked if "/resolve/" in path
    }
    assert fetched == set(expected), "weights and other folders are not asked for"
    assert (folder / expected[-1]).read_bytes() == FILES[repo, SHA][expected[-1]]


def test_revisions(server, tmp_path):
    ask = dict(cache_dir=tmp_path, endpoint=server.endpoint, token=False)
    new, old = hub_folder("org/whole", **ask), hub_folder("org/whole", revision="v1", **ask)
    assert (new.name, old.name) == (SHA, OLD)
    assert b"bun" in (old / "tokenizer.json").read_bytes()
    assert hub_folder("org/whole", revision=OLD, **ask) == old


def test_the_second_time_only_the_commit_is_asked_for_and_nothing_if_it_is_known(server, tmp_path):
    ask = dict(cache_dir=tmp_path, endpoint=server.endpoint, token=False)
    folder = hub_folder("org/whole", **ask)
    assert (folder / "tokenizer.json").resolve().parent.name == "blobs" and (
        tmp_path / "models--org--whole/refs/main"
    ).read_text() == SHA
    for options, asked in (
        ({}, ["api/models/org/whole/revision/main"]),
        ({"revision": SHA}, []),
        ({"local_files_only": True}, []),
    ):
        server.asked.clear()
        assert hub_folder("org/whole", **ask, **options) == folder
        assert [path for _, path, _ in server.asked] == asked


def test_offline_by_the_environment(server, tmp_path, monkeypatch):
    ask = dict(cache_dir=tmp_path, endpoint=server.endpoint, token=False)
    folder = hub_folder("org/whole", **ask)
    server.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hub_folder("org/whole", **ask) == folder
    with pytest.raises(
        FileNotFoundError,
        match=r"org/bert: it is not in the cache, .* download it once without HF_HUB_OFFLINE",
    ):
        hub_folder("org/bert", **ask)
    assert not server.asked


def test_the_cache_serves_when_the_network_is_down(server, tmp_path):
    ask = dict(cache_dir=tmp_path, token=False)
    folder = hub_folder("org/whole", endpoint=server.endpoint, **ask)
    assert hub_folder("org/whole", endpoint=closed_port(), **ask) == folder
    with pytest.raises(ConnectionError, match="org/bert: the hub could not be reached .* check the network"):
        hub_folder("org/bert", endpoint=closed_port(), **ask)


def closed_port() -> str:
    "An address where nobody listens."
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_hub_that_is_ill(server, tmp_path, status, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between tries
    server.down = status
    with pytest.raises(
        ConnectionError, match="org/whole: the hub could not be reached or did not answer as expected"
    ):
        hub_folder("org/whole", cache_dir=tmp_path, endpoint=server.endpoint, token=False)


@pytest.mark.parametrize(
    "repo, revision, kind, message",
    [
        (
            "org/nobody",
            None,
            FileNotFoundError,
            "org/nobody: the hub has no such repository, or it is private",
        ),
        (
            "org/private",
            None,
            FileNotFoundError,
            "the hub has no such repository, or it is private; .* pass token=",
        ),
        ("org/whole", "v9", FileNotFoundError, "org/whole at v9: there is no such branch, tag or commit"),
        ("org/gated", None, PermissionError, "org/gated: access must be requested"),
        (
            "org/weights",
            None,
            FileNotFoundError,
            "org/weights: there is no tokenizer in this repository; .* A GGUF file contains its own",
        ),
        ("org/empty", None, (FileNotFoundError, ConnectionError), "org/empty"),
    ],
)
def test_what_is_missing_is_said(server, tmp_path, repo, revision, kind, message):
    with pytest.raises(kind, match=message):
        hub_folder(repo, revision=revision, cache_dir=tmp_path, endpoint=server.endpoint, token=False)


def test_a_token_opens_what_is_gated(server, tmp_path):
    folder = hub_folder("org/gated", cache_dir=tmp_path, endpoint=server.endpoint, token="open")
    assert names(folder) == ["tokenizer.json"]
    assert {a for _, p, a in server.asked if "/resolve/" in p} == {"Bearer open"}


def prepared(cache, repo="org/whole", files=("tokenizer.json",), revision="main") -> Path:
    "A cache folder as huggingface_hub lays it out."
    there = cache / f"models--{repo.replace('/', '--')}"
    (there / "refs").mkdir(parents=True)
    (there / "refs" / revision).write_text(SHA)
    folder = there / "snapshots" / SHA
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_bytes(TOKENIZER)
    return folder


def test_a_prepared_cache(library, tmp_path):
    folder = prepared(tmp_path)
    assert hub_folder("org/whole", cache_dir=tmp_path, local_files_only=True) == folder
    assert hub_folder("org/whole", revision=SHA, cache_dir=tmp_path, local_files_only=True) == folder
    with pytest.raises(FileNotFoundError, match="org/whole at v1: it is not in the cache"):
        hub_folder("org/whole", revision="v1", cache_dir=tmp_path, local_files_only=True)


def test_a_cache_without_the_tokenizer(library, tmp_path):
    prepared(tmp_path, files=("config.json", "tokenizer_config.json", "model.safetensors"))
    with pytest.raises(FileNotFoundError, match="org/whole: the cache has no tokenizer file of it"):
        hub_folder("org/whole", cache_dir=tmp_path, local_files_only=True)


def test_a_cache_that_cannot_be_written_is_not_called_a_network_fault(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError) as e:
        hub_folder("org/whole", cache_dir=tmp_path / "file", endpoint=server.endpoint, token=False)
    assert not isinstance(e.value, ConnectionError), e.value


@pytest.mark.parametrize(
    "repo",
    [
        "",
        "a/b/c",
        "../../etc/passwd",
        "a/../b",
        "a b/c",
        "org/",
        "/name",
        "org/na\nme",
        "órg/name",
        "x" * 60 + "/" + "y" * 60,
        "-a/b",
        "a/b.",
        "a/b--c",
        None,
        5,
        b"org/name",
    ],
)
def test_what_is_no_name_is_refused_before_anything_is_asked(library, tmp_path, repo):
    with pytest.raises(ValueError, match='repo must be "org/name" .*got'):
        hub_folder(repo, cache_dir=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("revision", ["", "../x", "a/../b", "a b", "/main", "a//b", "main\n", 3])
def test_odd_revisions(library, tmp_path, revision):
    with pytest.raises(
        ValueError, match='revision must be a branch, a tag, "refs/pr/1" or the 40 digits of a commit, got'
    ):
        hub_folder("org/whole", revision=revision, cache_dir=tmp_path)


def test_a_name_without_an_organisation_is_passed_on(library, tmp_path):
    folder = tmp_path / "models--gpt2" / "snapshots" / SHA
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    assert hub_folder("gpt2", revision=SHA, cache_dir=tmp_path, local_files_only=True) == folder


@pytest.mark.parametrize(
    "name, expected",
    [
        ("openai-community/gpt2", True),
        ("org/a.b_c-d1", True),
        ("Qwen/Qwen2.5-0.5B", True),
        ("gpt2", False),
        ("a/b/c", False),
        ("models/tokenizer.json", False),
        ("x/y.GGUF", False),
        ("./x", False),
        ("../x", False),
        ("/x/y", False),
        ("x/", False),
        ("a\\b/c", False),
        ("~/x", False),
        ("C:/x", False),
        ("a/b ", False),
        ("", False),
    ],
)
def test_looks_like_repo(name, expected):
    assert looks_like_repo(name) is expected
    assert not looks_like_repo(Path(name))


def test_without_the_extra(tmp_path):
    code = (
        "import sys; sys.modules['huggingface_hub'] = None\nfrom subword_nb.formats.hub import hub_folder\n"
        "try: hub_folder('org/name')\nexcept ImportError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HOME": str(tmp_path)},
    )
    assert 'pip install "subword_nb[hub]"' in done.stdout, done.stderr


def test_the_list_names_no_weights():
    from fnmatch import fnmatch

    weights = [
        "model.safetensors",
        "pytorch_model.bin",
        "tf_model.h5",
        "flax_model.msgpack",
        "model.onnx",
        "ggml-model.gguf",
        "model.pt",
        "consolidated.00.pth",
        "model.safetensors.index.json",
        "config.json",
    ]
    assert not [w for w in weights if any(fnmatch(w, f) for f in HUB_FILES)]


def test_loading_a_tokenizer_from_it(server, tmp_path):
    from subword_nb import Tokenizer

    folder = hub_folder("org/whole", cache_dir=tmp_path, endpoint=server.endpoint, token=False)
    assert Tokenizer.load(folder).encode("hug pug") == [0, 1]
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert Tokenizer.load(copy).encode("hug pug x") == [0, 1, 2]


def test_loading_by_name(server, tmp_path, monkeypatch):
    from subword_nb import Tokenizer

    monkeypatch.chdir(tmp_path)
    ask = dict(cache_dir=tmp_path / "cache", endpoint=server.endpoint, token=False)
    new, old = Tokenizer.load("org/whole", **ask), Tokenizer.load("org/whole", revision="v1", **ask)
    assert (new.encode("hug bun"), old.encode("hug bun")) == ([0, 2], [2, 0])
    assert new == Tokenizer.load(hub_folder("org/whole", **ask)) != old
    assert Tokenizer.load(Tokenizer.load("org/whole", **ask).save(tmp_path / "again.json")) == new
    for revision, tok in ((None, new), (SHA, new), ("v1", old), (OLD, old)):
        server.asked.clear()
        assert (
            Tokenizer.load("org/whole", revision=revision, local_files_only=True, cache_dir=ask["cache_dir"])
            == tok
        )
        assert (
            Tokenizer.load(
                "org/whole",
                revision=revision,
                cache_dir=ask["cache_dir"],
                endpoint=closed_port(),
                token=False,
            )
            == tok
        ), "the hub is down"
        assert not server.asked
    server.down = 503
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between tries
    assert Tokenizer.load("org/whole", **ask) == new
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    server.asked.clear()
    assert Tokenizer.load("org/whole", **ask) == new and not server.asked
    with pytest.raises(FileNotFoundError, match="org/bert: it is not in the cache"):
        Tokenizer.load("org/bert", **ask)


def test_options_of_the_reader_go_with_a_name(server, tmp_path):
    from subword_nb import Tokenizer

    ask = dict(cache_dir=tmp_path, endpoint=server.endpoint, token=False)
    cased, uncased = Tokenizer.load("org/bert", **ask), Tokenizer.load("org/bert", lowercase=True, **ask)
    assert (cased.encode("HUGS"), uncased.encode("HUGS")) == ([1], [2, 3]), (
        "do_lower_case of its tokenizer_config.json, and what the caller says"
    )
    with pytest.raises(ValueError, match="lowercase must .*got True"):
        Tokenizer.load("org/whole", lowercase=True, **ask)
    with pytest.raises(PermissionError, match="org/gated: access must be requested"):
        Tokenizer.load("org/gated", **ask)
    assert Tokenizer.load("org/gated", **ask | {"token": "open"}).encode("pug") == [1]


def test_a_folder_comes_before_a_repository_of_its_name(server, tmp_path, monkeypatch):
    from subword_nb import Tokenizer

    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "whole").mkdir(parents=True)
    (tmp_path / "org" / "whole" / "tokenizer.json").write_bytes(TOKENIZER.replace(b"hug", b"local"))
    assert Tokenizer.load("org/whole").encode("local") == [0]
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        Tokenizer.load(Path("org/other"))
    assert not server.asked
