"""Both engines simulate the same model: the direct one step by step to rounding, the Gram engine in distribution."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from conftest import disagreements, few_optimisations, start_of
from scipy.stats import chi, ks_2samp, kstest

import simulate
import theory
from simulate.execution.work_units import make_simulator
from simulate.kinds import seed_batches
from simulate.online import gram_engine, perceptrons, weight_vector_engine
from simulate.online.learning_steps import compute_block_modulations
from simulate.online.perceptrons import PerceptronLearner
from statmech import RULES, Scenario, ScenarioError
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.numerics.random_numbers import make_key_data
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.runtime import compiled_programs
from theory.online import order_parameter_equations

LEVEL = 1e-4  # family-wise, over all distributions compared
both_engines = pytest.mark.parametrize("engine", ["gram", pytest.param("vectors", marks=pytest.mark.slow)])


@pytest.mark.quick
@pytest.mark.slow
def test_a_block_of_steps_equals_its_steps_one_by_one():
    """Fields updated in the small space agree with a plain loop over weight vectors: same inputs, all rules."""
    rng = np.random.default_rng(0)
    N, K, M, rounds = 40, 3, 8, 6
    teacher = rng.standard_normal(N)
    for name, kind in RULES.items():
        rule = kind(eta=0.7)
        learner = PerceptronLearner(
            get_real_parameter_family(rule),
            {name: getattr(rule, name) for name in get_real_parameter_family(rule).real_parameter_names},
            0.0,
            N,
        )
        modulated = jax.jit(partial(compute_block_modulations, learner))
        blocked = plain = rng.standard_normal((K, N))
        with jax.enable_x64(True):
            for _ in range(rounds):
                x = rng.standard_normal((M, N)) / np.sqrt(N)
                right = rng.choice([-1.0, 1.0], M)
                fields = np.vstack([teacher, blocked]) @ x.T
                given = (fields[:1].T, fields[1:].T, x @ x.T, (blocked**2).sum(1) / N, right)
                f, _ = modulated(*map(jnp.asarray, given))
                blocked = blocked + np.asarray(f).T @ x
                plain = step_by_step(rule, teacher, plain, x, right)
        np.testing.assert_allclose(blocked, plain, rtol=1e-10, atol=1e-12, err_msg=name)


def step_by_step(rule, teacher, students, inputs, right):
    students = students.copy()
    for x, sign in zip(inputs, right, strict=True):
        label = sign * np.sign(teacher @ x)
        for student in students:
            length = np.linalg.norm(student) / np.sqrt(x.size)
            kappa = label * (student @ x) / length
            student += rule.eta * label * float(rule.g(np.float64(kappa), length)) * x
    return students


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "K"), [*((rule, 2) for rule in RULES), ("perceptron", gram_engine.MIN_UNITS_FOR_MATRICES)]
)
def test_the_engines_have_the_same_distribution(rule, K):
    """Two-sample Kolmogorov-Smirnov tests of R, q, l at the least N; of one rule and of many students at 50, too."""
    p = []
    for N in (K + 1, 50) if K > 2 or rule == "bayes" else (K + 1,):
        seeds, start = 1000 if K == 2 else 400, start_of(rule)
        scenario = Scenario(rule=rule, K=K, N=N, t=[1.0, 2.0], seeds=seeds, flip=0.1, key=1, start=start)
        direct = simulate.run(Scenario(**{**scenario.config(), "engine": "vectors"}))
        exact = simulate.run(scenario)
        assert all(np.isfinite(sim[name]).all() for sim in (direct, exact) for name in sim)
        for name in ("R", "q", "length"):
            for at in ({"t": 0, "student": 0}, {"t": 1, "student": 1}):
                p.append(ks_2samp(exact[name].isel(at), direct[name].isel(at)).pvalue)
    assert min(p) > LEVEL / len(p) / (len(RULES) + 1)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("planted", ["degrees of freedom", "shared axis"])
def test_a_deliberate_error_changes_the_distribution(planted, monkeypatch):
    """A chi-square with the wrong degrees of freedom, or inputs of a block without their common part."""
    scenario = Scenario(rule="hebb", K=2, N=12, t=[2.0], seeds=3000)
    right = simulate.run(scenario)
    chi_variable, rows = gram_engine.draw_chi, gram_engine.make_input_rows
    if planted == "degrees of freedom":
        monkeypatch.setattr(gram_engine, "draw_chi", lambda key, d, *others: chi_variable(key, d + 2, *others))
    else:
        monkeypatch.setattr(
            gram_engine, "make_input_rows", lambda normals, chi, n: rows(normals, chi, n).at[:, n:].set(0.0)
        )
    monkeypatch.setenv("STATMECH_CACHE", "off")  # programs are kept by what the files of the package say
    gram_engine._simulate_all_seeds.clear_cache()
    wrong = simulate.run(Scenario(**{**scenario.config(), "key": 1}))
    gram_engine._simulate_all_seeds.clear_cache()
    assert ks_2samp(right.length[:, 0, 0], wrong.length[:, 0, 0]).pvalue < 1e-6


def numbers(cell, part=slice(None)):
    """Parts along and across the teacher of a batch's seeds, or of a part of them, recorded four times."""
    with jax.enable_x64(True):
        key, steps = make_key_data(5), np.array([0, 1, 10, 133])
        record = gram_engine.run(perceptrons.make_perceptron_task(cell, "float64"), key, steps, part)
    return [np.asarray(values) for values in record[:2]]


