"""Learners of stored examples: each agrees with its definition and tends to its theory as N grows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import simulate
import theory
from simulate.kinds import stored_examples
from simulate.kinds.stored_examples import draw_data_set, draw_seed_inputs, make_data_set_batch
from simulate.learners import max_stability, version_space
from simulate.learners.learner_interface import LearnerTask, at_once
from statmech import LEARNERS, ScenarioError, StoredExamples
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.students.learners import STOP_REASONS, Learner
from theory import ensemble_error, separable_fraction
from theory.stored_examples import learning_curves_and_bounds

SIZES = (50, 100, 200, 400)


def simulated(**given):
    return simulate.run(StoredExamples(**given))


def only(dataset, index=-1):
    return dataset.isel(epochs=index) if "epochs" in dataset.dims else dataset.isel(updates=index)


def extrapolated(sizes, means, errors):
    """The value at 1/N = 0 of a straight line in 1/N, and its standard error."""
    fit, covariance = np.polyfit(1 / np.asarray(sizes), means, 1, w=1 / np.asarray(errors), cov="unscaled")
    return fit[1], np.sqrt(covariance[1, 1])


@cache
def at_large_n(learner, alpha, sizes=SIZES, runs=6000, **given):
    """Mean and standard error of eps_g at each size; fewer data sets where these are larger and vary less."""
    means, errors = [], []
    for N in sizes:
        eps = only(simulated(learner=learner, N=N, alpha=alpha, seeds=max(runs // N, 24), **given)).eps_g
        means.append(float(eps.mean()))
        errors.append(float(eps.std(ddof=1)) / np.sqrt(eps.count()))
    return extrapolated(sizes, means, errors)


MANY = {"runs": 12_000}  # in which an equation with a term 10 % off is found
LIMITS = [
    ("hebb", {}),
    ("pseudo_inverse", {}),
    ("max_stability", MANY),
    ("adatron", {"epochs": 2000, "tolerance": 1e-3, "omega": 1.5, "sizes": (25, 100)}),
    ("minover", {"epochs": 500, "sizes": (25, 100)}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "given"), LIMITS)
@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_a_learner_tends_to_its_theory(learner, given, alpha):
    limit, error = at_large_n(learner, alpha, **given)
    expected = theory.learning_curves([alpha]).eps_g.sel(learner=LEARNERS[learner].limit).item()
    assert abs(limit - expected) < 4 * error
    assert error < 0.02 * expected


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["hebb", "pseudo_inverse", "max_stability"])
@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_a_learner_tends_to_its_theory_with_noise(learner, alpha):
    limit, error = at_large_n(learner, alpha, flip=0.1)
    expected = theory.learning_curves([alpha], 0.1).eps_g.sel(learner=learner).item()
    assert abs(limit - expected) < 4 * error
    without = theory.learning_curves([alpha]).eps_g.sel(learner=learner).item()
    assert abs(limit - without) > 4 * error


@pytest.mark.slow
def test_a_wrong_replica_term_is_detected(monkeypatch):
    """The same comparison must fail for an equation with one term 10 % off."""
    limit, error = at_large_n("max_stability", 1.5, **MANY)
    right = learning_curves_and_bounds.normal_density
    monkeypatch.setattr(learning_curves_and_bounds, "normal_density", lambda h: 1.1 * right(h))
    wrong = theory.learning_curves([1.5]).eps_g.sel(learner="max_stability").item()
    assert abs(limit - wrong) > 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_gibbs_and_bayes_tend_to_their_theory(alpha):
    """In the limit, the vote of K students of overlaps R = q errs like an ensemble in theory."""
    runs, found = {20: 100, 80: 120}, {"gibbs": ([], []), "bayes": ([], [])}  # the larger size decides
    for N, seeds in runs.items():
        eps = only(simulated(learner=["gibbs", "bayes"], N=N, alpha=alpha, seeds=seeds, sweeps=600, votes=51)).eps_g
        for learner, (means, errors) in found.items():
            one = eps.sel(learner=learner)
            means.append(float(one.mean()))
            errors.append(float(one.std(ddof=1)) / np.sqrt(one.size))
    curves = theory.learning_curves([alpha]).sel(learner="gibbs").isel(alpha=0)
    expected = {"gibbs": float(curves.eps_g), "bayes": ensemble_error(float(curves.R), float(curves.R), 51)}
    for learner, (means, errors) in found.items():
        limit, error = extrapolated([*runs], means, errors)
        assert abs(limit - float(expected[learner])) < 4 * error, learner


@pytest.mark.slow
def test_students_of_the_version_space_overlap_with_each_other_as_with_the_teacher():
    """Nishimori's identity at any N: the mean of q is that of R. Chains with half the step range violate it."""
    data = [draw_data_set(3, seed, 20, 40, 0.0) for seed in range(400)]

    words = np.arange(1600, dtype=np.uint32).reshape(400, 4)
    task = LearnerTask("bayes", LEARNERS["bayes"](), np.zeros((400, 1), int), words)

    with jax.enable_x64(True):
        w = version_space.sample_version_space(make_data_set_batch(data, 40), task, 2, 900, 1.0).students[:, 0]
    w = w / np.linalg.norm(w, axis=-1, keepdims=True)
    teachers = np.array([one.teacher for one in data]) / np.sqrt(20)
    difference = np.sum(w[:, 0] * w[:, 1], axis=-1) - np.sum(w[:, 0] * teachers, axis=-1)
    error = difference.std(ddof=1) / np.sqrt(400)
    assert abs(difference.mean()) < 4 * error
    assert np.all(np.einsum("bkn,bpn->bkp", w, np.array([one.z for one in data])) > 0)
    # the negative control: the perceptron of maximum stability is not a typical student
    best = np.array([max_stability.compute_max_stability_strengths(one.z) @ one.z for one in data])
    best /= np.linalg.norm(best, axis=-1, keepdims=True)
    wrong = np.sum(w[:, 0] * best, axis=-1) - np.sum(w[:, 0] * teachers, axis=-1)
    assert abs(wrong.mean()) > 4 * wrong.std(ddof=1) / np.sqrt(400)


