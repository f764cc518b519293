"""Any config is answered or refused at once: measured below two seconds of CPU time and 210 MB."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from statmech.config.config_files import MAX_CONFIG_BYTES
from statmech.config.yaml_reader import MAX_YAML_DEPTH, MAX_YAML_VALUES, YamlSizeError, load_yaml_document

SECONDS, BYTES = 5, 500_000_000  # far from the cost of a config, and from that of one that hangs
LAUGHS = "a0: &a0 [1, 1]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
PLACES = [
    *(
        "eta: *a11",
        "t: *a11",
        "K: *a11",
        "start: *a11",
        "start: {q: *a11}",
        "inputs: *a11",
        "rule: *a11",
        "figure: *a11",
    ),
    *("dtype: *a11", "gram: *a11", "seeds: *a11", "flip: *a11", "eta: {linspace: *a11}", "zip: *a11", "unknown: *a11"),
    *("zip: {eta: *a11, flip: *a11}", "inputs: {anisotropic: {spectrum: *a11}}", "? *a11\n: 1", "<<: *a11", "1"),
]
LARGE = MAX_CONFIG_BYTES - 100  # bytes: almost the largest allowed file
ROWS = "rule: hebb\nt: 1\nN: 3\ninputs: {rows: {path: %s}}\n"
CONFIGS = {
    **{f"laughs in {place}": f"{LAUGHS}{place}\n" for place in PLACES},
    "laughs in merged maps": MERGED + "eta: *a11\n",
    "lists, deep": "rule: hebb\nt: " + "[" * 5000,
    "maps, deep": "rule: hebb\nt: " + "{a: " * 5000,
    "block lists, deep": "- " * 5000,
    "block maps, deep": "".join(" " * i + "a:\n" for i in range(1000)),
    "10 MB of text": "rule: " + "x" * 10**7,
    "10 MB of spaces": "rule: hebb\n" + " " * 10**7,
    "spaces": "rule: hebb\n" + " " * LARGE,
    "line breaks": "rule: hebb\n" + "\n" * LARGE,
    "a word": "rule: " + "x" * LARGE,
    "words": "rule: " + "x " * (LARGE // 2),
    "words in lines": "rule: " + "x\n " * (LARGE // 3),
    "a quoted word": 'rule: "' + "x" * LARGE + '"',
    "quoted escapes": 'rule: "' + "\\x41" * (LARGE // 4) + '"',
    "a block of text": "rule: |\n" + " x\n" * (LARGE // 3),
    "a comment": "rule: hebb #" + "x" * LARGE,
    "comments": "rule: hebb\n" + "#\n" * (LARGE // 2),
    "a key": "x" * LARGE + ": 1\n",
    "a number": "t: " + "9" * LARGE,
    "a fraction": "t: 0." + "9" * LARGE,
    "a tag": "t: !" + "x" * LARGE + " 1",
    "an anchor": "t: &" + "x" * LARGE + " 1",
    "empty lists": "t: [" + "[]," * (LARGE // 3),
    "commas": "t: [" + "," * LARGE,
    "colons": "t: {" + ":" * LARGE,
    "questions": "? " * (LARGE // 2),
    "documents": "---\n" * (LARGE // 4),
    "unknown keys": "rule: hebb\nt: 1\n" + "".join(f"k{i}: 1\n" for i in range(12_000)),
    "unknown rules": "rule: [" + "hep, " * 24_000 + "]\nt: 1\n",
    "numbers that are none": "rule: hebb\nt: 1\neta: [" + "x, " * 24_000 + "]\n",
    "zip groups": "rule: hebb\nt: 1\nzip: [" + "{eta: [1, 2], flip: [0, 0.1]}, " * 3000 + "]\n",
    "keys given twice": "rule: hebb\n" * 12_000,
    "anchors": "t: [" + ", ".join(f"&a{i} 1" for i in range(24_000)) + "]\n",
    "20,000 moments": "rule: hebb\nt: [" + ", ".join(map(str, range(20_000))) + "]\n",
    "20,000 values": "rule: hebb\nt: 1\neta: [" + ", ".join(map(str, range(1, 20_001))) + "]\n",
    "a million values": "rule: hebb\nt: 1\neta: {linspace: [0.1, 1, 1000000]}\n",
    "a million moments": "rule: hebb\nt: {linspace: [0.1, 1, 1000000]}\n",
    "300 x 300 cosines": "rule: hebb\nt: 1\nN: 1000\nK: 300\nstart: {q: " + json.dumps([[0] * 300] * 300) + "}\n",
    "20,000 students": "rule: hebb\nt: 1\nN: 100000\nK: 20000\nstart: {R: " + json.dumps([0.0] * 20_000) + "}\n",
    "rows of a device": ROWS % "/dev/zero",
    "rows of a pipe": ROWS % "pipe",
    "rows of a link to a device": ROWS % "zero.csv",
    "rows of a folder": ROWS % ".",
    "rows that are nothing": ROWS % "empty.npy",
    "rows that say they are many": ROWS % "many.npy",
}
VALID = {"20,000 moments", "20,000 values", "a million values", "a million moments", "20,000 students"}
OVERRIDES = {
    "laughs": "eta={" + ", ".join(LAUGHS.splitlines()) + ", b: *a11}",
    "a deep list": "eta=" + "[" * 5000,
    "commas": "eta=" + "," * 100_000,
    "a word": "eta=" + "x" * 120_000,
    "dots": "." * 100_000 + "=1",
    "a deep key": "a." * 50_000 + "b=1",
}
FILES = ["pipe", "/dev/zero", "zero.csv", "/dev/stdin"]

FORKED = """
import json, os, resource, sys
from statmech.config import config_files as config
from statmech.config.config_files import load
from statmech.errors import ConfigError
seconds, most = map(int, sys.argv[1:])
load("ensemble", ["K=1,2", "eta={linspace: [1, 2, 3]}"])
for line in sys.stdin:
    name, given, overrides = json.loads(line)
    process = os.fork()
    if not process:
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + most, now + most))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        try:
            load(given, overrides, data=True)
            answer = ""
        except ConfigError as refused:
            answer = str(refused)
        except BaseException as failure:
            answer = f"FAILED {failure!r:.300}"
        print(json.dumps([name, answer]), flush=True)
        os._exit(0)
    _, status, used = os.wait4(process, 0)
    if status:
        print(json.dumps([name, f"FAILED killed by {os.waitstatus_to_exitcode(status)}"]), flush=True)
    print(f"{name}: {used.ru_utime + used.ru_stime:.2f} s, {used.ru_maxrss / 1024:.0f} MB", file=sys.stderr)