@pytest.mark.slow
@pytest.mark.skipif(not gram_engine.HAS_WIDTH_INDEPENDENT_BITS, reason="whole batches are simulated")
@pytest.mark.parametrize(  # every rule but that of tests/test_conformance_rules.py, all K that are cut, all widths
    ("rule", "K", "width"),
    [
        *(
            pytest.param(*case, marks=pytest.mark.quick)
            for case in (("perceptron", 1, 8), ("bayes", 2, 16), ("hebb", 2, 32))
        ),
        ("adatron", 3, 32),  # as users compile
    ],
)
def test_a_part_of_a_batch_has_the_bits_of_the_whole(rule, K, width):
    """At the least N, with label noise, and from a start."""
    assert gram_engine.can_split_batch(K)
    for given in ({"N": K + 1}, {"N": 1000, "flip": 0.1}, {"N": 100, "eta": 0.3, "start": {"R": 0.2}}):
        [cell] = Scenario(rule=rule, K=K, t=[1.0], **{**given, "start": start_of(rule, given.get("start"))}).cells()
        whole = numbers(cell)
        assert np.ptp(whole[0][:, -1], axis=0).min() > 0  # the seeds differ
        for first in (0, gram_engine.batch(K) - width):
            for values, among in zip(numbers(cell, slice(first, first + width)), whole, strict=True):
                np.testing.assert_array_equal(values, among[first : first + width])


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"rule": "adatron", "K": 3, "drift": 0.1, "decay": 0.1, "flip": 0.1},
        {"rule": "hebb", "K": 1, "dtype": "float32"},
        {"network": "erf", "K": 2, "M": 2, "noise": 0.1, "eta_v": 0.3},
    ],
)
def test_a_short_run_has_the_bits_of_a_long_one(given, monkeypatch):
    """Its program is compiled in half the time."""
    scenario = scenario_from({**given, "N": 300, "t": [0.5, 3], "seeds": 8})
    gram_engine._simulate_all_seeds.clear_cache()
    short = simulate.run(scenario)
    monkeypatch.setattr(gram_engine, "MAX_FAST_COMPILE_STEPS", 0)
    xr.testing.assert_identical(simulate.run(scenario), short)
    assert [program.fast_compile for program, *_ in gram_engine._simulate_all_seeds.programs] == [True, False]