def primal_minover(z, updates):
    """The assignment's code in weight vectors, one argmin per update."""
    w = np.zeros(z.shape[1])
    for _ in range(updates):
        w = w + z[np.argmin(z @ w)] / z.shape[1]
    return w


@pytest.mark.quick
@pytest.mark.parametrize("alpha", [0.5, 2, 7.3])
def test_minover_in_strengths_equals_minover_in_weights(alpha):
    sim = simulated(learner="minover", N=20, alpha=alpha, updates=[1, 7, 150], seeds=3, strengths=True)
    for seed in range(3):
        data = draw_data_set(0, seed, 20, int(sim.P), 0.0)
        for index, updates in enumerate((1, 7, 150)):
            x = sim.strengths.isel(seed=seed, updates=index).values
            np.testing.assert_allclose(x @ data.z / 20, primal_minover(data.z, updates), rtol=1e-12, atol=1e-13)
            assert x.sum() == updates == sim.updates_made.isel(seed=seed, updates=index)


def primal_perceptron(z, epochs):
    w, visits = np.zeros(z.shape[1]), 0
    for _ in range(epochs):
        for example in z:
            w = w + example / z.shape[1] * (example @ w <= 0)
            visits += 1
        if np.all(z @ w > 0):
            break
    return w, visits


@pytest.mark.quick
def test_the_perceptron_in_strengths_equals_the_perceptron_in_weights():
    sim = simulated(learner="perceptron", N=20, alpha=3, epochs=[2, 300], seeds=3, strengths=True)
    for seed in range(3):
        z = draw_data_set(0, seed, 20, 60, 0.0).z
        for index, epochs in enumerate((2, 300)):
            w, visits = primal_perceptron(z, epochs)
            one = sim.isel(seed=seed, epochs=index)
            np.testing.assert_allclose(one.strengths.values @ z / 20, w, rtol=1e-12, atol=1e-13)
            assert int(one.updates_made) == visits
            assert bool(one.converged) == bool(np.all(z @ w > 0))


