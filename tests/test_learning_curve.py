"""Learning curves of tables: equations with an intercept, leave-one-out, and verdicts, against independent values."""

from __future__ import annotations

import numpy as np
import pytest

import statmech
from simulate.convex.table_fits import (
    fit_table_rows,
    leave_one_out_loss_arguments,
    make_table_problem,
    measure_table_errors,
)
from statmech.convex.losses import LOSSES, convert_to_stability_loss
from statmech.inputs.real_tables import make_labelled_table, make_real_table
from statmech.learning_curve import LearningCurvePredictor
from statmech.learning_curve_report import format_curve_report
from statmech.numerics.gaussian import normal_cdf
from theory.convex import anchored_curves
from theory.convex.anchored_curves import (
    LabelErrorScale,
    MeasuredErrors,
    SquaredErrorScale,
    judge_theory,
    move_curve_to_errors,
)
from theory.convex.real_tables import (
    FreshRowErrorPredictor,
    make_class_decomposition,
    predict_fresh_errors,
    solve_fresh_stabilities,
)


def cluster_table(seed, n, N, share, separation=1.25):
    """Rows of two clusters of variances from 2 to 0.2, the first of which have the label +1."""
    variances = np.geomspace(2, 0.2, N)
    half = np.random.default_rng(7).standard_normal(N)
    half *= separation / np.sqrt(np.sum(half**2 / variances))
    y = np.where(np.arange(n) < round(share * n), 1.0, -1.0)
    X = np.random.default_rng(seed).standard_normal((n, N)) * np.sqrt(variances) + y[:, None] * half
    X = X - X.mean(axis=0)
    return X / np.sqrt(np.mean(np.sum(X**2, axis=1))), y


VALUES = [  # of a solver of the same equations that shares no code with this package
    ((1, 600, 30, 0.3), "logistic", 120, 0.1, 0.1322679084, (1.817112, 1.756031, 2.324704, -1.566159)),
    ((1, 600, 30, 0.3), "logistic", 2400, 0.1, 0.0920326902, (3.088358, 2.451531, 0.181061, -2.071674)),
    ((2, 1000, 40, 0.1), "logistic", 200, 0.1, 0.0800736664, (1.551153, 1.780605, 3.038239, -3.563185)),
    ((2, 1000, 40, 0.1), "square", 200, 1.0, 0.0888557151, (0.261005, 0.286738, 0.176591, -0.8)),
    ((2, 1000, 40, 0.1), "hinge", 400, 0.1, 0.07651432, (1.45798, 1.53423, 0.85399, -2.57290)),
]


@pytest.mark.parametrize(("rows", "loss", "P", "lam", "error", "state"), VALUES)
def test_the_equations_with_an_intercept_have_the_recorded_solution(rows, loss, P, lam, error, state):
    table = make_class_decomposition(*cluster_table(*rows))
    kind = convert_to_stability_loss(LOSSES[loss]())
    tolerance = 2e-8 if loss == "hinge" else 1e-10
    assert predict_fresh_errors(kind, table, np.array([P]), np.array([lam]))[0] == pytest.approx(error, abs=tolerance)
    equations, at = solve_fresh_stabilities(kind, table, np.array([P]), np.array([lam]), True)
    factors = equations.clusters.centre_distances
    m = float(np.sum(at.means[:, 0])) / float(np.sum(factors))
    b = float(at.means[0, 0] - factors[0] * m)
    np.testing.assert_allclose([m, at.Q[0], at.V[0], b], state, atol=2e-5 if loss == "hinge" else 1e-6)


@pytest.mark.parametrize(("noise", "error"), [(0.0, 0.07675), (1 / 1000, 0.07793)])
def test_a_wrong_noise_of_the_class_means_changes_the_recorded_value(noise, error):
    table = make_class_decomposition(*cluster_table(2, 1000, 40, 0.1))._replace(mean_difference_noise=noise)
    found = predict_fresh_errors(LOSSES["logistic"](), table, np.array([200]), np.array([0.1]))
    assert found[0] == pytest.approx(error, abs=5e-6)


