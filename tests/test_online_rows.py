"""Real rows learnt online: theory is that of clusters, runs agree with it, and bad input is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import assert_same_bits
from test_labelled_rows import orthonormal
from typer.testing import CliRunner

import simulate
import theory
from simulate.execution.store_simulation import run_into
from simulate.execution.work_units import remarks
from simulate.kinds.online_table import measure_students
from simulate.online.learning_steps import SignedRows
from statmech import ConfigError, OnlineClusters, OnlineRows, Scenario, load
from statmech.cli.command_group import app
from statmech.convex.gaussian_clusters import TwoClusters
from statmech.inputs import data_sets
from statmech.inputs.real_tables import load_named_table
from statmech.kinds.selection_and_vocabulary import scenario_from

STUDENT = ("m_field", "length_field", "length", "eps_y")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a table with a target, in a folder of its own, and return its inputs."""
    monkeypatch.chdir(tmp_path)

    def write(X, target):
        head = ",".join([*(f"x{i}" for i in range(X.shape[1])), "label"])
        lines = [",".join(map(repr, [*row, last])) for row, last in zip(X.tolist(), target, strict=True)]
        (tmp_path / "t.csv").write_text("\n".join([head, *lines]) + "\n")
        return {"rows": "t.csv", "target": "label", "raw": True}

    return write


@pytest.mark.parametrize(
    "rule", [{"rule": "hebb"}, {"rule": "perceptron", "margin": 0.5}, {"rule": "adatron_textbook"}]
)
def test_classes_of_known_means_and_covariance_are_learnt_as_clusters(rule, written):
    """Variances .3 and 2.4 in half and a quarter of the directions and none in the rest, 30 % of the labels +1."""
    y = np.repeat([1, -1], [30, 70])
    variances, powers = np.array([0.3, 0.3, 2.4]), np.array([0.25, 0.25, 1.5])
    within = orthonormal(100, 3, [y]) * np.sqrt(100 * variances / 4)
    X = within + np.outer(np.where(y > 0, 1.4, -0.6), np.sqrt(powers / 4))
    turned = X @ np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0][:3]
    square = np.mean(np.sum(X**2, axis=1))
    changes = {**rule, "t": [0, 0.5, 5, 50], "decay": 0.1, "schedule": {"t0": 20}, "start": {"length": 0.5}}
    found = theory.solve(OnlineRows(inputs=written(turned, y), **changes))
    spectrum = {"spectrum": [0.3 / square, 2.4 / square, 0], "shares": [0.5, 0.25, 0.25], "teacher": [0.25, 0.75, 0]}
    known = {"clusters": "gaussian", "distance": np.sqrt(8 / square), "positives": 0.3, "inputs": spectrum}
    expected = theory.solve(OnlineClusters(**known, **changes)).rename(eps_g="eps_y")
    for name in STUDENT:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-7, atol=1e-12, err_msg=name)


@pytest.fixture
def gaussian(written):
    """Gaussian rows of two variances in 150 columns, 30 % of the labels +1."""
    rng = np.random.default_rng(4)
    y = np.where(np.arange(2000) < 600, 1, -1)
    X = rng.standard_normal((2000, 150)) * np.repeat([0.6, 1.4], 75)
    return written(X + np.outer(np.where(y > 0, 1.4, -0.6), 0.13 * rng.standard_normal(150)), y)


def largest_distance(runs, solved):
    """That of runs from theory, in standard errors of the runs and of a table of normal fields."""
    found = []
    for name in STUDENT:
        square = runs[name].var("seed", ddof=1) / runs.seed.size
        if name == "eps_y":
            square = square + solved[name] * (1 - solved[name]) / 2000
        found.append(float(abs((runs[name].mean("seed") - solved[name]) / np.sqrt(square)).max()))
    return max(found)


@pytest.mark.quick
@pytest.mark.slow
def test_runs_agree_with_theory_but_not_where_classes_are_swapped_nor_do_runs_without_labels(gaussian, monkeypatch):
    scenario = OnlineRows(rule="perceptron", inputs=gaussian, t=[1, 4, 12], seeds=24)
    runs, solved = simulate.run(scenario), theory.solve(scenario)
    assert largest_distance(runs, solved) < 4
    with monkeypatch.context() as planted:
        planted.setattr(TwoClusters, "centre_distances", property(lambda self: 2 * self.weights))
        assert largest_distance(runs, theory.solve(scenario)) > 6
    monkeypatch.setattr(
        SignedRows, "table", lambda self, N: np.float32(load_named_table(self.path, self.target, self.raw).Z)
    )
    assert largest_distance(simulate.run(scenario), solved) > 10


