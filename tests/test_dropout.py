"""Dropout of units: rates are means over all masks, and runs at finite N have the distribution of weight vectors."""

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
from statmech.networks.lattice_averages import spacing_for
from statmech.scenarios.network_matrices import Units
from statmech.scenarios.registry import scenario_from
from theory.networks import equations, structured, tasks

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
    "lattice": {"M": 1, "K": 2, "start": {"Q": [[0.5, 0.1], [0.1, 0.4]], "R": 0.1}},
    "two variances": {"inputs": {"spectrum": [0.4, 1.6]}},
    "tasks": HEADS | {"start": UNITS | {"v": [UNITS["v"], [0.2, 0.4, 0.1]]}},
    "shared head": HEADS | {"heads": "shared"},
}


compiled = {of: jax.jit(of, static_argnums=0) for of in (equations.field, structured.rates, tasks.task_rates)}


def cell_of(**given):
    return next(iter(scenario_from(GENERAL | {"start": UNITS} | given).cells()))


def rates_of(cell, v, kind):
    """The rates of R, Q and v of a cell at its start, lane by lane, with these weights v (..., L) in the output."""
    lanes = [cell] * v.shape[-1]
    start = structured.start_of(cell, structured.modes_at(cell)) if kind == "two variances" else cell.units
    units = Units(*(np.repeat(part[..., None], len(lanes), axis=-1) for part in start[:2]), v)
    if hasattr(cell, "tasks"):
        shares = np.full((cell.tasks, len(lanes)), 1 / cell.tasks)
        return compiled[tasks.task_rates](tasks.equations_of(cell), tasks.setting_of(lanes), units, shares)
    static, setting = equations.equations_of(cell), equations.setting_of(lanes)
    if kind == "two variances":
        of = structured.modes_at(cell)
        directions = [np.repeat(part[:, None], len(lanes), axis=-1) for part in (of.variances, of.shares, of.teacher)]
        return compiled[structured.rates](static, setting, structured.Directions(*directions), units)
    static = replace(static, spacing=spacing_for(cell.activation)) if kind == "lattice" else static
    return compiled[equations.field](static, setting, np.asarray(equations.packed(units)))


def mean_over_masks(cell, kind):
    """The rates without dropout in each network that masks leave; of a silent unit's second layer there is none."""
    p, masks = cell.dropout, np.array([*product((0, 1), repeat=cell.K)]).T
    weight = np.prod(np.where(masks, 1 - p, p), axis=0)
    mask, K = masks / (1 - p), cell.K
    found = rates_of(replace(cell, dropout=0.0), cell.units.v[..., None] * mask, kind)
    if isinstance(found, tuple):
        found = [*found[:2], found[2] * mask]
    else:
        found = [found[:-K], found[-K:] * mask]
    return [part @ weight for part in found]


@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_the_mean_over_all_masks(kind):
    """Of every form of the equations; those without the masks' variance are others."""
    cell = cell_of(**KINDS[kind], dropout=P)
    v = cell.units.v[..., None]
    with jax.enable_x64(True):
        expected, found, without = (
            mean_over_masks(cell, kind),
            rates_of(cell, v, kind),
            rates_of(replace(cell, dropout=0.0), v, kind),
        )
    if not isinstance(found, tuple):
        found, without = ((part[: -cell.K], part[-cell.K :]) for part in (found, without))
    for one, other, third in zip(found, expected, without, strict=True):
        np.testing.assert_allclose(one[..., 0], other, rtol=1e-12, atol=1e-13)
        assert np.max(np.abs(third[..., 0] - other)) > 1e-3
