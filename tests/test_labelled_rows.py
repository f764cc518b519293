"""Rows of real tables in configs: theory is that of prescribed tables, runs agree with it, and bad input is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import brief
from typer.testing import CliRunner

import simulate
import statmech
import theory
from simulate.execution.work_units import remarks
from statmech import ConfigError, LabelledRows, ScenarioError, load
from statmech.cli.command_group import app
from statmech.convex.losses import Logistic, Square
from statmech.inputs.real_tables import (
    HeldOutRowsPopulation,
    ResampledTablePopulation,
    load_named_table,
    make_labelled_table,
    make_real_table,
)
from statmech.kinds.selection_and_vocabulary import scenario_from
from theory.convex.real_tables import FreshRowErrorPredictor, TableRowErrorPredictor

CLOUDS = {"loss": "logistic", "inputs": {"rows": "clouds-60"}, "P": [40, 300], "seeds": 2}


def orthonormal(rows, columns, across):
    """Orthonormal columns (rows, columns), across others, the constant one among them."""
    random = np.random.default_rng(0).standard_normal((rows, columns))
    return np.linalg.qr(np.column_stack([np.ones(rows), *across, random]))[0][:, 1 + len(across) :]


def ridge_rows(noise=0.3):
    """A table of variances .2 and 3.4 in shares .75 and .25, of which a target with noise contains .35 each."""
    left = orthonormal(80, 9, [])
    variances = np.repeat([0.2, 3.4], [6, 2])
    X = left[:, :8] * np.sqrt(80 * variances / 8)
    part = np.sqrt(np.repeat([0.35 / 6, 0.35 / 2], [6, 2]))
    return make_real_table(
        make_labelled_table(X, np.sqrt(80) * (left[:, :8] @ part + np.sqrt(0.3 + noise**2) * left[:, 8]))
    )


def test_least_squares_of_a_table_has_the_recorded_error():
    squares = TableRowErrorPredictor(ridge_rows()).predict_squared_errors(np.array([0.8 * 8]), np.array([0.01]))
    assert squares.fresh[0] - 0.3**2 == pytest.approx(1.2173264419, abs=2e-10)
    assert squares.training[0] == pytest.approx(2 * 0.0074422238, abs=2e-10)


def test_classes_of_a_table_have_the_recorded_error():
    """Within-class variances .3 and 2.4, squared half distances .5 and 1.5 along them, 30 % of the labels +1."""
    y = np.repeat([1.0, -1.0], [30, 70])
    within = orthonormal(100, 3, [y]) * np.sqrt(100 * np.array([0.3, 0.3, 2.4]) / 3)
    half = np.sqrt(np.array([0.25, 0.25, 1.5]) / 3)
    X = within + np.outer(np.where(y > 0, 1.4, -0.6), half)
    scale = np.mean(np.sum(X**2, axis=1))  # lam refers to rows of mean square 1
    state = TableRowErrorPredictor(make_real_table(make_labelled_table(X, y)), intercept=False).predict_errors(
        Square(), np.array([3.0]), np.array([0.1 / scale]), "clusters"
    )
    assert state.eps_y[0] == pytest.approx(0.2711702007, abs=2e-10)


def test_held_out_rows_have_the_error_that_the_learning_curve_predicts():
    table = load_named_table("clouds-60", None)
    for y, loss, name in ((table.y, "logistic", "eps_y"), (table.Z[:, 0] + table.y, "square", "mse")):
        curve = statmech.predict_learning_curve(
            table.Z, y, loss=loss, lam=0.1, P=[40, 300], fits=False, standardise=False
        )
        of = FreshRowErrorPredictor(make_real_table(make_labelled_table(table.Z, y)))
        state = of.predict_errors(
            {"logistic": Logistic, "square": Square}[loss](), np.array([40, 300]), np.full(2, 0.1)
        )
        np.testing.assert_array_equal(state.eps_y if name == "eps_y" else state.mse_y, curve[name])


def compared(simulated, solved, name):
    """The largest distance of runs from theory in standard errors, and relative to theory."""
    mean, spread = simulated[name].mean("seed"), simulated[name].std("seed", ddof=1, skipna=False)
    distance = np.abs(mean - solved[name])
    return float((distance / spread).max() * simulated.seed.size**0.5), float((distance / solved[name]).max())


def test_runs_agree_with_the_theory_of_their_population_and_not_with_that_of_the_other():
    """Examples that are tested on, too, lower the error of a table by some per cent."""
    given = {"loss": ["square", "logistic"], "inputs": {"rows": "clouds-60"}, "P": 300, "seeds": 32, "lam": 0.1}
    scenario = LabelledRows(population=["held_out", "table"], **given)
    simulated, solved = simulate.run(scenario), theory.solve(scenario)
    assert simulated.converged.all()
    (held_out, table), (fresh, known) = (
        [data.isel(population=at, drop=True) for at in (0, 1)] for data in (simulated, solved)
    )
    for name in ("eps_y", "eps_t", "train_loss", "mse_y"):
        assert compared(held_out, fresh, name)[0] < 4, name
        assert compared(table, known, name)[1] < 0.07, name
    assert compared(held_out, known, "eps_y")[0] > 4
    assert compared(table, fresh, "eps_y")[1] > 0.07


def test_both_models_of_labels_have_the_same_squared_error_but_for_terms_of_order_1_over_n():
    rows = TableRowErrorPredictor(load_named_table("clouds-60", None))
    P, lam = np.array([60.0, 300.0]), np.full(2, 0.1)
    clusters, moments = (rows.predict_errors(Square(), P, lam, model) for model in ("clusters", "moments"))
    np.testing.assert_allclose(clusters.mse_y, moments.mse_y, rtol=2 / 60)
    assert np.isnan(moments.eps_y).all()


@pytest.mark.parametrize("population", brief(["table", "held_out"]))
def test_the_best_penalty_has_the_smallest_error_and_is_that_of_the_runs(population):
    best = LabelledRows(population=population, **CLOUDS | {"lam": "best"})
    solved = theory.solve(best)
    for at, P in enumerate((40, 300)):
        lam = float(solved.lam_best[at])
        near = [min(max(lam * factor, 1e-6), 1e6) for factor in (0.7, 1.4)]
        others = theory.solve(LabelledRows(population=population, **CLOUDS | {"lam": near, "P": P}))
        assert (others.eps_y >= solved.eps_y[at] - 1e-9).all()
        same = LabelledRows(population=population, **CLOUDS | {"lam": lam, "P": P})
        np.testing.assert_array_equal(simulate.run(same).eps_y, simulate.run(best).eps_y[at])


def test_classes_that_do_not_differ_are_told_apart_by_chance_on_held_out_rows():
    X = np.random.default_rng(0).standard_normal((300, 20))
    rows = make_real_table(make_labelled_table(X, np.arange(300) % 2))
    given = Logistic(), np.array([30.0, 200.0]), np.full(2, 0.1)
    half = rows.Z[rows.y > 0].mean(axis=0) - rows.Z[rows.y < 0].mean(axis=0)
    alike = rows._replace(Z=rows.Z - np.outer(rows.y, half) / 2)
    np.testing.assert_allclose(FreshRowErrorPredictor(alike).predict_errors(*given).eps_y, 0.5, atol=0.01)
    assert (
        FreshRowErrorPredictor(rows._replace(Z=rows.Z + np.outer(rows.y, half))).predict_errors(*given).eps_y < 0.45
    ).all()


def test_a_larger_set_has_the_examples_of_a_smaller_one_and_held_out_rows_are_no_examples():
    for population in (ResampledTablePopulation(), HeldOutRowsPopulation()):
        few, more = (population.draw(np.random.default_rng(1), 50, P) for P in (5, 30))
        np.testing.assert_array_equal(few.examples, more.examples[:5])
    assert sorted([*more.examples, *more.test_rows]) == list(range(50))


ROWS = np.random.default_rng(0).standard_normal((60, 3)).round(3)
WORDS = ["yes" if row[0] > 0 else "no" for row in ROWS]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write rows with a target, in a folder of its own, and return their inputs."""
    monkeypatch.chdir(tmp_path)

    def write(rows=ROWS, target=WORDS, count=60):
        lines = [",".join(map(str, [*row, last])) for row, last in zip(rows.tolist(), target, strict=True)]
        (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d"[: 2 * len(rows[0]) - 1] + ",odd", *lines[:count]]) + "\n")
        return {"rows": "t.csv", "target": "odd"}

    return write


def test_a_loss_of_rows_with_a_target_is_of_this_kind_and_its_default_population_the_table(table):
    scenario = scenario_from({"loss": "logistic", "inputs": table(), "P": 20})
    assert isinstance(scenario, LabelledRows)
    assert scenario.population == "table"
    assert scenario_from(scenario.config()) == scenario
    assert scenario_from({"loss": "logistic", "inputs": {"rows": "clouds-60"}, "P": 20}).population == "table"
    assert scenario.data_digests().keys() == {"rows t.csv odd"}


def test_constant_columns_are_left_out_and_warnings_are_those_of_the_learning_curve(table, tmp_path):
    rows = np.column_stack([ROWS, np.ones(60)])
    [constant, few] = remarks(scenario_from({"loss": "logistic", "inputs": table(rows), "P": 20}))
    assert constant == "rows t.csv odd: 1 constant column is omitted, and 3 are inputs"
    assert few.removeprefix("rows t.csv odd: ") in statmech.predict_learning_curve(ROWS, WORDS, P=[20]).warnings
    (tmp_path / "c.yaml").write_text("loss: logistic\ninputs: {rows: t.csv, target: odd}\nP: 20\nseeds: 2\n")
    shown = CliRunner().invoke(app, ["run", "c.yaml", "--dry-run"])
    assert shown.exit_code == 0
    assert shown.output.count(constant) == shown.output.count(few) == 1


BAD = np.where(ROWS[3, 1] == ROWS, np.nan, ROWS)


@pytest.mark.parametrize(
    ("made", "keys", "sentence"),
    [
        ({"target": [*"abc"] * 20}, {}, "the target has 3 values, a, b, c: it must have two or be numerical"),
        ({"rows": np.where(np.isnan(BAD), np.inf, ROWS)}, {}, 'row 5, column "b" is infinite'),
        ({"rows": np.where(np.isnan(BAD), "x", ROWS.astype(str))}, {}, 'row 5, column "b" is not a number'),
        ({"count": 5}, {}, "a table of 5 rows is too short"),
        ({"target": range(60)}, {}, "the target of t.csv is a number: the loss must be square, not logistic"),
        ({}, {"population": "held_out", "P": 60}, "t.csv has 60 rows, of which at most 59 can be examples, not 60"),
        ({}, {"teacher": "sign", "flip": 0.1}, "rows with a target have labels of their own: remove teacher, flip"),
        ({}, {"alpha": 2}, "give the number of examples P instead of alpha"),
        ({}, {"lam": 0}, "lam must be above 0, or best"),
        ({}, {"model": "logit"}, "a fitted logit teacher is not supported"),
        ({}, {"model": "moments"}, "moments describe squared errors: the loss must be square"),
        ({}, {"inputs": {"rows": "t.csv", "target": "odd", "population": "held_out"}}, "belongs at the top level"),
        ({}, {"inputs": {"rows": "t.csv", "target": "even"}}, '"even" is not a column'),
        ({}, {"inputs": {"rows": "clouds-60", "target": 0}}, "the target of a data set is its class"),
    ],
)
def test_what_cannot_be_learnt_is_refused_in_a_sentence_and_nothing_is_written(table, made, keys, sentence, tmp_path):
    config = {"loss": "logistic", "inputs": table(**made), "P": 20, "seeds": 2, **keys}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "c.yaml", data=True)
    assert sentence in str(refused.value)
    assert str(refused.value).count("\n") == 0
    assert CliRunner().invoke(app, ["run", "c.yaml"]).exit_code != 0
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "c.yaml"}


def test_other_kinds_refuse_a_target(table):
    for inputs in (table(), {"rows": "digits-odd"}):
        with pytest.raises(ScenarioError, match="rows have a target where a config has a `population`"):
            scenario_from({"network": "erf", "inputs": inputs, "N": 3, "t": 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("population", "errors"), [("table", [0.1606, 0.1265, 0.1076]), ("held_out", [0.1639, 0.1323, 0.1163])]
)
def test_theory_of_odd_and_even_digits_is_that_of_the_study(population, errors, real_data):
    given = CLOUDS | {"inputs": {"rows": "digits-odd"}, "P": [166, 663, 1989]}
    solved = theory.solve(LabelledRows(population=population, **given))
    np.testing.assert_allclose(solved.eps_y, errors, atol=1.2e-4)


def test_splice_junctions_have_three_indicators_a_base(real_data):
    assert load_named_table("splice-sites", None).Z.shape == (3190, 180)