def test_a_student_has_the_error_of_the_signs_of_its_fields():
    table, w = load_named_table("clouds-60", None), np.random.default_rng(0).standard_normal((1, 2, 3, 60))
    found = measure_students(table, w)
    np.testing.assert_allclose(found["eps_y"], np.mean(np.sign(w @ table.Z.T) != table.y, axis=-1))
    np.testing.assert_allclose(found["length"], np.linalg.norm(w, axis=-1) / np.sqrt(60))


CLOUDS = {"rule": "perceptron", "inputs": {"rows": "clouds-60"}, "t": [0, 1], "seeds": 6}


@pytest.mark.quick
@pytest.mark.slow
def test_a_sweep_is_resumed_with_the_bits_of_one_run_and_its_config_is_read_again(path):
    scenario = OnlineRows(**CLOUDS | {"eta": [0.5, 1.0]})
    assert scenario_from(scenario.config()) == scenario
    assert scenario_from(CLOUDS | {"eta": [0.5, 1.0]}) == scenario
    for k in (2, 1):
        run_into(path, scenario, shard=(k, 2))
    assert_same_bits(path, scenario)


X, WORDS = np.random.default_rng(0).standard_normal((60, 3)).round(3), ["yes", "no"] * 30


def test_only_rows_with_a_target_are_of_this_kind_and_their_warnings_are_shown(written):
    rows = written(X, np.arange(60))
    assert isinstance(scenario_from({"rule": "hebb", "inputs": {"rows": "t.csv"}, "N": 4, "t": 1}), Scenario)
    scenario = scenario_from({"rule": "hebb", "inputs": rows, "t": 1})
    assert isinstance(scenario, OnlineRows)
    [warning] = remarks(scenario_from({"rule": "hebb", "inputs": written(X, WORDS), "t": 1}))
    assert warning.startswith("rows t.csv label raw: the rows vary in effectively")


@pytest.mark.parametrize(
    ("target", "keys", "sentence"),
    [
        (
            WORDS,
            {"teacher": "sign", "flip": 0.1},
            "rows with a target have labels of their own: remove teacher, flip",
        ),
        (WORDS, {"drift": 0.1}, "rows with a target have labels of their own: remove drift"),
        (WORDS, {"K": 3}, "rows are learnt online by one student: remove K"),
        (WORDS, {"N": 3}, "the columns of the table are the inputs: remove N"),
        (WORDS, {"P": 3}, "a stream of rows has no end: give times t instead of P"),
        (WORDS, {"rule": "bayes"}, 'the rule "bayes" is the posterior mean of a teacher, and rows with a target have'),
        (WORDS, {"population": "held_out"}, "rows is drawn with replacement: population must be table, not held_out"),
        (WORDS, {"start": {"R": 0.5}}, "real labels have no teacher: remove R from the start"),
        (WORDS, {"decay": [0.1, 4]}, "decay = 4 is too large for N = 3: 1 - decay/N would be negative"),
        (WORDS, {"inputs": ["gaussian", {"rows": "clouds-60"}]}, "a population of rows needs `rows` of a table"),
        (WORDS, {"inputs": {"rows": "t.csv"}, "population": "table"}, "t.csv: a file needs a target"),
        ([*"abc"] * 20, {}, "the target has 3 values, 'a', 'b', 'c': it must have two or be numerical"),
        (range(60), {}, "the target of t.csv is a number: a rule needs two classes"),
    ],
)
def test_what_cannot_be_learnt_is_refused_in_a_sentence_and_nothing_is_written(
    target, keys, sentence, written, tmp_path
):
    config = {"rule": "hebb", "inputs": written(X, target), "t": 1, "seeds": 2, **keys}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "c.yaml", data=True)
    assert sentence in str(refused.value)
    assert str(refused.value).count("\n") == 0
    assert CliRunner().invoke(app, ["run", "c.yaml"]).exit_code != 0
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "c.yaml"}


STUDY = [1, 5, 20]


@pytest.mark.slow
def test_theory_of_odd_and_even_digits_is_that_of_the_study(real_data):
    solved = theory.solve(OnlineRows(rule="perceptron", inputs={"rows": "digits-odd"}, t=STUDY))
    np.testing.assert_allclose(solved.eps_y, [0.1857, 0.1542, 0.1365], atol=5e-5)


@pytest.mark.slow
def test_theory_of_splice_junctions_is_that_of_the_study(written, real_data):
    """The study's columns have variance 1."""
    data = data_sets.get_cached_data_set("splice-sites")
    bases = np.array([column == base for column in data.X.T.astype(str) for base in "acg"], float).T
    inputs = written((bases - bases.mean(axis=0)) / bases.std(axis=0), data.y.tolist())
    solved = theory.solve(OnlineRows(rule=["hebb", "perceptron"], inputs=inputs, t=STUDY))
    np.testing.assert_allclose(solved.eps_y, [[0.1534, 0.1002, 0.0923], [0.2390, 0.1119, 0.0796]], atol=5.1e-5)