@pytest.mark.slow
@pytest.mark.quick
def test_recorded_times_within_an_epoch_change_nothing_later():
    for learner in ("perceptron", "adatron", "minover"):
        found, plain = (
            only(simulated(learner=learner, N=20, alpha=3, epochs=epochs, seeds=2, strengths=True))
            for epochs in ([0.5, 0.9, 2.3, 4], [1, 2, 3, 4])  # of one program
        )
        np.testing.assert_array_equal(found.updates_made, plain.updates_made)
        np.testing.assert_array_equal(found.strengths, plain.strengths)


@pytest.mark.quick
def test_adatron_solves_the_quadratic_program():
    """Strengths agree to 1e-6 with a general solver of the dual: max sum x - x G x / 2, x >= 0."""
    sim = simulated(
        learner="adatron", N=20, alpha=2, epochs=100_000, seeds=3, tolerance=1e-12, omega=1.4, strengths=True
    )
    exact = simulated(learner="max_stability", N=20, alpha=2, seeds=3, strengths=True)
    for seed in range(3):
        z = draw_data_set(0, seed, 20, 40, 0.0).z
        gram = z @ z.T / 20
        solved = minimize(
            lambda x, gram=gram: (x @ gram @ x / 2 - x.sum(), gram @ x - 1),
            np.ones(40),
            jac=True,
            bounds=[(0, None)] * 40,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 100_000, "maxfun": 1_000_000},
        ).x
        w = [x @ z for x in (solved, only(sim).strengths[seed].values, only(exact).strengths[seed].values)]
        np.testing.assert_allclose(w[1], w[2], atol=1e-6 * np.abs(w[2]).max())
        np.testing.assert_allclose(w[0], w[2], atol=1e-4 * np.abs(w[2]).max())


def test_maximum_stability_is_certified_by_its_own_gap():
    sim = only(simulated(learner="max_stability", N=[10, 50], alpha=[0.3, 1, 4], seeds=20))
    assert float(abs(sim.gap).max()) < 1e-10
    assert bool(sim.converged.all())
    assert np.all(sim.eps_t == 0)


@pytest.mark.slow
def test_minover_approaches_the_largest_stability_from_below():
    learners = simulated(learner=["minover", "max_stability"], N=20, alpha=[0.5, 2, 5], epochs=[5, 50, 500], seeds=20)
    found, best = learners.sel(learner="minover"), learners.kappa.sel(learner="max_stability")
    assert bool((found.kappa <= best * (1 + 1e-12)).all())
    assert bool((found.kappa >= 0.99 * best).where(found.converged, True).all())
    assert 0 < float(found.converged.mean()) < 1
    # the certificate is a bound, and becomes tight
    true = (1 - found.kappa / best).where(found.kappa > 0, -np.inf)
    assert bool((found.gap >= true - 1e-12).all())
    assert float((found.gap / true).isel(epochs=-1).median()) < 3


@pytest.mark.quick
@pytest.mark.slow
def test_a_run_beyond_separability_is_marked_and_has_no_student():
    sim = only(
        simulated(learner=["max_stability", "gibbs", "bayes", "minover"], N=20, alpha=6, flip=0.5, seeds=5, sweeps=50)
    )
    assert not bool(sim.converged.any())
    none = sim.sel(learner=["max_stability", "gibbs", "bayes"])
    assert np.all(np.isnan(none.eps_g))
    assert np.all(none.stopped_by == STOP_REASONS.index("no-solution"))
    assert np.all(np.isfinite(sim.eps_g.sel(learner="minover")))


