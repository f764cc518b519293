"""Simulators of scenarios with P stored examples: their memory, and the penalties of `lam: best`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

from simulate.execution import work_units
from statmech.keys.sweep_grid import Cell
from statmech.kinds.convex_fit import PenalisedCell
from theory.convex.best_lambda import cap_infinite_lambda

C = TypeVar("C", bound=Cell)
PenalisedCellT = TypeVar("PenalisedCellT", bound=PenalisedCell)


class ConvexFitSimulator(work_units.PerRunSimulator[C]):
    """Base class of simulators whose runs hold all examples in memory."""

    @abstractmethod
    def count_run_bytes(self, cell: C) -> float:
        """Return the bytes of a run."""

    def get_memory_key(self, cell: C) -> str:
        """Return the key to reduce if a run does not fit into memory."""
        return "alpha"

    def describe_run(self, cell: Any) -> str:
        """Describe the size of a run for messages."""
        return f"a run with {cell.P:,} examples in {cell.N:,} dimensions"

    def check_resources(self) -> None:
        """Raise `ScenarioError` if the examples do not fit into memory."""
        for cell in self.scenario.cells():
            work_units.check_run_memory(self.get_memory_key(cell), self.describe_run(cell), self.count_run_bytes(cell))

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest run."""
        return max(map(self.count_run_bytes, self.scenario.cells()))


class PenalisedFitSimulator(ConvexFitSimulator[PenalisedCellT]):
    """Base class of simulators of learners that minimise a loss with a given or with the best penalty."""

    source = "minimisation of a convex loss"

    @abstractmethod
    def find_best_penalties(self, cells: Sequence[PenalisedCellT]) -> Iterable[float]:
        """Return the penalty of the smallest error in theory for each cell of one setting."""

    def get_penalty_strength(self, cell: PenalisedCellT) -> float:
        """Return the penalty strength of a cell, where `best` minimises the error predicted by theory."""
        if isinstance(cell.lam, str):
            return cap_infinite_lambda(self._best_penalties(cell.shared_setting)[cell.sample_size])
        return float(cell.lam)

    @cached_property
    def _best_penalties(self) -> Any:
        """Function of a setting that returns the best penalty at each sample size, searched on first use."""
        groups: dict[Hashable, list[PenalisedCellT]] = {}
        for cell in self.scenario.cells():
            groups.setdefault(cell.shared_setting, []).append(cell)

        @cache
        def search_setting(setting: Hashable) -> Mapping[float, float]:
            sizes = (cell.sample_size for cell in groups[setting])
            return dict(zip(sizes, self.find_best_penalties(groups[setting]), strict=True))

        return search_setting
