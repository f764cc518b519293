"""What a study found: each cell's means over folds, and whether it is worse than boosting on the same folds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.classifiers import REFERENCE

if TYPE_CHECKING:
    import xarray as xr

LEVEL = 0.05  # of the t-test, as in the paper's Table 1


@dataclass(frozen=True)
class Verdict:
    """A cell of a study: its coordinates; means over shuffles and folds; the standard error of accuracy over folds; in
    how many of the shuffles it is worse than boosting, by a paired two-tailed t-test over folds (None: not tested)."""

    cell: dict[str, Any]
    means: dict[str, float]
    error: float
    worse: int | None
    better: int | None


def verdicts(study: xr.Dataset) -> Iterator[Verdict]:
    """Every cell of a study, in the order of its axes."""
    axes = [str(dim) for dim in study.accuracy.dims if dim not in ("seed", "fold")]
    for index in itertools.product(*(range(study.sizes[axis]) for axis in axes)):
        place = dict(zip(axes, index, strict=True))
        yield _verdict(study, place)


def _verdict(study: xr.Dataset, place: dict[str, int]) -> Verdict:
    cell, judge = study.isel(place), _judge(study, place)
    accuracy = cell.accuracy.values
    tested = None if judge is None else [_tested(mine, its) for mine, its in zip(accuracy, judge, strict=True)]
    return Verdict(
        {str(name): cell[name].item() for axis in place for name, c in study.coords.items() if c.dims == (axis,)},
        {str(name): _mean(cell[name].values) for name in study.data_vars if cell[name].dims == ("seed", "fold")},
        _mean(np.array([_error(folds[np.isfinite(folds)]) for folds in accuracy])),
        None if tested is None else sum(worse for worse, _ in tested),
        None if tested is None else sum(better for _, better in tested),
    )


def _judge(study: xr.Dataset, place: dict[str, int]) -> np.ndarray | None:
    """The accuracies (seed, fold) of boosting on the same data and else the same; None if this is it, or none is."""
    names = study.classifier.values.ravel().tolist()
    if "classifier" not in place or REFERENCE not in names or names[place["classifier"]] == REFERENCE:
        return None
    judge: np.ndarray = study.accuracy.isel({**place, "classifier": names.index(REFERENCE)}).values
    return judge


def _tested(mine: np.ndarray, its: np.ndarray) -> tuple[bool, bool]:
    """Whether these accuracies are significantly worse, or better, fold by fold."""
    from scipy.stats import ttest_rel

    both = np.isfinite(mine) & np.isfinite(its)
    apart = mine[both] - its[both]
    if apart.size < 2 or np.ptp(apart) == 0:  # all folds equally far: no spread to test against
        return False, False
    sure = bool(ttest_rel(mine[both], its[both]).pvalue <= LEVEL)
    return sure and apart.mean() < 0, sure and apart.mean() > 0


def _error(folds: np.ndarray) -> float:
    return float(np.std(folds, ddof=1) / np.sqrt(folds.size)) if folds.size > 1 else np.nan


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else np.nan