def test_swapped_fractions_of_the_classes_change_the_recorded_error():
    table = make_class_decomposition(*cluster_table(2, 1000, 40, 0.1))
    equations, at = solve_fresh_stabilities(LOSSES["logistic"](), table, np.array([200]), np.array([0.1]), True)
    wrong = normal_cdf(-at.means / at.Q)[:, 0]
    assert equations.clusters.weights @ wrong == pytest.approx(0.0800736664, abs=1e-10)
    assert equations.clusters.weights[::-1] @ wrong == pytest.approx(0.602, abs=5e-4)


def test_without_an_intercept_unequal_classes_are_learnt_much_worse():
    table = make_class_decomposition(*cluster_table(2, 1000, 40, 0.1))
    without = predict_fresh_errors(LOSSES["logistic"](), table, np.array([200]), np.array([0.1]), intercept=False)
    assert without[0] == pytest.approx(0.4166, abs=5e-5)


def test_a_hinge_has_a_solution_for_rare_classes_at_any_number_of_examples():
    """Solutions are followed from equal classes where freeing the intercept leads nowhere."""
    table, P = make_class_decomposition(*cluster_table(2, 1000, 40, 0.1)), np.array([100, 400, 1600, 6400])
    errors = predict_fresh_errors(LOSSES["hinge"](), table, P, np.full(4, 0.1))
    assert np.all(np.diff(errors) < 0)
    assert errors[2] == pytest.approx(0.0612767, abs=1e-6)


def test_a_hinge_that_answers_the_more_frequent_label_errs_on_the_rarer_one():
    table = make_real_table(make_labelled_table(*cluster_table(3, 400, 20, 0.05, 0.3)))
    state = FreshRowErrorPredictor(table).predict_errors(LOSSES["hinge"](), np.array([200.0]), np.array([10.0]))
    assert state.eps_y[0] == pytest.approx(0.05, abs=1e-4)


@pytest.mark.slow
def test_fits_with_an_intercept_agree_with_theory_and_not_with_a_penalised_intercept():
    """Fits to half a long table, so that its own deviation from its population is small."""
    table = make_real_table(make_labelled_table(*cluster_table(5, 3000, 60, 0.3)))
    lam, P, sets = 5.0, 200, 60
    theory = predict_fresh_errors(
        LOSSES["logistic"](), make_class_decomposition(table.Z, table.y), np.array([P]), np.array([lam])
    )[0]
    errors = {False: [], True: []}
    for seed in range(sets):
        order = np.random.default_rng(seed).permutation(3000)
        problem = make_table_problem(table, LOSSES["logistic"](), lam, order[:P], True)
        for penalised, found in errors.items():
            from simulate.convex.minimisation_and_separability import minimise

            w = minimise(problem._replace(num_unpenalised_weights=0) if penalised else problem).w
            found.append(measure_table_errors(table, w, order[P:]).labels)
    free, penalised = (np.array(errors[key]) for key in (False, True))
    noise = np.hypot(free.std(ddof=1) / np.sqrt(sets), np.sqrt(theory * (1 - theory) / 3000))
    assert abs(free.mean() - theory) < 4 * noise
    difference = penalised - free
    assert abs(difference.mean()) > 5 * difference.std(ddof=1) / np.sqrt(sets)


def test_examples_of_one_label_are_answered_by_it():
    table = make_real_table(make_labelled_table(*cluster_table(1, 100, 5, 0.3)))
    found = fit_table_rows(table, LOSSES["logistic"](), 0.1, np.arange(10), True)
    assert measure_table_errors(table, found.w, slice(30, 100)).labels == 1.0
    assert found.converged


