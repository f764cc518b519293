"""Attention: stopped walks and the perceptrons that learn from them, compared with exact theory and with loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from simulate.classification import attentive_perceptron
from simulate.classification.partial_sums import (
    MIN_BLOCK_EXAMPLES,
    AttentionState,
    evaluate_margins_in_blocks,
    sum_rows_until_level,
)
from statmech import Attention, Scenario, ScenarioError, Stopping
from statmech.classification.stopping_boundaries import (
    BOUNDARIES,
    GAUSSIAN_WALK_OVERSHOOT,
    brownian_decision_error,
    compute_stopping_level,
    compute_total_level_rise,
    get_check_positions,
)
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results import comparison
from statmech.stores.sweep_chunks import compute_chunk_lengths
from theory.classification.attentive_perceptron import (
    StoppingLevel,
    compute_evaluated_fraction,
    compute_learning_averages,
)
from theory.classification.random_walks import approximate_decision, exact_decision


def walk(z, w, at, tau, slope):
    """The algorithm: one example, feature by feature."""
    total = 0.0
    for i, product in enumerate(z * w, 1):
        total += product
        if i in at and total >= tau + slope * i / len(w):
            return total, i
    return total, len(w)


@pytest.mark.parametrize("at", [[3, 4, 11, 20], list(range(1, 21)), [20], list(get_check_positions(20, 6))])
def test_walks_stop_at_the_first_look_that_reaches_the_level(at):
    rng = np.random.default_rng(0)
    z, w = rng.standard_normal((30, 20)), rng.standard_normal(20)
    found = sum_rows_until_level(z, w, np.array(at), tau=2.0, level_rise=0.5)
    slow = [walk(row, w, at, 2.0, 0.5) for row in z]
    np.testing.assert_allclose(found.sums, [total for total, _ in slow], atol=1e-12)
    assert found.features.tolist() == [features for _, features in slow]


@pytest.mark.parametrize("chunk", [1, 7])
def test_the_loop_learns_and_counts_as_a_caller_does_who_adds_the_mistakes(chunk):
    rng = np.random.default_rng(1)
    z, first, probes = rng.standard_normal((400, 60)) + 0.1, rng.standard_normal(60), rng.random(400) < 0.1
    ends = []
    for learns in (True, False):
        student = AttentionState(first.copy(), "constant", 0.2)
        student.set_margin_moments(0.0, float(first @ first))
        features, lost = 0, 0
        for lesson in evaluate_margins_in_blocks(
            student, z, np.zeros(400), probes, get_check_positions(60, chunk), MIN_BLOCK_EXAMPLES, learns
        ):
            rows = z[lesson.last_index + 1 - lesson.stopped.size : lesson.last_index + 1]
            lost += lesson.num_wrongly_stopped if learns else np.count_nonzero(lesson.stopped & (rows @ student.w <= 0))
            features += lesson.features
            if lesson.is_last_mistaken and not learns:
                student.w = student.w + z[lesson.last_index]
            student.update_margin_moments(lesson.probe_margins)
        ends.append((student.w.tolist(), student.level, features, lost))
    assert ends[0] == ends[1]
    assert ends[0][3] > 5


def test_walks_that_stop_agree_with_exact_densities():
    """Every boundary; the controls: theory with more looks, and the boundary as printed."""
    given = {
        "boundary": list(BOUNDARIES),
        "mean": [0, 1],
        "error_rate": [0.02, 0.2],
        "N": 64,
        "walks": 2000,
        "seeds": 8,
    }
    simulation = simulate.run(Stopping(**given, chunk=4))
    assert not disagreements(simulation, theory.solve(Stopping(**given, chunk=4)))
    assert disagreements(simulation, theory.solve(Stopping(**given, chunk=1)))
    printed, kept = (
        simulation.decision_error.sel(boundary=name, mean=1, error_rate=0.02) for name in ("as-printed", "centred")
    )
    assert (
        printed.mean() - 4 * printed.std(ddof=1) / np.sqrt(8) > 0.02 > kept.mean() - 4 * kept.std(ddof=1) / np.sqrt(8)
    )


@pytest.mark.parametrize("theta", [-0.4, 0.3])
def test_theta_has_the_same_meaning_in_simulation_and_theory(theta):
    scenario = Stopping(boundary=list(BOUNDARIES), error_rate=0.05, theta=theta, N=32, walks=2000, seeds=8, mean=0.5)
    assert not disagreements(simulate.run(scenario), theory.solve(scenario))


@pytest.mark.parametrize(
    ("tau", "mean", "theta", "slope"), [(0.8, 0.0, 0.0, 0.0), (1.2, 1.0, 0.0, 0.0), (0.6, 0.7, 0.2, 0.7)]
)
def test_discrete_looks_are_equivalent_to_a_raised_level(tau, mean, theta, slope):
    for count, close, near in ((30, 4e-3, 1.5e-3), (300, 2e-4, 3e-5)):
        exact = exact_decision(tau, np.arange(1, count + 1), mean, 1.0, theta, slope)
        wrong, features = approximate_decision(tau, 1 / count, mean, 1.0, theta, slope)
        assert wrong == pytest.approx(exact.error, rel=close)
        assert features == pytest.approx(exact.features / count, abs=near)


def test_the_exact_number_of_features_is_omitted_at_large_N_and_the_brownian_one_given():
    sol = theory.solve(Stopping(boundary="constant", error_rate=0.3, mean=2, N=[300, 1000]))
    assert np.isfinite(sol.features.values).tolist() == [True, False]
    assert np.all(np.isfinite(sol.features_brownian))


def test_a_constant_level_is_the_root_wherever_there_is_one():
    mean, error_rate, theta = np.meshgrid(
        np.linspace(-3, 3, 7), [1e-40, 1e-3, 0.3, 0.49], [-1, 0, 0.5, 2], indexing="ij"
    )
    tau = compute_stopping_level("constant", error_rate, mean, 1.0, theta)
    there = tau > 0
    np.testing.assert_allclose(brownian_decision_error(tau, mean, 1.0, theta)[there], error_rate[there], rtol=1e-10)
    assert np.all(brownian_decision_error(0.0, mean, 1.0, theta)[~there] <= error_rate[~there])


def test_the_number_of_features_scales_as_the_drift_predicts():
    """Proportional to N if the mean is a fixed number of standard deviations, to sqrt(N) if each feature adds to it."""
    N = [1000, 10_000, 100_000, 1_000_000]
    sol = theory.solve(
        Stopping(boundary="brownian-bridge", error_rate=0.05, N=N, zip={"mean": [1, 0], "feature_mean": [0, 0.1]})
    )
    slopes = 1 + np.diff(np.log(sol.features)) / np.log(10)
    assert np.all(abs(slopes[0] - 1) < 0.01)
    assert np.all(np.diff(abs(slopes[1] - 0.5)) < 0)
    assert abs(slopes[1, -1] - 0.5) < 0.001


def by_hand(cell, world, steps):
    """R, features and decision errors of one student, computed example by example and feature by feature."""
    w, N, features, errors = world.student.copy(), cell.N, 0, 0
    mean, variance = 0.0, w @ w / N
    for step in range(steps):
        if step % attentive_perceptron.EXAMPLES_PER_FEATURE_ORDER == 0:
            w = w[world.draw_feature_order()]
            z, probes = world.draw_examples(attentive_perceptron.EXAMPLES_PER_FEATURE_ORDER)
        row = step % attentive_perceptron.EXAMPLES_PER_FEATURE_ORDER
        tau = np.inf if probes[row] else compute_stopping_level(cell.boundary, cell.error_rate, mean, variance)
        total, seen = walk(z[row], w, cell.check_positions, tau, compute_total_level_rise(cell.boundary, mean))
        features += seen
        errors += seen < N and z[row] @ w <= 0
        if probes[row]:
            deviation = total - mean
            mean += deviation / cell.memory
            variance = (1 - 1 / cell.memory) * (variance + deviation**2 / cell.memory)
        if seen == N and total <= 0:
            w = w + z[row]
    return w @ world.teacher / np.linalg.norm(w) / np.sqrt(N), features, errors


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_an_attentive_student_equals_that_of_a_plain_loop(boundary, monkeypatch):
    """With blocks of one example: within a block the level is not updated."""
    monkeypatch.setattr(attentive_perceptron, "EXAMPLES_PER_FEATURE_ORDER", 1)
    scenario = Attention(attention=boundary, error_rate=0.2, N=24, chunk=5, t=[3, 20], seeds=1, probes=0.3, memory=8)
    [cell], sim = scenario.cells(), simulate.run(scenario).isel(seed=0)
    R, features, errors = by_hand(cell, attentive_perceptron.AttentionSeedData(0, 0, 24, 0.3), 20 * 24)
    assert sim.R[-1] == pytest.approx(R, rel=1e-9)
    assert sim.work[-1] * 24**2 == pytest.approx(features)
    spans = np.diff(sim.t, prepend=0) * 24
    assert spans @ sim.features.values * 24 == pytest.approx(features)
    assert spans @ sim.decision_error.values == pytest.approx(errors)


@pytest.mark.slow
def test_a_margin_given_its_final_sum_is_a_bridge_for_every_teacher():
    """Crossings given kappa <= 0 and fractions of features, sampled with a teacher, agree with the closed forms."""
    rng, n, m = np.random.default_rng(0), 128, 40_000
    for tau, slope, R in ((0.8, 0.0, 0.3), (0.5, 0.5, 0.9)):
        path = np.cumsum(rng.standard_normal((m, n)), axis=1) / np.sqrt(n)
        label = np.sign(R * path[:, -1] + np.sqrt(1 - R**2) * rng.standard_normal(m))
        path *= label[:, None]
        reached = path >= tau + slope * np.arange(1, n + 1) / n
        reached[:, -1] = True
        seen = (reached.argmax(axis=1) + 1) / n
        lost = (seen < 1) & (path[:, -1] <= 0)
        raised = tau + 0.5826 / np.sqrt(n)
        averages, errors = compute_learning_averages(StoppingLevel(raised, slope, 0.0), np.arccos(R))
        kept = (path[:, -1] <= 0) & ~lost
        for values, expected in (
            (lost, errors),
            (kept, averages.ff),
            (kept * path[:, -1], averages.fu),
            (seen, compute_evaluated_fraction(StoppingLevel(raised, slope, 0.0), 1 - R, 1 / n)),
        ):
            assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(m)
        assert abs(
            lost.mean() - compute_learning_averages(StoppingLevel(tau, slope, 0.0), np.arccos(R))[1]
        ) > 4 * lost.std() / np.sqrt(m)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"error_rate": 1e-200}, {"error_rate": 0.3, "probes": 1}])
@pytest.mark.parametrize("boundary", ["brownian-bridge", "centred"])
def test_without_attention_the_theory_is_that_of_the_plain_perceptron(boundary, given):
    t = [0.5, 2, 10, 100]
    found = theory.solve(Attention(attention=boundary, t=t, **given))
    plain = theory.solve(Scenario(rule="perceptron", t=t)).isel(student=0)
    for name in ("R", "length", "eps_g"):
        np.testing.assert_allclose(found[name], plain[name], rtol=2e-8)
    np.testing.assert_allclose(found.work, t, rtol=1e-9)
    np.testing.assert_allclose(found.features, 1, rtol=1e-9)


@pytest.mark.slow
def test_theory_conserves_the_number_of_mistakes_and_reaches_t_1e4():
    """Each mistake is either learnt or missed, at any angle; and the equations are solved up to t = 1e4."""
    for theta in (1e-7, 0.3, np.pi / 2):
        averages, errors = compute_learning_averages(StoppingLevel(0.7, 0.1, 0.05), theta)
        assert averages.ff + errors == pytest.approx(theta / np.pi, rel=1e-13)
    first, second = theory.solve(Attention(attention="centred", error_rate=[1e-6, 1e-3], t=[1e4])).eps_g.values[:, 0]
    assert 0.010 < first < second < 0.015


LIVELY = {
    "attention": ["constant", "centred"],
    "error_rate": 0.1,
    "N": 300,
    "chunk": 3,
    "t": [0.5, 1, 2, 4],
    "seeds": 8,
}


@pytest.fixture(scope="module")
def lively():
    return simulate.run(Attention(**LIVELY))


def test_attentive_students_learn_as_in_theory(lively):
    """Order parameters, features and decision errors; controls: other memory, error_rate and looks."""
    assert not disagreements(lively, theory.solve(Attention(**LIVELY)))
    for wrong in ({"memory": 2}, {"error_rate": 0.3}, {"chunk": 100}):
        other = theory.solve(Attention(**{**LIVELY, **wrong}))
        assert disagreements(lively, other.assign_coords(error_rate=0.1))


@pytest.mark.slow
def test_products_of_normals_overshoot_more_than_normals(monkeypatch):
    """J and x are both drawn: a feature adds their product; Siegmund's constant for Gaussian steps fails."""
    scenario = Attention(attention="brownian-bridge", error_rate=0.3, N=100, t=[1, 2], seeds=400, memory=2000)
    simulation = simulate.run(scenario)
    assert not disagreements(simulation, theory.solve(scenario))
    monkeypatch.setattr(
        "theory.classification.attentive_perceptron.compute_overshoot", lambda chunk: GAUSSIAN_WALK_OVERSHOOT
    )
    assert any("features" in line for line in disagreements(simulation, theory.solve(scenario)))