@pytest.mark.slow
def test_a_program_of_too_few_optimisations_has_other_bits(monkeypatch):
    """The planted error of the test above: level 0 of XLA's compiler."""
    scenario = Scenario(rule="hebb", K=1, N=300, t=[0.5, 3], seeds=8)
    short = simulate.run(scenario)
    monkeypatch.setenv("STATMECH_CACHE", "off")
    gram_engine._simulate_all_seeds.clear_cache()
    with few_optimisations():
        fewer = simulate.run(scenario)
    gram_engine._simulate_all_seeds.clear_cache()
    assert not fewer.R.equals(short.R)
    np.testing.assert_allclose(fewer.R, short.R, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "short"),
    [
        ({"t": [10], "seeds": 64}, True),
        ({"t": [10], "seeds": 65}, False),  # two batches
        ({"t": [10.1], "seeds": 64}, False),
        ({"eta": list(np.linspace(0.5, 1, 10)), "t": [1]}, True),  # cells of one program count together
        ({"eta": list(np.linspace(0.5, 1, 10)), "t": [1.1]}, False),
        ({"rule": ["hebb", "perceptron"], "t": [10]}, True),
        ({"K": 4, "t": [1]}, False),  # more students could round otherwise
    ],
)
def test_a_run_is_short_by_all_steps_of_its_program(given, short):
    scenario = Scenario(**{"rule": "hebb", "K": 3, "N": 10_000, "seeds": 8, **given})
    assert {
        unit.uses_fast_compilation for unit in make_simulator(scenario).units(list(scenario.cells()), range(8))
    } == {short}


@pytest.mark.skipif(not gram_engine.HAS_WIDTH_INDEPENDENT_BITS, reason="whole batches are simulated")
@pytest.mark.parametrize(
    ("seeds", "K", "others", "workers", "widths"),
    [
        (64, 3, 1, 2, [32, 32]),
        (64, 3, 1, 4, [16] * 4),
        (64, 3, 1, 64, [16] * 4),
        (64, 3, 2, 2, [64, 64]),
        (64, 3, 1, 1, [64]),
        (100, 3, 1, 2, [64, 64]),
        (100, 3, 1, 4, [32] * 4),
        (9, 1, 1, 1, [16]),
        (2, 1, 5, 2, [8] * 5),
        (64, 4, 1, 2, [64]),
    ],
)
def test_a_batch_is_cut_where_there_are_fewer_units_than_cores(monkeypatch, seeds, K, others, workers, widths):
    monkeypatch.setattr(seed_batches, "count_cores", lambda: workers)
    eta = list(np.linspace(0.5, 1, others))
    scenario = Scenario(rule="hebb", K=K, N=50, t=[1], seeds=seeds, eta=eta)
    units = list(make_simulator(scenario).units(list(scenario.cells()), range(seeds)))
    assert [unit.simulated_batch_slice.stop - unit.simulated_batch_slice.start for unit in units] == widths
    found = [seed for unit in units for seed in range(unit.seeds.start, unit.seeds.stop)]
    assert found == others * list(range(seeds))
    for unit in units:
        assert unit.seeds.start - unit.batch_index * gram_engine.batch(K) == unit.simulated_batch_slice.start


@jax.jit
def chi_variables(degrees):
    return gram_engine.draw_chi(jax.random.key(0), degrees, (*np.shape(degrees)[:-1], 20_000))


@pytest.mark.quick
@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 1000, 10**12])
def test_chi_variables_have_their_distribution(degrees):
    with jax.enable_x64(True):
        drawn = np.asarray(chi_variables(degrees))
    if degrees > 10**6:  # SciPy's cdf has no precision left there: the limit is normal
        assert kstest(np.sqrt(2) * (drawn - np.sqrt(degrees - 0.5)), "norm").pvalue > LEVEL
    else:
        assert kstest(drawn, chi(degrees).cdf).pvalue > LEVEL


@pytest.mark.quick
@pytest.mark.slow
def test_zero_degrees_of_freedom_give_zero_length():
    with jax.enable_x64(True):
        np.testing.assert_array_equal(chi_variables(np.array([[0], [-3]])), 0.0)


@pytest.mark.quick
@pytest.mark.slow
def test_many_students_are_as_exact_as_few():
    """The matrix form of the Gram engine agrees with theory and handles identical students, whose LQ has rank one."""
    scenario = Scenario(
        rule="perceptron", K=gram_engine.MIN_UNITS_FOR_MATRICES + 3, N=1000, t=[0.5, 2], seeds=64, flip=0.1
    )
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []
    same = simulate.run(Scenario(**{**scenario.config(), "start": {"q": 1.0}, "N": 40, "seeds": 2}))
    np.testing.assert_allclose(same.q, 1.0, rtol=1e-12)
    assert not np.any(np.isnan(same.eps_g))