@pytest.mark.parametrize("name", ["logistic", "square", "squared_hinge", "huber"])
@pytest.mark.parametrize("shape", [(80, 10), (40, 70)])
def test_one_step_of_newton_leaves_a_row_out(name, shape):
    n, N = shape
    table = make_real_table(make_labelled_table(*cluster_table(21, n, N, 0.3, 1.0)))
    loss, rows = LOSSES[name](), np.arange(n)
    exact = [
        make_table_problem(table, loss, 0.1, rows, True).x(
            fit_table_rows(table, loss, 0.1, np.delete(rows, i), True).w
        )[i]
        for i in rows
    ]
    found = leave_one_out_loss_arguments(table, loss, 0.1, True)
    trained = make_table_problem(table, loss, 0.1, rows, True).x(fit_table_rows(table, loss, 0.1, rows, True).w)
    deviation = np.std(exact)
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.1 * deviation
    assert np.sqrt(np.mean((trained - exact) ** 2)) > 0.15 * deviation
    if name == "square":
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)


def test_leave_one_out_has_the_recorded_values():
    """200 rows of 20 columns: exact by 200 fits .205 and 1.47366; one step .210 and 1.47474."""
    table = make_real_table(make_labelled_table(*cluster_table(21, 200, 20, 0.3, 1.0)))
    left = leave_one_out_loss_arguments(table, LOSSES["logistic"](), 0.1, True)
    assert np.mean(left < 0) == pytest.approx(0.21)
    assert np.mean(left) == pytest.approx(1.47474, abs=1e-5)


def test_the_anchored_curve_has_the_recorded_values():
    Z, y = cluster_table(21, 200, 20, 0.3, 1.0)
    table, loss, P = make_real_table(make_labelled_table(Z, y)), LOSSES["logistic"](), np.array([50.0, 200.0, 800.0])
    _, at = solve_fresh_stabilities(
        loss, make_class_decomposition(table.Z, y), np.append(P, 199.0), np.full(4, 0.1), True
    )
    positions = at.means / at.Q
    stabilities = anchored_curves.standardise_stabilities(leave_one_out_loss_arguments(table, loss, 0.1, True), y)
    theory, of_all = positions[:, :-1], positions[:, -1:]
    D, position = theory.sum(axis=0) / of_all.sum(), stabilities.positions
    O = theory[0] - theory[1] + position[0] - position[1] - (of_all[0] - of_all[1])
    means = (D * position.sum() + np.array([[1.0], [-1.0]]) * O) / 2
    mixed = anchored_curves._compute_class_errors(means, np.minimum(1, D**2), stabilities.standardised)
    np.testing.assert_allclose(np.array([0.3, 0.7]) @ mixed, [0.25448, 0.20540, 0.18958], atol=5e-6)
    errors = anchored_curves.compute_anchored_errors(theory, of_all, stabilities, np.array([0.3, 0.7]))
    assert errors.shape == (2, 3)
    assert float(np.array([0.3, 0.7]) @ errors[:, 1]) == pytest.approx(0.20540, abs=5e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "square", "hinge"])
def test_the_intercept_follows_the_fraction_of_labels_among_few_examples(name):
    """Where the penalty is strong, fits to few rows of equal classes err far more than at N to infinity."""
    rng, loss, (P, lam) = np.random.default_rng(0), LOSSES[name](), (25, 3.0)
    y = np.where(np.arange(4000) % 2, 1.0, -1.0)
    X = rng.standard_normal((4000, 20)) / np.sqrt(20) + y[:, None] * np.ones(20) / 20
    table = make_real_table(make_labelled_table(X, y))
    errors = []
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(4000)
        errors.append(
            measure_table_errors(table, fit_table_rows(table, loss, lam, order[:P], True).w, order[P:]).labels
        )
    plain = predict_fresh_errors(
        convert_to_stability_loss(loss), make_class_decomposition(table.Z, y), np.array([P]), np.array([lam])
    )[0]
    drawn = float(
        np.mean(normal_cdf(-FreshRowErrorPredictor(table).positions(loss, np.array([float(P)]), np.array([lam]))))
    )
    noise = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - drawn) < 4 * noise
    assert np.mean(errors) - plain > (2 if name == "square" else 4) * noise