@pytest.mark.slow
def test_a_fixed_order_of_features_defines_a_different_learner(monkeypatch):
    scenario = Attention(attention="constant", error_rate=0.05, N=300, chunk=3, t=[2, 20], seeds=12)
    solution = theory.solve(scenario)
    assert not disagreements(simulate.run(scenario), solution)
    monkeypatch.setattr(
        attentive_perceptron.AttentionSeedData, "draw_feature_order", lambda self: np.arange(self.teacher.size)
    )
    differences = " ".join(disagreements(simulate.run(scenario), solution))
    assert "features" in differences
    assert "eps_g" in differences


def test_a_longer_sweep_changes_no_earlier_number(lively):
    alone = simulate.run(
        Attention(**{**LIVELY, "attention": "centred", "seeds": 1, "error_rate": [0.1, 0.2], "t": [1, 2]})
    )
    for name in lively:
        old = lively[name].sel(attention="centred", t=2, seed=0)
        if name in ("R", "length", "eps_g", "work"):
            assert float(alone[name].sel(error_rate=0.1, t=2, seed=0)) == pytest.approx(float(old), rel=1e-12)
    few = Stopping(boundary="constant", error_rate=0.1, N=30, walks=50, seeds=2)
    many = Stopping(boundary=["centred", "constant"], error_rate=[0.2, 0.1], N=[50, 30], walks=50, seeds=3)
    subset = simulate.run(many).sel(boundary="constant", error_rate=0.1, N=30, seed=[0, 1])
    np.testing.assert_array_equal(simulate.run(few).features, subset.features)


