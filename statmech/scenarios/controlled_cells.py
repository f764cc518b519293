"""Cells whose keys may be functions of time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

from statmech.controls import Control, Polynomials, at_start, edges_of
from statmech.optima import Optimal
from statmech.scenarios.cells import Cell
from statmech.scenarios.controlled_keys import controls_in


@dataclass(frozen=True, kw_only=True)
class ControlledCell(Cell):
    """A cell some of whose keys are functions of time."""

    controls: tuple[tuple[str, Control | Optimal], ...] = ()

    @abstractmethod
    def holding(self, **numbers: Any) -> Self:
        """The cell with these values of keys that may be functions of time."""

    @property
    def given(self) -> dict[str, Control]:
        """The functions of time that are known."""
        return {name: control for name, control in self.controls if isinstance(control, Control)}

    @property
    def wishes(self) -> dict[str, Optimal]:
        """The keys that are wanted at their optimum."""
        return {name: options for name, options in self.controls if isinstance(options, Optimal)}

    @property
    def polynomials(self) -> dict[str, Polynomials]:
        """The functions of time that are known, as JAX traces them."""
        return {name: control.polynomials for name, control in self.given.items()}

    @property
    def edges(self) -> tuple[float, ...]:
        """The times at which a function of time begins another segment; empty without one."""
        return edges_of(control for _, control in self.controls)

    @property
    def layout(self) -> tuple[Any, ...]:
        """The edges of its functions of time, and the values on their segments: those of cells integrated together."""
        return self.edges, tuple((name, control.segments.points) for name, control in self.given.items())

    def after(self, t: float) -> Self:
        """The cell from one of the `edges` up to the next, in the time from there on."""
        controls = {name: control.after(t) for name, control in self.given.items()}
        optimal_items = tuple(self.wishes.items())
        cell = self.holding(**{name: at_start(value) for name, value in controls.items()})
        return replace(cell, controls=(*controls_in(controls), *optimal_items))
