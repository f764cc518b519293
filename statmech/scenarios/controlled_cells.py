"""Grid points with keys that can be functions of time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

from statmech.controls import ControlFunction, PiecewisePolynomial, collect_segment_starts, get_initial_value
from statmech.optima import OptimalControlOptions
from statmech.parameters import format_parameter_value
from statmech.scenarios.cells import Cell, hash_identity
from statmech.scenarios.controlled_keys import find_controls


@dataclass(frozen=True, kw_only=True)
class ControlledCell(Cell):
    """A grid point with keys that can be functions of time."""

    controls: tuple[tuple[str, ControlFunction | OptimalControlOptions], ...] = ()

    @abstractmethod
    def replace_values(self, **numbers: Any) -> Self:
        """Return the cell with these numbers for keys that can be functions of time."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Values that identify this cell, keyed by the names used in random seeds."""

    def identity_hash(self) -> tuple[int, ...]:
        """Return eight integers that hash the cell's identity (`statmech.scenarios.cells.hash_identity`)."""
        return hash_identity(self.identity)

    @property
    def known_controls(self) -> dict[str, ControlFunction]:
        """Known functions of time, keyed by config key, without optimal keys."""
        return {name: control for name, control in self.controls if isinstance(control, ControlFunction)}

    @property
    def optimal_keys(self) -> dict[str, OptimalControlOptions]:
        """Options for each key to be optimised."""
        return {name: options for name, options in self.controls if isinstance(options, OptimalControlOptions)}

    @property
    def control_polynomials(self) -> dict[str, PiecewisePolynomial]:
        """Known functions of time as piecewise polynomials, which JAX can trace."""
        return {name: control.polynomials for name, control in self.known_controls.items()}

    @property
    def edges(self) -> tuple[float, ...]:
        """Start times of all segments, or an empty tuple without functions of time."""
        return collect_segment_starts(control for _, control in self.controls)

    @property
    def control_segment_layout(self) -> tuple[Any, ...]:
        """Segment edges, and number of values per segment of each function of time.

        Cells with equal layouts are integrated together.
        """
        return self.edges, tuple((name, control.segments.points) for name, control in self.known_controls.items())

    def after(self, t: float) -> Self:
        """Return the cell for the segment that starts at edge t, with time measured from t."""
        controls = {name: control.segment_from(t) for name, control in self.known_controls.items()}
        optimal_items = tuple(self.optimal_keys.items())
        cell = self.replace_values(**{name: get_initial_value(value) for name, value in controls.items()})
        return replace(cell, controls=(*find_controls(controls), *optimal_items))


def format_cell_description(name: str, values: dict[str, Any]) -> str:
    """Return the name of a learning algorithm followed by its values, for messages.

    >>> format_cell_description("hebb", {"eta": 0.5, "flip": 0.1})
    'hebb (eta = 0.5, flip = 0.1)'
    """
    return f"{name} ({', '.join(f'{key} = {format_parameter_value(value)}' for key, value in values.items())})"