@pytest.mark.quick
@pytest.mark.slow
def test_a_size_beyond_memory_agrees_with_the_equations():
    """N = 10^12, a thousand steps: the time is tiny, so the changes since the start are compared."""
    start = {"R": 0.5, "q": 0.3}
    scenario = Scenario(rule=["hebb", "perceptron", "adatron"], K=2, N=10**12, t=[1e-9, 2e-9], seeds=64, start=start)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    for name in ("R", "length"):
        moved, expected = simulation[name] - simulation[name].isel(t=0), solution[name] - solution[name].isel(t=0)
        moved = moved.isel(t=1).mean("student")
        error = moved.std("seed", ddof=1) / 8
        assert np.all(abs(moved.mean("seed") - expected.isel(t=1, student=0)) < 4.5 * error + 1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "K", "seeds"),
    [("adatron", 3, 64), pytest.param("hebb", 2, 16, marks=pytest.mark.quick)],  # the first: of the test of parts
)
def test_late_times_and_great_lengths_keep_their_precision(rule, K, seeds):
    """AdaTron at t = 3000, where 1 - R is 1e-6, and a Hebbian student of l sqrt(N) > 10^4."""
    scenario = Scenario(rule=rule, K=K, N=50, t=[3000.0], seeds=seeds)
    simulation = simulate.run(scenario)
    with few_optimisations():
        solution = theory.solve(scenario)
    if rule == "hebb":
        assert simulation.length.min() * np.sqrt(scenario.N) > 1e4
    assert simulation.R.min() < 1  # 1 - R is not rounded away
    ratio = simulation.eps_g.mean(("seed", "student")) / solution.eps_g.mean("student")
    assert np.all(abs(ratio - 1) < 0.05)  # O(1/N) bias, percent; lost digits would give factors
    ratio_of_angles = np.sqrt((1 - simulation.q) / (1 - solution.q)).mean("seed")
    assert np.all(abs(ratio_of_angles - 1) < 0.05)


def compilations(work):
    """The number of programs compiled while `work` runs, but for those that ask for the compiler's options."""
    events, listening = [], [True]

    def listen(event, _, fun_name="", **__):
        if (
            listening
            and event.endswith("backend_compile_duration")
            and fun_name != f"jit({compiled_programs.trivial_program.__name__})"
        ):
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    work()
    listening.clear()  # JAX cannot remove a listener
    return len(events)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("solve", [simulate.run, theory.solve])
def test_a_sweep_compiles_once(solve):
    """Parameters, label noise, times and (simulated) N and start are data; rule, K and sizes fix the program."""
    base = {"rule": "perceptron", "K": 2, "N": 50, "t": [0.5, 1, 2, 3, 4, 5, 6], "seeds": 2, "eta": [0.5, 2]}
    other = {"eta": [0.1, 3], "flip": 0.1, "t": [0.7, 2, 3, 4, 5, 6, 7], "N": 60, "start": {"R": 0.5, "q": 0.4}}
    for program in (
        gram_engine._simulate_all_seeds,
        order_parameter_equations.solve_batch,
    ):  # another test of this process may have called them
        program.clear_cache()
    assert compilations(lambda: solve(Scenario(**base))) > 0
    assert compilations(lambda: solve(Scenario(**base | other))) == 0


