"""Learning curves of tables: the recorded value, agreement with the population and with fits, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import statmech
from statmech.cli.commands import app
from statmech.convex.clusters import GaussianClusters
from statmech.convex.losses import LOSSES, on_labels
from statmech.errors import ConfigError
from statmech.labelled_table import labelled, read
from theory.convex.clusters import minimum
from theory.tables.fresh_clusters import class_table, fresh_errors
from theory.tables.resolvents import Resolvent
from theory.tables.ridge import ridge_table, squared_errors

ALPHA = np.array([0.25, 0.5, 1.0, 2.0])


def scaled(X):
    Z = X - X.mean(axis=0)
    return Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))


def test_the_squared_error_of_a_small_table_is_the_recorded_one():
    i, j = np.arange(1, 61)[:, None], np.arange(1, 21)
    X = np.sin(1 + i * j + j**2)
    y = np.cos(i[:, 0]) + X[:, 0]
    table = ridge_table(scaled(X), y - y.mean())
    assert squared_errors(table, np.array([25]), np.array([0.1]))[0] == pytest.approx(0.4095892440, abs=5e-11)


def test_all_rows_as_examples_give_generalised_cross_validation():
    rng = np.random.default_rng(0)
    Z = scaled(rng.standard_normal((80, 30)))
    y = Z[:, 0] + rng.standard_normal(80)
    y, lam = y - y.mean(), 0.3
    hat = Z @ np.linalg.solve(Z.T @ Z + lam * np.eye(30), Z.T)
    by_hand = np.mean((y - hat @ y) ** 2) / (1 - np.trace(hat) / 80) ** 2
    error = squared_errors(ridge_table(Z, y), np.array([80]), np.array([lam]))[0]
    assert error == pytest.approx(by_hand, rel=1e-9)


def test_the_sample_s_penalty_is_the_inverse_of_the_population_s():
    few_rows = Resolvent(np.geomspace(0.01, 1, 40), degrees=40, columns=100)
    many_rows = Resolvent(np.geomspace(0.01, 1, 40), degrees=90, columns=40)
    for resolvent in (few_rows, many_rows):
        z = np.array([1e-3, 0.1, 10.0])
        np.testing.assert_allclose(resolvent.sample(resolvent.population(z)), z, rtol=1e-10)
    assert np.isnan(few_rows.sample(np.array([0.9 * few_rows.least])))[0]


def clusters(n, N, seed):
    """Rows of two clusters at distance 2, scaled, and the scale."""
    rng = np.random.default_rng(seed)
    d, y = rng.standard_normal(N), np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.standard_normal((n, N)) / np.sqrt(N) + y[:, None] * d / np.linalg.norm(d) / np.sqrt(N)
    X = X - X.mean(axis=0)
    scale = np.sqrt(np.mean(np.sum(X**2, axis=1)))
    return X / scale, y, scale


def predicted(loss, planted=False):
    """Predictions of twelve tables of 600 rows at four numbers of examples, (tables, 4)."""
    found = []
    for seed in range(12):
        Z, y, scale = clusters(600, 200, seed)
        table = class_table(Z, y)
        if planted:
            table = table._replace(noise=0.0)
        found.append(fresh_errors(loss, table, 200 * ALPHA, np.full(4, 0.1 / scale**2)))
    return np.array(found)


@pytest.mark.parametrize(
    "name", ["logistic", *(pytest.param(it, marks=pytest.mark.slow) for it in ("hinge", "square"))]
)
def test_tables_of_clusters_predict_the_error_of_their_population(name):
    loss = on_labels(LOSSES[name]())
    population = minimum(loss, GaussianClusters().among(None), ALPHA, np.full(4, 0.1)).eps_g
    errors = predicted(loss)
    z = (errors.mean(axis=0) - population) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))
    assert np.all(np.abs(z) < 3.5)


@pytest.mark.slow
def test_leaving_the_noise_of_the_means_in_is_found():
    loss = on_labels(LOSSES["logistic"]())
    population = minimum(loss, GaussianClusters().among(None), ALPHA, np.full(4, 0.1)).eps_g
    errors = predicted(loss, planted=True)
    z = (errors.mean(axis=0) - population) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))
    assert np.max(np.abs(z)) > 6


def test_fits_of_held_out_rows_agree_with_the_prediction():
    """A table so long that its own deviation is small beside that of 12 fits."""
    Z, y, _ = clusters(6000, 60, 3)
    curve = statmech.predict_learning_curve(Z, y, P=[60, 240], check=12)
    z = (curve.eps_y_fit - curve.eps_y) / np.hypot(curve.eps_y_fit_error, 0.006)
    assert np.all(np.abs(z) < 4)


def test_the_best_penalty_is_not_worse_than_others():
    Z, y, _ = clusters(400, 40, 1)
    best = statmech.predict_learning_curve(Z, y, lam="best", P=[50, 400])
    for lam in (1e-3, 0.1, 10.0):
        assert np.all(statmech.predict_learning_curve(Z, y, lam=lam, P=[50, 400]).eps_y >= best.eps_y - 1e-9)
    numbers = Z[:, 0] + 0.1 * y
    best = statmech.predict_learning_curve(Z, numbers, loss="square", lam="best", P=[50, 400])
    for lam in (1e-3, 0.1, 10.0):
        assert np.all(
            statmech.predict_learning_curve(Z, numbers, loss="square", lam=lam, P=[50, 400]).mse
            >= best.mse * (1 - 1e-9)
        )


def test_heavy_tails_and_few_directions_are_named():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(300) % 2, 1, -1)
    X = rng.standard_normal((300, 5)) * np.exp(rng.standard_normal((300, 1))) + 0.2 * y[:, None]
    curve = statmech.predict_learning_curve(np.hstack([X, np.ones((300, 1))]), y, P=[100])
    assert "directions; theory assumes many" in curve.warnings
    assert "heavy tails" in curve.warnings
    assert curve.constant_columns == 1


RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.standard_normal((30, 2)), np.arange(30) % 2


@pytest.mark.parametrize(
    ("X", "y", "given", "message"),
    [
        (ROWS[:5], LABELS[:5], {}, "a table of 5 rows is too short"),
        (ROWS, np.arange(30) % 3, {}, "the loss must be square, not logistic"),
        (ROWS, [*"abc"] * 10, {}, "the target has 3 values: two, or numbers, are needed"),
        (ROWS, np.zeros(30), {}, "the target has one value"),
        (np.zeros((30, 2)), LABELS, {}, "all its columns are constant"),
        (np.where(ROWS > 2, np.nan, ROWS) * np.nan, LABELS, {}, "X must be finite: 60 entries are not"),
        (ROWS.astype(str), LABELS, {}, "X must be numbers"),
        (ROWS, LABELS[:7], {}, "must be a table"),
        (ROWS, LABELS, {"lam": 0}, "lam must be a number above 0, or best"),
        (ROWS, LABELS, {"P": [0]}, "P must be whole numbers of examples"),
        (ROWS, LABELS, {"loss": "logstic"}, "Did you mean"),
    ],
)
def test_an_impossible_table_is_refused(X, y, given, message):
    with pytest.raises(ConfigError, match=message):
        statmech.predict_learning_curve(X, y, **given)


def written(path, text):
    path.write_text(text)
    return str(path)


def test_a_file_is_read_with_names_or_without(tmp_path):
    rows = "".join(f"{x[0]:.3f},{'yes' if y else 'no'},{x[1]:.3f}\n" for x, y in zip(ROWS, LABELS, strict=True))
    named = read(written(tmp_path / "a.csv", "u,label,v\n" + rows), "label")
    bare = read(written(tmp_path / "b.csv", rows), "1")
    assert named.labels == bare.labels == ("yes", "no")
    np.testing.assert_array_equal(named.X, bare.X)
    np.testing.assert_array_equal(named.y, labelled(ROWS, LABELS).y)


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("u,v\n1,2\n", "w", '"w" is not a column'),
        ("u,v\n1,2\n3\n", "v", "row 3 has 1 columns, the first one 2"),
        ("u,v\n" + "1,0\n" * 20 + "x,1\n", "v", 'row 22, column "u" is not a number'),
        ("u,v\n", "v", "a table needs rows"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused_and_nothing_is_written(text, target, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "t.csv", text)
    with pytest.raises(ConfigError, match=message):
        read(path, target)
    assert [it.name for it in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.slow
def test_the_command_prints_a_verdict_and_draws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Z, y, _ = clusters(200, 20, 0)
    np.savetxt("t.csv", np.column_stack([Z, y]), delimiter=",")
    result = CliRunner().invoke(app, ["predict", "t.csv", "--examples", "20,100,800", "--check", "2"])
    assert result.exit_code == 0, result.output
    assert "8 times as many would take it to" in result.output
    assert (tmp_path / "t-curve.png").stat().st_size > 5000


def test_a_target_of_two_values_as_numbers_has_the_squared_error_of_any_other_numbers():
    """It grows with the square of their distance, and is not a fraction of wrong labels."""
    rng = np.random.default_rng(8)
    y = np.where(rng.random(300) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((300, 20)) + 0.3 * y[:, None]
    given = {"loss": "square", "P": [40, 200], "numbers": True}
    labels, zeros = (statmech.predict_learning_curve(X, target, check=4, **given) for target in (y, (y + 1) / 2))
    np.testing.assert_allclose(labels.mse, 4 * zeros.mse, rtol=1e-10)
    np.testing.assert_allclose(labels.mse_fit, 4 * zeros.mse_fit, rtol=1e-7)
    nearly = statmech.predict_learning_curve(X, y + 1e-9 * rng.standard_normal(300), loss="square", P=[40, 200])
    np.testing.assert_allclose(labels.mse, nearly.mse, rtol=1e-6)
    assert "eps_y" not in labels
