"""Drift, decay and schedules at finite N: exact in both engines, and without effect where nothing changes."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from conftest import assert_same_bits, disagreements, statmech
from scipy.stats import chi, ks_2samp, kstest

import simulate
import theory
from simulate.execution.store_simulation import run_into
from simulate.online import gram_engine, learning_steps, perceptrons, weight_vector_engine
from statmech import RULES, Scenario, ScenarioError
from statmech.numerics.random_numbers import make_key_data
from statmech.parameters.schedules_and_controls import LEARNING_RATE_SCHEDULES

LEVEL = 1e-4  # family-wise, of the distributions that a test compares
ALL = {"drift": 0.3, "decay": 0.6, "schedule": {"t0": 2}}
EACH = {"drift": [0.4, 0, 0, 0.4], "decay": [0, 0.5, 0, 0.5], "schedule": [{"t0": t0} for t0 in (1e9, 1e9, 0.7, 0.7)]}
LARGE = {"drift": 1.7, "decay": 1.3, "schedule": {"t0": 1.5}}  # at small N
both_engines = pytest.mark.parametrize("engine", ["gram", pytest.param("vectors", marks=pytest.mark.slow)])


@pytest.fixture
def traced_again(monkeypatch):
    """Programs are kept by what the files of the package say, which a planted error does not change."""
    monkeypatch.setenv("STATMECH_CACHE", "off")
    programs = gram_engine._simulate_all_seeds, weight_vector_engine._simulate_all_seeds
    for program in programs:
        program.clear_cache()
    yield
    for program in programs:
        program.clear_cache()


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "K", "rule"),
    [
        ("gram", 1, "adatron_textbook"),
        ("gram", 3, "perceptron"),
        ("gram", gram_engine.MIN_UNITS_FOR_MATRICES + 2, "adatron"),
        ("vectors", 3, "perceptron"),
    ],
)
def test_each_change_and_all_together_agree_with_theory(engine, K, rule):
    size = {"N": 1000, "seeds": 64} if engine == "gram" and K < 10 else {"N": 200, "seeds": 16}
    scenario = Scenario(rule=rule, K=K, t=[0.3, 1, 2.5], flip=0.05, engine=engine, **size, zip=EACH)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


@pytest.mark.quick
@pytest.mark.slow
@both_engines
@pytest.mark.parametrize("annealing", LEARNING_RATE_SCHEDULES)
def test_each_schedule_agrees_with_theory_at_finite_n_and_with_no_other(annealing, engine):
    """Means and standard deviations of runs at N = 100; theory with another schedule deviates."""
    base = {"rule": "perceptron", "K": 2, "N": 100, "t": [1, 4], "start": {"R": 0.3, "q": 0.2}, "schedule": {"t0": 1.5}}
    runs = simulate.run(Scenario(**base, seeds=256, engine=engine, annealing=annealing))

    def deviation(name):
        expected = theory.solve(Scenario(**base, corrections=True, annealing=name))
        found = []
        for variable in ("R", "q", "length", "eps_g_weight_mean"):
            std = expected[f"{variable}_std"]
            z = (runs[variable].mean("seed") - expected[variable] - expected[f"{variable}_bias"]) / std * 256**0.5
            ratio = (runs[variable].std("seed") / std - 1) * 512**0.5
            found += [float(abs(z).max()), float(abs(ratio).max())]
        return max(found)

    assert deviation(annealing) < 6
    assert all(deviation(other) > 30 for other in LEARNING_RATE_SCHEDULES if other != annealing)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["rademacher", "sphere"])
def test_other_inputs_agree_with_theory(inputs):
    scenario = Scenario(rule="perceptron", K=2, N=200, t=[0.5, 2], seeds=16, inputs=inputs, **ALL)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


def hebbian(N, steps, drift, decay, t0, eta, flip):
    """Exact means of B.J/N, |J|^2/N and J_1.J_2/N after Hebbian steps, from J = 0 to order of the start given.

    With v = B.x, h = J.x and s = (1 - 2 flip) sqrt(2/pi), E(label v) = s, E(label h) = s B.J/N and E|x|^2 = 1; a
    direction perpendicular to the teacher has no mean overlap.
    """
    overlap, square, common = 0.5 * 1.2, 1.2**2, 0.3 * 1.2**2  # R = 0.5, length 1.2, q = 0.3
    signal, kept, means = (1 - 2 * flip) * np.sqrt(2 / np.pi), 1 - decay / N, []
    for step in range(max(steps)):
        rate = eta / (1 + step / N / t0)
        gain = (2 * kept * rate * signal * overlap + rate**2) / N
        square, common = kept**2 * square + gain, kept**2 * common + gain
        overlap = (1 - drift / N) * (kept * overlap + rate * signal / N)
        means.append((overlap, square, common))
    return np.array([means[step - 1] for step in steps])


def hebbian_deviations(engine, N, K=2, seeds=1024, t0=1.5, **wrong):
    """Means of simulated overlaps and lengths less the exact ones, in standard errors; with wrong rates, if given."""
    right = {"drift": 0.8 * N / 4, "decay": 0.5 * N / 4}
    scenario = Scenario(
        rule="hebb",
        K=K,
        N=N,
        t=[1 / N, 1, 3],
        seeds=seeds,
        eta=0.8,
        flip=0.1,
        engine=engine,
        gram=True,
        start={"R": 0.5, "q": 0.3, "length": 1.2},
        schedule={"t0": t0},
        **right | wrong,
    )
    entries = simulate.run(scenario).gram
    found = np.stack([entries[..., row, column] for row, column in ((0, 1), (1, 1), (1, K))], axis=-1)
    exact = hebbian(N, [1, N, 3 * N], eta=0.8, flip=0.1, t0=t0, **right)
    return (found.mean(0) - exact) / (found.std(0, ddof=1) / seeds**0.5)


@pytest.mark.slow
@pytest.mark.quick
@both_engines
@pytest.mark.parametrize("N", [4, 11])
def test_hebbian_means_are_exact_at_small_N(engine, N):
    assert np.abs(hebbian_deviations(engine, N)).max() < 4.5


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("N", [17, 20])
def test_hebbian_means_of_many_students_are_exact_at_small_N(N):
    assert np.abs(hebbian_deviations("gram", N, K=16, seeds=512)).max() < 4.5


@pytest.mark.quick
@pytest.mark.slow
@both_engines
@pytest.mark.parametrize("key", ["drift", "decay"])
def test_a_rate_that_acts_twice_moves_the_means(engine, key):
    N = 4
    once = {"drift": 0.8, "decay": 0.5}[key]
    assert np.abs(hebbian_deviations(engine, N, **{key: N * (1 - (1 - once / N) ** 2)})).max() > 6


@pytest.mark.quick
@pytest.mark.slow
@both_engines
def test_a_rate_per_block_moves_the_means(engine, monkeypatch, traced_again):
    def wrong(*arguments):
        course = learning_steps.compute_step_rates(*arguments)
        return course._replace(eta=0 * course.eta + course.eta[..., :1])

    monkeypatch.setattr({"gram": gram_engine, "vectors": weight_vector_engine}[engine], "compute_step_rates", wrong)
    assert np.abs(hebbian_deviations(engine, 17, t0=0.5)).max() > 6


@pytest.mark.quick
@pytest.mark.slow
def test_students_that_do_not_turn_with_the_teacher_move_the_means(monkeypatch, traced_again):
    """A rotation of two of its four terms: what they gain along the teacher, without what they lose across it."""
    turn = gram_engine.compute_rotation_gain
    monkeypatch.setattr(gram_engine, "compute_rotation_gain", lambda *given: turn(*given).at[:, 1:].set(0.0))
    assert np.abs(hebbian_deviations("gram", 4)).max() > 6


def chains(rule, N, K, steps, seeds, drift, decay, t0, flip):
    """R and length (seeds, K) of explicit vectors, one step after the other: NumPy alone."""
    rng = np.random.default_rng(3)
    teacher = rng.standard_normal((seeds, N))
    teacher *= np.sqrt(N) / np.linalg.norm(teacher, axis=1, keepdims=True)
    students = rng.standard_normal((seeds, K, N))
    for step in range(steps):
        x = rng.standard_normal((seeds, N)) / np.sqrt(N)
        label = np.sign((teacher * x).sum(1)) * np.where(rng.random(seeds) < flip, -1, 1)
        length = np.linalg.norm(students, axis=2) / np.sqrt(N)
        kappa = label[:, None] * (students @ x[:, :, None])[..., 0] / length
        f = rule.eta / (1 + step / N / t0) * label[:, None] * rule.g(kappa, length)
        students = (1 - decay / N) * students + f[:, :, None] * x[:, None]
        b = rng.standard_normal((seeds, N))
        b -= (b * teacher).sum(1, keepdims=True) / N * teacher
        b *= np.sqrt(N) / np.linalg.norm(b, axis=1, keepdims=True)
        cosine = 1 - drift / N
        teacher = cosine * teacher + np.sqrt(1 - cosine**2) * b
    length = np.linalg.norm(students, axis=2) / np.sqrt(N)
    return (students @ teacher[:, :, None])[..., 0] / N / length, length


@pytest.mark.quick
@pytest.mark.slow
@both_engines
@pytest.mark.parametrize(("rule", "K", "N"), [("perceptron", 1, 2), ("adatron", 2, 6)])
def test_both_engines_have_the_distribution_of_vectors_moved_one_by_one(engine, rule, K, N):
    given = {"drift": 1.1, "decay": 0.9, "flip": 0.1}
    R, length = chains(RULES[rule](eta=0.7), N, K, 2 * N, 20_000, **given, t0=1.5)
    scenario = Scenario(
        rule=rule, eta=0.7, K=K, N=N, t=[2], seeds=3000, schedule={"t0": 1.5}, engine=engine, key=4, **given
    )
    sim = simulate.run(scenario)
    p = [ks_2samp(sim.R[:, 0, 0], R[:, 0]).pvalue, ks_2samp(sim.length[:, 0, -1], length[:, -1]).pvalue]
    assert min(p) > LEVEL / 4


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("K", [3, gram_engine.MIN_UNITS_FOR_MATRICES])
def test_the_engines_have_the_same_distribution_in_the_smallest_system(K):
    """Two-sample Kolmogorov-Smirnov tests of R, q, l where drift and decay are large, and all numbers exist."""
    p = []
    for changes in ({"drift": LARGE["drift"]}, LARGE):
        given = {
            "rule": "perceptron",
            "K": K,
            "N": K + 1,
            "t": [0.5, 2.0],
            "seeds": 600,
            "flip": 0.1,
            **changes,
        }
        direct = simulate.run(Scenario(**given, engine="vectors", key=1))
        exact = simulate.run(Scenario(**given))
        assert all(np.isfinite(sim[name]).all() for sim in (direct, exact) for name in sim)
        for name in ("R", "q", "length"):
            for at in ({"t": 0, "student": 0}, {"t": 1, "student": 1}):
                p.append(ks_2samp(exact[name].isel(at), direct[name].isel(at)).pvalue)
    assert min(p) > LEVEL / len(p) / 2


@pytest.mark.quick
@pytest.mark.slow
@both_engines
def test_weights_that_fade_at_once_are_the_last_example(engine):
    """decay = N: J = eta x, of length chi_N/N; drift = N: the teacher turns by a right angle after its label."""
    N = 7
    signal = np.sqrt(2 / np.pi) / N  # of B.J/N
    for drift, mean in ((0, signal), (N, 0.0)):
        given = {"drift": drift, "decay": N, "seeds": 1024, "gram": True}
        faded = simulate.run(Scenario(rule="hebb", N=N, t=[3], engine=engine, **given))
        assert kstest(N * faded.length[:, 0, 0], chi(N).cdf).pvalue > LEVEL / 2
        entries = faded.gram[:, 0, 0, 1]
        assert abs(entries.mean() - mean) < 4.5 * entries.std(ddof=1) / 1024**0.5


@pytest.mark.quick
@pytest.mark.slow
@both_engines
def test_a_sweep_at_zero_has_the_numbers_of_one_without_the_key(engine):
    base = {"rule": "perceptron", "K": 2, "N": 20, "t": [0, 1], "seeds": 5, "engine": engine}
    plain = simulate.run(Scenario(**base))
    for key in ("drift", "decay"):
        swept = simulate.run(Scenario(**base, **{key: [0, 0.1]}))
        for name in plain:
            np.testing.assert_array_equal(swept[name].isel({key: 0}).values, plain[name].values)
            assert np.any(swept[name].isel({key: 1, "t": 1}).values != plain[name].isel(t=1).values)


def test_nothing_that_changes_traces_the_program_of_a_scenario_without_the_keys():
    for given in ({}, {"drift": 0, "decay": 0}):
        [cell] = Scenario(rule="hebb", N=20, t=[1], **given).cells()
        assert perceptrons.make_perceptron_task(cell, "float64").changes is None


def numbers(cell, part=slice(None)):
    with jax.enable_x64(True):
        record = gram_engine.run(
            perceptrons.make_perceptron_task(cell, "float64"), make_key_data(5), np.array([0, 1, 10, 133]), part
        )
    return [np.asarray(values) for values in record[:2]]


@pytest.mark.slow
@pytest.mark.skipif(not gram_engine.HAS_WIDTH_INDEPENDENT_BITS, reason="whole batches are simulated")
@pytest.mark.parametrize(
    ("rule", "K", "width", "given"),
    [
        ("adatron", 2, 32, {"N": 3, **LARGE}),
        pytest.param("perceptron", 3, 8, {"N": 100, "decay": 0.5}, marks=pytest.mark.quick),
    ],
)
def test_a_part_of_a_batch_has_the_bits_of_the_whole(rule, K, width, given):
    assert gram_engine.can_split_batch(K)
    [cell] = Scenario(rule=rule, K=K, t=[1.0], **given).cells()
    whole = numbers(cell)
    for first in (0, gram_engine.batch(K) - width):
        for values, among in zip(numbers(cell, slice(first, first + width)), whole, strict=True):
            np.testing.assert_array_equal(values, among[first : first + width])


@pytest.mark.quick
@pytest.mark.slow
@both_engines
def test_a_sweep_grows_and_is_sharded_along_what_changes(engine, path):
    base = {"rule": "perceptron", "N": 12, "t": [0, 1], "engine": engine, "schedule": {"t0": 2}}
    small = Scenario(**base, drift=[0, 0.5], decay=[0.1], seeds=3)
    large = Scenario(**base, drift=[0, 0.5, 1], decay=[0.1, 0], seeds=5)
    for scenario in (small, large):
        for shard in (2, 1):
            outcome = run_into(path, scenario, shard=(shard, 2))
            assert outcome.missing == outcome.failed == 0
    assert_same_bits(path, large)


@pytest.mark.quick
@pytest.mark.slow
@both_engines
def test_values_of_drift_decay_and_schedule_are_data(engine):
    from test_simulate_engines import compilations

    base = {"rule": "perceptron", "K": 2, "N": 30, "t": [0.5, 1], "seeds": 2, "engine": engine}
    for program in (gram_engine._simulate_all_seeds, weight_vector_engine._simulate_all_seeds):
        program.clear_cache()
    first = compilations(lambda: simulate.run(Scenario(**base, drift=0.1)))
    assert first > 0
    other = {"drift": [0.2, 3], "decay": [0, 1.5], "schedule": [{"t0": 1}, {"t0": 5}]}
    assert compilations(lambda: simulate.run(Scenario(**base, **other))) == 0


@pytest.mark.quick
@pytest.mark.slow
def test_small_rates_keep_their_digits_at_any_size():
    """A thousand steps at N = 10^12, where 1 - w/N has four digits in float64; the changes since the start."""
    scenario = Scenario(
        rule="perceptron", K=2, N=10**12, t=[1e-9, 2e-9], seeds=64, start={"R": 0.5, "q": 0.3}, drift=30, decay=20
    )
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    for name in ("R", "length"):
        moved, expected = (sim[name] - sim[name].isel(t=0) for sim in (simulation, solution))
        moved = moved.isel(t=1).mean("student")
        error = moved.std("seed", ddof=1) / 8
        assert abs(moved.mean("seed") - expected.isel(t=1, student=0)) < 4.5 * error + 1e-15
        assert abs(expected.isel(t=1, student=0)) > 100 * error


@pytest.mark.quick
@pytest.mark.slow
def test_single_precision_agrees_with_double_for_the_same_random_numbers():
    """N = 100,000: 1 - w/N, rounded to float32, would lose 2.5 % less, and lengths gain 0.3 % by t = 1."""
    given = {"rule": "perceptron", "N": 100_000, "t": [1], "seeds": 8, "decay": 0.11, "drift": 0.2}
    assert abs(1 - np.float32(1 - 1.1e-6)) < 0.976 * 1.1e-6
    single, double = (simulate.run(Scenario(**given, dtype=dtype)) for dtype in ("float32", "float64"))
    for name in ("R", "length"):
        assert abs(float((single[name] - double[name]).mean())) < 3e-4


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("key", ["drift", "decay"])
def test_rates_that_single_precision_does_not_resolve_are_refused(key):
    given = {"rule": "hebb", "N": 10_000, "t": [0.001], "seeds": 2, "dtype": "float32"}
    with pytest.raises(ScenarioError, match=f"float32 does not resolve {key} = 0.005, .*; use float64"):
        simulate.run(Scenario(**given, **{key: 0.005}))
    assert np.all(simulate.run(Scenario(**given, **{key: 0.05})).length > 0)


@pytest.mark.quick
@pytest.mark.slow
def test_weight_vectors_in_single_precision_agree_with_theory():
    scenario = Scenario(rule="perceptron", N=500, t=[1, 2], seeds=32, dtype="float32", engine="vectors", **ALL)
    [cell] = scenario.cells()
    with jax.enable_x64(True):
        assert (
            weight_vector_engine.run(
                perceptrons.make_perceptron_task(cell, "float32"), make_key_data(0), np.array([3])
            ).parallel.dtype
            == jnp.float32
        )
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


REFUSED = [
    ({"annealing": "exponential"}, "a learning rate without `schedule: {t0: time}` does not fall"),
    ({"drift": 11}, "drift = 11 is too large for N = 10: 1 - drift/N would be negative"),
    ({"decay": [0, 10.5]}, "decay = 10.5 is too large for N = 10: 1 - decay/N would be negative"),
    ({"drift": -0.1}, "drift: must be at least 0, not -0.1"),
    ({"decay": [0.1, -2]}, r"decay\[1\]: must be at least 0, not -2"),
    ({"drift": [0.1, "fast"]}, r'drift\[1\]: must be a number, not "fast"'),
    ({"drift": float("nan")}, "drift: must be a finite number, not NaN"),
    ({"decay": True}, "decay: must be a number, not true"),
    ({"schedule": {"t0": 0}}, "schedule: must be greater than 0, not 0"),
    ({"schedule": [{"t0": 1}, {"t0": -2}]}, r"schedule\[1\]: must be greater than 0, not -2"),
    ({"schedule": {"t0": "late"}}, 'schedule: must be a number, not "late"'),
    ({"schedule": {"t0": float("nan")}}, "schedule: must be a finite number, not NaN"),
    ({"schedule": {"t1": 5}}, r"must be written schedule: \{t0: 5\}, for a learning rate of eta / \(1 \+ t/t0\)"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_rates_without_meaning_are_refused(given, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        Scenario(rule="hebb", N=10, t=[1], **given)


@pytest.mark.parametrize("command", ["run", "theory"])
@pytest.mark.parametrize("given", [given for given, _ in REFUSED])
def test_the_command_refuses_them_in_a_line_with_code_2_and_writes_nothing(command, given, in_scratch, capsys):
    text = "rule: hebb\nN: 10\nt: [1]\n" + yaml.safe_dump(given)
    (in_scratch / "moving.yaml").write_text(text)
    assert statmech(command, "moving.yaml") == 2
    [key] = given
    [line] = capsys.readouterr().err.splitlines()
    assert re.match(rf"moving\.yaml:\d+: {key}", line)
    assert [path.name for path in in_scratch.iterdir()] == ["moving.yaml"]
