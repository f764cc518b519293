"""Replicas of a descent: means and standard errors of its variables over independently scrambled samples."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from statmech.convex.label_error import label_error
from statmech.convex.teachers import LabelTeacher
from statmech.errors import ScenarioError
from statmech.order_parameters import angle
from statmech.runtime.system import cores, memory
from statmech.scenarios.descent import DescentCell
from theory.descent.ladder import Path, descend, matches

REPLICAS = 8
GOALS = {"R": 1e-4, "eps_g": 1e-4, "eps_t": 1e-3}  # standard errors at all recorded steps
FEWEST, MOST = 2**9, 2**16  # per replica
GROWTH = 3  # memory of a growing table: the old table and a new one of twice its size
PER_DIRECTION = 4  # with fewer samples than directions these cannot be orthogonal
ORDER = 0.9  # the error decreases at least as this power of the number of samples


@dataclass(frozen=True)
class Curves:
    """Means and standard errors over replicas, by name of the variable, at the recorded steps.

    `eps_g` is the mean after every step. Values are NaN after a number overflows.
    """

    mean: dict[str, np.ndarray]
    error: dict[str, np.ndarray]
    eps_g: np.ndarray
    samples: int  # per replica

    def select_steps(self, places: list[int]) -> Curves:
        """Select recorded steps by their indices."""
        mean, error = ({name: values[places] for name, values in arrays.items()} for arrays in (self.mean, self.error))
        return replace(self, mean=mean, error=error)


def curves(cell: DescentCell, slack: float = 1.0) -> Curves:
    """Compute the variables of a cell at its recorded steps, with enough samples for errors of 1e-4 in R and eps_g.

    There are 8 replicas with at most 2^16 samples each. Different cells have the same samples, so that curves are
    smooth functions of any parameter. Results are cached for the lifetime of the process.

    Parameters
    ----------
    cell : DescentCell
        The descent, its loss and teacher, the number of examples P/N, and the recorded steps.
    slack : float
        Factor by which errors may be larger.

    Returns
    -------
    Curves

    Raises
    ------
    ScenarioError
        If the samples need more memory than this machine has.

    Examples
    --------
    >>> from statmech.scenarios.descent import Descent
    >>> cell = next(Descent(descent="gradient", loss="logistic", alpha=2, epochs=[0, 1, 10]).cells())
    >>> found = curves(cell)
    >>> found.mean["eps_g"].round(3), bool(np.all(found.error["eps_g"] < 1e-4))
    (array([0.5  , 0.231, 0.213]), True)
    """
    complete_cell = _whole(cell)
    cached = _known(complete_cell)
    if min(cached, default=np.inf) > slack:
        cached[slack] = _computed(complete_cell, slack)
    return cached[min(cached)].select_steps([complete_cell.steps.index(step) for step in cell.steps])


def _whole(cell: DescentCell) -> DescentCell:
    """Return the cell with every epoch recorded, so that a line over epochs reuses the results of the cell."""
    per_epoch = max(round(1 / cell.batch), 1)
    steps = {*cell.steps, *range(0, cell.steps[-1] + 1, per_epoch)}
    N, P = (ratio := Fraction(cell.P, cell.N)).denominator, ratio.numerator
    return replace(cell, steps=tuple(sorted(steps)), N=N, P=P, alpha=P / N, engine="auto", index=())


@lru_cache(maxsize=256)
def _known(cell: DescentCell) -> dict[float, Curves]:
    """Return the cache of a cell's curves in this process, a dictionary with their slack as the key."""
    return {}


def _computed(cell: DescentCell, slack: float) -> Curves:
    """Compute the curves of a cell, and increase the number of samples until errors are small enough."""
    size, directions = FEWEST, cell.steps[-1] + 2
    while True:
        at_once = max(1, min(cores(), int(memory() // bytes_of(cell, directions, size))))
        with ThreadPoolExecutor(at_once) as pool:  # NumPy releases the interpreter lock
            paths = list(pool.map(partial(descend, cell, size=size), range(REPLICAS)))
        result, directions = _averaged(cell, paths, size), max(path.directions for path in paths)
        error = np.nanmax([0.0, *np.concatenate([result.error[name] / goal for name, goal in GOALS.items()])])
        is_accurate = error <= slack and PER_DIRECTION * directions <= size
        # more samples do not help if a path diverges
        if is_accurate or size == MOST or np.isnan(result.mean["R"]).any():
            return result
        size = _next_size(size, error / slack, directions)
        _check_memory(cell, directions, size)


def bytes_of(cell: DescentCell, directions: int, size: int) -> int:
    """Estimate the maximum memory in bytes of a replica with these numbers of directions and samples.

    Its tables grow by doubling. They contain images and slopes, on both sides if steps act on single weights, and a
    basis of both if samples are matched.
    """
    tables, number = (4, 8) if matches(cell) else (4 if cell.coordinatewise else 2, 4)
    return GROWTH * tables * number * directions * size


def _check_memory(cell: DescentCell, directions: int, size: int) -> None:
    """Raise `ScenarioError` if a replica needs more memory than this machine has."""
    if (needed := bytes_of(cell, directions, size)) > memory():
        sizes = f"takes {needed / 2**30:.3g} GiB, and this machine has {memory() / 2**30:.3g} GiB"
        raise ScenarioError([(("epochs",), f"theory of {directions:,} directions {sizes}")])


def _next_size(size: int, error: float, directions: int) -> int:
    """Return a power of 2 that should bring the error to its goal, at least twice the number of samples."""
    doublings = max(1, int(np.ceil(np.log2(max(error, 1.0)) / ORDER)))
    room = 1 << (PER_DIRECTION * directions - 1).bit_length()
    return min(max(size << doublings, room), MOST)


def _averaged(cell: DescentCell, paths: list[Path], size: int) -> Curves:
    """Compute means and standard errors over the paths of the replicas."""
    parallel, perpendicular, train_loss, eps_t = (np.array(part) for part in list(zip(*paths, strict=True))[:4])
    eps_g = np.where(
        np.hypot(parallel, perpendicular) == 0, 0.5, angle(perpendicular, parallel) / np.pi
    )  # w = 0 answers by a fair coin
    recorded = list(cell.steps)
    parallel, perpendicular = parallel[:, recorded], perpendicular[:, recorded]
    variables = {
        **_of_weights(cell, parallel, perpendicular),
        "eps_g": eps_g[:, recorded],
        "train_loss": train_loss,
        "eps_t": eps_t,
    }
    with np.errstate(all="ignore"):  # the square of a length overflows before the length does
        mean = {name: np.mean(values, axis=0) for name, values in variables.items()}
        error = {name: np.std(values, axis=0, ddof=1) / np.sqrt(len(paths)) for name, values in variables.items()}
    for name, values in error.items():
        overflowed = ~np.isfinite(values)
        mean[name][overflowed] = values[overflowed] = np.nan
    return Curves(mean, error, np.mean(eps_g, axis=0), size)


def _of_weights(cell: DescentCell, along: np.ndarray, across: np.ndarray) -> dict[str, np.ndarray]:
    """Return cosine, length, and the error on fresh labels or, for a linear teacher, the error of the field."""
    length = np.hypot(along, across)
    R, nans = along / np.where(length == 0, 1.0, length), np.full_like(along, np.nan)
    if isinstance(cell.teacher, LabelTeacher):
        return {"R": R, "length": length, "eps_y": label_error(cell.teacher, R), "mse": nans}
    return {"R": R, "length": length, "eps_y": nans, "mse": (1 - along) ** 2 + across**2}
