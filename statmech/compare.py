"""Comparison of simulation and theory: `statmech.compare(results)` gives the tables, the functions here the numbers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from statmech.results.comparison import LEVEL as LEVEL
from statmech.results.comparison import ROUNDING as ROUNDING
from statmech.results.comparison import Kept as Kept
from statmech.results.comparison import Row as Row
from statmech.results.comparison import bound as bound
from statmech.results.comparison import bounded as bounded
from statmech.results.comparison import can_judge as can_judge
from statmech.results.comparison import converged as converged
from statmech.results.comparison import distances as distances
from statmech.results.comparison import fewest_seeds as fewest_seeds
from statmech.results.comparison import kept as kept
from statmech.results.comparison import rows as rows
from statmech.results.comparison import unsolved as unsolved
from statmech.results.study_tables import tables


class _CallableModule(ModuleType):
    """A module that is a function, too: `statmech.compare` has long been the name of both."""

    def __call__(self, simulation: Any, theory: Any = None) -> Any:
        return tables(simulation, theory)


sys.modules[__name__].__class__ = _CallableModule
