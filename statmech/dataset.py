"""The one form of every result: an xarray Dataset with the words of the field, for simulation and theory alike.

`simulate.run` and `theory.solve` return the same variables on the same sweep axes and times; the simulation has a
`seed` axis more. Students that a smaller ensemble of a sweep over K does not have are NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.axes import is_axis, points
from statmech.inputs import label_of
from statmech.scenario import Cell, Scenario

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Variable:
    """A variable's axes after the sweep's own and `seed`, its long name, and its short name for tables and plots."""

    dims: tuple[str, ...]
    long_name: str
    symbol: str


VARIABLES = {
    "R": Variable(("t", "student"), "teacher-student cosine", "$R$"),
    "q": Variable(("t", "student"), "student-student cosine, mean over the other students", "$q$"),
    "length": Variable(("t", "student"), "length |J|/sqrt(N)", "$l$"),
    "eps_g": Variable(("t", "student"), "generalization error of one student", r"$\epsilon_g$"),
    "eps_g_majority_vote": Variable(("t",), "generalization error of the majority vote", r"$\epsilon_g$ (vote)"),
    "eps_g_weight_mean": Variable(("t",), "generalization error of the weight mean", r"$\epsilon_g$ (mean)"),
}
GRAM = Variable(("t", "row", "column"), "Gram matrix of (B, J_1 .. J_K) / N", "$G$")
COORDINATES = {
    "t": "time, examples per input dimension (steps / N)",
    "seed": "independent run",
    "student": "student of the ensemble",
    "rule": "learning rule",
    "K": "number of students",
    "N": "input dimension",
    "inputs": "law of the inputs",
    "flip": "probability that the teacher's label is flipped",
    "row": "0 the teacher, k the k-th student",
    "column": "0 the teacher, k the k-th student",
}


def variables(scenario: Scenario) -> dict[str, Variable]:
    """The variables a scenario's datasets hold."""
    return VARIABLES | ({"gram": GRAM} if scenario.gram else {})


def blank(scenario: Scenario, seeds: int | None, **attrs: Any) -> xr.Dataset:
    """A dataset of NaN for every cell of the scenario, with `seed` axis if `seeds` is given."""
    import xarray as xr

    students = max(points(scenario.K))
    sizes = {"t": len(scenario.t), "student": students, "row": students + 1, "column": students + 1}
    if seeds is not None:
        sizes["seed"] = seeds
    outer = [*scenario.shape, *(["seed"] if seeds is not None else [])]
    sizes |= scenario.shape
    data = {}
    for name, variable in variables(scenario).items():
        dims = (*outer, *variable.dims)
        values = np.full([sizes[d] for d in dims], np.nan)
        data[name] = (dims, values, {"long_name": variable.long_name, "units": "1"})
    return xr.Dataset(data, _coordinates(scenario, sizes), {"config": json.dumps(scenario.config()), **attrs})


def arrays_of(dataset: xr.Dataset) -> dict[str, np.ndarray]:
    """The arrays behind a dataset's variables, to `fill`: xarray's own indexing would take most of the time."""
    return {str(name): variable.values for name, variable in dataset.data_vars.items()}


def fill(arrays: dict[str, np.ndarray], cell: Cell, values: dict[str, np.ndarray], seeds: slice | None = None) -> None:
    """Write one cell's arrays, in the axes of `VARIABLES` after an axis of seeds if `seeds` names a part of it."""
    for name, array in values.items():
        where = cell.index + ((seeds,) if seeds is not None else ())
        inner = tuple(slice(n) for n in array.shape[1 if seeds is not None else 0 :])
        arrays[name][where + inner] = array


def scenario_of(dataset: xr.Dataset) -> Scenario:
    """The scenario that a dataset was made from."""
    return Scenario(**json.loads(dataset.attrs["config"]))


def describe(along: np.ndarray, across: np.ndarray) -> dict[str, np.ndarray]:
    r"""Order parameters and errors of students given as vectors, from what lies along and across the teacher.

    `along` (..., t, K) is :math:`a_k` and `across` (..., t, K, K) the Gram matrix of the parts across the teacher.
    The majority vote, which is no function of one or two students, is left to the caller.
    """
    K = along.shape[-1]
    across2 = np.diagonal(across, axis1=-2, axis2=-1)
    length = np.hypot(along, np.sqrt(across2))
    pairs = along[..., :, None] * along[..., None, :] + across
    q = pairs / (length[..., :, None] * length[..., None, :])
    others = (q.sum(axis=-1) - 1) / (K - 1) if K > 1 else np.full(along.shape, np.nan)
    mean_across = np.sqrt(np.maximum(across.sum(axis=(-2, -1)), 0.0))
    return {
        "R": along / length,
        "q": others,
        "length": length,
        "eps_g": np.arctan2(np.sqrt(across2), along) / np.pi,
        "eps_g_weight_mean": np.arctan2(mean_across, along.sum(axis=-1)) / np.pi,
    }


def gram_of(along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """The Gram matrices (..., K+1, K+1) of teacher and students from their parts along and across the teacher."""
    students = along[..., :, None] * along[..., None, :] + across
    K = along.shape[-1]
    gram = np.ones((*along.shape[:-1], K + 1, K + 1))
    gram[..., 0, 1:] = gram[..., 1:, 0] = along
    gram[..., 1:, 1:] = students
    return gram


Progress = Callable[[int, int], None]


def tracked(items: Iterable[Any], total: int, progress: Progress | None) -> Iterable[Any]:
    """The items, telling `progress(done, total)` after each."""
    for done, item in enumerate(items, 1):
        yield item
        if progress:
            progress(done, total)


def _coordinates(scenario: Scenario, sizes: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"t": ("t", np.asarray(scenario.t), {"long_name": COORDINATES["t"], "units": "1"})}
    for name, start in (("seed", 0), ("student", 1), *((("row", 0), ("column", 0)) if scenario.gram else ())):
        if name in sizes:
            found[name] = (name, np.arange(start, start + sizes[name]), {"long_name": COORDINATES[name]})
    along = {name: dim for dim, group in scenario.dimensions.items() for name in group}
    for name, value in scenario.axis_values().items():
        if name == "inputs":
            value = tuple(map(label_of, value)) if is_axis(value) else label_of(value)
        attrs = {"long_name": COORDINATES.get(name, f"{name} of the rule")}
        found[name] = (along[name], list(value), attrs) if name in along else ((), value, attrs)
    return found
