"""Best controls in the attributes of a solution: a stored one is drawn without another search."""

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

NAME = "best_controls"  # of the attribute


def written(scenario: AbstractScenario) -> dict[str, str]:
    """The attribute that holds the best controls of a solved scenario's cells."""
    found = best_controls.with_best([*scenario.cells()], scenario.recorded["t"][-1])
    return {NAME: json.dumps([best and _plain(best) for _, best in found])}


def recall(theory: xr.Dataset) -> None:
    """Take the best controls of a solution for those of its scenario, which is then not searched again.

    The attribute names no cell: it is that of the scenario's cells, in their order.
    """
    if NAME not in theory.attrs:
        return
    scenario = scenario_of(theory)
    for cell, plain in zip(scenario.cells(), json.loads(theory.attrs[NAME]), strict=True):
        if plain:
            best_controls.remember(cell, scenario.recorded["t"][-1], _best(cell.wishes, plain))


def _plain(best: Best) -> dict[str, Any]:
    controls = {
        name: {"edges": of.segments.edges, "points": of.segments.points, "values": of.values}
        for name, of in best.controls.items()
    }
    return best._asdict() | {"controls": controls, "reached": best.reached.tolist()}


def _best(wishes: dict[str, Optimal], plain: dict[str, Any]) -> Best:
    controls = {
        name: Control(Segments(tuple(of["edges"]), of["points"]), tuple(of["values"]), wishes[name])
        for name, of in plain["controls"].items()
    }
    return Best(**plain | {"controls": controls, "reached": np.array(plain["reached"])})
