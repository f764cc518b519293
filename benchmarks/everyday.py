"""What one does all day, in CPU time over what one would otherwise wait for: small runs, fits, drags, figures.

    python benchmarks/everyday.py             # every table
    python benchmarks/everyday.py commands    # one of them
    python benchmarks/everyday.py --tiny      # the same at toy size: tests that it runs, not how fast

**commands**: a small run and its steps, and a small run of every kind of scenario, each in a new process, over
`import jax, xarray, zarr, matplotlib.pyplot`.
"Cold" has an empty cache of compiled programs, "warm" one that an earlier process filled. Processes that are compared
run alternately; their CPU time is that of all their threads, user and system.

**memory**: the memory that `--dry-run` states for a sweep of every kind, over the largest that its process holds.

**demo**: what `make demo` computes, and its stages as commands of their own, with a warm cache.

The other tables are those of `engines.py seeds` (cores), `equations.py`, `boosting.py` (trees) and `everyday_*.py`.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import timing

from statmech.runtime.operating_system import read_peak_memory

IMPORTS = ("-c", "import jax, xarray, zarr, matplotlib.pyplot")
SMALL = ("ensemble", "rule=perceptron", "K=3", "t=5", "seeds=8")
TINY = ("minover", "learner=hebb", "N=20", "alpha=1", "seeds=2")  # compiles nothing
KINDS = {  # a small run of every kind of scenario that needs no table of data, by the key that names what learns
    "rule": SMALL,
    "learner": ("minover", "alpha=1,2", "epochs=20", "seeds=4"),
    "boundary": ("stopping", "seeds=2"),
    "attention": ("attention", "seeds=2"),
    "booster": ("boosting", "s=1,3", "P=30,100", "seeds=2"),
    "classifier": ("boundaries", "folds=2"),
    "network": ("plateau", "N=1000", "t=1,5", "seeds=2"),
    "loss": ("bayes_gap", "N=100", "alpha=1,2", "seeds=2"),
    "descent": ("early_stopping", "N=400", "epochs=1,10,40", "seeds=2"),
    "clusters": ("clusters", "N=100", "alpha=1,2", "seeds=2"),
    "rule and clusters": ("clusters_online", "N=200", "t=1,2", "seeds=2"),
    "network and tasks": ("forgetting", "N=1000", "t=1,55", "seeds=2"),
    "prior": ("binary_perceptron", "N=200", "alpha=1,2", "seeds=2"),
}
HELD = {  # sweeps whose arrays take more memory than the libraries
    "rule, many recorded times": ("ensemble", "rule=perceptron", "K=3", "N=100", "t={linspace: [0.01, 20, 10000]}"),
    "rule, weight vectors": ("ensemble", "rule=perceptron", "K=2", "N=100000", "engine=vectors", "t=0.001", "seeds=8"),
    "rule, many combinations": ("ensemble", "rule=hebb", "eta={linspace: [0.1, 1, 20000]}", "N=20", "t=1", "seeds=4"),
    "learner, maximum stability": ("minover", "learner=max_stability", "N=1000", "alpha=1", "seeds=2"),
    "learner, MinOver": ("minover", "N=1500", "alpha=1", "epochs=5", "seeds=2"),
    "boundary": ("stopping", "N=1000000", "walks=4", "seeds=2"),
    "attention": ("attention", "N=50000", "t=0.001", "seeds=2"),
    "booster": ("boosting", "s=3", "N=300", "P=20000", "cap=2", "seeds=2"),
    "network": ("plateau", "M=2", "K=4", "N=2000", "t=1", "seeds=8"),
    "loss": ("bayes_gap", "N=2000", "alpha=2", "bayes=false", "seeds=2"),
    "descent": ("early_stopping", "N=2000", "epochs=1,10,40", "seeds=2"),
    "clusters": ("clusters", "N=2000", "alpha=2", "seeds=2"),
    "prior": ("binary_perceptron", "N=5000", "alpha=1.7", "steps=2", "seeds=2"),
    "rule and clusters": ("clusters_online", "N=200", "t={linspace: [0.1, 5, 20000]}", "seeds=32"),
    "network and tasks": ("forgetting", "N=200", "t={linspace: [0.1, 55, 10000]}", "seeds=32"),
}
STAGES = ("simulate", "theory", "compare", "figure")


class Process(NamedTuple):
    """Arguments of a new Python process; `statmech` commands write into a folder of their own."""

    arguments: tuple[str, ...]
    writes: bool = False
    cold: bool = False
    kept: bool = False  # its folder holds what the commands before it wrote


def statmech(command: str, *given: str, cold: bool = False, kept: bool = False) -> Process:
    return Process(("-m", "statmech", command, *given), True, cold, kept)


def seconds(process: Process, cache: Path, results: Path) -> float:
    """CPU time of a process and of those that it starts."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as new:
        out = ("--out", str(results if process.kept else new)) if process.writes else ()
        environment = os.environ | {"STATMECH_CACHE": empty if process.cold else str(cache)}
        environment["PYTHONDONTWRITEBYTECODE"] = ""  # Python keeps what it compiles, as of an installed package
        before = _children()
        subprocess.run(
            [sys.executable, *process.arguments, *out], env=environment, check=True, capture_output=True, cwd=new
        )
        return _children() - before


