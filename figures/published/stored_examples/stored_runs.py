"""Runs of learners of stored examples: as last recorded, with smooth theory and points that show which converged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from figures.published.log_axes import logarithmic_alpha
from figures.style import points_or_band, spread
from statmech.learners import LEARNERS
from theory.stored_examples.learning_curves import curve_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOLLOW = "full points: all runs have converged; hollow: not all"
PLACES = 300  # values of alpha of a smooth curve
THEORY: dict[str, Any] = {"color": "0.3", "label": r"theory, $N\to\infty$"}


def recorded_dimension(dataset: Any) -> str:
    """The dimension along which students are recorded: `epochs` or `updates`."""
    return next(name for name in ("epochs", "updates") if name in dataset.dims)


def at_end(dataset: Any) -> Any:
    """Students as last recorded."""
    return dataset.isel({recorded_dimension(dataset): -1})


class Line(NamedTuple):
    """Theory along alpha."""

    alpha: np.ndarray
    eps_g: np.ndarray
    kappa: np.ndarray


def smooth(learner: str, alphas: Any, flip: float) -> Line | None:
    """Theory of a learner from the first to the last alpha, at logarithmic steps; None if no theory is known."""
    limit = LEARNERS[learner].limit
    return None if limit is None else line(limit, alphas, flip)


def line(limit: str, alphas: Any, flip: float) -> Line:
    """A curve of `theory.learning_curves` from the first to the last alpha, at logarithmic steps."""
    alpha = np.geomspace(float(alphas.min()), float(alphas.max()), PLACES)
    curve = curve_of(limit, alpha, float(flip))
    return Line(alpha, curve.theta / np.pi, curve.kappa)


def theory_handle() -> Line2D:
    """The entry of a legend for lines that have the colours of the points."""
    return Line2D([], [], **THEORY)


def runs(ax: Axes, x: Any, dataset: Any, name: str, index: int, label: str | None = None) -> None:
    """Means of a variable as points: filled where all runs converged, hollow where some did not."""
    values = dataset[name]
    points_or_band(ax, x, values.mean("seed"), spread(values), index, dataset.converged.all("seed").values, label)


def equidistant(alphas: Any) -> bool:
    """True for values of alpha in equal steps, which a linear axis suits."""
    steps = np.diff(np.asarray(alphas, float))
    return steps.size > 0 and bool(np.allclose(steps, steps[0]))


def along_alpha(ax: Axes, alphas: Any) -> None:
    """An axis of alpha: linear for equal steps, otherwise logarithmic."""
    if equidistant(alphas):
        ax.set_xlabel(r"$\alpha=P/N$")
    else:
        logarithmic_alpha(ax)


def beside(alphas: Any, index: int, of: int) -> Any:
    """Values of alpha moved a little, so that the bars of `of` curves do not overlap."""
    place = index - (of - 1) / 2
    if equidistant(alphas):
        return alphas + 0.2 * place * float(np.diff(alphas)[0])
    return alphas * 1.07**place
