"""Learning curves of tables: the recorded value, agreement with the population and with fits, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import statmech
from statmech.cli.command_group import app
from statmech.convex.gaussian_clusters import GaussianClusters
from statmech.convex.losses import LOSSES, Square, convert_to_stability_loss
from statmech.errors import ConfigError
from statmech.inputs.real_tables import make_labelled_table, make_real_table, read_labelled_table
from statmech.learning_curve import LearningCurvePredictor
from statmech.learning_curve_report import format_curve_report
from theory.convex.gaussian_clusters import solve_cluster_minimum
from theory.convex.real_tables import (
    FreshRowErrorPredictor,
    Resolvent,
    decompose_real_table,
    make_class_decomposition,
    make_ridge_decomposition,
    predict_fresh_errors,
    predict_squared_errors,
)

ALPHA = np.array([0.25, 0.5, 1.0, 2.0])


def scaled(X):
    Z = X - X.mean(axis=0)
    return Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))


def test_the_squared_error_of_a_small_table_is_the_recorded_one():
    i, j = np.arange(1, 61)[:, None], np.arange(1, 21)
    X = np.sin(1 + i * j + j**2)
    y = np.cos(i[:, 0]) + X[:, 0]
    table = make_ridge_decomposition(scaled(X), y - y.mean())
    assert predict_squared_errors(table, np.array([25]), np.array([0.1]))[0] == pytest.approx(0.4186931609, abs=5e-11)


def test_as_many_examples_as_degrees_of_freedom_give_generalised_cross_validation():
    """Centring takes one of the 80 rows' degrees of freedom."""
    rng = np.random.default_rng(0)
    Z = scaled(rng.standard_normal((80, 30)))
    y = Z[:, 0] + rng.standard_normal(80)
    y, lam = y - y.mean(), 0.3
    hat = Z @ np.linalg.solve(Z.T @ Z + lam * np.eye(30), Z.T)
    by_hand = np.sum((y - hat @ y) ** 2) / 79 / (1 - np.trace(hat) / 79) ** 2
    error = predict_squared_errors(make_ridge_decomposition(Z, y), np.array([79]), np.array([lam]))[0]
    assert error == pytest.approx(by_hand, rel=1e-9)


NOISE = 0.5
SPREAD = np.sqrt(np.geomspace(3, 0.1, 60))  # standard deviations of 60 columns
TARGET = np.full(60, 1 / np.sqrt(np.sum(SPREAD**2)))