def medians(processes: dict[str, Process], repeats: int) -> dict[str, float]:
    """The median time of each process, run alternately; a first turn fills the cache, and counts if it is alone."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as results:

        def turn() -> dict[str, float]:
            return {name: seconds(process, Path(cache), Path(results)) for name, process in processes.items()}

        first = turn()
        turns = [turn() for _ in range(repeats)] or [first]
    return {name: statistics.median(turn[name] for turn in turns) for name in processes}


def commands(tiny: bool) -> None:
    """Small runs over the imports that no run can do without: a rule's with its steps, and one of every kind."""
    processes = {
        "the imports": Process(IMPORTS),
        "statmech --version": Process(("-m", "statmech", "--version")),
        **{f"warm run, {choice}: {' '.join(given)}": statmech("run", *given) for choice, given in KINDS.items()},
        "warm simulate": statmech("simulate", *SMALL),
        "warm theory": statmech("theory", *SMALL),
        "cold run": statmech("run", *SMALL, cold=True),
    }
    if tiny:
        processes = {name: processes[name] for name in ("the imports", "statmech --version")}
    took = medians(processes, 0 if tiny else 5)
    rows = [[name, one, one / took["the imports"]] for name, one in took.items()]
    timing.table(f"Small runs; steps of {' '.join(SMALL)}", ["", "CPU s", "over the imports"], rows)


def memory(tiny: bool) -> None:
    """The memory that a dry run states, and the largest that the same command holds, cold and warm."""
    rows = []
    for name, given in ({"learner, nothing is compiled": TINY} if tiny else HELD).items():
        with tempfile.TemporaryDirectory() as folder:
            _, printed = held(Path(folder), *given, "--dry-run")
            stated = float(next(line for line in printed.splitlines() if line.startswith("memory")).split()[2])
            cold, warm = (held(Path(folder), *given, "--fresh")[0] for _ in range(2))
            rows.append([name, stated, cold, warm, stated / cold, stated / warm])
    columns = ["", "stated, GiB", "cold", "warm", "stated over cold", "over warm"]
    timing.table("Memory of statmech simulate", columns, rows)


def held(folder: Path, *given: str) -> tuple[float, str]:
    """The largest memory of `statmech simulate` in GiB, and what it prints; its cache and results are in a folder."""
    command = [sys.executable, "-m", "statmech", "simulate", *given, "--out", str(folder / "results")]
    printed, environment = folder / "printed", os.environ | {"STATMECH_CACHE": str(folder / "cache")}
    largest = 0.0
    with printed.open("w") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.DEVNULL)
        while process.poll() is None:  # ru_maxrss of a child counts the memory of this process
            with suppress(OSError, LookupError):  # it has just ended
                largest = max(largest, read_peak_memory(f"/proc/{process.pid}/status"))
            time.sleep(0.01)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return largest / 2**30, printed.read_text()


def demo(tiny: bool) -> None:
    """The main job and its stages; at toy size none of these."""
    given, stages = (TINY, ()) if tiny else (("ensemble",), STAGES)
    run = statmech("run", *given)
    processes = {} if tiny else {"run": run}
    processes |= {stage: statmech(stage, *given, kept=True) for stage in stages}
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as results:
        first = seconds(run, Path(cache), Path(results))  # fills the cache
        took = {name: seconds(process, Path(cache), Path(results)) for name, process in processes.items()}
    rows = [["run, cold", first], *([name, one] for name, one in took.items())]
    timing.table("What make demo computes", ["", "CPU s"], rows)


def script(name: str, *sections: str) -> Callable[[bool], None]:
    """The tables of another script."""

    def run(tiny: bool) -> None:
        command = [sys.executable, str(Path(__file__).with_name(name)), *sections, *(["--tiny"] if tiny else [])]
        subprocess.run(command, check=True)

    return run


TABLES: dict[str, Callable[[bool], None]] = {
    "commands": commands,
    "memory": memory,
    "demo": demo,
    "cores": script("engines.py", "seeds"),
    "equations": script("equations.py"),
    "programs": script("everyday_programs.py"),
    "vote": script("everyday_vote.py"),
    "fits": script("everyday_fits.py"),
    "trees": script("boosting.py"),
    "live": script("everyday_live.py"),
}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(given: Sequence[str] | None = None) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("tables", nargs="*", metavar="table", choices=[*TABLES, []], help=", ".join(TABLES))
    parser.add_argument("--tiny", action="store_true", help="toy size")
    options = parser.parse_args(given)
    print(timing.machine(), flush=True)
    for name in options.tables or TABLES:
        TABLES[name](options.tiny)


if __name__ == "__main__":
    main()
