"""Dropout of units: rates are means over all masks, and runs at finite N have the distribution of weight vectors."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import jax
import numpy as np
import pytest

import simulate
import theory
from statmech import Network, ScenarioError
from statmech.keys.initial_states import StudentUnits
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.students.activations import choose_smooth_lattice_spacing
from theory.networks import anisotropic_inputs, order_parameter_equations, several_tasks
from theory.networks.order_parameter_equations import DropoutMasks

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


compiled = {
    of: jax.jit(of, static_argnums=0)
    for of in (
        order_parameter_equations.compute_row_rates,
        anisotropic_inputs.compute_mode_rates,
        several_tasks.compute_task_rates,
    )
}


def cell_of(**given):
    return next(iter(scenario_from(GENERAL | {"start": UNITS} | given).cells()))


def rates_of(cell, v, kind):
    """The rates of R, Q and v of a cell at its start, lane by lane, with these weights v (..., L) in the output."""
    lanes = [cell] * v.shape[-1]
    start = (
        anisotropic_inputs.make_initial_mode_units(cell, anisotropic_inputs.get_condensed_modes(cell))
        if kind == "two variances"
        else cell.units
    )
    units = StudentUnits(*(np.repeat(part[..., None], len(lanes), axis=-1) for part in start[:2]), v)
    if hasattr(cell, "tasks"):
        shares = np.full((cell.tasks, len(lanes)), 1 / cell.tasks)
        return compiled[several_tasks.compute_task_rates](
            several_tasks.make_task_equations(cell), several_tasks.make_task_setting(lanes), units, shares
        )
    static, setting = (
        order_parameter_equations.make_network_solver_options(cell),
        order_parameter_equations.make_network_setting(lanes),
    )
    if kind == "two variances":
        of = anisotropic_inputs.get_condensed_modes(cell)
        directions = [np.repeat(part[:, None], len(lanes), axis=-1) for part in (of.variances, of.shares, of.teacher)]
        return compiled[anisotropic_inputs.compute_mode_rates](
            static, setting, anisotropic_inputs.ModeParameters(*directions), units
        )
    static = (
        replace(static, lattice_spacing=choose_smooth_lattice_spacing(cell.activation)) if kind == "lattice" else static
    )
    return compiled[order_parameter_equations.compute_row_rates](
        static, setting, np.asarray(order_parameter_equations.pack_units(units))
    )


def parts(rates, K):
    """The rates of R and Q, and those of v, of which rows have all in one array."""
    return rates if isinstance(rates, tuple) else (rates[:-K], rates[-K:])


def mean_over_masks(cell, kind):
    """The rates without dropout: their mean over the networks that masks leave, and those of all units.

    Of a silent unit's second layer there is none.
    """
    p, active = cell.dropout, np.array([*product((0, 1), repeat=cell.K)]).T
    weight, mask = np.prod(np.where(active, 1 - p, p), axis=0), active / (1 - p)
    v = cell.units.v[..., None] * np.column_stack([mask, np.ones(cell.K)])
    *products, own = parts(rates_of(replace(cell, dropout=0.0), v, kind), cell.K)
    means = [part @ weight for part in (*(of[..., :-1] for of in products), own[..., :-1] * mask)]
    return means, [part[..., -1] for part in (*products, own)]


@pytest.mark.quick
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "linear" else pytest.mark.slow) for kind in KINDS]
)
def test_rates_are_the_mean_over_all_masks(kind):
    """Of every form of the equations; rates without dropout are others."""
    cell = cell_of(**KINDS[kind], dropout=P)
    with jax.enable_x64(True):
        expected, without = mean_over_masks(cell, kind)
        found = parts(rates_of(cell, cell.units.v[..., None], kind), cell.K)
    for one, other, third in zip(found, expected, without, strict=True):
        np.testing.assert_allclose(one[..., 0], other, rtol=1e-12, atol=1e-13)
        assert np.max(np.abs(third - other)) > 1e-3


LIMIT = {"network": "erf", "M": 2, "K": 3, "N": 1000, "noise": 0.2, "seeds": 32, "t": [1, 2], "start": UNITS}
LIMITS = {
    "one task": LIMIT | {"eta": 1.0, "eta_v": 0.3, "dropout": [0.1, 0.4]},
    "functions of time": LIMIT | {"eta": 1.0, "dropout": {"at": [0, 1.5], "is": [0.5, 0.1]}},
    "two tasks": LIMIT | KINDS["tasks"] | {"eta": 3.0, "eta_v": 0.5, "dropout": [0.1, 0.4]},
}


@cache
def runs_of(name):
    return simulate.run(scenario_from(LIMITS[name]))


def largest_z(name):
    """The largest deviation of the mean of runs from theory, in units of its standard error."""
    scenario = scenario_from(LIMITS[name])
    run, solution = runs_of(name), theory.solve(scenario)
    names = [name for name in ("eps_g", "R", "Q", "v") if name != "v" or scenario.eta_v > 0]
    error = {name: run[name].std("seed", ddof=1) / np.sqrt(run.sizes["seed"]) for name in names}
    return max(float(np.abs((run[name].mean("seed") - solution[name]) / of).max()) for name, of in error.items())


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.parametrize("name", LIMITS)
def test_runs_of_many_inputs_tend_to_the_equations(name):
    assert largest_z(name) < 4.5


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.parametrize("name", ["one task", "two tasks"])
def test_equations_without_the_variance_of_masks_are_found(name, monkeypatch):
    """Those in whose term of order eta^2 the student is the mean over its masks."""
    monkeypatch.setenv("STATMECH_CACHE", "off")  # programs are kept by what the files of the package say
    mean = DropoutMasks.mean
    monkeypatch.setattr(DropoutMasks, "mean", lambda masks, *units: 1.0 if len(units) == 4 else mean(masks, *units))
    programs = order_parameter_equations.solve_network_batch, several_tasks.solve_task_piece
    try:
        for program in programs:
            program.clear_cache()
        assert largest_z(name) > 6
    finally:
        for program in programs:
            program.clear_cache()


@pytest.mark.slow
@pytest.mark.quick
def test_without_dropout_runs_have_the_names_and_the_numbers_that_they_had():
    given = {"network": "erf", "M": 1, "K": 2, "N": 20, "noise": 0.1, "t": [0, 1], "seeds": 2}
    without, with_ = Network(**given), Network(**given, dropout=[0, 0.2])
    assert Network(**given, dropout=0).config() == without.config()
    assert "dropout" not in without.config()
    cells = [*with_.cells()]
    assert cells[0].identity_hash() == next(iter(without.cells())).identity_hash() != cells[1].identity_hash()
    for solve in (simulate.run, theory.solve):
        one, other = solve(without), solve(with_)
        for name in without.variables:
            np.testing.assert_array_equal(one[name], other[name].sel(dropout=0))


@pytest.mark.slow
@pytest.mark.quick
def test_units_that_start_identical_separate_if_some_are_silent():
    """They are all simulated, and in theory the product of two is less than their squared length."""
    given = {"network": "erf", "K": 2, "N": 50, "t": [2], "start": {"Q": [[0.25, 0.25], [0.25, 0.25]], "R": 0.1}}
    scenario = Network(**given, dropout=0.3, seeds=4)
    assert (scenario.has_identical_start, scenario.has_symmetric_start) == (False, True)
    run, solution = simulate.run(scenario), theory.solve(scenario)
    assert np.all(run.Q[..., 0, 0] != run.Q[..., 0, 1])
    assert solution.Q.values[0, 0, 1] < 0.9 * solution.Q.values[0, 0, 0]


@pytest.mark.parametrize("given", [1, -0.1, {"at": [0, 1], "is": [0.2, 1]}, {"optimal": {"at_most": 1}}])
def test_a_unit_is_silent_with_a_probability_below_one(given):
    with pytest.raises(ScenarioError, match=r"dropout: must be (less than 1|at least 0)"):
        Network(network="erf", t=[2], dropout=given)


@pytest.mark.parametrize(
    ("find", "sentence"),
    [
        (theory.noise_floor, "stationary states are supported for networks without dropout only"),
        (theory.escape, "escape times are predicted for networks without dropout"),
    ],
)
def test_what_is_known_without_dropout_only_is_refused_with_it(find, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        find(Network(network="erf", t=[1], start={"Q": 0.25, "R": 0}, dropout=0.2))


def test_an_optimal_dropout_is_constant_on_segments():
    start = {"Q": 0.25, "R": {"diagonal": 0.1}}
    with pytest.raises(ScenarioError, match="dropout: an optimal dropout is constant on segments"):
        Network(network="erf", t=[2], start=start, dropout={"optimal": {"points": 3}})


def test_dropout_changes_with_time_for_inputs_of_equal_variance_only():
    steps = {"at": [0, 1], "is": [0.2, 0]}
    with pytest.raises(ScenarioError, match="dropout: changes with time for gaussian inputs of equal variance only"):
        Network(network="erf", t=[2], dropout=steps, inputs={"spectrum": [0.4, 1.6]})
