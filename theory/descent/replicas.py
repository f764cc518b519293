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
from statmech.order_parameters import angle_from_components
from statmech.runtime.system import count_cores, get_total_memory
from statmech.scenarios.descent import DescentCell
from theory.descent.ladder import DescentPath, has_matched_samples, simulate_descent

NUM_DESCENT_REPLICAS = 8
TARGET_STANDARD_ERRORS = {"R": 1e-4, "eps_g": 1e-4, "eps_t": 1e-3}  # standard errors at all recorded steps
MIN_REPLICA_SAMPLES, MAX_REPLICA_SAMPLES = 2**9, 2**16  # per replica
ROW_TABLE_PEAK_MEMORY_RATIO = 3  # while a table doubles, memory holds the old and the new table
MIN_SAMPLES_PER_DIRECTION = 4  # more directions than samples cannot be orthogonal
SAMPLING_ERROR_DECAY_EXPONENT = 0.9  # minimum exponent of the error's decay with the number of samples


@dataclass(frozen=True)
class DescentCurves:
    """Means and standard errors over replicas, by name of the variable, at the recorded steps.

    `eps_g` is the mean after every step. Values are NaN after an overflow.
    """

    mean: dict[str, np.ndarray]
    error: dict[str, np.ndarray]
    eps_g: np.ndarray
    samples_per_replica: int  # per replica

    def select_steps(self, indices: list[int]) -> DescentCurves:
        """Select recorded steps by their indices."""
        mean, error = ({name: values[indices] for name, values in arrays.items()} for arrays in (self.mean, self.error))
        return replace(self, mean=mean, error=error)


def compute_descent_curves(cell: DescentCell, error_factor: float = 1.0) -> DescentCurves:
    """Compute the variables of a cell at its recorded steps, with errors of 1e-4 in R and eps_g.

    There are 8 replicas with at most 2^16 samples each. Different cells have the same samples, so that curves are
    smooth functions of any parameter. Results are cached for the lifetime of the process.

    Parameters
    ----------
    cell : DescentCell
        The descent, its loss and teacher, the number of examples P/N, and the recorded steps.
    error_factor : float
        Factor applied to the target errors.

    Returns
    -------
    DescentCurves

    Raises
    ------
    ScenarioError
        If the samples need more memory than this machine has.

    Examples
    --------
    >>> from statmech.scenarios.descent import Descent
    >>> cell = next(Descent(descent="gradient", loss="logistic", alpha=2, epochs=[0, 1, 10]).cells())
    >>> found = compute_descent_curves(cell)
    >>> found.mean["eps_g"].round(3), bool(np.all(found.error["eps_g"] < 1e-4))
    (array([0.5  , 0.231, 0.213]), True)
    """
    complete_cell = _record_every_epoch(cell)
    cached = _get_cached_curves(complete_cell)
    if min(cached, default=np.inf) > error_factor:
        cached[error_factor] = _refine_curves(complete_cell, error_factor)
    return cached[min(cached)].select_steps([complete_cell.steps.index(step) for step in cell.steps])


def _record_every_epoch(cell: DescentCell) -> DescentCell:
    """Return the cell with every epoch recorded, so that a line over epochs reuses the results of the cell."""
    per_epoch = max(round(1 / cell.batch), 1)
    steps = {*cell.steps, *range(0, cell.steps[-1] + 1, per_epoch)}
    N, P = (ratio := Fraction(cell.P, cell.N)).denominator, ratio.numerator
    return replace(cell, steps=tuple(sorted(steps)), N=N, P=P, alpha=P / N, engine="auto", index=())


@lru_cache(maxsize=256)
def _get_cached_curves(cell: DescentCell) -> dict[float, DescentCurves]:
    """Return this process's cache of a cell's curves, a dictionary with the slack as its key."""
    return {}


