"""A stored theory serves every scenario that differs from its own only in what theory does not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import statmech

import simulate
import theory
from simulate.execution.store_simulation import run_into
from statmech import Scenario, compare, load_results
from statmech.errors import StoreError
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.stores import zarr_store
from statmech.stores.stored_theory import adapt_theory
from theory.control.optimal_controls import restore_best_controls

pytestmark = pytest.mark.quick

RULE = {"rule": ["hebb", "adatron"], "K": 2, "N": 20, "t": [0.5, 1], "seeds": 4}
LEARNER = {"learner": ["minover", "gibbs"], "N": 20, "alpha": [0.5, 2], "epochs": [1, 5], "seeds": 3}
RISK = {"loss": "square", "N": 20, "alpha": [0.5, 2], "lam": 0.1, "seeds": 2}
WALKS = {"boundary": "constant", "error_rate": 0.1, "N": 20, "walks": 40, "seeds": 2}
BOOSTER = {"booster": "adaboost", "N": 6, "s": 1, "P": [20, 40], "tests": 100, "seeds": 2}
NETWORK = {"network": "erf", "M": 1, "K": 1, "N": 20, "t": [1, 2], "seeds": 2}
DESCENT = {"descent": "gradient", "loss": "square", "N": 20, "alpha": 1, "eta": 0.1, "epochs": [1, 2], "seeds": 2}
CLUSTERS = {"clusters": "gaussian", "loss": "square", "N": 20, "alpha": [1, 2], "lam": 0.1, "seeds": 2}
PRIOR = {"prior": "gauss", "N": 20, "alpha": [1, 2], "steps": 3, "seeds": 2}
RULE_CLUSTERS = {"rule": "hebb", "clusters": "gaussian", "N": 20, "t": [1], "seeds": 2}
RULE_TASKS = {"rule": "hebb", "tasks": 2, "N": 20, "protocol": "interleaved", "t": [1, 2], "seeds": 2}
IRRELEVANT = [
    *((RULE, change) for change in ({"seeds": 9}, {"key": 3}, {"N": 60}, {"dtype": "float32"}, {"engine": "vectors"})),
    *((RULE, change) for change in ({"N": [20, 60]}, {"rule": ["adatron", "hebb"]})),
    (RULE | {"K": [1, 2]}, {"K": None, "N": None, "zip": {"K": [1, 2], "N": [20, 40]}}),
    (LEARNER, {"N": 60}),
    (LEARNER, {"epochs": [1, 2, 9], "strengths": True}),
    *((RISK, change) for change in ({"N": 60}, {"N": [20, 60]}, {"solver": "amp"})),
    *((given, {"seeds": 7, "key": 1}) for given in (WALKS, BOOSTER, NETWORK, DESCENT, PRIOR, RULE_CLUSTERS)),
    (WALKS, {"walks": 50}),
    (BOOSTER, {"tests": 50}),
    (NETWORK, {"engine": "vectors", "N": 40}),
    (DESCENT, {"engine": "explicit", "N": 40}),
    (CLUSTERS, {"N": 40}),
    (PRIOR, {"N": 40}),
    (RULE_CLUSTERS, {"engine": "vectors", "N": 40}),
    (RULE | {"rule": "perceptron", "N": [20, 30], "eta": {"optimal": {"segments": 2}}}, {"N": [40, 50, 60]}),
    (RULE_TASKS, {"dtype": "float32", "engine": "vectors", "N": 40}),
]


def changed(given, change):
    return scenario_from({name: value for name, value in {**given, **change}.items() if value is not None})


@pytest.mark.slow
@pytest.mark.parametrize(("given", "change"), IRRELEVANT)
def test_the_theory_of_another_simulation_is_that_which_would_be_solved(given, change):
    scenario = changed(given, change)
    adapted, solved = adapt_theory(theory.solve(scenario_from(given)), scenario), theory.solve(scenario)
    assert adapted is not None
    assert adapted.attrs["config"] == solved.attrs["config"]
    assert set(adapted.variables) == set(solved.variables)
    restore_best_controls(adapted)  # the best controls of each point
    for name, values in solved.variables.items():
        assert adapted[name].dims == values.dims
        if values.dtype.kind == "f":
            np.testing.assert_allclose(adapted[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            assert (adapted[name].values == values.values).all()


@pytest.mark.parametrize(
    ("given", "change"),
    [
        *((RULE, {"eta": 2.0}), (RULE, {"t": [0.5, 2]}), (RULE, {"gram": True}), (RULE, {"K": [1, 2]})),
        (RULE | {"corrections": True}, {"N": 40}),
        (LEARNER, {"flip": 0.1}),
        (RISK | {"alpha": 0.55}, {"N": 41}),  # 11/20 and 23/41 examples per weight
        (WALKS, {"N": 40}),
        (PRIOR, {"steps": 4}),
    ],
)
def test_a_theory_that_would_be_another_does_not_serve(given, change):
    assert adapt_theory(theory.solve(scenario_from(given)), changed(given, change)) is None


@pytest.fixture
def mixed(tmp_path):
    """A folder with 6 seeds of a simulation, and a theory that was solved for 4 at another N."""
    run_into(tmp_path / "simulation.zarr", changed(RULE, {"seeds": 6}))
    zarr_store.save(theory.solve(changed(RULE, {"N": 80})), tmp_path / "theory.zarr")
    return tmp_path


def test_simulation_and_theory_of_other_seeds_are_read_together(mixed):
    results = load_results(mixed)
    assert results.simulation.sizes["seed"] == 6
    assert results.theory.N.item() == 20
    assert len(compare(results)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *(["compare"], ["export", "--to", "out.csv"], ["figure", "--formats", "png"]),
        *(["report", "--out", "out.html"], ["theory"], ["run"]),
    ],
)
def test_every_command_takes_a_theory_that_was_solved_for_other_seeds(command, mixed, in_scratch, capsys):
    name, *options = command
    assert statmech(name, str(mixed), *options) == 0
    assert "wrote theory" not in capsys.readouterr().err
    assert zarr_store.load(mixed / "theory.zarr").N.item() == 80  # not solved again


def test_datasets_of_one_theory_are_compared_in_python_whatever_their_n():
    runs = simulate.run(changed(RULE, {"seeds": 6}))
    with_same, with_other = (theory.solve(changed(RULE, {"N": N})) for N in (20, [80]))
    assert repr(compare(runs, with_same)) == repr(compare(runs, with_other))


def test_a_folder_with_the_theory_of_another_scenario_names_both_and_the_command_that_solves_it(tmp_path):
    run_into(tmp_path / "simulation.zarr", Scenario(**RULE))
    zarr_store.save(theory.solve(changed(RULE, {"eta": 2.0, "seeds": 9})), tmp_path / "theory.zarr")
    with pytest.raises(StoreError) as refused:
        load_results(tmp_path)
    lines = str(refused.value).splitlines()
    assert lines[1:] == [
        "  eta: theory 2.0, simulation nothing",
        f"`statmech theory {tmp_path} --fresh` solves the theory of the simulation.",
    ]
    assert "asked for" not in str(refused.value)
    assert statmech("theory", str(tmp_path), "--fresh") == 0
    assert load_results(tmp_path).complete
