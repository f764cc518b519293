"""Networks of two layers: the chain on the Gram matrix has the distribution of weight vectors."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import jax
import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import ks_2samp
from test_simulate_engines import compilations

import simulate
from simulate.kinds import network
from simulate.kinds.network import Simulator
from simulate.online import gram_engine, networks, weight_vector_engine
from simulate.online.learning_steps import compute_block_modulations
from statmech import Network
from statmech.errors import DivergedStudentError, ScenarioError
from statmech.numerics.gaussian import scaled_erf_and_derivative
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.students.activations import ACTIVATIONS
from statmech.students.network_error import specialisation

LEVEL = 1e-3  # family-wise, over all distributions compared
CORRELATED = {"T": [[1.0, 0.4], [0.4, 0.8]], "w": [1.0, -0.7]}
START = {"R": [[0.3, 0.1], [0.0, 0.2]], "Q": [[0.5, 0.1], [0.1, 0.4]], "v": [0.8, -0.5]}
ALL = {"M": 2, "K": 2, "eta": 0.8, "eta_v": 0.6, "noise": 0.3, "decay": 0.4, "teacher": CORRELATED, "start": START}


@pytest.mark.quick
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("sign", "dropout"), [(False, None), (True, None), (False, 0.4)])
def test_a_block_of_steps_equals_a_loop_over_weight_vectors(name, sign, dropout):
    """Both layers, noise, decay: the direct engine's steps, and a loop that knows the vectors alone; same inputs."""
    rng = np.random.default_rng(0)
    K, M, N, B, steps = 3, 2, 20, 4, 3
    teachers, J, v = rng.standard_normal((M, N)), rng.standard_normal((K, N)), rng.standard_normal(K)
    w, sigma, decay, eta, eta_v = np.array([1.0, -0.7]), 0.3, 0.4, 0.8, 0.6
    family = get_real_parameter_family(ACTIVATIONS[name]())
    rates = {"eta": eta, "eta_v": eta_v, "sigma": sigma, "rows": np.eye(M), "w": w, "N": N, "copies": np.ones(K)}
    learner = networks.NetworkLearner(family, family, sign, True, {}, {}, **rates, dropout=dropout)
    blocked, kept, plain, weights = J, v, J.copy(), v.copy()
    fade = 1 - decay / N
    before = 1 - fade ** np.arange(B)
    for _ in range(steps):
        x, xi = rng.standard_normal((B, N)) / np.sqrt(N), rng.standard_normal(B)
        uniforms = rng.random(learner.uniforms_per_step * B)
        with jax.enable_x64(True):
            y, h = learner.convert_to_teacher_values(teachers) @ x.T, blocked @ x.T
            course = networks.StepRates(np.full(B, eta), np.zeros(B), np.full(B, decay / N), before)
            examples = learner.examples(learner.noise(xi, uniforms, float), np.ones(B, bool))
            f, kept = compute_block_modulations(learner, y.T, h.T, x @ x.T, kept, examples, course)
            blocked = fade**B * blocked + np.asarray(f).T @ x
        masks = np.ones((K, B)) if dropout is None else (uniforms.reshape(K, B) < 1 - dropout) / (1 - dropout)
        for example, noise, mask in zip(x, xi, masks.T, strict=True):
            given = w, plain, weights, mask, example, sigma * noise, eta, eta_v, fade
            plain, weights = one_step(name, sign, teachers, *given)
    np.testing.assert_allclose(blocked, plain, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kept, weights, rtol=1e-11, atol=1e-12)


def one_step(name, sign, B, w, J, v, mask, x, noise, eta, eta_v, fade):
    """The definition (`statmech.kinds.network`), written once more."""
    y, h = B @ x, J @ x
    both = ACTIVATIONS[name]().both
    (g, derivative), label = (mask * part for part in both(h)), w @ both(y)[0]
    error = (np.sign(label) if sign else label) + noise - v @ g
    return fade * J + eta * np.outer(v * derivative * error, x), v + eta_v / len(x) * g * error


CASES = [
    ("erf", 20, {}),
    ("erf", 6, {"teacher": CORRELATED | {"output": "sign"}, "noise": 0.0}),
    ("relu", 6, {"decay": 0.0}),
    ("linear", 20, {"eta": 0.5, "start": {"drawn": 0.6, "v": 0.7}}),
]


