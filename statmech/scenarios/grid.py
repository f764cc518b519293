"""The grid that the axes of a sweep span."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from statmech.controls import get_start_value
from statmech.errors import ScenarioError, format_unknown_name
from statmech.parameters import get_parameters
from statmech.scenarios.axes import MAX_CHECKED_COMBINATIONS, ensure_tuple, expand_spacing, is_axis
from statmech.scenarios.cells import Cell, GridPoint
from statmech.scenarios.kind import Kind


class Grid(Kind):
    """Axes, parallel ones listed in `zipped`, and all points of the grid that they span."""

    if TYPE_CHECKING:  # fields of `ConfigKeys`
        zipped: tuple[tuple[str, ...], ...]
        parameters: dict[str, Any]

    @abstractmethod
    def axis_values(self) -> dict[str, Any]:
        """Return the values of the keys that can be axes, in the order of the sweep's dimensions."""

    def pairs(self, first_key: str, second_key: str) -> list[tuple[Any, Any]]:
        """Return the pairs of values that two keys take: in parallel if zipped, else all combinations."""
        values = self.axis_values()
        first, second = ensure_tuple(values[first_key]), ensure_tuple(values[second_key])
        zipped = any(first_key in group and second_key in group for group in self.zipped)
        self.check_combination_count([{first_key: first}] if zipped else [{first_key: first}, {second_key: second}])
        return list(zip(first, second, strict=True) if zipped else itertools.product(first, second))

    def combinations(self, *names: str) -> Iterator[dict[str, Any]]:
        """Yield the combinations of values of these keys, together with all keys of a single value.

        The full grid is never visited, so it can be of any size.
        """
        concerned = [coordinates for coordinates in self.dimensions.values() if {*coordinates} & {*names}]
        self.check_combination_count(concerned)
        return (values for values, _ in self._points(concerned))

    def representatives(self, *names: str) -> Iterator[Any]:
        """Yield a cell for each combination of these keys, at the first values of the other axes."""
        first = {name: ensure_tuple(value)[0] for name, value in self.axis_values().items()}
        return (self.cell(first | values, ()) for values in self.combinations(*names))

    @property
    def dimensions(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Dimensions of the sweep: each with its coordinates by name (several if zipped)."""
        coordinates_by_dim: dict[str, dict[str, tuple[Any, ...]]] = {}
        for name, value in self.axis_values().items():
            if is_axis(value):
                group = next((group for group in self.zipped if name in group), (name,))
                coordinates_by_dim.setdefault("_".join(group), {})[name] = value
        return coordinates_by_dim

    @property
    def shape(self) -> dict[str, int]:
        """Length of each dimension of the sweep."""
        return {name: len(next(iter(coordinates.values()))) for name, coordinates in self.dimensions.items()}

    def check_combination_count(
        self,
        axes: Iterable[dict[str, tuple[Any, ...]]],
        max_combinations: int = MAX_CHECKED_COMBINATIONS,
        limit: str = "can be checked",
    ) -> None:
        """Raise `ScenarioError` before axes are visited that span too many points."""
        sizes = {next(iter(coordinates)): len(next(iter(coordinates.values()))) for coordinates in axes}
        if (number := math.prod(sizes.values())) > max_combinations:
            product = " x ".join(f"{size:,} {name}" for name, size in sizes.items() if size > 1)
            longest = max(sizes, key=sizes.__getitem__)
            problem = f"{product} = {number:,} combinations are more than the {max_combinations:,} that {limit}"
            raise ScenarioError([((longest,), f"{problem}: reduce the number of values on these axes")])

    def cells(self) -> Iterator[Any]:
        """Yield the cell of every grid point, the last dimension fastest.

        Returns
        -------
        iterator
            Cells: the scenario with one value of each axis.
        """
        return (self.cell(values, index) for values, index in self.grid())

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> Cell:
        """Return one cell, from the values of the keys that can be axes and its index along each dimension."""
        return GridPoint(index=index, **{**values, self.CHOICE: self.make_component(values)})

    def grid(self) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Yield the values by key and the index of every grid point, the last dimension fastest."""
        return self._points(list(self.dimensions.values()))

    def _points(self, dimensions: list[dict[str, tuple[Any, ...]]]) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Yield all points spanned by these dimensions, with the single values of all other keys."""
        fixed = {k: v for k, v in self.axis_values().items() if not is_axis(v)}
        for index in itertools.product(*(range(len(next(iter(coordinates.values())))) for coordinates in dimensions)):
            point_values = {
                name: values[i]
                for i, coordinates in zip(index, dimensions, strict=True)
                for name, values in coordinates.items()
            }
            yield {**fixed, **point_values}, index

    def chosen(self) -> list[str]:
        """Return the distinct names of the classes that this scenario selects: rules, learners, losses, ..."""
        return list(dict.fromkeys(name for choice in self.choices() for name in ensure_tuple(getattr(self, choice))))

    def make_component(self, values: dict[str, Any], choice: str = "") -> Any:
        """Return the rule, learner, loss, ... at a grid point, with its parameters.

        `choice` is the key that selects its class, by default the kind's `CHOICE`.
        """
        choice = choice or self.CHOICE
        kind = self.choices()[choice][values[choice]]
        # converted to the parameter's type: parameters enter the random seeds, and 2.0 must give the same seed as 2
        keys = {name: key for name, key in get_parameters(kind).items() if name in values}
        return kind(**{name: key.read(get_start_value(values[name], key.default)) for name, key in keys.items()})


def expand_zip_groups(config: dict[str, Any], names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Move the axes of the `zip` groups to the keys of a config, and return the names in each group."""
    groups = config.pop("zip")
    groups = groups if isinstance(groups, list | tuple) else [groups]
    for group in groups:
        if not isinstance(group, dict) or len(group) < 2:
            raise ScenarioError([(("zip",), "a zip group names two or more axes, each with its list")])
        for name in group:
            if name not in names:
                raise ScenarioError([(("zip", name), format_unknown_name(name, "an axis", names))])
            if name in config:
                raise ScenarioError([(("zip", name), f"`{name}` stands both inside and outside `zip`")])
            config[name] = expand_spacing(group[name])
        lengths = {name: len(config[name]) if isinstance(config[name], list | tuple) else 1 for name in group}
        if len(set(lengths.values())) > 1:
            lengths_given = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            raise ScenarioError([(("zip",), f"zipped axes must be of one length, but {lengths_given}")])
    return tuple(tuple(name for name in names if name in group) for group in groups)
