"""Random command lines and configs: each is answered or refused, quickly, and a refused one leaves nothing behind.

    python benchmarks/fuzz.py                  # 1,000 command lines and 1,000 configs; four to seven minutes
    python benchmarks/fuzz.py --lines 200 --configs 0 --seed 7 --show
    python benchmarks/fuzz.py --tiny           # 20 and 10

Valid lines are changed at random places: arguments removed, doubled, swapped, cut, replaced by hostile ones, with
options and keys of all commands inserted; shipped configs are changed likewise, by character, line and value. Each
runs in a fork of one process that has imported everything and computed nothing, in a separate folder, for at most
10 seconds of CPU time and with 2 GB beyond the memory of the imports. Counted as findings: a traceback; an exit code
other than 0, 1 and 2; a file written or changed although the code is 2, or outside the folder; control characters in
the output; no end within the time. The same seed gives the same lines.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import timing

SECONDS, BYTES = 10, 2 * 10**9  # CPU time and memory
PATIENCE = 60.0  # seconds of wall time, for a process that waits
IMPORTED = (
    "figures",
    "matplotlib.font_manager",  # writes a list of fonts into the home folder once
    "matplotlib.backends.backend_agg",
    "simulate.execution.store_runs",
    "theory",
    "statmech.cli",
    "figures.interactive.html_report",
    "statmech.results.export_and_citations",
    "statmech.cli.terminal_output",
)
SMALL = ["rule=hebb", "N=12", "K=1", "t=1", "seeds=2"]
WORKING = [
    ["run", "hebb_ensemble", *SMALL],
    ["run", "x.yaml", "--out", "new"],
    ["run", "mine", "--json"],
    ["run", "capacity", "N=10", "seeds=2", "alpha=1", "learner=hebb", "--dry-run"],
    ["run", "x.yaml", "inputs={rows: {path: x.csv}}", "N=3", "--dry-run"],
    ["simulate", "x.yaml", "eta=0.5,1", "--shard", "1/2"],
    ["simulate", "mine", "seeds=3", "--memory", "4GiB"],
    ["simulate", "x.yaml", "--set", "eta=2", "--dry-run"],
    ["status", "mine", "--json"],
    ["theory", "x.yaml", "--fresh", "--out", "new"],
    ["theory", "mine"],
    ["compare", "mine"],
    ["figure", "mine", "figure=overlay"],
    ["figure", "--list"],
    ["export", "mine", "--to", "a.csv"],
    ["export", "mine", "--to", "a.nc"],
    ["report", "mine", "--out", "a.html"],
    ["explore", "x.yaml", "--port", "5009", "--no-browser"],
    ["cite", "mine"],
    ["info"],
    ["schema"],
    ["--load", "own.py", "run", "x.yaml", "rule=mine", "--dry-run"],
]
OPTIONS = [
    *("--out", "--fresh", "--dry-run", "--set", "--data-dir", "--rerun-failed", "--again", "--shard", "--memory"),
    *("--patience", "--json", "--list", "--to", "--port", "--browser", "--no-browser", "--load", "--help", "--version"),
]
KEYS = [
    *(
        "rule",
        "learner",
        "boundary",
        "attention",
        "booster",
        "classifier",
        "N",
        "K",
        "t",
        "eta",
        "alpha",
        "flip",
        "key",
    ),
    *("seeds", "start", "start.R", "start.q", "inputs", "engine", "gram", "dtype", "figure", "zip", "epochs", "margin"),
]
HOSTILE = [
    *(
        "",
        " ",
        "-",
        "--",
        ".",
        "..",
        "/",
        "~",
        "*",
        "=",
        "==",
        "=1",
        "a=",
        "%s%n",
        "$(id)",
        "`id`",
        "|",
        "\n",
        "\t",
        "é",
    ),
    *("\x1b]0;owned\x07", "\x1b[31m", "\u202e", "\udcff", "\ufeff", "\x7f", "a" * 300, "a" * 5000, "a/" * 200),
    *("nan", "inf", "-inf", "-1", "0", "1e400", "1e-400", "9" * 400, "0x10", "1_000", "null", "true", "~", "[]", "{}"),
    *(
        "[" * 200,
        "{a: " * 50,
        "[1, 1]",
        "[[1]]",
        "*a",
        "&a [*a]",
        "!!python/object:os.system x",
        "{linspace: [0, 1, 1e9]}",
    ),
    *("{linspace: [0, 1, 3]}", "{rows: {path: /dev/zero}}", "{rows: {path: pipe}}", "{rows: {path: .}}", "0.5,1", "1,"),
    *("/dev/zero", "/dev/null", "/dev/full", "/dev/stdin", "/proc/self/mem", "/proc/version", "pipe", "mine", "x.yaml"),
    *("x.csv", "own.py", "broken.py", "broken", "mine/simulation.zarr", "mine/theory.zarr/zarr.json", "nowhere/at/all"),
    *(
        "a.csv",
        "a.html",
        "a.nc",
        ".csv",
        "a.csv/b.csv",
        "1/2",
        "3/2",
        "0/0",
        "slurm",
        "500MB",
        "1e99TB",
        "[red]x[/red]",
    ),
]
FAIR = ["1", "2", "3", "0.5", "0", "1,2", "[1, 2]", "hebb", "adatron", "minover", "gibbs", "drawn", "sphere", "vectors"]
FAIR += ["float32", "true", "overlay", "{R: 0.5}", "{linspace: [1, 2, 3]}", "{alpha: [1, 2], flip: [0, 0.1]}", "clouds"]
CONFIG = "rule: hebb\nN: 12\nt: [1, 2]\nseeds: 2\nfigure: overlay\n"
OWN = "from dataclasses import dataclass\nimport statmech\n\n"
OWN += "@dataclass(frozen=True)\nclass Mine(statmech.RULES['hebb']):\n"
OWN += "    label = 'mine'\n\nstatmech.RULES['mine'] = Mine\n"
PIECES = [
    *HOSTILE,
    *(f"{key}: " for key in KEYS),
    "\n",
    "\n  ",
    ": ",
    ", ",
    "[",
    "]",
    "{",
    "}",
    "- ",
    "#",
    "'",
    '"',
    "&a ",
    "*a",
]
FINDINGS: list[str] = []


def line_of(rng: random.Random) -> list[str]:
    """A valid line, changed once to three times; its computation stays small."""
    line = list(rng.choice(WORKING))
    for _ in range(rng.choice((1, 1, 2, 3))):
        index = rng.randrange(len(line) + 1)
        rng.choice(CHANGES)(line, index, rng)
    if line[:1] and line[0] in ("run", "simulate") and rng.random() < 0.5:
        line.append("--dry-run")
    return [word.replace("\0", "") for word in line]


def _value_of(rng: random.Random) -> str:
    return rng.choice(rng.choice((FAIR, HOSTILE)))


def _drop(line: list[str], index: int, rng: random.Random) -> None:
    del line[index : index + 1]


def _double(line: list[str], index: int, rng: random.Random) -> None:
    line[index:index] = line[index : index + 1]


def _swap(line: list[str], index: int, rng: random.Random) -> None:
    rng.shuffle(line) if rng.random() < 0.2 else line[index : index + 2].reverse()


def _replace(line: list[str], index: int, rng: random.Random) -> None:
    line[index : index + 1] = [rng.choice(HOSTILE)]


def _insert(line: list[str], index: int, rng: random.Random) -> None:
    line[index:index] = [rng.choice(HOSTILE)]


def _option(line: list[str], index: int, rng: random.Random) -> None:
    option = rng.choice(OPTIONS)
    line[index:index] = [[option], [option, rng.choice(HOSTILE)], [f"{option}={rng.choice(HOSTILE)}"]][rng.randrange(3)]


def _key(line: list[str], index: int, rng: random.Random) -> None:
    line[max(index, 2) : max(index, 2)] = [f"{rng.choice([*KEYS, *KEYS, *HOSTILE])}={_value_of(rng)}"]


def _value(line: list[str], index: int, rng: random.Random) -> None:
    word = line[index % len(line)] if line else ""
    if line:
        line[index % len(line)] = f"{word.partition('=')[0]}={_value_of(rng)}"


def _cut(line: list[str], index: int, rng: random.Random) -> None:
    if line:
        word, place = line[index % len(line)], rng.randint(0, 5)
        line[index % len(line)] = (
            word[:place] + rng.choice(["", rng.choice(HOSTILE)[:5], chr(rng.randrange(1, 256))]) + word[place + 1 :]
        )


CHANGES: list[Callable[[list[str], int, random.Random], None]]
CHANGES = [_drop, _double, _swap, _replace, _insert, _option, _option, _key, _key, _value, _value, _cut]


def config_of(rng: random.Random, shipped: list[str]) -> str:
    """A shipped config, changed once to eight times by character, line or value."""
    text = rng.choice([*shipped, CONFIG])
    for _ in range(rng.randint(1, 8)):
        index, lines = rng.randrange(len(text) + 1), text.splitlines(keepends=True)
        kind, row = rng.randrange(6), rng.randrange(len(lines) + 1)
        if kind == 0:
            text = text[:index] + rng.choice(PIECES) + text[index:]
        elif kind == 1:
            text = text[:index] + text[index + rng.randint(1, 5) :]
        elif kind == 2:
            text = "".join([*lines[:row], f"{rng.choice(KEYS)}: {_value_of(rng)}\n", *lines[row:]])
        elif kind == 3 and row < len(lines):
            lines[row] = f"{lines[row].partition(':')[0]}: {_value_of(rng)}\n"
            text = "".join(lines)
        elif kind == 4:
            text = "".join([*lines[:row], *lines[row + 1 :]])
        else:
            text = text[:index] + chr(rng.choice([rng.randrange(256), rng.randrange(0x10000)])) + text[index + 1 :]
    return text


def prepared(folder: Path) -> None:
    """A folder with results, a config, a table of inputs, a user file, and broken ones."""
    (folder / "x.yaml").write_text(CONFIG)
    (folder / "x.csv").write_text("1,2,3\n4,5,7\n0,1,0\n")
    (folder / "own.py").write_text(OWN)
    (folder / "broken.py").write_text("def (:\n")
    (folder / "broken/simulation.zarr").mkdir(parents=True)
    (folder / "broken/simulation.zarr/zarr.json").write_text('{"attributes": {"config": "{\\"rule\\": 3}"}}')
    output = folder.parent / "output"
    assert ended(["run", "x.yaml", "--out", "mine"], folder, folder.parent, output) == 0, output.read_text()


def contents(folder: Path) -> dict[str, str]:
    """The contents of a folder: files by digest, everything else by kind."""
    result = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        plain = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else str(stat.S_IFMT(mode))
        result[os.fsdecode(os.fsencode(path.relative_to(folder)))] = plain
    return result


def tried(given: list[str], template: Path, scratch: Path, config: str | None = None) -> tuple[str, str]:
    """The exit code of a line, and the findings, if any."""
    here, outside = scratch / "outer" / "here", scratch / "outer"
    shutil.rmtree(outside, ignore_errors=True)
    outside.mkdir()
    shutil.copytree(template, here)
    os.mkfifo(here / "pipe")
    (outside / "home").mkdir()
    if config is not None:
        (here / "bad.yaml").write_text(config, encoding="utf-8", errors="surrogatepass")
    before = contents(outside)
    code = ended(given, here, outside / "home", scratch / "output")
    output = (scratch / "output").read_bytes().decode(errors="replace")
    new = [name for name, what in contents(outside).items() if before.get(name) != what]
    new += [name for name in before if not (outside / name).exists() and not (outside / name).is_symlink()]
    return str(code), "; ".join(_wrong(code, output, new))


def _wrong(code: int | str, output: str, new: list[str]) -> Iterator[str]:
    from statmech.errors import escape_text

    if code not in (0, 1, 2):
        yield f"ended with {code}"
    if "Traceback (most recent call last)" in output:
        yield f"traceback: {output.splitlines()[-1]}"
    if code == 2 and new:
        yield f"wrote {new[:3]} and {max(len(new) - 3, 0)} more although it was refused"
    if elsewhere := [name for name in new if name.split("/")[0] != "here"]:
        yield f"wrote outside: {elsewhere[:3]}"
    if escape_text(output) != output:
        yield "printed control characters"


def ended(given: list[str], here: Path, home: Path, output: Path) -> int | str:
    """The exit code of a line, run in a fork; "killed" if it did not end."""
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    process = os.fork()
    if not process:
        os.setsid()
        code = 70
        try:
            code = _run(given, here, home, out)
        finally:
            os._exit(code)
    os.close(out)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "killed"


def _run(given: list[str], here: Path, home: Path, out: int) -> int:
    import traceback

    from statmech import cli

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(here)
    os.environ["HOME"] = str(home)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (pages + BYTES, pages + BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = ["statmech", *given]
    code: Any = 0
    try:
        cli.main()
    except SystemExit as done:
        code = done.code or 0
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 1


def warm(scratch: Path) -> None:
    os.environ |= {"STATMECH_CACHE": str(scratch / "cache"), "STATMECH_DATA": str(scratch), "COLUMNS": "120"}
    for name in IMPORTED:
        import_module(name)
    try:
        page: Any = import_module("figures.explorer.page")
    except ModuleNotFoundError:
        return
    page.serve = lambda *_: None  # the page would wait for visitors


def count(
    what: str, tries: list[tuple[list[str], str | None]], template: Path, scratch: Path, show: bool
) -> list[object]:
    codes, wrong, start = Counter[str](), 0, time.perf_counter()
    for given, config in tries:
        code, findings = tried(given, template, scratch, config)
        codes[code] += 1
        wrong += bool(findings)
        if findings:
            FINDINGS.append(
                f"{findings}\n    {given!r:.600}" + (f"\n    {config!r:.1500}" if config is not None else "")
            )
            if show:
                print(FINDINGS[-1], flush=True)
    others = sum(codes.values()) - sum(codes[code] for code in "012")
    return [what, len(tries), *(codes[code] for code in "012"), others, wrong, time.perf_counter() - start]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--configs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print findings as they occur")
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    sizes = (20, 10) if given.tiny else (given.lines, given.configs)
    rng = random.Random(given.seed)
    lines = [(line_of(rng), None) for _ in range(sizes[0])]
    with tempfile.TemporaryDirectory(prefix="statmech-fuzz-") as folder:
        scratch, template = Path(folder), Path(folder) / "template"
        template.mkdir()
        warm(scratch)
        prepared(template)
        from statmech.config.config_files import SHIPPED_CONFIG_FOLDER

        shipped = [file.read_text() for file in sorted(SHIPPED_CONFIG_FOLDER.glob("*.yaml"))]
        configs = [(["run", "bad.yaml", "--dry-run"], config_of(rng, shipped)) for _ in range(sizes[1])]
        rows = [count("command lines", lines, template, scratch, given.show)]  # type: ignore[arg-type]
        rows.append(count("configs, --dry-run", configs, template, scratch, given.show))  # type: ignore[arg-type]
    print(timing.machine())
    header = ["changed", "tries", "code 0", "code 1", "code 2", "others", "findings", "seconds"]
    timing.table("Random command lines and configs", header, rows)
    print("\n".join(["", *FINDINGS]))
    sys.exit(bool(FINDINGS))


if __name__ == "__main__":
    main()