def run_of(case, **given):
    name, N, other = CASES[case]
    config = ALL | {"network": name, "N": N, "t": [32 / N, 96 / N], "seeds": 2048} | other
    return simulate.run(Network(**config | given))


@cache
def direct_of(case):
    return run_of(case, key=2, engine="vectors", seeds=1024)


def deviations(case):
    """The p-values of all entries of R, Q and v after 32 and 96 steps, of the chain against weight vectors."""
    exact, direct = run_of(case, key=1), direct_of(case)
    entries = [(variable, at) for variable, size in (("R", 2), ("Q", 2), ("v", 1)) for at in np.ndindex((2,) * size)]
    return [
        ks_2samp(exact[variable].values[(slice(None), t, *at)], direct[variable].values[(slice(None), t, *at)]).pvalue
        for t in (0, 1)
        for variable, at in entries
    ]


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_chain_has_the_distribution_of_weight_vectors(case, monkeypatch):
    # errors over test fields take longer than all the rest
    for measured in ("measured_error", "label_error"):
        monkeypatch.setattr(network, measured, lambda activation, teacher, R, *others: np.zeros(R.shape[:-2]))
    p = deviations(case)
    assert min(p) > LEVEL / len(p) / len(CASES)


@pytest.mark.quick
@pytest.mark.slow
def test_one_degree_of_freedom_too_many_changes_the_distribution(monkeypatch):
    chi_variable = gram_engine.draw_chi
    monkeypatch.setattr(gram_engine, "draw_chi", lambda key, d, *others: chi_variable(key, d + 1, *others))
    monkeypatch.setenv("STATMECH_CACHE", "off")  # programs are kept by what the files of the package say
    gram_engine._simulate_all_seeds.clear_cache()
    try:
        p = deviations(2)
    finally:
        gram_engine._simulate_all_seeds.clear_cache()
    assert min(p) < LEVEL / len(p) / len(CASES)


def small(**given):
    return Network(**{"network": "erf", "M": 2, "K": 2, "N": 20, "eta": 1.0, "t": [0, 1], "seeds": 3} | given)


@pytest.mark.quick
@pytest.mark.slow
def test_given_products_are_exact_at_the_start_in_both_engines():
    for engine in ("gram", "vectors"):
        sim = simulate.run(small(teacher=CORRELATED, start=START, engine=engine))
        for name in ("R", "Q", "v"):
            np.testing.assert_allclose(sim[name][:, 0], np.broadcast_to(START[name], sim[name][:, 0].shape), atol=1e-12)


NOISY = {"noise": 0.2, "decay": 0.5}  # both tests of bits take one program


@pytest.mark.quick
@pytest.mark.slow
def test_more_seeds_values_and_times_change_no_old_number():
    """All runs of as many recorded times take one program of the engine, whatever their numbers of steps."""
    gram_engine._simulate_all_seeds.clear_cache()
    assert compilations(lambda: simulate.run(small(t=[0, 1, 2, 7], **NOISY))) == 1
    sweep = {"eta": [0.3, 1.0], "N": [20, 50], "eta_v": 0.3, "teacher": CORRELATED, "start": START, "seeds": 5}
    assert compilations(lambda: simulate.run(small(t=[0.5, 1, 4, 9], **NOISY, **sweep))) == 0
    old, new = (simulate.run(small(**NOISY, **given)) for given in ({}, {"eta": [0.3, 1.0], "seeds": 5}))
    for name in ("R", "Q", "v", "eps_g", "specialisation"):
        np.testing.assert_array_equal(old[name], new[name].isel(eta=1, seed=slice(0, 3)))


@pytest.mark.slow
def test_a_part_of_a_batch_has_the_bits_of_the_whole():
    """So that runs of few seeds, which take parts, have the first of the numbers of runs of many."""
    K, M = 2, 2
    assert gram_engine.can_split_batch(K, M)
    few = simulate.run(small(K=K, M=M, eta_v=0.3, **NOISY, seeds=8))
    many = simulate.run(small(K=K, M=M, eta_v=0.3, **NOISY, seeds=64))
    for name in ("R", "Q", "v"):
        np.testing.assert_array_equal(few[name], many[name][:8])


