"""Dropout of a network's units: rates are means over all masks, and the chain has the distribution of weight vectors."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import jax
import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import ks_2samp

import simulate
import theory
from statmech import Network, NetworkTasks, ScenarioError
from statmech.scenarios.registry import scenario_from
from theory.networks import averages, equations, structured, tasks

P = 0.3
Q = [[0.5, 0.1, 0.05], [0.1, 0.4, 0.0], [0.05, 0.0, 0.6]]
UNITS = {"R": [[0.3, 0.1], [0.0, 0.2], [0.1, -0.1]], "Q": Q, "v": [0.8, -0.5, 0.6]}
GENERAL = {"network": "erf", "M": 2, "K": 3, "eta": 0.8, "eta_v": 0.3, "noise": 0.4, "decay": 0.1, "t": [1]}
LABELS = {"M": 1, "teacher": {"output": "sign"}, "start": UNITS | {"R": [[0.3], [0.0], [0.1]]}}
HEADS = {"M": 1, "tasks": 2, "overlap": 0.4, "protocol": "interleaved", "batch": 3}
KINDS = {
    "erf": {},
    "relu": {"network": "relu"},
    "linear": {"network": "linear"},
    "labels": LABELS,
    "lattice": {"network": "tanh", "M": 1, "K": 2, "start": {"Q": [[0.5, 0.1], [0.1, 0.4]], "R": 0.1}},
    "two variances": {"inputs": {"spectrum": [0.4, 1.6]}},
    "tasks": HEADS | {"start": UNITS | {"v": [UNITS["v"], [0.2, 0.4, 0.1]]}},
    "shared head": HEADS | {"heads": "shared"},
}


def cell_of(**given):
    return next(iter(scenario_from(GENERAL | {"start": UNITS} | given).cells()))


def rates_of(cell, v):
    """The rates of R, Q and v of a cell at its start, with these weights v in the output."""
    units = cell.units._replace(v=v)
    lanes = type(units)(*(part[..., None] for part in units))
    if hasattr(cell, "tasks"):
        given = tasks.equations_of(cell), tasks.setting_of([cell])
        found = tasks.task_rates(*given, lanes, np.full((cell.tasks, 1), 1 / cell.tasks))
    elif not cell.inputs.isotropic:
        modes = structured.modes_at(cell)
        own = structured.start_of(cell, modes)._replace(v=v)
        directions = structured.Directions(modes.variances[:, None], modes.shares[:, None], modes.teacher[:, None])
        own = type(own)(*(part[..., None] for part in own))
        found = structured.rates(equations.equations_of(cell), equations.setting_of([cell]), directions, own)
    else:
        entries = equations.every_entry(cell.K, cell.M)
        found = equations.rates(equations.equations_of(cell), equations.setting_of([cell]), lanes, entries)
    return [np.asarray(part)[..., 0] for part in found]


def mean_over_masks(cell):
    """The rates of a cell with dropout: those of each network that masks leave, and of the second layer's active units."""
    whole, p = replace(cell, dropout=0.0), cell.dropout
    total = [0.0, 0.0, 0.0]
    for active in product((0, 1), repeat=cell.K):
        mask = np.array(active) / (1 - p)
        weight = (1 - p) ** sum(active) * p ** (cell.K - sum(active))
        R, Q, v = rates_of(whole, cell.units.v * mask)
        total = [sum_ + weight * part for sum_, part in zip(total, (R, Q, v * mask), strict=True)]
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_the_mean_over_all_masks(kind):
    """Of every form of the equations; those without the masks' variance are others."""
    cell = cell_of(**KINDS[kind], dropout=P)
    with jax.enable_x64(True):
        expected, found = mean_over_masks(cell), rates_of(cell, cell.units.v)
        without = rates_of(replace(cell, dropout=0.0), cell.units.v)
    for one, other, third in zip(found, expected, without, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        assert np.max(np.abs(third - other)) > 1e-3
