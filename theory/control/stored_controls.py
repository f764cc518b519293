"""Best controls stored as an attribute of a solution, so that drawing requires no new search."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from statmech.controls import ControlFunction, TimeSegments
from statmech.optima import OptimalControlOptions
from statmech.results.dataset import scenario_from_dataset
from statmech.scenarios.base import AbstractScenario
from theory.control import best_controls
from theory.control.best_controls import BestControls

BEST_CONTROLS_ATTRIBUTE = "best_controls"  # attribute of the dataset


def make_controls_attribute(scenario: AbstractScenario) -> dict[str, str]:
    """Return the attribute with the best controls of the cells of a solved scenario."""
    optima = best_controls.add_best_controls([*scenario.cells()], scenario.recorded_coordinates["t"][-1])
    return {BEST_CONTROLS_ATTRIBUTE: json.dumps([best and _serialise_controls(best) for _, best in optima])}


def restore_best_controls(theory: xr.Dataset) -> None:
    """Load the best controls stored in a solution into the cache of this process.

    The attribute lists the controls in the order of the scenario's cells, without naming cells.
    """
    if BEST_CONTROLS_ATTRIBUTE not in theory.attrs:
        return
    scenario = scenario_from_dataset(theory)
    for cell, plain in zip(scenario.cells(), json.loads(theory.attrs[BEST_CONTROLS_ATTRIBUTE]), strict=True):
        if plain:
            best_controls.cache_best_controls(
                cell, scenario.recorded_coordinates["t"][-1], _deserialise_controls(cell.optimal_keys, plain)
            )


def _serialise_controls(best: BestControls) -> dict[str, Any]:
    controls = {
        name: {"edges": control.segments.edges, "points": control.segments.points, "values": control.values}
        for name, control in best.controls.items()
    }
    return best._asdict() | {"controls": controls, "reached": best.reached.tolist()}


def _deserialise_controls(options: dict[str, OptimalControlOptions], plain: dict[str, Any]) -> BestControls:
    controls = {
        name: ControlFunction(
            TimeSegments(tuple(stored["edges"]), stored["points"]), tuple(stored["values"]), options[name]
        )
        for name, stored in plain["controls"].items()
    }
    return BestControls(**plain | {"controls": controls, "reached": np.array(plain["reached"])})
