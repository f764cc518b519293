"""Two clusters learnt online: known values, closed forms, other forms of the equations, runs at finite N, refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from conftest import assert_same_bits, disagreements, statmech
from scipy.integrate import solve_ivp
from scipy.stats import ks_2samp

import simulate
import theory
from figures.explorer.pages import explain_missing_page
from simulate.execution.store_simulation import run_into
from simulate.execution.work_units import make_simulator
from simulate.online import grouped_gram_engine, perceptrons, weight_vector_engine
from statmech import RULES, OnlineClusters, ScenarioError
from statmech.convex import gaussian_clusters as vocabulary
from statmech.convex.gaussian_clusters import GaussianClusters
from statmech.inputs.covariance_modes import compute_group_sizes, make_modes
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.numerics.gaussian import normal_cdf, normal_density
from statmech.numerics.random_numbers import make_key_data
from statmech.students.rules import Rule
from theory.online import gaussian_clusters
from theory.online.gaussian_clusters import compute_cluster_averages

SPECTRUM = {"spectrum": [0.3, 2.4], "shares": [2 / 3, 1 / 3], "teacher": [0.25, 0.75]}
GIVEN = {"clusters": "gaussian", "rule": "perceptron", "t": [1, 5, 20]}
UNEQUAL = {"positives": 0.3, "distance": 3, "inputs": SPECTRUM}
TWO = GaussianClusters(positives=0.3, distance=3).combine_with_modes(
    make_modes([0.3, 2.4], [2 / 3, 1 / 3], [0.25, 0.75])
)


def solved(**own):
    return theory.solve(OnlineClusters(**GIVEN | own))


def test_errors_take_their_known_values():
    """Two routes of another program agree on them."""
    np.testing.assert_allclose(solved().eps_g, [0.355176342, 0.236439331, 0.226149574], rtol=0, atol=0.51e-9)


def test_hebb_agrees_with_its_solution():
    t, eta = np.array([0.5, 20.0, 1000.0]), 0.7
    found = solved(rule="hebb", eta=eta, t=t.tolist(), **UNEQUAL)
    rho = eta * 4 * 0.3 * 0.7 * t
    across = np.outer(1 + eta**2 * t * TWO.mode_variances[:, None], 1)[:, 0].reshape(2, -1) * TWO.shares[:, None]
    Q = np.sqrt(TWO.mode_variances @ (np.outer(TWO.centre_powers, rho**2) + across))
    np.testing.assert_allclose(found.m_field, TWO.centre_powers.sum() * rho, rtol=1e-8)
    np.testing.assert_allclose(found.length_field, Q, rtol=1e-8)
    np.testing.assert_allclose(found.length, np.sqrt(TWO.centre_powers.sum() * rho**2 + across.sum(axis=0)), rtol=1e-8)
    wrong = TWO.weights @ normal_cdf(-np.outer(TWO.centre_distances, found.m_field / found.length_field))
    np.testing.assert_allclose(found.eps_g, wrong, rtol=1e-12)


def test_hebb_is_the_bayes_optimal_learner_of_equal_clusters_once_its_start_is_forgotten():
    found = solved(rule="hebb", start={"length": 1e-6}, t=[1, 5])
    np.testing.assert_allclose(found.eps_g, found.eps_bayes, rtol=1e-9)


def of_perceptron(mean, Q, margin):
    """<g>, <g z> and <g^2> of a step function."""
    at = (margin - mean) / Q
    return normal_cdf(at), -normal_density(at), normal_cdf(at)


def of_adatron(mean, Q, _):
    """<g>, <g z> and <g^2> of -kappa below 0."""
    wrong, edge = normal_cdf(-mean / Q), normal_density(mean / Q)
    return Q * edge - mean * wrong, -Q * wrong, (mean**2 + Q**2) * wrong - mean * Q * edge


@pytest.mark.parametrize(
    ("rule", "closed", "scale"),
    [
        (RULES["perceptron"](), of_perceptron, 1.0),
        (RULES["perceptron"](margin=0.6, eta=0.5), of_perceptron, 1.0),
        (RULES["adatron"](), of_adatron, 1.0),
        (RULES["adatron_textbook"](eta=2.0), of_adatron, 1.7),
    ],
)
def test_averages_of_a_step_are_those_of_closed_forms(rule, closed, scale):
    m, Q, length = 0.4, 1.3, 1.7
    each = np.array([closed(factor * m, Q, getattr(rule, "margin", 0.0)) for factor in TWO.centre_distances])
    g, gz, gg = (each * np.array([scale, scale, scale**2])).T
    expected = [rule.eta * TWO.weights * TWO.centre_distances @ g, rule.eta * TWO.weights @ gz / (Q * length)]
    expected.append(rule.eta**2 * TWO.weights @ gg)
    np.testing.assert_allclose(compute_cluster_averages(rule, TWO, m, Q, length), expected, rtol=1e-12)


def test_averages_of_any_rule_are_those_of_samples():
    class Smooth(Rule):
        label = "smooth"

        def g(self, kappa, length):
            return length / (1 + np.exp(3 * kappa))

    rng, m, Q, length = np.random.default_rng(1), 0.4, 1.3, 0.8
    n = 200_000
    s = np.where(rng.random(n) < 0.3, *TWO.centre_distances)
    z = rng.standard_normal(n)
    g = Smooth().g(s * m + Q * z, length)
    samples = s * g, g * z / (Q * length), g * g
    for sample, value in zip(samples, compute_cluster_averages(Smooth(), TWO, m, Q, length), strict=True):
        assert abs(sample.mean() - value) < 4 * sample.std() / np.sqrt(n)


def test_parts_of_the_mean_and_of_the_variance_of_the_field_obey_their_equations():
    """With m_a = t_a rho_a and Q_a = omega_a (t_a rho_a^2 + P_a), and the length integrated beside them."""
    omega, nu, powers, c = (
        TWO.mode_variances,
        TWO.shares,
        TWO.centre_powers,
        0.3,
    )  # c: a margin, so that the length matters

    def rates(t, state):
        m, Q2, L = state[:2], state[2:4], state[4:]
        deviation, length = np.sqrt(Q2.sum()), np.sqrt(L.sum())
        each = np.array([of_perceptron(s * m.sum(), deviation, c * length) for s in TWO.centre_distances])
        g, gz, gg = TWO.weights @ (each * np.array([TWO.centre_distances, [1, 1], [1, 1]]).T)
        E = gz / deviation
        own = 2 * (g * m + E * Q2)  # dL_a without noise, for Q_a = omega_a L_a
        return np.concatenate([g * powers + omega * E * m, omega * (own + omega * nu * gg), own + omega * nu * gg])

    found = solve_ivp(rates, (0, 20), [0, 0, *(omega * nu), *nu], "DOP853", [1, 5, 20], rtol=1e-10, atol=1e-12)
    expected = solved(margin=c, **UNEQUAL)
    np.testing.assert_allclose(found.y[:2].sum(axis=0), expected.m_field, rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(found.y[2:4].sum(axis=0)), expected.length_field, rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(found.y[4:].sum(axis=0)), expected.length, rtol=1e-8)


def test_many_equal_modes_are_one():
    many = solved(inputs={"spectrum": [1.0] * 100, "teacher": [1 / 200] * 99 + [101 / 200]})
    np.testing.assert_allclose(many.eps_g, solved().eps_g, rtol=1e-8)


@pytest.mark.slow
def test_stiff_spectra_are_solved():
    """The fastest of modes relaxes a million times as fast as the slowest, which learns still."""
    wide = {"spectrum": np.geomspace(1e-4, 100, 40).tolist(), "teacher": [0.02] * 39 + [0.22]}
    found = solved(inputs=wide, t=[1, 10, 1e3])
    assert np.all(np.diff(found.eps_g) < 0)
    assert np.all(found.eps_g >= found.eps_known)


def test_a_student_that_shrinks_without_bound_has_a_limit():
    found = solved(rule="adatron_textbook", t=[100, 500, 2000])
    assert found.length[-1] < 1e-50
    np.testing.assert_allclose(found.eps_g, found.eps_g[-1].item(), rtol=1e-8)


def test_schedules_and_decay_are_those_of_other_learning_rates():
    """Decay does not turn a student whose rule scales with its length; a rate of t0 -> infinity is constant."""
    plain, decaying = solved(rule="adatron_textbook"), solved(rule="adatron_textbook", decay=0.3)
    np.testing.assert_allclose(plain.eps_g, decaying.eps_g, rtol=1e-8)
    np.testing.assert_allclose(plain.length * np.exp(-0.3 * plain.t), decaying.length, rtol=1e-8)
    np.testing.assert_allclose(solved(schedule={"t0": 1e9}).eps_g, solved().eps_g, rtol=1e-7)
    assert solved(schedule={"t0": 2}).eps_g[-1] < solved().eps_g[-1]


RUN = {**GIVEN, "t": [0.5, 2, 10], "positives": [0.5, 0.3], "seeds": 64, "N": 400}
RUN |= {"distance": 3, "inputs": SPECTRUM}


@pytest.fixture(scope="module")
def runs():
    return simulate.run(OnlineClusters(**RUN))


@pytest.mark.slow
@pytest.mark.quick
def test_runs_agree_with_theory(runs):
    assert not disagreements(runs, theory.solve(OnlineClusters(**RUN)))


@pytest.mark.slow
@pytest.mark.quick
def test_theory_with_swapped_centres_or_without_the_variance_of_inputs_disagrees_with_runs(runs, monkeypatch):
    with monkeypatch.context() as planted:
        planted.setattr(vocabulary.TwoClusters, "centre_distances", property(lambda self: 2 * self.weights))
        assert disagreements(runs, theory.solve(OnlineClusters(**RUN)))
    monkeypatch.setattr(
        gaussian_clusters.OnlineClusterEquations, "compute_noise_growth", lambda self, F: self.clusters.shares * F
    )
    assert disagreements(runs, theory.solve(OnlineClusters(**RUN)))


@pytest.mark.quick
@pytest.mark.slow
def test_runs_with_decay_a_schedule_and_a_given_start_agree_with_theory():
    changes = {"decay": 0.2, "schedule": {"t0": 5}, "start": {"length": 0.5, "R": 0.6}, "margin": 0.4}
    scenario = OnlineClusters(
        **RUN | changes | {"rule": "perceptron", "N": 1000, "inputs": {"anisotropic": {"spectrum": [0.5, 1.5]}}}
    )
    assert not disagreements(simulate.run(scenario), theory.solve(scenario))


N, T = 14, [0.5, 2.0]
FEW = {**GIVEN, "N": N, "t": T, "distance": 3, "positives": 0.3, "margin": 0.2, "inputs": SPECTRUM}


def step_by_step(cell, seeds, rng, shift=0.0):
    """m, Q and length (seeds, T, 3) of weight vectors; `shift` moves the centre of the cluster +1."""
    law, half = cell.inputs.modes(N), rng.standard_normal((seeds, N))
    sizes = compute_group_sizes(law.shares, N)
    ends, spread = np.cumsum(sizes)[:-1], np.repeat(law.variances, sizes)
    for part, power in zip(np.split(half, ends, axis=1), law.teacher, strict=True):
        part *= cell.clusters.distance / 2 * np.sqrt(N * power / np.sum(part**2, axis=1, keepdims=True))
    J, found = rng.standard_normal((seeds, N)), []
    for step in range(round(T[-1] * N)):
        y = np.where(rng.random(seeds) < cell.clusters.positives, 1, -1)
        s = np.where(y > 0, 2 * (1 - cell.clusters.positives) + shift, 2 * cell.clusters.positives)
        x = (rng.standard_normal((seeds, N)) * np.sqrt(spread) + (y * s)[:, None] * half / np.sqrt(N)) / np.sqrt(N)
        length = np.linalg.norm(J, axis=1) / np.sqrt(N)
        g = np.asarray(cell.rule.g(y * np.sum(J * x, axis=1) / length, length))
        J = (1 - cell.decay / N) * J + (cell.rule.eta * y * g)[:, None] * x
        if step + 1 in np.rint(np.array(T) * N).astype(int):
            square = [np.sum(J * half, axis=1) / N, np.sqrt(J**2 @ spread / N), np.linalg.norm(J, axis=1) / np.sqrt(N)]
            found.append(np.stack(square, axis=-1))
    return np.stack(found, axis=1)


def of_weight_vectors(cell, seeds):
    runs = simulate.run(OnlineClusters(**FEW | {"seeds": seeds, "engine": "vectors"}))
    return np.stack([runs[name].values for name in ("m_field", "length_field", "length")], axis=-1)


def of_chain(cell, seeds):
    with jax.enable_x64(True):
        task, steps = perceptrons.make_cluster_perceptron_task(cell), np.rint(np.array(T) * N).astype(int)
        made = [
            grouped_gram_engine.run(task, make_key_data(at), steps)
            for at in range(seeds // grouped_gram_engine.GROUP_BATCH_SEEDS)
        ]
    along, across, along_field, across_field = (
        np.concatenate([getattr(record, name) for record in made]).reshape(-1, 2)
        for name in ("parallel", "perpendicular", "parallel_fields", "perpendicular_fields")
    )
    m = along * cell.clusters.distance / 2
    return np.stack([m, np.sqrt(along_field**2 + across_field), np.sqrt(along**2 + across)], axis=-1)


def smallest_probability(first, second):
    return min(ks_2samp(first[:, t, k], second[:, t, k]).pvalue for t in range(2) for k in range(3))


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("engine", [of_chain, of_weight_vectors])
def test_both_engines_have_the_law_of_weight_vectors_at_small_N(engine):
    [cell] = OnlineClusters(**FEW).cells()
    made, rng = engine(cell, 1600), np.random.default_rng(5)
    assert smallest_probability(made, step_by_step(cell, 3000, rng)) > 1e-3 / 6
    assert smallest_probability(made, step_by_step(cell, 3000, rng, shift=1.0)) < 1e-4 / 6


@pytest.mark.slow
@pytest.mark.quick
def test_a_run_measures_its_error_on_all_inputs():
    runs = simulate.run(OnlineClusters(**GIVEN | UNEQUAL | {"seeds": 2, "N": 200, "t": [2]}))
    rng, n = np.random.default_rng(3), 400_000
    y = np.where(rng.random(n) < 0.3, 1, -1)
    s = np.where(y > 0, 1.4, 0.6)
    each = (runs[name].values[:, 0] for name in ("m_field", "length_field", "eps_g"))
    for m, Q, error in zip(*each, strict=True):
        sampled = np.mean(s * m + Q * rng.standard_normal(n) < 0)
        assert abs(sampled - error) < 4 * np.sqrt(error * (1 - error) / n)


@pytest.mark.slow
def test_a_sweep_is_resumed_with_the_bits_of_one_run_and_its_config_is_read_again(path):
    scenario = OnlineClusters(**GIVEN | {"t": [0, 1], "N": 40, "seeds": 6, "positives": [0.5, 0.2]})
    assert scenario_from(scenario.config()) == scenario
    for k in (2, 1):
        run_into(path, scenario, shard=(k, 2))
    assert_same_bits(path, scenario)


def test_spectra_of_many_groups_run_by_weight_vectors():
    for variances, engine in (([1.0, 2.0], grouped_gram_engine), ([1.0, 2.0, 3.0], weight_vector_engine)):
        scenario = OnlineClusters(**GIVEN | {"inputs": {"spectrum": variances}, "N": 50})
        assert {make_simulator(scenario).choose_engine(cell) for cell in scenario.cells()} == {engine}


@pytest.mark.parametrize(
    ("keys", "place", "sentence"),
    [
        ({"teacher": "sign", "flip": 0.1}, "teacher", "clusters have labels of their own: remove teacher, flip"),
        ({"drift": 0.1}, "drift", "clusters have labels of their own: remove drift"),
        ({"K": 3}, "K", "clusters are learnt online by one student: remove K"),
        ({"loss": "hinge"}, "loss", "clusters are learnt by a rule or by a loss: remove one of the two keys"),
        ({"rule": "bayes"}, "rule", 'the rule "bayes" is the posterior mean of a teacher, and clusters have no'),
        ({"rule": "heb"}, "rule", '"heb" is not a learning rule. Did you mean "hebb"?'),
        ({"positives": [0.5, 1]}, "positives", "must be less than 1"),
        ({"distance": 0}, "distance", "must be greater than 0"),
        ({"inputs": "sphere"}, "inputs", "inputs around a centre are gaussian, anisotropic or a spectrum, not sphere"),
        ({"inputs": {"spectrum": [1, 2], "ridge": [1, 2]}}, "inputs", "online learning has no penalty"),
        ({"inputs": {"spectrum": [1, 2], "misfit": 0.1}}, "inputs", "misfit belongs to a teacher's field"),
        ({"decay": 2000}, "decay", "decay = 2000 is too large for N = 1000: 1 - decay/N would be negative"),
        ({"start": {"R": [0.1, 0.2]}}, "start", "R lists 2 students, but K = 1"),
        ({"t": [2, 1]}, "t", "times must increase"),
        ({"alpha": 2}, "alpha", '"alpha" is not a key of this config'),
    ],
)
def test_a_config_is_refused_in_a_sentence(keys, place, sentence):
    with pytest.raises(ScenarioError) as refused:
        scenario_from(GIVEN | keys)
    [(where, why)] = refused.value.problems
    assert (where[0], sentence in why) == (place, True), why


def test_all_unsupported_keys_are_reported_at_once():
    with pytest.raises(ScenarioError) as refused:
        scenario_from(GIVEN | {"loss": "hinge", "K": 3, "drift": 0.1, "flip": 0.1})
    assert [(where, why.partition(": ")[2]) for where, why in refused.value.problems] == [
        (("loss",), "remove one of the two keys"),
        (("K",), "remove K"),
        (("flip",), "remove flip, drift"),
    ]


def test_a_refused_config_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert statmech("run", "clusters_online", "flip=0.1") != 0
    assert "remove flip" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_explorer_has_no_page_for_it():
    assert explain_missing_page(OnlineClusters(**GIVEN)) == (
        "online learning of two clusters has no sliders. Run it, and explore its results"
    )