@pytest.mark.parametrize("error_rate", [0, 0.5, 0.7, -1, float("nan")])
@pytest.mark.parametrize(
    ("kind", "given"), [(Stopping, {"boundary": "constant"}), (Attention, {"attention": "constant", "t": 1})]
)
def test_an_impossible_error_rate_is_refused_in_one_sentence(kind, given, error_rate):
    with pytest.raises(ScenarioError) as refused:
        kind(**given, error_rate=error_rate)
    assert len(refused.value.problems) == 1
    assert str(refused.value).startswith("error_rate: ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"boundary": "brownian"}, '"brownian" is not a boundary. Did you mean "brownian-bridge"?'),
        ({"chunk": 0}, "chunk: must be at least 1, not 0"),
        ({"chunk": 100}, "a chunk of 100 features is more than N = 50"),
        ({"walks": 0}, "walks: must be at least 1, not 0"),
        ({"attention": "constant", "boundary": "constant"}, "a config requires one of"),
        ({"attention": "constant", "t": [2, 1]}, "t: times must increase"),
        ({"attention": "constant", "t": 1, "probes": 0}, "probes: must be greater than 0, not 0"),
        ({"attention": "constant", "t": 1, "memory": 1}, "memory: must be at least 2, not 1"),
        ({"attention": ["constant", "centered"], "t": 1}, 'attention[1]: "centered" is not a boundary'),
    ],
)
def test_bad_input_is_refused_with_the_possible_values(given, message):
    whole = {**({} if "attention" in given else {"boundary": "constant"}), "error_rate": 0.1, "N": 50, **given}
    with pytest.raises(ScenarioError) as refused:
        scenario_from(whole)
    assert message in str(refused.value)


