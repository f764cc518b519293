"""The first call of a compiled program in a new process: everything compiled, traced again, and kept.

    python benchmarks/everyday_programs.py           # pins itself to one core; two minutes
    python benchmarks/everyday_programs.py --tiny    # one of them, once: tests that it runs

Each number is the median CPU time of the first call in new processes, imports excluded, less a second call's.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import timing

CALL = """
import time
import numpy as np, jax
from statmech import Scenario, load
from statmech.runtime.compiled_programs import set_up_compilation_cache
import simulate.learners.minover, simulate.kinds.online_perceptron, simulate.kinds.stored_examples
import theory.online.trajectories
from simulate.online import gram_engine as gram, perceptrons
from simulate.learners import minover
from statmech.numerics.random_numbers import make_key_data
[cell] = Scenario(rule="perceptron", K=3, t=[5], N=1000).cells()
grams, sizes, until = np.ones((8, 24, 24)), np.full(8, 24), np.full((8, 1), 10)
task = perceptrons.make_perceptron_task(cell, "float64")
calls = {{
    "equations": lambda: theory.online.trajectories.solve_cells([cell], [5.0]),
    "Gram": lambda: jax.block_until_ready(tuple(gram.run(task, make_key_data(0), np.array([50]))[:2])),
    "MinOver": lambda: jax.block_until_ready(minover.learn_minover_batch("epochs", grams, sizes, until)),
}}
jax.numpy.zeros(3) + 1
set_up_compilation_cache()
with jax.enable_x64(True):
    spent = []
    for _ in range(2):
        begun = time.process_time()
        calls["{name}"]()
        spent.append(time.process_time() - begun)
print(spent[0] - spent[1])
"""


def first_call(name: str, cache: Path) -> float:
    """CPU seconds that the first call takes longer than the second, in a new process."""
    environment = os.environ | {"STATMECH_CACHE": str(cache)}
    command = [sys.executable, "-c", CALL.format(name=name)]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def rows(names: Sequence[str], repeats: int) -> list[list[object]]:
    """For each program its CPU seconds with an empty cache, traced again, and kept."""
    found: list[list[object]] = []
    for name in names:
        empty, traced, again = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(repeats):
                cache = Path(folder) / "cache"
                shutil.rmtree(cache, ignore_errors=True)
                empty.append(first_call(name, cache))
                again.append(first_call(name, cache))
                shutil.rmtree(cache / "programs")
                traced.append(first_call(name, cache))
        found.append([name, *map(statistics.median, (empty, traced, again))])
    return found


def main() -> None:
    size = (["MinOver"], 1) if timing.tiny(__doc__) else (["equations", "Gram", "MinOver"], 3)
    timing.pin()
    header = ["", "everything compiled, s", "traced again, s", "kept, s"]
    timing.table("The first call of a program in a new process, less a second one", header, rows(*size))


if __name__ == "__main__":
    main()