@pytest.mark.slow
def test_the_fraction_of_separable_sets_is_cover_s():
    sim = only(simulated(learner="max_stability", N=12, alpha=[1.5, 2, 2.5], flip=0.5, seeds=600))
    fraction = sim.converged.mean("seed").values
    P = sim.P.values
    expected = separable_fraction(P, 12)
    error = np.sqrt(expected * (1 - expected) / 600)
    assert np.all(abs(fraction - expected) < 4 * error)
    assert np.any(abs(fraction - separable_fraction(P + 2, 12)) > 4 * error)  # the control: two more examples


@pytest.mark.parametrize("flip", [0.0, 0.1, 0.5])
def test_noise_flips_the_stated_fraction(flip):
    wrong = sum(
        int(np.sum(draw_data_set(0, s, 10, 500, flip).z @ draw_data_set(0, s, 10, 500, flip).teacher < 0))
        for s in range(40)
    )
    low, high = binom.interval(1 - 1e-4, 20_000, flip)
    assert low <= wrong <= high
    assert not binom.interval(1 - 1e-4, 20_000, flip + 0.02)[0] <= wrong


def test_noise_levels_and_alphas_of_a_seed_share_inputs_that_are_drawn_once(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        stored_examples, "draw_seed_inputs", lambda *given: drawn.append(given) or draw_seed_inputs(*given)
    )
    simulate.run(StoredExamples(learner="hebb", N=20, alpha=[1.1, 1.2], flip=[0, 0.1, 0.2], seeds=3))
    assert sorted(drawn) == [(0, seed, 20, 24) for seed in range(3)]