@pytest.mark.quick
@pytest.mark.slow
def test_a_step_that_does_not_happen_changes_nothing():
    """Times that are no multiple of a block record what a run that ends there records."""
    ends = simulate.run(small(eta_v=0.7, t=[0.35, 0.4]))
    again = simulate.run(small(eta_v=0.7, t=[0.35, 0.351]))
    np.testing.assert_array_equal(ends.v[:, 0], again.v[:, 0])
    np.testing.assert_array_equal(again.v[:, 0], again.v[:, 1])
    np.testing.assert_allclose(again.Q[:, 0], again.Q[:, 1], rtol=1e-14)


@pytest.mark.quick
@pytest.mark.slow
def test_exchanged_units_of_the_teacher_give_the_same_students():
    """Teacher units at right angles whose numbers are exchanged: the same errors, and exchanged columns of R."""
    given = {"N": 200, "t": [0, 2], "seeds": 64, "start": {"R": [[0.3, 0.1], [0.0, 0.2]], "Q": 0.5}}
    one = simulate.run(small(**given))
    given["start"] = {"R": [[0.1, 0.3], [0.2, 0.0]], "Q": 0.5}
    other = simulate.run(small(**given, key=1))
    assert ks_2samp(one.eps_g[:, 1], other.eps_g[:, 1]).pvalue > LEVEL
    assert ks_2samp(one.R[:, 1, 0, 0], other.R[:, 1, 0, 1]).pvalue > LEVEL
    assert ks_2samp(one.R[:, 1, 0, 0], other.R[:, 1, 0, 0]).pvalue < LEVEL


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["gram", "vectors"])
def test_the_smallest_system_has_as_many_dimensions_as_units(engine):
    sim = simulate.run(small(N=4, t=[0, 3], engine=engine, eta_v=0.3))
    assert all(np.isfinite(sim[name]).all() for name in ("R", "Q", "v", "eps_g", "specialisation"))


@pytest.mark.quick
@pytest.mark.slow
def test_single_precision_has_the_numbers_of_double_to_its_digits():
    given = {"N": 1000, "t": [0, 1], "seeds": 8, "eta_v": 0.3, "start": {"Q": 0.25, "R": [[0.1, 0], [0, 0.1]]}}
    single, double = (simulate.run(small(**given, dtype=dtype)) for dtype in ("float32", "float64"))
    for name in ("R", "Q", "v", "eps_g"):
        np.testing.assert_allclose(single[name], double[name], atol=1e-4)
        assert np.any(single[name] != double[name])


@pytest.mark.quick
@pytest.mark.slow
def test_many_units_take_matrices_and_agree_with_lanes(monkeypatch):
    given = {"M": 2, "K": 2, "N": 12, "t": [4], "seeds": 1024, "noise": 0.2, "eta_v": 0.4, "teacher": CORRELATED}
    lanes = simulate.run(small(**given))
    monkeypatch.setattr(gram_engine, "MIN_UNITS_FOR_MATRICES", 2)
    monkeypatch.setenv("STATMECH_CACHE", "off")
    gram_engine._simulate_all_seeds.clear_cache()
    matrices = simulate.run(small(**given, key=1))
    gram_engine._simulate_all_seeds.clear_cache()
    p = [ks_2samp(lanes[n].values[(..., *at)], matrices[n].values[(..., *at)]).pvalue for n, at in ENTRIES]
    assert min(p) > LEVEL / len(p)
    assert np.isfinite(simulate.run(small(M=12, K=12, N=24, eta=0.1, t=[1])).R).all()


ENTRIES = [("R", (0, 0, 0)), ("R", (0, 1, 1)), ("Q", (0, 0, 0)), ("Q", (0, 0, 1)), ("v", (0, 1))]


@pytest.mark.quick
@pytest.mark.slow
def test_a_network_that_diverges_is_reported():
    with pytest.raises(DivergedStudentError, match=r"erf|linear .* has diverged: "):
        simulate.run(small(network="linear", eta=30.0, t=[1000]))


@pytest.mark.quick
@pytest.mark.slow
def test_rates_that_single_precision_does_not_resolve_are_refused():
    with pytest.raises(ScenarioError, match="float32 does not resolve decay"):
        simulate.run(small(N=10_000, decay=0.001, dtype="float32"))
    with pytest.raises(ScenarioError, match="float32 does not resolve the update by one example at N = 1e"):
        simulate.run(small(N=10**7, t=[1e-6], dtype="float32"))