def test_a_moved_curve_goes_through_what_was_measured():
    measured = MeasuredErrors(np.array([50, 200, 400]), np.array([0.3, 0.2, 0.15]), np.array([0.01, 0.01, 0.02]))
    at = anchored_curves.PredictedCurve(np.array([0.2, 0.15, 0.13]), np.array([0.22, 0.16, 0.12]))
    for scale in (LabelErrorScale(400), SquaredErrorScale(0.1)):
        moved = move_curve_to_errors(measured.P, at, measured, at, scale)
        np.testing.assert_allclose(moved[:2], measured.error[:2])
        assert moved[2] == pytest.approx((0.15 + (0.2 + 0.13 - 0.15)) / 2)  # what the fits before it say counts half


@pytest.mark.parametrize(
    ("errors", "wrong", "verdict"),
    [
        ([0.21, 0.16, 0.12], 48, "good"),
        ([0.35, 0.26, 0.2], 80, "moved"),
        ([0.6, 0.1, 0.2], 80, "unsure"),
        ([0.21, 0.16, 0.02], 8, "too few errors to measure"),
    ],
)
def test_a_verdict_compares_theory_with_what_was_measured(errors, wrong, verdict):
    measured = MeasuredErrors(np.array([50, 200, 400]), np.array(errors), np.full(3, 0.005))
    at = anchored_curves.PredictedCurve(np.array([0.2, 0.15, 0.13]), np.array([0.3, 0.22, 0.2]))
    assert judge_theory(measured, at, LabelErrorScale(400), wrong) == verdict


