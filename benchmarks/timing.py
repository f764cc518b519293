"""Helpers of the benchmarks: one pinned core, medians without the first call, Markdown tables.

Times on a CPU are CPU time, which a neighbour on a shared machine disturbs less than wall time; on a GPU, and
where cores are compared, they are wall time. Calls that are compared run alternately, so that a slow minute affects
all of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from typing import NamedTuple, TypeVar

Call = Callable[[], object]
Name = TypeVar("Name")
CORES = "BENCHMARK_CORES"  # environment variable: the cores this process had before it was pinned to one


class Timing(NamedTuple):
    """Seconds of the first call, compilation included, and the median of those after it."""

    first: float
    seconds: float

    @property
    def compile(self) -> float:
        return max(self.first - self.seconds, 0.0)


def tiny(description: str) -> bool:
    """Parse the command line of a script whose only option is toy size."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="toy size")
    return bool(parser.parse_args().tiny)


def pin() -> None:
    """Restart this script on its first core, BLAS on one thread: NumPy and JAX count cores only once."""
    if CORES in os.environ:
        return
    cores = sorted(os.sched_getaffinity(0))
    os.environ[CORES] = ",".join(map(str, cores))
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, cores[:1])
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.argv])


def cores() -> list[int]:
    """The cores this script was started on, before `pin`."""
    before = os.environ.get(CORES)
    return [int(core) for core in before.split(",")] if before else sorted(os.sched_getaffinity(0))


def clock() -> Callable[[], float]:
    """CPU time on a CPU, wall time on an accelerator, which works without the CPU."""
    import jax  # not before `pin`

    return time.process_time if jax.default_backend() == "cpu" else time.perf_counter


def cpu_seconds() -> float:
    """CPU time of this process and of the commands that it ran."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(calls: dict[Name, Call], repeats: int, clock: Callable[[], float]) -> dict[Name, Timing]:
    """Time calls alternately: one first call of each, then `repeats` more of each."""

    def seconds(call: Call) -> float:
        start = clock()
        call()
        return clock() - start

    first = {name: seconds(call) for name, call in calls.items()}
    rest = [{name: seconds(call) for name, call in calls.items()} for _ in range(repeats)]
    return {name: Timing(first[name], statistics.median(turn[name] for turn in rest)) for name in calls}


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table; floats with three digits."""
    print(f"\n**{title}**\n")
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(_cell(value) for value in row) + " |")
    sys.stdout.flush()


def machine() -> str:
    """Processor, versions, commit and date, in one line."""
    import jax  # not before `pin`

    from statmech.runtime.operating_system import get_processor_name
    from statmech.runtime.user_code_and_provenance import provenance

    packages = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "numpy"))
    device = jax.devices()[0].device_kind
    return (
        f"{get_processor_name()}, {os.cpu_count()} cores ({len(cores())} usable); JAX on {device}; "
        f"Python {platform.python_version()}, {packages}; commit {provenance()['commit']}; {date.today()}"
    )


def peak_memory() -> float:
    """The peak memory of this process, in MiB."""
    from statmech.runtime.operating_system import get_peak_memory  # after the restart on one core

    return get_peak_memory() / 2**20


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