def test_scenarios_survive_a_round_trip_through_yaml():
    for scenario in (
        Stopping(
            boundary=["constant", "centred"], error_rate=0.1, zip={"mean": [1, 0], "feature_mean": [0, 0.1]}, N=[10, 20]
        ),
        Attention(attention="centred", error_rate=[0.1, 0.2], t={"geomspace": [1, 4, 3]}, memory=50),
    ):
        assert scenario_from(scenario.config()) == scenario


def test_equal_values_of_all_seeds_have_no_standard_error():
    """Counts of few events may agree in all seeds; a difference over the rounding of their mean is no deviation."""
    scenario = Stopping(boundary="constant", error_rate=0.1, N=20, walks=10, seeds=3)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    simulation["decision_error"][:] = 0.1
    assert np.isnan(comparison.distances(simulation, solution).decision_error)


def test_theory_of_students_that_are_solved_side_by_side_is_that_of_each_alone():
    keys = {"N": 400, "t": [0.5, 5.0], "seeds": 2}
    together = theory.solve(Attention(attention=["constant", "centred"], error_rate=[0.01, 0.4], **keys))
    for boundary, error_rate in itertools.product(["constant", "centred"], [0.01, 0.4]):
        alone = theory.solve(Attention(attention=boundary, error_rate=error_rate, **keys))
        for name in ("R", "length", "work", "decision_error"):
            one = together[name].sel(attention=boundary, error_rate=error_rate)
            np.testing.assert_allclose(one, alone[name].squeeze(), rtol=1e-6, err_msg=name)


def test_students_that_share_examples_are_stored_in_one_chunk():
    """Each chunk draws the examples of its students, which takes longer than three students need to learn."""
    sweep = Attention(attention=["brownian-bridge", "constant"], error_rate=[0.01, 0.05, 0.1, 0.2, 0.4], t=10, seeds=2)
    assert compute_chunk_lengths(sweep) == (2, 5, 2)