def made(kind, seed, n=500, N=30):
    rng = np.random.default_rng(seed)
    variances = np.geomspace(3, 0.1, N)
    X = rng.standard_normal((n, N)) * np.sqrt(variances)
    if kind == "clusters":
        y = np.where(np.arange(n) < n // 2, 1, -1)
        half = rng.standard_normal(N)
        return X + y[:, None] * half / np.sqrt(np.sum(half**2 / variances)), y
    return X, np.sign(X @ rng.standard_normal(N))


@pytest.mark.parametrize(("kind", "good"), [("clusters", True), ("sign plane", False)])
def test_clusters_are_called_good_and_labels_that_a_plane_explains_are_not(kind, good):
    verdicts = [
        LearningCurvePredictor(make_labelled_table(*made(kind, seed))).predict(lam=0.1, P=[500, 2000]).verdict
        for seed in range(4)
    ]
    assert verdicts.count("good") == (4 if good else 0)


@pytest.mark.slow
def test_the_moved_curve_of_a_sign_plane_is_nearer_the_truth_than_theory():
    """Theory alone is several times too large at four times the rows: measured by fits to fresh rows."""
    rng = np.random.default_rng(0)
    direction, variances = rng.standard_normal(30), np.geomspace(3, 0.1, 30)
    X = rng.standard_normal((30_000, 30)) * np.sqrt(variances)
    y = np.sign(X @ direction)
    curve = LearningCurvePredictor(make_labelled_table(X[:500], y[:500])).predict(lam=0.1, P=[500, 2000])
    whole = make_real_table(make_labelled_table(X, y), standardise=True)
    truth = [
        measure_table_errors(
            whole, fit_table_rows(whole, LOSSES["logistic"](), 0.1, np.arange(k, k + 2000), True).w, slice(20_000, None)
        ).labels
        for k in range(0, 20_000, 2000)
    ]
    theory, moved = float(curve.eps_y_theory[1]), float(curve.eps_y[1])
    assert theory > 2 * np.mean(truth)
    assert abs(np.log(moved / np.mean(truth))) < 0.7 * abs(np.log(theory / np.mean(truth)))


def test_rare_labels_are_predicted_beside_the_answer_that_is_more_frequent():
    X, y = cluster_table(4, 240, 4, 0.025, 0.3)
    curve = statmech.predict_learning_curve(X, y, lam=0.1, P=[50, 150, 240])
    assert curve.eps_y.values == pytest.approx(0.025, rel=0.2)
    assert curve.rarer_fraction == 0.025
    assert "errs on 0.0250; this learner is no better" in " ".join(format_curve_report(curve).split())


def test_a_learner_of_inputs_without_information_is_compared_with_the_mean_of_the_target():
    rng = np.random.default_rng(0)
    curve = statmech.predict_learning_curve(rng.normal(size=(200, 5)), rng.normal(3, 2, 200), P=[50, 200])
    assert curve.target_variance == pytest.approx(4, rel=0.3)
    report = " ".join(format_curve_report(curve).split())
    deviation = f"{float(curve.target_variance) ** 0.5:.4g}"
    assert f"target: a number, standard deviation {deviation}" in report
    assert f"the mean of the target has the error {deviation}; this learner is no better" in report
    root = float(curve.mse.sel(P=200)) ** 0.5  # in the unit of the target
    assert f"{root:.4f}" in report


def test_a_jump_of_the_best_penalty_is_explained():
    X, y = cluster_table(4, 240, 4, 0.5, 0.3)
    curve = statmech.predict_learning_curve(X, y, P=[50, 240])
    jumping = curve.assign(lam=0 * curve.lam + [1.0, 100.0])
    flat = curve.assign(lam=0 * curve.lam + 1.0)
    assert "the best penalty jumps" in format_curve_report(jumping)
    assert "the best penalty jumps" not in format_curve_report(flat)


def test_an_empty_target_is_named(tmp_path):
    (tmp_path / "table.csv").write_text("a,b,notes\n" + "1,2,\n" * 30)
    with pytest.raises(statmech.ConfigError, match='the target, column "notes", is empty'):
        statmech.predict_learning_curve(tmp_path / "table.csv", "-1")


@pytest.mark.parametrize("seed", range(6))
def test_labels_of_chance_are_predicted_as_chance(seed):
    """Of half of these tables the classes' means differ by less than their noise."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((150, 20)), rng.integers(0, 2, 150)
    curve = statmech.predict_learning_curve(X, y, P=[20, 75, 150])
    assert (np.abs(curve.eps_y - 0.5) < 3 * 0.5 / np.sqrt(150)).all()  # the standard error of 150 labels
    assert np.isfinite(curve.lam).all()


def test_a_curve_can_be_written_by_to_netcdf():
    y = np.arange(60) % 2
    X = np.random.default_rng(0).standard_normal((60, 3)) + y[:, None]
    for fits in (True, False):
        curve = statmech.predict_learning_curve(X, y, fits=fits, check=2)
        assert len(curve.to_netcdf(engine="scipy")) > 1000


def test_columns_of_any_scale_have_the_same_curve_unless_they_are_raw():
    X, y = cluster_table(6, 300, 6, 0.4)
    scales = np.array([1e6, 1e-6, 1, 10, 1e3, 1e-2])
    one, other = (statmech.predict_learning_curve(rows, y, lam=0.1, P=[100, 300]) for rows in (X, X * scales))
    np.testing.assert_allclose(one.eps_y, other.eps_y, rtol=1e-9)
    raw = statmech.predict_learning_curve(X * scales, y, lam=0.1, P=[100, 300], standardise=False)
    assert np.all(raw.eps_y > 1.1 * one.eps_y)


def test_nothing_is_said_beyond_the_rows_where_it_cannot_be_known():
    few = LearningCurvePredictor(make_labelled_table(*cluster_table(8, 60, 40, 0.5))).predict(lam=0.1, P=[30, 60, 240])
    assert np.isfinite(few.eps_y.values).tolist() == [True, True, False]
    assert "not known from this table" in format_curve_report(few)


def test_a_target_of_numbers_has_a_verdict_and_a_band():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 10))
    y = 5 + X @ rng.standard_normal(10) + rng.standard_normal(300)
    curve = statmech.predict_learning_curve(X, y, lam=0.1, P=[40, 300, 1200])
    assert curve.verdict == "good"
    assert np.all((curve.mse_low < curve.mse) & (curve.mse < curve.mse_high))
    assert float(curve.mse[2]) == pytest.approx(1.01, abs=0.2)  # the noise has variance 1
    without = statmech.predict_learning_curve(X, y, lam=0.1, P=[40, 300], intercept=False)
    np.testing.assert_allclose(curve.mse[:2], without.mse, rtol=0.1)  # the target is centred in both