def test_starts_without_differences_are_remarked():
    def remarks(**start):
        return Simulator(small(start=start)).get_remarks_before_run()

    [alike] = remarks(R=0.1, Q=[[0.25, 0.25], [0.25, 0.25]])
    assert alike.startswith("the student units start identical, and remain so")
    [plateau] = remarks(R=0, Q=0.25)
    assert "fluctuations of order 1/sqrt(N) end the plateau" in plateau
    assert remarks(drawn=1.0) == [plateau]
    assert remarks(R={"diagonal": 0.1}, Q=0.25) == []


@pytest.mark.quick
@pytest.mark.slow
def test_students_that_start_identical_stay_so_at_all_times():
    """Rounding would separate them by t = 300; two copies and a third student learn as three that differ by 1e-13."""
    sim = simulate.run(small(start={"R": 0.1, "Q": [[0.25, 0.25], [0.25, 0.25]]}, eta=1.5, t=[0, 500]))
    np.testing.assert_array_equal(sim.R[..., 0, :], sim.R[..., 1, :])
    Q = [[0.4, 0.1, 0.4], [0.1, 0.5, 0.1], [0.4, 0.1, 0.4]]
    given = {"K": 3, "R": [[0.1, 0.0], [0.2, 0.3], [0.1, 0.0]], "Q": Q, "v": [0.5, 0.8, 0.5]}
    [cell] = small(K=given.pop("K"), start=given).cells()
    first, group = networks.find_distinct_students(cell)
    assert (first.tolist(), group.tolist()) == ([0, 1], [0, 1, 0])
    sim = simulate.run(small(K=3, start=given, eta_v=0.3))
    np.testing.assert_allclose(sim.Q[:, 0], np.broadcast_to(Q, (3, 3, 3)), atol=1e-12)
    few, cut = ({**given, "v": [0.5 + d, 0.8, 0.5]} for d in (0, 1e-13))
    one, other = (simulate.run(small(K=3, start=s, seeds=256, N=12, eta_v=0.3)) for s in (few, cut))
    for read in (lambda sim: sim.v[:, 1, 0], lambda sim: sim.v[:, 1, 1], lambda sim: sim.eps_g[:, 1]):
        assert ks_2samp(read(one), read(other)).pvalue > LEVEL


def test_specialisation_is_the_best_assignment():
    rng = np.random.default_rng(0)
    R, Q, T = rng.uniform(-1, 1, (5, 5, 4)), np.eye(5), np.diag([1.0, 4.0, 1.0, 1.0])
    found = specialisation(T, R, Q)  # 120 assignments: solved one by one
    cosines = R / np.sqrt(np.diagonal(T))
    best = max(np.mean([cosines[0, k, m] for m, k in enumerate(chosen)]) for chosen in permutations(range(5), 4))
    np.testing.assert_allclose(found[0], best, rtol=1e-12)
    few = specialisation(T[:2, :2], R[..., :3, :2], Q[:3, :3])  # 6 assignments: enumerated
    best = max(np.mean([cosines[0, k, m] for m, k in enumerate(chosen)]) for chosen in permutations(range(3), 2))
    np.testing.assert_allclose(few[0], best, rtol=1e-12)
    assert specialisation(np.eye(2), np.zeros((2, 2)), np.zeros((2, 2))) == 0
    faded = np.diag([1.0, 1.0, -1e-17])  # rounding of a unit that the others make superfluous
    assert specialisation(np.eye(2), np.eye(3, 2), faded) == 1


def test_the_direct_engine_measures_its_memory():
    with pytest.raises(ScenarioError, match="`engine: gram` avoids this"):
        simulate.run(small(N=10**12, t=[1e-12], engine="vectors"))
    assert weight_vector_engine.estimate_unit_bytes(2, 2, 1000, "float64") > 0


def test_one_exponential_gives_the_error_function_to_rounding():
    x = np.concatenate([np.linspace(-9, 9, 20_001), [0.0, 40.0, -1e300]])
    with np.errstate(over="ignore"):
        g, derivative = scaled_erf_and_derivative(x)
        np.testing.assert_allclose(derivative, np.sqrt(2 / np.pi) * np.exp(-x * x / 2), rtol=1e-13)
    np.testing.assert_allclose(g, erf(x / np.sqrt(2)), rtol=0, atol=1.2e-15)
    with jax.enable_x64(True):
        traced = np.asarray(ACTIVATIONS["erf"]().both(jax.numpy.asarray(x))[0])
    np.testing.assert_allclose(traced, g, rtol=0, atol=1e-15)
    assert g[x == 0].max() == 0
