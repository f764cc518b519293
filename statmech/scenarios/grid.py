"""The grid of parameter combinations spanned by the axes of a sweep."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from statmech.controls import get_initial_value
from statmech.errors import ScenarioError, format_unknown_name
from statmech.parameters import get_parameters
from statmech.scenarios.axes import MAX_CHECKED_COMBINATIONS, ensure_tuple, expand_spacing, is_axis
from statmech.scenarios.cells import Cell, GenericCell
from statmech.scenarios.kind import ScenarioKind


class Grid(ScenarioKind):
    """The grid spanned by the axes of a sweep. Axes that vary in parallel are listed in `zipped`."""

    if TYPE_CHECKING:  # defined as fields of `ConfigKeys`
        zipped: tuple[tuple[str, ...], ...]
        parameters: dict[str, Any]

    @abstractmethod
    def axis_values(self) -> dict[str, Any]:
        """Return the values of all possible axes, in the order of the dataset dimensions."""

    def list_value_pairs(self, first_key: str, second_key: str) -> list[tuple[Any, Any]]:
        """Return all pairs of values of two keys, which vary in parallel if zipped."""
        values = self.axis_values()
        first, second = ensure_tuple(values[first_key]), ensure_tuple(values[second_key])
        zipped = any(first_key in group and second_key in group for group in self.zipped)
        self.check_combination_count([{first_key: first}] if zipped else [{first_key: first}, {second_key: second}])
        return list(zip(first, second, strict=True) if zipped else itertools.product(first, second))

    def iterate_combinations(self, *names: str) -> Iterator[dict[str, Any]]:
        """Yield all combinations of the values of these keys, with the single values of other keys.

        The full grid is never visited, so its size does not matter.
        """
        concerned = [coordinates for coordinates in self.dimensions.values() if {*coordinates} & {*names}]
        self.check_combination_count(concerned)
        return (values for values, _ in self._iterate_points(concerned))

    def iterate_representative_cells(self, *names: str) -> Iterator[Any]:
        """Yield a cell for each combination of these keys, with the first value of every other axis."""
        first = {name: ensure_tuple(value)[0] for name, value in self.axis_values().items()}
        return (self.cell(first | values, ()) for values in self.iterate_combinations(*names))

    @property
    def dimensions(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Dimensions of the sweep, each with its coordinates by name (zipped axes share a dimension)."""
        coordinates_by_dim: dict[str, dict[str, tuple[Any, ...]]] = {}
        for name, value in self.axis_values().items():
            if is_axis(value):
                group = next((group for group in self.zipped if name in group), (name,))
                coordinates_by_dim.setdefault("_".join(group), {})[name] = value
        return coordinates_by_dim

    @property
    def shape(self) -> dict[str, int]:
        """Number of points along each dimension of the sweep."""
        return {name: len(next(iter(coordinates.values()))) for name, coordinates in self.dimensions.items()}

    def check_combination_count(
        self,
        axes: Iterable[dict[str, tuple[Any, ...]]],
        max_combinations: int = MAX_CHECKED_COMBINATIONS,
        limit_description: str = "can be checked",
    ) -> None:
        """Raise `ScenarioError` if these axes span too many points to be visited."""
        sizes = {next(iter(coordinates)): len(next(iter(coordinates.values()))) for coordinates in axes}
        if (number := math.prod(sizes.values())) > max_combinations:
            product = " x ".join(f"{size:,} {name}" for name, size in sizes.items() if size > 1)
            longest = max(sizes, key=sizes.__getitem__)
            problem = (
                f"{product} = {number:,} combinations are more than the {max_combinations:,} that {limit_description}"
            )
            raise ScenarioError([((longest,), f"{problem}: use fewer values on these axes")])

    def cells(self) -> Iterator[Any]:
        """Yield the cells of all grid points, in row-major order.

        Returns
        -------
        iterator
            Cells: the scenario with one value of each axis.
        """
        return (self.cell(values, index) for values, index in self.iterate_points())

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> Cell:
        """Return the cell with these key values, at an index along each dimension."""
        return GenericCell(index=index, **{**values, self.CHOICE: self.make_component(values)})

    def iterate_points(self) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Yield the key values and the index of each grid point, in row-major order."""
        return self._iterate_points(list(self.dimensions.values()))

    def _iterate_points(
        self, dimensions: list[dict[str, tuple[Any, ...]]]
    ) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Yield the points spanned by these dimensions, with the single values of all other keys."""
        fixed = {k: v for k, v in self.axis_values().items() if not is_axis(v)}
        for index in itertools.product(*(range(len(next(iter(coordinates.values())))) for coordinates in dimensions)):
            point_values = {
                name: values[i]
                for i, coordinates in zip(index, dimensions, strict=True)
                for name, values in coordinates.items()
            }
            yield {**fixed, **point_values}, index

    def list_chosen_class_names(self) -> list[str]:
        """Return the distinct names of the rules, learners, losses, ... selected by this scenario."""
        return list(dict.fromkeys(name for choice in self.choices() for name in ensure_tuple(getattr(self, choice))))

    def make_component(self, values: dict[str, Any], choice: str = "") -> Any:
        """Return the rule, learner, loss, ... of a grid point, with its parameters.

        `choice` is the key that selects its class, by default the kind's `CHOICE`.
        """
        choice = choice or self.CHOICE
        kind = self.choices()[choice][values[choice]]
        # convert to the declared type: parameters enter random seeds, and 2.0 must give the same seed as 2
        keys = {name: key for name, key in get_parameters(kind).items() if name in values}
        return kind(**{name: key.read(get_initial_value(values[name], key.default)) for name, key in keys.items()})


def expand_zip_groups(config: dict[str, Any], names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Move the axes in the `zip` groups to the top level of a config, and return the names per group."""
    groups = config.pop("zip")
    groups = groups if isinstance(groups, list | tuple) else [groups]
    for group in groups:
        if not isinstance(group, dict) or len(group) < 2:
            raise ScenarioError([(("zip",), "a zip group must contain two or more axes, each with a list of values")])
        for name in group:
            if name not in names:
                raise ScenarioError([(("zip", name), format_unknown_name(name, "an axis", names))])
            if name in config:
                raise ScenarioError([(("zip", name), f"`{name}` is given both inside and outside `zip`")])
            config[name] = expand_spacing(group[name])
        lengths = {name: len(config[name]) if isinstance(config[name], list | tuple) else 1 for name in group}
        if len(set(lengths.values())) > 1:
            lengths_given = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            raise ScenarioError([(("zip",), f"zipped axes must have equal lengths, but {lengths_given}")])
    return tuple(tuple(name for name in names if name in group) for group in groups)
