"""The command line as a shell uses it: pipes, signals, exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import run

TEXT = "hugs and pugs, naïve 你好\n\n\tpuns \r\n'quotes' \x00 end without newline"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    "A folder with a text and a tokenizer trained on it."
    home = tmp_path_factory.mktemp("cli")
    (home / "text.txt").write_bytes((TEXT * 20).encode())
    (home / "empty.txt").write_bytes(b"")
    (home / "bad.txt").write_bytes(b"caf\xe9")
    (home / "damaged.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr'")
    done = run("train", "text.txt", "--vocab-size", 300, "--special-token", "<s>", "-o", "tok.json", cwd=home)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().startswith("tok.json: 300 pieces")
    return home


def test_the_installed_command_is_there():
    script = Path(sys.executable).with_name("subword-nb")
    if not script.exists():
        pytest.skip("the package is not installed beside this Python")
    assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout.startswith(
        "subword-nb "
    )


def test_commands_import_the_benchmark_only_when_it_is_called():
    "Its imports took a third of a short command's time."
    code = "import sys, subword_nb.cli.main; print('subword_nb.cli.bench' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert "--library" in run("bench", "--help").stdout.decode()
    assert "'bench'" in run("benc").stderr.decode()


@pytest.mark.parametrize(
    "args",
    [[], ["--help"], *([c, "--help"] for c in ("demo", "train", "encode", "decode", "inspect"))],
    ids=" ".join,
)
def test_help_teaches_by_example(args):
    done = run(*args)
    assert done.returncode == 0
    assert "subword-nb " + (args[0] if args and args[0] != "--help" else "demo") in done.stdout.decode()
    assert "Traceback" not in done.stderr.decode()


def test_demo_works_and_leaves_nothing(tmp_path):
    done = run("demo", cwd=tmp_path, NO_COLOR="1")
    out = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert "2,000 pieces" in out and "the same ids" in out and "\x1b[" not in out
    assert not list(tmp_path.iterdir())
    assert run("demo", "--out", "tok.json", "--vocab-size", 400, cwd=tmp_path).returncode == 0
    assert json.loads(run("inspect", "tok.json", "--json", cwd=tmp_path).stdout)["vocab_size"] == 400


@pytest.mark.parametrize(
    "form, text",
    [
        ("ids", TEXT),
        ("jsonl", TEXT),
        ("ids", ""),
        ("jsonl", "\n"),
        ("ids", "a\n"),
        ("jsonl", "<s>"),
        ("ids", " "),
    ],
)
def test_what_goes_through_the_pipe_comes_out(folder, form, text):
    ids = run("encode", "-t", "tok.json", "--format", form, data=text.encode(), cwd=folder)
    assert ids.returncode == 0 and ids.stdout.count(b"\n") == 1
    assert run("decode", "-t", "tok.json", data=ids.stdout, cwd=folder).stdout == text.encode()


def test_files_arrays_and_lines(folder):
    assert run("encode", "-t", "tok.json", "--file", "text.txt", "-o", "ids.npy", cwd=folder).returncode == 0
    assert (
        run("decode", "-t", "tok.json", "--file", "ids.npy", cwd=folder).stdout
        == (folder / "text.txt").read_bytes()
    )
    assert (
        run(
            *("encode", "-t", "tok.json", "--lines", "-o", "/dev/stdout"),
            data=b"a\nb\n",
            cwd=folder,
            NO_COLOR="1",  # in a process, which has such a file
        ).stdout.count(b"\n")
        == 2
    )
    lines = run("encode", "-t", "tok.json", "--lines", data=b"hug\npug\n\nhugs", cwd=folder).stdout
    assert run("decode", "-t", "tok.json", "--lines", data=lines, cwd=folder).stdout == b"hug\npug\n\nhugs\n"
    assert (
        run("encode", "-t", "tok.json", "--format", "pieces", "hugs", cwd=folder)
        .stdout.decode()
        .replace(" ", "")
        .strip()
        == "hugs"
    )
    import numpy as np

    assert np.load(folder / "ids.npy").dtype == np.uint32


def test_patterns_compressed_files_and_standard_input_train_alike(folder):
    import gzip

    (folder / "text.txt.gz").write_bytes(gzip.compress((folder / "text.txt").read_bytes()))
    made = []
    for name, args, data in (
        ("a", ["text.txt"], b""),
        ("b", ["text.txt.gz"], b""),
        ("c", ["text.tx*"], b""),
        ("d", ["-"], (folder / "text.txt").read_bytes()),
        ("e", [], (folder / "text.txt").read_bytes()),
    ):
        done = run("train", *args, "--vocab-size", 290, "-o", f"{name}.json", data=data, cwd=folder)
        assert done.returncode == 0, done.stderr.decode()
        made.append((folder / f"{name}.json").read_bytes())
    assert made[0] == made[1] == made[3] == made[4]


MISTAKES = {
    "a missing file": (["train", "nothing.txt", "-o", "x.json"], "nothing.txt"),
    "an empty corpus": (
        ["train", "empty.txt", "-o", "x.json"],
        "the corpus must contain at least one pretoken",
    ),
    "bytes that are no text": (
        ["train", "bad.txt", "-o", "x.json"],
        "bad.txt must be UTF-8, got the byte 0xe9 at offset 3",
    ),
    "a vocabulary too small": (
        ["train", "text.txt", "--vocab-size", "9", "-o", "x.json"],
        "--vocab-size must be at least 256",
    ),
    "a vocabulary below nothing": (
        ["train", "text.txt", "--vocab-size", "-5", "-o", "x.json"],
        "--vocab-size must be at least 256",
    ),
    "special tokens twice": (
        ["train", "text.txt", "--special-token", "<s>", "--special-token", "<s>", "-o", "x.json"],
        "more than once",
    ),
    "no place for the result": (["train", "text.txt"], "add -o tok.json"),
    "an unknown algorithm": (["train", "text.txt", "--algorithm", "magic", "-o", "x.json"], "char_bpe"),
    "an option twice": (
        ["train", "text.txt", "-O", "vocab_size=9", "-o", "x.json"],
        "got vocab_size, which is there already",
    ),
    "an option of another place": (
        ["train", "text.txt", "-O", "source=3", "-o", "x.json"],
        "got source, which is not understood",
    ),
    "an option without a value": (
        ["train", "text.txt", "-O", "dropout", "-o", "x.json"],
        "write --option dropout=VALUE",
    ),
    "an option that is no truth": (
        ["train", "text.txt", "-O", "ignore_merges=yes", "-o", "x.json"],
        "ignore_merges must be True or False",
    ),
    "a name that is no pre-tokenizer": (
        ["train", "text.txt", "--pre-tokenizer", "gpt4", "-o", "x.json"],
        "pre_tokenizer must be one of gpt2, r50k",
    ),
    "no tokenizer": (["encode", "hug"], "add -t tok.json"),
    "a tokenizer that is none": (["encode", "-t", "text.txt", "hug"], "no list of pieces"),
    "a tokenizer that is missing": (["encode", "-t", "no.json", "hug"], "no.json"),
    "bad bytes on standard input": (
        ["encode", "-t", "tok.json"],
        "<stdin> must be UTF-8, got the byte 0xff at offset 1",
    ),
    "an id out of range": (
        ["decode", "-t", "tok.json", "99999"],
        "ids must be from 0 to 299 in this vocabulary of 300 pieces, got 99999",
    ),
    "an id below 0": (
        ["decode", "-t", "tok.json", "--", "66", "-1"],
        "ids must be from 0 to 299 in this vocabulary of 300 pieces, got -1",
    ),
    "an id that looks like an option": (
        ["decode", "-t", "tok.json", "-1"],
        "-1 is taken for an option; an argument that begins with - comes after --, and no id is below 0",
    ),
    "drawing from a model of merges": (
        ["encode", "-t", "tok.json", "--alpha", "0.1", "hug"],
        "add --dropout 0.1 instead",
    ),
    "an id that is none": (["decode", "-t", "tok.json", "hug"], "is not a line of ids"),
    "a damaged array": (["decode", "-t", "tok.json", "--file", "damaged.npy"], "damaged.npy"),
    "an array without a file": (["encode", "-t", "tok.json", "--format", "npy", "hug"], "--out ids.npy"),
    "a result that is no json": (["train", "text.txt", "-o", "x.txt"], "ends in .json"),
    "a result in no folder": (["train", "text.txt", "-o", "no/x.json"], "create it first"),
    "a result without a suffix": (["train", "text.txt", "-o", "x"], ".json (tokenizer.json)"),
    "a result with an unknown suffix": (
        ["train", "nothing.txt", "-o", "x.xyz"],
        "path must have the suffix of a format, one of ",
    ),
    "a result in a folder that is a file": (
        ["train", "nothing.txt", "-o", "text.txt/"],
        "there can be no such folder",
    ),
    "a conversion without a suffix": (["convert", "tok.json", "x"], "or name the format (--to)"),
    "a conversion with an unknown suffix": (["convert", "tok.json", "x.xyz"], ".tiktoken (tiktoken)"),
    "a conversion onto the file that is read": (
        ["convert", "tok.json", "./tok.json"],
        "--out must differ from the input file",
    ),
    "a cut vocabulary with an unknown suffix": (
        ["cut", "nothing.json", "--vocab-size", "290", "-o", "x.xyz"],
        "must have the suffix of a format, one of ",
    ),
    "a demonstration with an unknown suffix": (
        ["demo", "-o", "x.xyz"],
        "must have the suffix of a format, one of ",
    ),
    "a demonstration in no folder": (["demo", "-o", "no/x.json"], "create it first"),
    "a sentence that is no text": (
        ["demo", "--text", b"a\xff".decode("utf-8", "surrogateescape")],
        "--text must be UTF-8, got the byte 0xff at offset 1",
    ),
    "an unknown way with errors": (
        ["decode", "-t", "tok.json", "66", "--errors", "magic"],
        '--errors must be "strict", "replace" or "ignore", got \'magic\'',
    ),
    "a folder as a result": (["encode", "-t", "tok.json", "-o", ".", "hug"], "is a folder"),
    "an unknown option": (["encode", "--bogus"], "--bogus"),
    "an unknown command": (["trian"], "trian"),
    "a wrong number": (["train", "text.txt", "--vocab-size", "many"], "--vocab-size"),
}


@pytest.mark.parametrize("args, words", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_clear_line_and_exit_code_2(folder, args, words):
    done = run(*args, data=b"a\xffb", cwd=folder)
    lines = done.stderr.decode().splitlines()
    assert (
        done.returncode == 2
        and len(lines) == 1
        and lines[0].startswith("subword-nb: error: ")
        and words in lines[0]
    ), done
    assert not list(folder.glob("x*"))


def test_a_path_that_ends_in_a_separator_is_a_folder(folder):
    small = run("train", "text.txt", "--vocab-size", 290, "-o", "new/one/", cwd=folder)
    assert small.returncode == 0 and b"new/one/tokenizer.json: " in small.stdout.replace(b"\\", b"/"), small
    for args in (
        ["train", "text.txt", "--vocab-size", 290, "-o", "new"],
        ["cut", "tok.json", "--vocab-size", 290, "-o", "two/"],
    ):
        done = run(*args, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert (folder / args[-1] / "tokenizer.json").is_file()
    for target, kind, names in (
        ("three/", None, ["tokenizer.json"]),
        ("four/five/", "gpt2", ["merges.txt", "vocab.json"]),
        ("six/", "tiktoken", ["tokenizer.tiktoken"]),
        ("noext", "tokenizer.json", None),
    ):
        done = run("convert", "tok.json", target, *(["--to", kind] if kind else []), "--check", 0, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert (
            (folder / target).is_file()
            if names is None
            else sorted(p.name for p in (folder / target).iterdir()) == names
        )
    assert (
        b"--out must differ from the input file"
        in run("convert", "new/tokenizer.json", "new/", cwd=folder).stderr
    )


def test_errors_can_be_chosen(folder):
    assert run("encode", "-t", "tok.json", "--errors", "replace", data=b"a\xffb", cwd=folder).returncode == 0
    assert (
        run(
            "train", "bad.txt", "--errors", "ignore", "--vocab-size", 256, "-o", "lax.json", cwd=folder
        ).returncode
        == 0
    )


def test_a_reader_that_leaves_early_is_no_error(folder):
    command = [sys.executable, "-m", "subword_nb", "encode", "-t", "tok.json", "--lines"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder
    ) as p:
        p.stdout.close()
        p.stdin.write(b"hugs and pugs\n" * 50_000)
        p.stdin.close()
        assert p.stderr.read() == b""
        assert p.wait() == 141


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_is_quiet_and_leaves_no_file(folder):
    heard = {
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    }  # also where the tests were started in the background, which does not hear it
    with subprocess.Popen(
        [sys.executable, "-m", "subword_nb", "train", "-", "-o", "never.json"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        **heard,
    ) as p:
        p.stdin.write(
            b"some words " * 50_000
        )  # more than a pipe holds: when this returns, the command is reading
        p.stdin.flush()
        p.send_signal(signal.SIGINT)
        assert p.wait(60) == 130
        assert b"Traceback" not in p.stderr.read()
    assert not (folder / "never.json").exists()


def test_encode_files_speaks_as_a_shell_does(folder, tmp_path):
    command = ["encode-files", "-t", folder / "tok.json", "-o", "ids.npy"]
    (tmp_path / "a.txt").write_text("hugs")
    (tmp_path / "b.txt").write_bytes(b"hug \xff")

    def output_of(*words):
        return (
            (done := run(*command, *words, cwd=tmp_path)).returncode
            and done.stderr.decode()
            or done.stdout.decode()
        )

    said = output_of("a.txt", "b.txt")
    assert (
        "b.txt, document at byte 0 must be UTF-8, got the byte 0xff at offset 4" in said
        and "--errors replace" in said
        and "continues from ids.npy.partial" in said
        and "--restart" in said
    )
    assert "--restart" in output_of("a.txt") and "resume" not in output_of("a.txt")
    (tmp_path / "b.txt").write_bytes(b"pugs")
    assert "continued from an earlier run" in output_of("a.txt", "b.txt")
    assert "already complete" in output_of("a.txt", "b.txt")
    assert "add --overwrite to replace it" in output_of("a.txt")
    assert "--dtype must be uint16, uint32, or leave it out" in output_of("a.txt", "--dtype", "int8")
    assert '--separator must have at least one byte, got none; pass one such as "\\n"' in output_of(
        "a.txt", "--separator", ""
    )


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_says_how_encode_files_goes_on(folder, tmp_path):
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    (tmp_path / "long.txt").write_bytes(b"hugs pugs buns\n" * 20_000_000)
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "subword_nb",
            "encode-files",
            "-t",
            folder / "tok.json",
            "long.txt",
            "-o",
            "ids.npy",
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        **heard,
    ) as p:
        while (
            not (tmp_path / "ids.npy.partial" / "journal").exists()
            and not list(tmp_path.glob("ids.npy.partial*"))
            and p.poll() is None
        ):
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        assert p.wait(60) == 130
        assert (
            p.stderr.read().decode().strip()
            == "subword-nb: stopped; finished work is in ids.npy.partial; the same command continues from there, "
            "and --restart starts over"
        )


def test_wordpiece_and_unigram_from_the_command_line(folder):
    train = ["train", "text.txt", "--vocab-size", "40", "--algorithm"]
    assert (
        run(
            *train,
            "wordpiece",
            "-O",
            "objective=frequency",
            "--normalizer",
            "none",
            "-o",
            "vocab.txt",
            cwd=folder,
        ).returncode
        == 0
    )
    pieces = (
        run("encode", "-t", "vocab.txt", "--format", "pieces", "hugs", cwd=folder).stdout.decode().split()
    )
    assert "".join(p.removeprefix("##") for p in pieces) == "hugs"
    assert (
        run(
            *train,
            "unigram",
            "-O",
            "max_piece_length=3",
            "--byte-fallback",
            "--vocab-size",
            "300",
            "-o",
            "unigram.json",
            cwd=folder,
        ).returncode
        == 0
    )
    facts = json.loads(run("inspect", "unigram.json", "--json", cwd=folder).stdout)
    assert (
        facts["model"] == "Unigram"
        and facts["options"]["byte_fallback"] is True
        and max(map(int, facts["piece_lengths"])) == 6
    )
    ids = run(
        "encode", "-t", "unigram.json", "--alpha", "0.1", "--seed", "3", "hugs and puns é", cwd=folder
    ).stdout
    assert (
        ids
        == run(
            "encode", "-t", "unigram.json", "--alpha", "0.1", "--seed", "3", "hugs and puns é", cwd=folder
        ).stdout
    )
    assert run("decode", "-t", "unigram.json", data=ids, cwd=folder).stdout.decode() == "hugs and puns é"
    both = run("encode", "-t", "unigram.json", "--alpha", "1", "--dropout", "0.5", "hugs", cwd=folder)
    assert both.returncode == 2 and b"give one of them" in both.stderr
    assert (
        b"--option must be NAME=VALUE"
        in run(*train, "unigram", "-O", "seed_size", "-o", "x.json", cwd=folder).stderr
    )
    assert (
        b"--alpha must be left out for WordPiece(40 pieces), because it draws segmentations of a Unigram model"
        in run("encode", "-t", "vocab.txt", "--alpha", "1", "hugs", cwd=folder).stderr
    )