"""


def answers(asked, folder):
    """The answer to each config, by name; each is read by a separate process."""
    command = [sys.executable, "-c", FORKED, str(SECONDS), str(BYTES)]
    given = "".join(json.dumps(one) + "\n" for one in asked)
    done = subprocess.run(command, input=given, cwd=folder, capture_output=True, text=True, timeout=240)
    print(done.stderr)
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.fixture
def folder(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "empty.npy").touch()
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3), }"
    (tmp_path / "many.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n")
    return tmp_path


@pytest.mark.slow
def test_no_config_takes_much_time_or_memory(folder):
    asked = []
    for number, (name, text) in enumerate(CONFIGS.items()):
        (folder / f"{number}.yaml").write_text(text)
        asked.append([name, f"{number}.yaml", []])
    found = answers(asked, folder)
    assert found.keys() == CONFIGS.keys()
    assert {name for name, answer in found.items() if not answer} == VALID
    assert not {name: answer for name, answer in found.items() if answer.startswith("FAILED")}
    assert not {name: answer for name, answer in found.items() if len(answer) > 10_000}


@pytest.mark.slow
def test_no_override_or_special_file_takes_much_time_or_memory(folder):
    asked = [[name, "hebb_ensemble", [given]] for name, given in OVERRIDES.items()]
    found = answers([*asked, *([name, name, []] for name in FILES)], folder)
    assert found.keys() == {*OVERRIDES, *FILES}
    assert not {name: answer for name, answer in found.items() if not answer or answer.startswith("FAILED")}
    for name in FILES:
        assert found[name] == f"{name}: a pipe or a device; a config is an ordinary file"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: " + "[" * (MAX_YAML_DEPTH + 1), 1, "is nested more than 20 deep"),
        ("a: &a [1]\nb: &b [2, *b]\n", 1, "*b contains itself"),
        ("a:\n" + "- 1\n" * MAX_YAML_VALUES, MAX_YAML_VALUES - 2, "contains more than 25,000 values"),
        (LAUGHS, 5, "contains more than 25,000 values"),
    ],
)
def test_a_config_beyond_the_bounds_is_refused_in_one_line(text, line, problem):
    with pytest.raises(YamlSizeError) as refused:
        load_yaml_document(text)
    assert (refused.value.problem_mark.line, refused.value.problem) == (line, problem)


@pytest.mark.slow
def test_aliases_and_merged_maps_within_the_bounds_are_read():
    text = "a: &a [1, 2]\nb: [*a, *a]\nc: &c {x: 1}\nd:\n  <<: *c\n  y: *a\n"
    assert load_yaml_document(text) == {"a": [1, 2], "b": [[1, 2], [1, 2]], "c": {"x": 1}, "d": {"x": 1, "y": [1, 2]}}
    assert len(load_yaml_document("[" + "1, " * (MAX_YAML_VALUES - 1) + "]")) == MAX_YAML_VALUES - 1
