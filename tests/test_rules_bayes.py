"""The optimal rule: what is known of it, and that no other rule learns faster."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import disagreements
from scipy.integrate import quad
from scipy.special import erfcx, ndtr

import simulate
import theory
from statmech import RULES, Scenario, ScenarioError
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, normal_density, reversed_hazard
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.students.rules import AdaTronTextbook, Bayes, Hebb
from theory.online.order_parameter_equations import StudentPair, integrate_pair_average, integrate_rule_averages

START = {"length": 0.2, "R": 0.2}


def errors(rule="bayes", **given):
    """The eps_g of one student, along the axes of the sweep and the recorded times."""
    return theory.solve(Scenario(rule=rule, **{"start": START, **given})).eps_g.isel(student=0).values


def late(assumed_flip):
    """lim eps_g t: sqrt(2/pi) over the integral of (1 - 2p)^2 phi^2 / (p + (1-2p) Phi), see `Bayes`."""
    right = 1 - 2 * assumed_flip
    information = quad(
        lambda x: right**2 * normal_density(x) ** 2 / (assumed_flip + right * ndtr(x)),
        -GAUSSIAN_CUTOFF,
        GAUSSIAN_CUTOFF,
        epsabs=1e-14,
    )[0]
    return np.sqrt(2 / np.pi) / information


@pytest.mark.quick
@pytest.mark.slow
def test_the_error_takes_its_known_values():
    np.testing.assert_allclose(errors(t=[1, 5, 20]), [0.265338610, 0.118557846, 0.039272267], atol=5e-10)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(("assumed_flip", "constant"), [(0.0, 0.8834000872), (0.1, 1.8336355993)])
def test_the_error_falls_as_the_inverse_time(assumed_flip, constant):
    """To relative 1/t: at t = 1e6, eps_g = 1e-6, the panels still resolve a g that bends within 1e-6 of kappa = 0."""
    assert abs(late(assumed_flip) / constant - 1) < 1e-10
    t = np.array([1e5, 1e6])
    deviation = errors(t=t, flip=assumed_flip, assumed_flip=assumed_flip) * t / constant - 1
    assert abs(deviation[1]) < 1e-5
    assert abs(deviation[0] / deviation[1] - 10) < 0.2


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_the_length_of_a_posterior_mean_is_its_overlap(flip):
    kept = theory.solve(Scenario(rule="bayes", t=[0.1, 1, 10, 1e4], flip=flip, assumed_flip=flip, start=START))
    np.testing.assert_allclose(kept.length, kept.R, atol=1e-9)
    other = theory.solve(Scenario(rule="bayes", t=[0, 5, 20, 1000], start={"length": 0.5, "R": 0.1}))
    away = abs(np.arccos(other.length) / np.arccos(other.R) - 1).values[:, 0]
    assert np.all(np.diff(away) < 0)
    assert away[-1] < 1e-3


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"flip": 0.1, "assumed_flip": 0.1}, {"drift": 0.1, "decay": 0.1}])
def test_no_other_rule_is_ever_ahead(given):
    """Kinouchi & Caticha: from the same start every other rule, rate, margin or decay errs more at any time."""
    t = np.geomspace(0.05, 200, 12)
    best = errors(t=t, **given)
    others = {name: value for name, value in given.items() if name != "assumed_flip"}
    for rule in set(RULES) - {"bayes"}:
        assert np.all(errors(rule, t=t, eta=[0.3, 1, 1.5], **others) > best), rule
    assert np.all(errors("perceptron", t=t, margin=0.5, **others) > best)
    assert np.all(errors(t=t, eta=[0.8, 1.2], **given) > best)
    assert np.all(errors(t=t, **given | {"assumed_flip": given.get("assumed_flip", 0) + 0.05}) > best)


@pytest.mark.quick
@pytest.mark.slow
def test_a_run_agrees_with_theory():
    scenario = Scenario(rule="bayes", N=1000, t=[1, 5, 20], flip=[0, 0.1], assumed_flip=0.1, seeds=64, start=START)
    solution = theory.solve(scenario)
    run = simulate.run(scenario)
    assert disagreements(run, solution) == []
    assert disagreements(run, solution.assign(eps_g=solution.eps_g * 1.05)) != []  # the tolerance is below 5 %


@pytest.mark.quick
@pytest.mark.slow
def test_at_t_1_and_20_no_other_rule_is_ahead():
    """The cheap part of the test above."""
    assert np.all(errors([name for name in RULES if name != "bayes"], t=[1, 20]) > errors(t=[1, 20]))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["gram", "vectors"])
def test_a_run_of_few_dimensions_stays_finite(engine):
    """At N = 2 lengths exceed 1, where g is that of the textbook AdaTron, which shortens the student."""
    for assumed_flip in (0.0, 0.1):
        run = simulate.run(
            Scenario(rule="bayes", N=2, t=[1, 5, 50], seeds=256, assumed_flip=assumed_flip, engine=engine, start=START)
        )
        assert np.isfinite(run.length).all()
        assert run.length.max() < 10
        assert (run.length > 1).any()
        assert (run.R.isel(t=-1).mean() > 0.9) or assumed_flip > 0


def test_beyond_length_1_the_rule_is_the_textbook_adatron():
    kappa = np.linspace(-5, 5, 11)
    for length in (1.0, 1.5, 1e3):
        textbook = AdaTronTextbook().g(kappa, length)
        np.testing.assert_allclose(Bayes().g(kappa, length), textbook, atol=1e-14)
        np.testing.assert_allclose(Bayes(assumed_flip=0.2).g(kappa, length), 0.0, atol=1e-14)
    np.testing.assert_allclose(Bayes().g(kappa, 1 - 1e-12), AdaTronTextbook().g(kappa, 1.0), atol=1e-5)


def test_a_short_student_learns_as_hebb():
    """For l -> 0 every example has the same weight, 2 phi(0), so that a student at R = 0 starts with the best rule."""
    np.testing.assert_allclose(Bayes().g(np.linspace(-3, 3, 7), 1e-12) * np.sqrt(np.pi / 2), Hebb().g(0.0, 1.0))


def test_the_modulation_keeps_its_digits_in_the_far_tail():
    x = np.concatenate([-np.geomspace(1e12, 1e-3, 60), np.linspace(0, 8, 9)])
    exact = np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2))
    np.testing.assert_allclose(reversed_hazard(x), exact, rtol=1e-14)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(reversed_hazard)(jnp.asarray(x)), exact, rtol=1e-14)
    single = np.asarray(jax.jit(reversed_hazard)(jnp.asarray(x, jnp.float32)))
    np.testing.assert_allclose(single, exact, rtol=1e-5)


@pytest.mark.parametrize("assumed_flip", [0.0, 1e-300, 1e-9, 0.1, 0.4])
def test_the_assumed_noise_is_exact_however_small(assumed_flip):
    """The derivative of log(p + (1 - 2p) Phi) where it does not underflow."""
    kappa, length = np.linspace(-4, 4, 33), 0.9
    s = np.sqrt(1 - length**2)
    z = length * kappa / s
    direct = s * (1 - 2 * assumed_flip) * normal_density(z) / (assumed_flip + (1 - 2 * assumed_flip) * ndtr(z))
    np.testing.assert_allclose(Bayes(assumed_flip=assumed_flip).g(kappa, length), direct, rtol=1e-11, atol=1e-14)


@pytest.mark.quick
@pytest.mark.slow
def test_the_quadrature_resolves_a_student_that_is_surer_than_it_may_be():
    """More nodes change nothing: l near 1 at any angle, where g bends on a scale that no other function has."""
    kind = get_real_parameter_family(Bayes())
    single = jax.jit(
        lambda p, theta, l, nodes: integrate_rule_averages(kind(eta=1.0, assumed_flip=p), theta, l, 0.1, nodes),
        static_argnums=3,
    )
    double = jax.jit(
        lambda p, pair, nodes: integrate_pair_average(kind(eta=1.0, assumed_flip=p), pair, 0.1, nodes), static_argnums=2
    )
    states = [(1.3, 0.2), (1.0, 0.999999), (0.1, np.cos(0.1)), (1e-3, 0.9), (0.5, 1.2)]
    with jax.enable_x64(True):
        for assumed_flip, (theta, length) in product((0.0, 1e-300, 1e-9, 0.1), states):
            few, many = single(assumed_flip, theta, length, 32), single(assumed_flip, theta, length, 64)
            scale = np.maximum(np.abs(many), many.ff)  # fu may vanish
            assert np.all(np.abs(np.subtract(few, many)) <= 1e-11 * scale + 1e-25)
            pair = StudentPair((theta, 0.7 * theta), 0.4, (length, length / 2))
            np.testing.assert_allclose(
                double(assumed_flip, pair, 32), double(assumed_flip, pair, 64), rtol=1e-11, atol=1e-25
            )


@pytest.mark.parametrize("start", ["drawn", {"R": 0.2}, {"length": 1.5, "R": 0.2}, {"length": [0.2, 1], "R": 0.2}])
def test_a_start_of_length_1_or_more_is_refused_with_what_to_write(start):
    given = {"K": 2, "rule": ["hebb", "bayes"], "t": [1]}
    with pytest.raises(
        ScenarioError, match=r'"bayes" starts from students shorter than 1, .* write start: \{length: 0.2, R: 0.2\}'
    ):
        Scenario(**given, start=start)
    assert Scenario(**given, start=START).start.length == 0.2


def test_a_user_s_rule_may_bound_its_start_too(monkeypatch):
    monkeypatch.setitem(RULES, "short", type("Short", (Hebb,), {"label": "short", "longest_start": 0.5}))
    with pytest.raises(ScenarioError, match=r"shorter than 0.5, not 0.7: write start: \{length: 0.1, R: 0.2\}"):
        Scenario(rule="short", t=[1], start={"length": 0.7})
    Scenario(rule="short", t=[1], start={"length": 0.1, "R": 0.2})
