"""The common form of results from simulation and theory: an xarray Dataset with the terms of the field.

`simulate.run` and `theory.solve` return the same variables on the same sweep axes and recorded times; the simulation
has an additional `seed` axis, and variables that only a run has. In a sweep over K, students that a smaller ensemble
does not have are NaN, and so are learners that do not exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.inputs import Inputs, format_inputs_label
from statmech.results.stored_config import config_from_attributes, encode_attributes
from statmech.scenarios.axes import is_axis
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.registry import scenario_from
from statmech.scenarios.variables import Variable

if TYPE_CHECKING:
    import xarray as xr


def make_empty_dataset(scenario: AbstractScenario, seeds: int | None, **attrs: Any) -> xr.Dataset:
    """Return a dataset of missing values, for a simulation with these `seeds`, or for a theory if `seeds` is None."""
    import xarray as xr

    sizes = {name: len(values) for name, values in scenario.recorded_coordinates.items()}
    if seeds is not None:
        sizes["seed"] = seeds
    outer = [*scenario.shape, *(["seed"] if seeds is not None else [])]
    sizes |= scenario.shape
    data = {}
    variables = scenario.variables | ({} if seeds is not None else scenario.theory_only_variables)
    for name, variable in variables.items():
        if seeds is not None or variable.in_theory:
            dims = (*outer, *variable.dims)
            values = np.full([sizes[d] for d in dims], variable.missing)
            long_name = _make_long_name(variable, theory=seeds is None)
            data[name] = (dims, values, {"long_name": long_name, "units": "1", **variable.attrs})
    attributes = encode_attributes({"config": json.dumps(scenario.config()), **attrs})
    return xr.Dataset(data, make_coordinates(scenario, sizes), attributes)


def _make_long_name(variable: Variable, theory: bool) -> str:
    """Return a variable's long name, marked as a bound if theory only bounds the variable."""
    side = {"above": "upper bound: ", "below": "lower bound: "}.get(variable.bound if theory else "", "")
    return side + variable.long_name


def get_variable_arrays(dataset: xr.Dataset) -> dict[str, np.ndarray]:
    """Return the arrays of a dataset's variables, for `fill_arrays`.

    Indexing through xarray would take most of the time.
    """
    return {str(name): variable.values for name, variable in dataset.data_vars.items()}


def fill_arrays(
    arrays: dict[str, np.ndarray],
    index: tuple[Any, ...],
    values: dict[str, np.ndarray],
    seeds: slice | None = None,
) -> None:
    """Write the values of one parameter combination into arrays.

    If `seeds` selects some seeds, the values begin with an axis of seeds. For several combinations, `index` consists of
    arrays, and the values begin with an axis of combinations.
    """
    position = index + ((seeds,) if seeds is not None else ())
    outer = sum(map(np.ndim, index[:1])) + (seeds is not None)
    for name, array in values.items():
        arrays[name][position + tuple(slice(n) for n in array.shape[outer:])] = array


def scenario_from_dataset(dataset: xr.Dataset) -> Any:
    """Return the scenario of a dataset, from the config in its attributes.

    Parameters
    ----------
    dataset
        A dataset from a simulation or a theory.

    Returns
    -------
    AbstractScenario
        A scenario of the kind that the config describes.

    Examples
    --------
    >>> import theory
    >>> from statmech import Scenario
    >>> scenario_from_dataset(theory.solve(Scenario(rule="hebb", t=1))).rule
    'hebb'
    """
    return scenario_from(config_from_attributes(dataset.attrs))


def find_invalid_variables(dataset: xr.Dataset, scenario: AbstractScenario) -> list[str]:
    """Return the names of variables and coordinates whose dimensions or type do not match a scenario."""
    seeds = {"seed": scenario.seeds} if "seed" in dataset.dims else {}
    sizes = {name: len(values) for name, values in scenario.recorded_coordinates.items()} | scenario.shape | seeds
    variables = {name: variable for name, variable in scenario.variables.items() if seeds or variable.in_theory}
    dims = {name: (*scenario.shape, *seeds, *variable.dims) for name, variable in variables.items()}
    coords = {name: _normalise_dims(coordinate[0]) for name, coordinate in make_coordinates(scenario, seeds).items()}
    lacking = [name for name in coords if name not in dataset.coords]
    wrong = [name for name, expected in (dims | coords).items() if name in dataset and dataset[name].dims != expected]
    lengths = [dim for dim, size in dataset.sizes.items() if size != sizes.get(str(dim), size)]
    texts = [name for name, array in dataset.data_vars.items() if array.dtype.kind not in "biuf"]
    return [*lacking, *wrong, *map(str, (*lengths, *texts))]