def test_smaller_data_sets_are_the_beginning_of_larger_ones():
    few, many = draw_data_set(1, 5, 30, 10, 0.2), draw_data_set(1, 5, 30, 80, 0.2)
    np.testing.assert_array_equal(few.z, many.z[:10])
    assert np.linalg.norm(few.teacher) == pytest.approx(np.sqrt(30))
    calm, noisy = draw_data_set(1, 5, 30, 80, 0.1), draw_data_set(1, 5, 30, 80, 0.3)
    flipped = [np.flatnonzero(one.z @ one.teacher < 0) for one in (calm, noisy)]
    assert set(flipped[0]) < set(flipped[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    ["gibbs", *(pytest.param(name, marks=pytest.mark.quick) for name in ("perceptron", "minover", "adatron"))],
)
def test_results_do_not_depend_on_the_other_lanes(learner):
    given = {"learner": learner, "N": 20} | ({"sweeps": 50} if learner == "gibbs" else {})
    alone = simulated(**given, alpha=2, seeds=2)
    swept = simulated(**given, alpha=[1.9, 2], seeds=70)
    for name in ("R", "kappa", "updates_made"):
        np.testing.assert_array_equal(alone[name], swept[name].sel(alpha=2).isel(seed=slice(2)))


@pytest.mark.quick
@pytest.mark.slow
def test_field_patience_stops_at_update_p_plus_1_or_hardly_ever():
    """The appendix's stopping rule: the smallest field before each update compared with the best so far, P times."""
    sim = simulated(learner="minover", N=20, alpha=[2, 10], epochs=30, stop="field-patience", seeds=20)
    by = only(sim).stopped_by == STOP_REASONS.index("field-patience")
    assert bool((only(sim).updates_made == sim.P + 1).where(by).sum() >= 0.9 * by.sum())
    for alpha in (0, 1):
        P = int(sim.P[alpha])
        for seed in range(20):
            z, w, best, waited, updates = draw_data_set(0, seed, 20, P, 0.0).z, np.zeros(20), -np.inf, 0, 0
            while updates < 30 * P and waited < P:
                least = (z @ w).min()
                w = w + z[np.argmin(z @ w)] / 20
                updates += 1
                best, waited = (least, 0) if least >= best else (best, waited + 1)
            assert int(only(sim).updates_made[alpha, seed]) == updates


@pytest.mark.slow
def test_in_updates_eps_g_stabilises_with_alpha_and_in_epochs_it_does_not():
    """Figure 2 of the assignment: a student of 100 updates is a sum of 100 examples, however many there are."""
    given = {"learner": "minover", "N": 20, "alpha": [2, 10, 20], "seeds": 40}
    few, many = (only(simulated(**given, **times)).eps_g for times in ({"updates": [100]}, {"epochs": [20]}))

    def falls(eps, first, last):
        difference = eps.isel(alpha=first) - eps.isel(alpha=last)
        return float(difference.mean() / (difference.std(ddof=1) / np.sqrt(40)))

    assert falls(few, 0, 1) > 4
    assert abs(falls(few, 1, 2)) < 4 < falls(many, 1, 2)


@pytest.mark.slow
def test_twenty_updates_are_not_twenty_epochs():
    """Figure 3 of the assignment counts updates; with noise more examples increase the error, but not to chance."""
    updates = simulated(learner="minover", N=20, alpha=[5, 10], updates=[20], seeds=60).eps_g.mean("seed")
    epochs = simulated(learner="minover", N=20, alpha=[5, 10], epochs=[20], seeds=60).eps_g.mean("seed")
    assert np.all((updates > 0.17) & (updates < 0.21))
    assert np.all(epochs < 0.1)
    noisy = only(simulated(learner="minover", N=20, alpha=[3, 10], flip=0.1, seeds=60)).eps_g
    error = np.sqrt((noisy.var("seed", ddof=1) / 60).sum())
    assert noisy.mean("seed")[1] - noisy.mean("seed")[0] > 4 * error
    assert np.all(noisy.mean("seed") < 0.45)


def noisy_examples(rng, teacher, flip, only_positive):
    """Gaussian examples of a teacher times their labels, flipped with this probability: all, or those that are +1."""
    xi = rng.standard_normal((100, teacher.size))
    true = np.sign(xi @ teacher)
    flipped = (rng.random(100) < flip) & ((true > 0) | (not only_positive))
    return np.where(flipped, -true, true)[:, None] * xi


def test_flipping_only_positive_labels_is_flipping_all_with_half_the_probability():
    """A student without a threshold sees only label times input, and half of all labels are +1."""
    rng, cosines = np.random.default_rng(5), []
    for _ in range(200):
        teacher = rng.standard_normal(20)
        kinds = ((0.4, True), (0.2, False), (0.4, False))
        students = [primal_minover(noisy_examples(rng, teacher, *kind), 60) for kind in kinds]
        cosines.append([w @ teacher / np.linalg.norm(w) / np.linalg.norm(teacher) for w in students])
    one_sided, half, all_labels = np.mean(cosines, axis=0)
    error = np.sqrt(2 / 200) * np.std(cosines, axis=0, ddof=1).max()
    assert abs(one_sided - half) < 4 * error
    assert one_sided - all_labels > 4 * error  # the control: all labels with the same probability


@pytest.mark.quick
def test_stability_patience_stops_when_kappa_has_not_grown_for_p_updates():
    sim = only(simulated(learner="minover", N=20, alpha=2, epochs=100, stop="stability-patience", seeds=10))
    assert np.all(sim.stopped_by == STOP_REASONS.index("stability-patience"))
    for seed in range(10):
        z = draw_data_set(0, seed, 20, 40, 0.0).z
        w, seen = np.zeros(20), []
        for _ in range(int(sim.updates_made[seed])):
            seen.append((z @ w).min() / np.linalg.norm(w) if w.any() else -np.inf)
            w = w + z[np.argmin(z @ w)] / 20
        assert max(seen[:-40]) >= max(seen[-40:])
        assert len(seen) - 1 - int(np.argmax(seen)) == 40


def test_an_autocorrelation_time_is_that_of_its_process():
    """An autoregressive series has (1 + a)/(1 - a)."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(40):
        series = [0.0]
        for noise in rng.standard_normal(5000):
            series.append(0.8 * series[-1] + noise)
        found.append(version_space.autocorrelation_time(np.array(series)))
    assert abs(np.mean(found) - 9) < 4 * np.std(found, ddof=1) / np.sqrt(40) + 0.1
    assert (
        version_space.autocorrelation_time(np.arange(50.0)) > 50 / 20
    )  # a drift does not have 20 autocorrelation times
    assert version_space.autocorrelation_time(np.zeros(50)) == np.inf


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_reports_what_it_did(learner):
    given = {"sweeps": 30} if learner in ("gibbs", "bayes") else {}
    sim = only(simulated(learner=learner, N=10, alpha=[0.1, 1, 3], epochs=[1, 20], seeds=3, **given))
    assert np.all(np.isfinite(sim.eps_g))
    assert np.all(abs(sim.R) <= 1)
    assert np.all((sim.eps_t >= 0) & (sim.eps_t <= 1))
    assert LEARNERS[learner].label
    assert LEARNERS[learner].limit in {None, *theory.learning_curves([1.0]).learner.values}


def test_a_learner_of_the_user_is_one_class_and_one_line(monkeypatch):
    @dataclass(frozen=True)
    class First(Learner):
        """Only the first example is learnt."""

        label, limit = "first", "hebb"

        def learn(self, batch, task):
            return at_once(
                task.until, batch.sizes > 0, strengths=1.0 * (np.arange(batch.z.shape[1]) == 0) * batch.is_example
            )

    monkeypatch.setitem(LEARNERS, "first", First)
    scenario = StoredExamples(learner="first", N=10, alpha=[0.1, 2], seeds=3)
    sim, sol = simulate.run(scenario), theory.solve(scenario)
    np.testing.assert_allclose(sim.R[0], sim.R[1])
    assert sol.R.values.ravel().tolist() == theory.learning_curves([0.1, 2]).R.sel(learner="hebb").values.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0}, "alpha: must be greater than 0, not 0"),
        ({"alpha": -1}, "alpha: must be greater than 0, not -1"),
        ({"alpha": [1, 0.01]}, "alpha = 0.01 at N = 20 leaves no example: P = alpha N is below 1"),
        ({"N": 1}, "N: must be at least 2, not 1"),
        ({"flip": 0.6}, "flip: must be at most 0.5, not 0.6"),
        ({"flip": -0.1}, "flip: must be at least 0, not -0.1"),
        ({"learner": "minovr"}, '"minovr" is not a learner. Did you mean "minover"?'),
        ({"stop": "patience"}, '"patience" is not a stop rule. Did you mean "field-patience"?'),
        (
            {"learner": "hebb", "stop": "field-patience"},
            'the learner "hebb" has no stop. It is a parameter of: minover.',
        ),
        ({"epochs": [2, 1]}, "epochs: epochs must increase"),
        ({"epochs": 5, "updates": 7}, "updates: is the same as epochs, counted in updates"),
        ({"updates": [1.5]}, "updates[0]: must be a whole number, not 1.5"),
        ({"omega": 1.5}, 'the learner "minover" has no omega. It is a parameter of: adatron.'),
        ({"learner": "adatron", "omega": 2}, "omega: must be less than 2, not 2"),
        ({"learner": "gibbs", "sweeps": 20.5}, "sweeps: must be a whole number, not 20.5"),
        ({"t": [1]}, '"t" is not a key of this config'),
        ({"epochs": 1e300}, "too many to count in float64"),
    ],
)
def test_bad_input_is_refused_with_the_possible_values(given, message):
    with pytest.raises(ScenarioError) as refused:
        StoredExamples(**{"learner": "minover", "N": 20, "alpha": 2.0, **given})
    assert message in str(refused.value)


def test_more_examples_than_memory_are_refused_before_anything_runs():
    with pytest.raises(ScenarioError, match="GiB are available per core"):
        simulated(learner="hebb", N=1000, alpha=1e6)


def test_a_scenario_survives_a_round_trip_through_yaml():

    scenario = StoredExamples(
        learner=["minover", "hebb"], zip={"alpha": [1, 2], "N": [20, 40]}, updates={"geomspace": [1, 100, 5]}
    )
    assert scenario_from(scenario.config()) == scenario
    assert scenario.updates == (1, 3, 10, 32, 100)
    assert [cell.P for cell in scenario.cells()] == [20, 80, 20, 80]