def _refine_curves(cell: DescentCell, error_factor: float) -> DescentCurves:
    """Compute the curves of a cell, increasing the number of samples until errors are small enough."""
    size, directions = MIN_REPLICA_SAMPLES, cell.steps[-1] + 2
    while True:
        at_once = max(1, min(count_cores(), int(get_total_memory() // estimate_replica_bytes(cell, directions, size))))
        with ThreadPoolExecutor(at_once) as pool:  # NumPy releases the interpreter lock
            paths = list(pool.map(partial(simulate_descent, cell, size=size), range(NUM_DESCENT_REPLICAS)))
        result, directions = _average_paths(cell, paths, size), max(path.num_directions for path in paths)
        error = np.nanmax(
            [0.0, *np.concatenate([result.error[name] / goal for name, goal in TARGET_STANDARD_ERRORS.items()])]
        )
        is_accurate = error <= error_factor and MIN_SAMPLES_PER_DIRECTION * directions <= size
        # more samples do not help if a path diverges
        if is_accurate or size == MAX_REPLICA_SAMPLES or np.isnan(result.mean["R"]).any():
            return result
        size = _choose_next_size(size, error / error_factor, directions)
        _check_memory(cell, directions, size)


def estimate_replica_bytes(cell: DescentCell, directions: int, size: int) -> int:
    """Estimate the peak memory in bytes of a replica with these numbers of directions and samples.

    The tables grow by doubling. They contain images and slopes, on both sides if steps act on single weights, and a
    basis of both if samples are matched.
    """
    tables, number = (4, 8) if has_matched_samples(cell) else (4 if cell.has_coordinatewise_steps else 2, 4)
    return ROW_TABLE_PEAK_MEMORY_RATIO * tables * number * directions * size


def _check_memory(cell: DescentCell, directions: int, size: int) -> None:
    """Raise `ScenarioError` if a replica needs more memory than this machine has."""
    if (needed := estimate_replica_bytes(cell, directions, size)) > get_total_memory():
        sizes = f"takes {needed / 2**30:.3g} GiB, and this machine has {get_total_memory() / 2**30:.3g} GiB"
        raise ScenarioError([(("epochs",), f"theory with {directions:,} directions {sizes}")])


def _choose_next_size(size: int, error: float, directions: int) -> int:
    """Choose a power of 2, at least twice the number of samples, that should reach the target error."""
    doublings = max(1, int(np.ceil(np.log2(max(error, 1.0)) / SAMPLING_ERROR_DECAY_EXPONENT)))
    room = 1 << (MIN_SAMPLES_PER_DIRECTION * directions - 1).bit_length()
    return min(max(size << doublings, room), MAX_REPLICA_SAMPLES)


def _average_paths(cell: DescentCell, paths: list[DescentPath], size: int) -> DescentCurves:
    """Compute means and standard errors over the paths of the replicas."""
    parallel, perpendicular, train_loss, eps_t = (np.array(part) for part in list(zip(*paths, strict=True))[:4])
    eps_g = np.where(
        np.hypot(parallel, perpendicular) == 0, 0.5, angle_from_components(perpendicular, parallel) / np.pi
    )  # zero weights guess at random
    recorded = list(cell.steps)
    parallel, perpendicular = parallel[:, recorded], perpendicular[:, recorded]
    variables = {
        **_compute_weight_variables(cell, parallel, perpendicular),
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
    return DescentCurves(mean, error, np.mean(eps_g, axis=0), size)


def _compute_weight_variables(
    cell: DescentCell, parallel: np.ndarray, perpendicular: np.ndarray
) -> dict[str, np.ndarray]:
    """Return cosine, length, and the error on fresh labels or, for a linear teacher, the squared error of the field."""
    length = np.hypot(parallel, perpendicular)
    R, nans = parallel / np.where(length == 0, 1.0, length), np.full_like(parallel, np.nan)
    if isinstance(cell.teacher, LabelTeacher):
        return {"R": R, "length": length, "eps_y": label_error(cell.teacher, R), "mse": nans}
    return {"R": R, "length": length, "eps_y": nans, "mse": (1 - parallel) ** 2 + perpendicular**2}