def test_weight_vectors_beyond_memory_are_refused_at_once():
    with pytest.raises(ScenarioError, match="`engine: gram` avoids this for Gaussian inputs"):
        simulate.run(Scenario(rule="hebb", N=10**12, t=[1], engine="vectors"))
    with pytest.raises(ScenarioError, match="GiB"):
        simulate.run(Scenario(rule="hebb", N=10**12, t=[1e-12], inputs={"anisotropic": {"spectrum": [1, 2]}}))


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["gram", "vectors"])
def test_single_precision_agrees_with_theory(engine):
    scenario = Scenario(rule="perceptron", K=2, N=500, t=[2.0], seeds=32, dtype="float32", engine=engine)
    [cell] = scenario.cells()
    with jax.enable_x64(True):
        module = {"gram": gram_engine, "vectors": weight_vector_engine}[engine]
        assert (
            module.run(
                perceptrons.make_perceptron_task(cell, "float32"), make_key_data(0), np.array([10])
            ).parallel.dtype
            == jnp.float32
        )
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("K", [3, 8])  # float32 sums another way from 7 on
def test_the_triangular_factor_keeps_inner_products(K, dtype):
    rows = np.random.default_rng(K).standard_normal((K, K + 4, 2)).astype(dtype)
    with jax.enable_x64(True):
        lower = np.asarray(jax.jit(gram_engine.compute_lq_factor)(rows))
    assert lower.dtype == dtype
    np.testing.assert_array_equal(lower[np.triu_indices(K, 1)], 0)
    inner = (np.einsum("kil,jil->kjl", factor, factor) for factor in (lower, rows))
    np.testing.assert_allclose(*inner, rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.quick
@both_engines
def test_given_initial_overlaps_are_exact(engine):
    start = {"R": [0.5, -0.2], "q": [[1, 0.3], [0.3, 1]], "length": [2.0, 0.5]}
    sim = simulate.run(Scenario(rule="hebb", K=2, N=20, t=[0], seeds=3, start=start, engine=engine, gram=True))
    expected = [[1, 1.0, -0.1], [1.0, 4.0, 0.3], [-0.1, 0.3, 0.25]]
    np.testing.assert_allclose(sim.gram.isel(t=0), np.broadcast_to(expected, (3, 3, 3)), atol=1e-12)


@pytest.mark.quick
@pytest.mark.slow
@both_engines
def test_random_initial_weights_are_normal(engine):
    sim = simulate.run(Scenario(rule="hebb", K=2, N=50, t=[0, 1], seeds=800, engine=engine))
    length = sim.length.isel(t=0, student=1)
    assert kstest(length * np.sqrt(50), chi(50).cdf).pvalue > LEVEL
    R = sim.R.isel(t=0)
    assert abs((R**2).mean() * 50 - 1) < 4 * (R**2).std() * 50 / np.sqrt(1600)


@pytest.mark.quick
@pytest.mark.slow
def test_labels_are_flipped_as_often_as_stated():
    """Hebbian learning along the teacher: <sigma v> = (1 - 2 flip) sqrt(2/pi)."""
    sim = simulate.run(Scenario(rule="hebb", N=1000, t=[4], flip=0.3, seeds=64, start={"R": 0}, gram=True))
    along = sim.gram.isel(t=0, row=0, column=1) / 4
    assert abs(along.mean() - 0.4 * np.sqrt(2 / np.pi)) < 4 * along.std(ddof=1) / 8


@pytest.mark.quick
@pytest.mark.slow
def test_progress_is_reported_to_the_end(monkeypatch):
    monkeypatch.setattr(seed_batches, "count_cores", lambda: 2)  # on more, batches are cut
    reports = []
    simulate.run(Scenario(rule="hebb", N=10, t=[0, 1], seeds=200), lambda done, total: reports.append((done, total)))
    assert reports == [(k, 4) for k in (1, 2, 3, 4)]
    assert weight_vector_engine.batch(3) > 0


def test_one_program_serves_many_numbers_of_recorded_times():
    lengths = [len(gram_engine.pad_recorded_steps(np.arange(T))) for T in (1, 32, 33, 128, 129)]
    assert lengths == [32, 32, 128, 128, 256]


@pytest.mark.slow
def test_times_that_are_added_do_not_change_a_bit_of_those_before():
    few, more = (
        simulate.run(Scenario(rule="perceptron", N=100, t=t, seeds=3)) for t in ([1, 2], [1, 2, *range(3, 34)])
    )
    for name in ("R", "length"):
        np.testing.assert_array_equal(few[name], more[name].sel(t=few.t))