def linear_rows(n, seed):
    """Gaussian rows of unequal variance, and a linear target of variance 1 with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 60)) * SPREAD
    return X, X @ TARGET + NOISE * rng.standard_normal(n)


def ridge_errors_on_fresh_rows(P, lam, seeds):
    """The mean squared errors of ridge fits on the population of fresh rows."""
    scale, errors = np.sqrt(np.sum(SPREAD**2)), []
    for seed in seeds:
        X, y = linear_rows(P, 10_000 + seed)
        Z = X / scale
        w = np.linalg.solve(Z.T @ Z + lam * np.eye(60), Z.T @ y) / scale
        errors.append(np.sum((SPREAD * (w - TARGET)) ** 2) + NOISE**2)
    return np.array(errors)


def deviation(first, second):
    """The difference of two means in standard errors."""
    return (first.mean() - second.mean()) / np.hypot(
        *(np.std(part, ddof=1) / len(part) ** 0.5 for part in (first, second))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "P", "lam", "planted"), [(30, 100, 1.0, 10), (60, 120, 0.1, 5), (60, 400, 0.3, 5), (70, 200, 0.03, 2)]
)
def test_short_tables_predict_the_squared_error_of_fresh_rows_with_one_degree_of_freedom_less_than_rows(
    n, P, lam, planted
):
    found, wrong = [], []
    for seed in range(200):
        X, y = linear_rows(n, seed)
        table, point = make_ridge_decomposition(scaled(X), y - y.mean()), (np.array([P]), np.array([lam]))
        found += list(predict_squared_errors(table, *point))
        of = table.resolvent
        wrong += list(predict_squared_errors(table._replace(resolvent=Resolvent(of.eigenvalues, n, 60)), *point))
    fits = ridge_errors_on_fresh_rows(P, lam, range(100))
    assert abs(deviation(np.array(found), fits)) < 3.5
    assert deviation(np.array(wrong), fits) < -planted


def test_the_squared_error_of_unbalanced_labels_has_their_mean_as_noise():
    """Learners have no intercept. Tables have 200 rows, of which 10 % have the label +1."""

    def rows(n, seed):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(n) < 0.1, 1.0, -1.0)
        return rng.standard_normal((n, 60)) + 0.2 * y[:, None], y

    tables = [
        decompose_real_table(make_real_table(make_labelled_table(*rows(200, seed))), intercept=False)
        for seed in range(20)
    ]
    predicted = np.array([predict_squared_errors(table, np.array([80]), np.array([0.3]))[0] for table in tables])
    errors = []
    for seed in range(20):
        (X, y), (fresh, answers) = rows(80, 100 + seed), rows(2000, 200 + seed)
        Z, T = ((part + 0.16) / np.sqrt(60 * (1 + 0.04 * 0.36)) for part in (X, fresh))
        w = np.linalg.solve(Z.T @ Z + 0.3 * np.eye(60), Z.T @ y)
        errors.append(np.mean((answers - T @ w) ** 2))
    assert abs(deviation(predicted, np.array(errors))) < 3.5


def numbers(rng, n, N):
    """Rows of unequal variances and targets with noise of variance 1/4, of a population that all calls share."""
    variances = np.geomspace(3, 0.1, N)
    direction = np.random.default_rng(9).standard_normal(N)
    X = rng.standard_normal((n, N)) * np.sqrt(variances)
    return X, X @ direction / np.sqrt(np.sum(direction**2 * variances)) + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize(("n", "P", "lam"), [(40, 40, 1.0), (60, 60, 0.3), (70, 140, 0.3)])
def test_short_tables_of_60_columns_predict_the_squared_error_of_fresh_rows(n, P, lam):
    """Fewer rows than columns, as many, and ten more, with an intercept; with n degrees of freedom it fails."""
    N, X_test, y_test = 60, *numbers(np.random.default_rng(1), 4000, 60)
    predicted, truth, planted = [], [], []
    for seed in range(60):
        X, y = numbers(np.random.default_rng([2, seed]), n, N)
        table = make_real_table(make_labelled_table(X, y))
        predicted.append(
            FreshRowErrorPredictor(table).predict_errors(Square(), np.array([P]), np.array([lam])).mse_y[0]
        )
        ridge = decompose_real_table(table, True)
        wrong = replace(ridge.resolvent, degrees_of_freedom=n)
        planted.append(predict_squared_errors(ridge._replace(resolvent=wrong), np.array([P - 1]), np.array([lam]))[0])
        X, y = numbers(np.random.default_rng([3, seed]), P, N)
        Z, scale = X - X.mean(axis=0), np.mean(np.sum(numbers(np.random.default_rng([4, seed]), n, N)[0] ** 2, axis=1))
        w = np.linalg.solve(Z.T @ Z + lam * scale * np.eye(N), Z.T @ (y - y.mean()))
        truth.append(np.mean((y_test - y.mean() - (X_test - X.mean(axis=0)) @ w) ** 2))
    noise = np.hypot(np.std(predicted, ddof=1), np.std(truth, ddof=1)) / np.sqrt(60)
    assert abs(np.mean(predicted) - np.mean(truth)) < 4 * noise
    assert np.mean(planted) < np.mean(predicted) < 1.5  # that of the answer 0 is 1.25


def test_a_short_table_does_not_determine_what_more_examples_would_reach():
    X, y = numbers(np.random.default_rng(0), 40, 60)
    curve = LearningCurvePredictor(make_labelled_table(X, y)).predict(lam=0.01, P=[20, 40, 160, 640], fits=False)
    assert np.isnan(curve.mse.values).tolist() == [False, False, True, True]
    best = LearningCurvePredictor(make_labelled_table(X, y)).predict(P=[20, 40, 160, 640], fits=False)
    known = best.mse.values[np.isfinite(best.mse.values)]
    assert np.all(known > 0.15)  # the noise is 0.25, of which 40 rows determine a third too little
    assert "rows do not determine" in format_curve_report(curve)


def test_the_sample_s_penalty_is_the_inverse_of_the_population_s():
    few_rows = Resolvent(np.geomspace(0.01, 1, 40), degrees_of_freedom=40, num_columns=100)
    many_rows = Resolvent(np.geomspace(0.01, 1, 40), degrees_of_freedom=90, num_columns=40)
    for resolvent in (few_rows, many_rows):
        z = np.array([1e-3, 0.1, 10.0])
        np.testing.assert_allclose(resolvent.sample_penalty(resolvent.population_penalty(z)), z, rtol=1e-10)
    assert np.isnan(few_rows.sample_penalty(np.array([0.9 * few_rows.min_population_penalty])))[0]


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
        table = make_class_decomposition(Z, y)
        if planted:
            table = table._replace(mean_difference_noise=0.0)
        found.append(predict_fresh_errors(loss, table, 200 * ALPHA, np.full(4, 0.1 / scale**2)))
    return np.array(found)


@pytest.mark.parametrize(
    "name", ["logistic", *(pytest.param(it, marks=pytest.mark.slow) for it in ("hinge", "square"))]
)
def test_tables_of_clusters_predict_the_error_of_their_population(name):
    loss = convert_to_stability_loss(LOSSES[name]())
    population = solve_cluster_minimum(loss, GaussianClusters().combine_with_modes(None), ALPHA, np.full(4, 0.1)).eps_g
    errors = predicted(loss)
    z = (errors.mean(axis=0) - population) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))
    assert np.all(np.abs(z) < 3.5)


@pytest.mark.slow
def test_leaving_the_noise_of_the_means_in_is_found():
    loss = convert_to_stability_loss(LOSSES["logistic"]())
    population = solve_cluster_minimum(loss, GaussianClusters().combine_with_modes(None), ALPHA, np.full(4, 0.1)).eps_g
    errors = predicted(loss, planted=True)
    z = (errors.mean(axis=0) - population) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))
    assert np.max(np.abs(z)) > 6


def test_fits_of_held_out_rows_agree_with_the_prediction():
    """A table so long that its own deviation is small beside that of 12 fits."""
    Z, y, _ = clusters(6000, 60, 3)
    curve = statmech.predict_learning_curve(Z, y, lam=0.1, P=[60, 240], fits=False, check=12)
    z = (curve.eps_y_fit - curve.eps_y) / np.hypot(curve.eps_y_fit_error, 0.006)
    assert np.all(np.abs(z) < 4)


def test_the_best_penalty_is_not_worse_than_others():
    Z, y, _ = clusters(400, 40, 1)
    for target, name in ((y, "eps_y"), (Z[:, 0] + 0.1 * y, "mse")):
        curve = LearningCurvePredictor(make_labelled_table(Z, target))
        best = curve.predict(P=[50, 400], fits=False)[name]
        for lam in (1e-3, 0.1, 10.0):
            assert np.all(curve.predict(lam=lam, P=[50, 400], fits=False)[name] >= best * (1 - 1e-9))


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
        (ROWS, np.arange(30) % 3, {"loss": "logistic"}, "the loss must be square, not logistic"),
        (ROWS, [*"abc"] * 10, {}, "the target has 3 values, a, b, c: it must have two or be numerical"),
        (ROWS, np.zeros(30), {}, "the target has one value"),
        (np.zeros((30, 2)), LABELS, {}, "no input varies"),
        (ROWS * np.nan, LABELS, {}, "no input varies"),
        (np.where(ROWS[25, 1] == ROWS, np.inf, ROWS), LABELS, {}, 'row 26, column "1" is infinite'),
        (ROWS, "label", {}, "columns have names only if X is a data frame or a file"),
        (ROWS, LABELS[:7], {}, "must be a table"),
        (ROWS, LABELS, {"lam": 0}, "^lam must be a number above 0, or best"),
        (ROWS, LABELS, {"P": [0]}, "P must be integers of at least 2"),
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
    named = read_labelled_table(written(tmp_path / "a.csv", "u,label,v\n" + rows), "label")
    bare = read_labelled_table(written(tmp_path / "b.csv", rows), "1")
    assert named.labels == bare.labels == ("yes", "no")
    np.testing.assert_array_equal(named.X, bare.X)
    np.testing.assert_array_equal(named.y, make_labelled_table(ROWS, LABELS).y)


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("u,v\n1,2\n", "w", '"w" is not a column'),
        ("u,v\n1,2\n3\n", "v", "row 3 has 1 columns, but row 1 has 2"),
        ("u,v\n" + "1,0\n" * 20 + "x,1\n", "v", 'row 22, column "u" is not a number'),
        ("u,v\n", "v", "a table requires at least two rows"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused_and_nothing_is_written(text, target, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "t.csv", text)
    with pytest.raises(ConfigError, match=message):
        read_labelled_table(path, target)
    assert [it.name for it in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.slow
def test_the_command_prints_a_verdict_and_draws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Z, y, _ = clusters(200, 20, 0)
    np.savetxt("t.csv", np.column_stack([Z, y]), delimiter=",")
    result = CliRunner().invoke(app, ["predict", "t.csv", "--lam", "0.1", "--examples", "20,100,800", "--check", "2"])
    assert result.exit_code == 0, result.output
    assert "verdict: good" in result.output
    assert "8 times as many rows: 0.1665 -> 0.1411, 15 % fewer errors" in result.output
    assert (tmp_path / "t-curve.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "What more rows would bring is not known from this table."),
        (["--lam", "0.1", "--examples", "2000"], "The table's rows do not determine the error at any of these numbers"),
        (["--lam", "0.1", "--no-fits"], "The table's rows do not determine the error of more than 30 of these numbers"),
    ],
)
def test_the_command_says_where_the_rows_do_not_determine_the_error(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = linear_rows(30, 0)
    np.savetxt("few.csv", np.column_stack([X, y]), delimiter=",")
    result = CliRunner().invoke(app, ["predict", "few.csv", *options])
    assert result.exit_code == 0, result.output
    assert words in " ".join(result.output.split())
    assert max(map(len, result.output.splitlines())) < 80
    assert "not known" in result.output
    for said in ("nan", "100 %", "0.0000"):
        assert said not in result.output


def test_a_target_of_two_values_as_numbers_has_the_squared_error_of_any_other_numbers():
    """It grows with the square of their distance, and is not a fraction of wrong labels."""
    rng = np.random.default_rng(8)
    y = np.where(rng.random(300) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((300, 20)) + 0.3 * y[:, None]
    given = {"loss": "square", "lam": 0.1, "P": [40, 200], "numbers": True, "fits": False}
    labels, zeros = (statmech.predict_learning_curve(X, target, check=4, **given) for target in (y, (y + 1) / 2))
    np.testing.assert_allclose(labels.mse, 4 * zeros.mse, rtol=1e-10)
    np.testing.assert_allclose(labels.mse_fit, 4 * zeros.mse_fit, rtol=1e-7)
    nearly = statmech.predict_learning_curve(X, y + 1e-9 * rng.standard_normal(300), lam=0.1, P=[40, 200], fits=False)
    np.testing.assert_allclose(labels.mse, nearly.mse, rtol=1e-6)
    assert "eps_y" not in labels
