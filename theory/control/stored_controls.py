"""Best controls in the attributes of a solution, so that they can be drawn without a new search."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from statmech.controls import Control, Segments
from statmech.optima import Optimal
from statmech.results.dataset import scenario_of
from statmech.scenarios.base import AbstractScenario
from theory.control import best_controls
from theory.control.best_controls import Best

NAME = "best_controls"  # attribute of the dataset


def written(scenario: AbstractScenario) -> dict[str, str]:
    """Return the attribute with the best controls of the cells of a solved scenario."""
    optima = best_controls.with_best([*scenario.cells()], scenario.recorded["t"][-1])
    return {NAME: json.dumps([best and _plain(best) for _, best in optima])}


def recall(theory: xr.Dataset) -> None:
    """Restore the best controls of a scenario from its solution, so that they are not searched again.

    The attribute does not name cells. It lists controls in the order of the scenario's cells.
    """
    if NAME not in theory.attrs:
        return
    scenario = scenario_of(theory)
    for cell, plain in zip(scenario.cells(), json.loads(theory.attrs[NAME]), strict=True):
        if plain:
            best_controls.remember(cell, scenario.recorded["t"][-1], _best(cell.wishes, plain))


def _plain(best: Best) -> dict[str, Any]:
    controls = {
        name: {"edges": control.segments.edges, "points": control.segments.points, "values": control.values}
        for name, control in best.controls.items()
    }
    return best._asdict() | {"controls": controls, "reached": best.reached.tolist()}


def _best(wishes: dict[str, Optimal], plain: dict[str, Any]) -> Best:
    controls = {
        name: Control(Segments(tuple(stored["edges"]), stored["points"]), tuple(stored["values"]), wishes[name])
        for name, stored in plain["controls"].items()
    }
    return Best(**plain | {"controls": controls, "reached": np.array(plain["reached"])})