def _normalise_dims(names: Any) -> tuple[Any, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def compute_student_order_parameters(
    parallel: np.ndarray, perpendicular: np.ndarray, length: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    r"""Compute R, length and generalization error of students, from their components relative to the teacher.

    .. math:: R = a / l, \quad l = \sqrt{a^2 + b^2}, \quad \epsilon_g = \arctan(b / a) / \pi

    Parameters
    ----------
    parallel, perpendicular
        Lengths a and b of the components parallel and perpendicular to the teacher, of any shape; b >= 0.
    length
        l, if it is known more exactly than by this formula.

    Returns
    -------
    Arrays of the same shape; R is NaN for a student of length 0.

    >>> parameters = compute_student_order_parameters(np.array(1.0), np.array(1.0))
    >>> {name: float(value.round(3)) for name, value in parameters.items()}
    {'R': 0.707, 'length': 1.414, 'eps_g': 0.25}
    """
    length = np.hypot(parallel, perpendicular) if length is None else length
    return {"R": parallel / length, "length": length, "eps_g": np.arctan2(perpendicular, parallel) / np.pi}


def compute_ensemble_order_parameters(parallel: np.ndarray, perpendicular_gram: np.ndarray) -> dict[str, np.ndarray]:
    r"""Compute order parameters and errors of an ensemble, from the students' components relative to the teacher.

    The error of the majority vote depends on more than pairs of students, and is computed elsewhere.

    Parameters
    ----------
    parallel
        Components :math:`a_k` parallel to the teacher, of shape (..., t, K).
    perpendicular_gram
        The Gram matrix of the components perpendicular to the teacher, of shape (..., t, K, K).

    Returns
    -------
    R, q (a student's mean over the others), length and eps_g, of shape (..., t, K), and eps_g of the weight mean,
    (..., t).
    """
    K = parallel.shape[-1]
    perpendicular_squared = np.diagonal(perpendicular_gram, axis1=-2, axis2=-1)
    student = compute_student_order_parameters(parallel, np.sqrt(perpendicular_squared))
    length = student["length"]
    pairs = parallel[..., :, None] * parallel[..., None, :] + perpendicular_gram
    q = pairs / (length[..., :, None] * length[..., None, :])
    mean_overlap = (q.sum(axis=-1) - 1) / (K - 1) if K > 1 else np.full(parallel.shape, np.nan)
    mean_perpendicular = np.sqrt(np.maximum(perpendicular_gram.sum(axis=(-2, -1)), 0.0))
    weight_mean = np.arctan2(mean_perpendicular, parallel.sum(axis=-1)) / np.pi
    return {**student, "q": mean_overlap, "eps_g_weight_mean": weight_mean}


def make_gram_matrix(parallel: np.ndarray, perpendicular_gram: np.ndarray) -> np.ndarray:
    """Return the Gram matrices (..., K+1, K+1) of teacher and students.

    The students are given by their components parallel to the teacher, and by the Gram matrix of the perpendicular
    components.
    """
    students = parallel[..., :, None] * parallel[..., None, :] + perpendicular_gram
    K = parallel.shape[-1]
    gram = np.ones((*parallel.shape[:-1], K + 1, K + 1))
    gram[..., 0, 1:] = gram[..., 1:, 0] = parallel
    gram[..., 1:, 1:] = students
    return gram


ProgressCallback = Callable[[int, int], None]


def report_progress(items: Iterable[Any], total: int, progress: ProgressCallback | None) -> Iterable[Any]:
    """Yield the items, and call `progress(done, total)` after each item."""
    for count, item in enumerate(items, 1):
        yield item
        if progress:
            progress(count, total)


def _make_axis_label(value: Any) -> Any:
    """Return a value on an axis as a number, or as a text label."""
    if isinstance(value, str | Number):
        return value
    return format_inputs_label(value) if isinstance(value, Inputs) else str(value)


def make_coordinates(scenario: AbstractScenario, sizes: dict[str, int]) -> dict[str, Any]:
    """Return the coordinates of a scenario's dataset, with descriptions.

    They include seeds if `sizes` has a number of seeds.
    """
    recorded = scenario.recorded_coordinates | ({"seed": np.arange(sizes["seed"])} if "seed" in sizes else {})
    coords: dict[str, Any] = {
        name: (name, values, {"long_name": scenario.describe(name).meaning} | ({"units": "1"} if name == "t" else {}))
        for name, values in recorded.items()
    }
    axis_by_name = {name: dim for dim, group in scenario.dimensions.items() for name in group}
    for name, value in scenario.axis_values().items():
        value = tuple(map(_make_axis_label, value)) if is_axis(value) else _make_axis_label(value)
        # one text label turns all values of the axis into text
        if is_axis(value) and any(isinstance(label, str) for label in value):
            value = tuple(label if isinstance(label, str) else f"{label:.15g}" for label in value)
        attrs = {"long_name": scenario.describe(name).meaning}
        coords[name] = (axis_by_name[name], list(value), attrs) if name in axis_by_name else ((), value, attrs)
    for name, (dims, values) in scenario.derived_coordinates.items():
        coords[name] = (dims, values, {"long_name": scenario.describe(name).meaning})
    return coords
