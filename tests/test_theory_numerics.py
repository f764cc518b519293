"""Integrators converge at their order, control their steps, and panels integrate what is known in closed form.

Each claim has a planted error that breaks it: a changed coefficient, an error estimate of 0, a missing edge.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import DOP853
from scipy.optimize.elementwise import find_root
from scipy.special import log_ndtr, ndtr

from statmech import Scenario
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, make_clipped_composite_rule, normal_density
from statmech.numerics.root_finding import find_zeros
from theory.numerics import batch_integration, stiff_and_linear_equations
from theory.online import order_parameter_equations, student_fluctuations
from theory.stored_examples import field_samples

LAST = 3.0  # of time
STEPS = np.array([6, 8, 10, 12, 16])


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def solution(t):
    return np.exp(np.sin(t))


def field(y):
    """x' = x cos(t), t' = 1."""
    return jnp.stack([y[0] * jnp.cos(y[1]), jnp.ones_like(y[1])])


@jax.jit
def stepped(constants, state, times):
    return batch_integration._attempt_step(constants, field, state, times, jnp.inf)


@jax.jit
def recorded(constants, state, step, times):
    return batch_integration._record_values(constants, state, step, jnp.array([True]), times)


def beginning(t, h):
    """The state of the solution at time t, before a step of size h, and one recorded time in the step."""
    state = batch_integration.IntegrationState(
        attempts=jnp.zeros((), int),
        t=jnp.array([t]),
        h=jnp.array([h]),
        y=jnp.array([[solution(t)], [t]]),
        stages=jnp.zeros((batch_integration.NUM_ALL_STAGES, 2, 1)),
        recorded_values=jnp.zeros((batch_integration.TIMES_PER_BLOCK, 2, 1)),
    )
    times = np.full(batch_integration.TIMES_PER_BLOCK, np.inf)
    times[0] = t + 0.4 * h
    return state, times


def order(steps, errors):
    """The exponent p of errors that are proportional to steps^-p, by regression."""
    return -np.polyfit(np.log(steps), np.log(errors), 1)[0]


def errors_of_solutions(constants):
    """Errors at the last time after equal steps."""
    found = []
    for number in STEPS:
        h, y = LAST / number, jnp.array([[1.0], [0.0]])
        for k in range(number):
            state, times = beginning(k * h, h)
            y = stepped(constants, state._replace(y=y), times).y
        found.append(abs(float(y[0, 0]) - solution(LAST)))
    return found


def errors_between(constants):
    """Errors of the polynomial inside of one step from t = 0.3."""
    found = []
    for number in STEPS:
        state, times = beginning(0.3, LAST / number)
        values = recorded(constants, state, stepped(constants, state, times), times)
        found.append(abs(float(values[0, 0, 0]) - solution(times[0])))
    return found


def test_the_coefficients_are_those_of_scipy():
    a, fifth, third, polynomial = batch_integration.read_tableau()
    np.testing.assert_array_equal(a[:12, :12], DOP853.A)
    np.testing.assert_array_equal(a[12], [*DOP853.B, 0, 0, 0, 0])
    np.testing.assert_array_equal(a[13:], DOP853.A_EXTRA)
    np.testing.assert_array_equal([fifth[:13], third[:13]], [DOP853.E5, DOP853.E3])
    np.testing.assert_array_equal(polynomial, DOP853.D)


@pytest.mark.parametrize("errors", [errors_of_solutions, errors_between])
def test_the_method_of_dormand_and_prince_has_order_eight(errors):
    """Also the polynomial between steps, of degree 7, whose error in one step is of order 8."""
    constants = batch_integration.read_tableau()
    assert order(STEPS, errors(constants)) == pytest.approx(8, abs=0.6)


def test_with_another_coefficient_the_order_is_lost():
    right = batch_integration.read_tableau()
    a, polynomial = right.a.copy(), right.polynomial.copy()
    a[8, 4] += 1e-4
    polynomial[1, 6] += 1e-3
    assert order(STEPS, errors_of_solutions(right._replace(a=a))) < 5
    assert order(STEPS, errors_between(right._replace(polynomial=polynomial))) < 5


def integrator():
    """A program of two lanes and up to 128 recorded times."""
    return jax.jit(partial(batch_integration.integrate, field, max_attempts=10_000))


compiled = integrator()


def largest_error(integrate, rtol):
    times = batch_integration.pad_times(np.linspace(0.1, 10, 37))
    start, atol = jnp.array([[1.0, 1.0], [0.0, 0.0]]), jnp.full((2, 1), 1e-300)
    found, completed = integrate(start, times, rtol, atol)
    assert completed.all()
    known = np.isfinite(times)
    return np.max(abs(np.asarray(found)[known, 0, 0] / solution(times[known]) - 1))


def test_errors_follow_the_tolerance_and_do_not_without_an_estimate(monkeypatch):
    assert all(largest_error(compiled, rtol) < 10 * rtol for rtol in (1e-4, 1e-7, 1e-10))
    monkeypatch.setattr(batch_integration, "_estimate_error", lambda constants, y, *others: jnp.zeros(y.shape[1]))
    assert largest_error(integrator(), 1e-10) > 1e-6


@pytest.mark.quick
def test_a_first_step_outside_the_domain_of_the_field_is_repeated_with_a_smaller_one():
    """The field is not a number at negative values, which the first step reaches."""
    steep = jax.jit(partial(batch_integration.integrate, lambda y: -1000 * y * jnp.sqrt(y), max_attempts=1000))
    found, completed = steep(
        jnp.ones((1, 1)), batch_integration.pad_times(np.array([1.0])), 1e-9, jnp.full((1, 1), 1e-12)
    )
    assert completed.all()
    np.testing.assert_allclose(found[0, 0, 0], 501.0**-2, rtol=1e-8)


def test_a_lane_takes_the_same_steps_whatever_its_neighbours():
    times, atol = np.append([0.5, 2.0], np.full(126, np.inf)), jnp.full((2, 1), 1e-12)
    start = jnp.array([[1.0, 3.0], [0.0, 40.0]])
    one, other = (compiled(lanes, times, 1e-9, atol)[0][:2] for lanes in (start, start[:, [0, 0]]))
    assert not np.allclose(one[..., 1], other[..., 1])
    np.testing.assert_allclose(one[..., 0], other[..., 0], rtol=1e-14)


def known(t):
    """x' = x cos(t) + exp(sin(t)) from x = 1."""
    return (1 + t) * solution(t)


def linear(t):
    return np.cos(t)[:, None, None], solution(t)[:, None]


def collocated(number):
    """The error at the last time after a number of equal panels."""
    edges = np.linspace(0, LAST, number + 1)
    values, _ = stiff_and_linear_equations._propagate_through_panels(
        np.ones(1), np.diff(edges), stiff_and_linear_equations._solve_panel_slopes(linear, [*pairwise(edges)])
    )
    return abs(values[-1, 0] - known(LAST))


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_collocation_at_gauss_nodes_has_twice_their_order(nodes, monkeypatch):
    numbers, to = np.array([12, 16, 24, 32]), stiff_and_linear_equations._make_integration_weights
    monkeypatch.setattr(stiff_and_linear_equations, "NODES", nodes)
    assert order(numbers, [*map(collocated, numbers)]) == pytest.approx(2 * nodes, abs=0.4)
    monkeypatch.setattr(
        stiff_and_linear_equations, "_make_integration_weights", lambda s: to(s) * (1 + 1e-3 * np.arange(nodes))
    )
    assert order(numbers, [*map(collocated, numbers)]) < 2 * nodes - 1


def test_panels_are_halved_where_coefficients_change_fast(monkeypatch):
    """x' = x/(w (1 + ((t - 1)/w)^2)) with w = 0.02, whose logarithm is an arc tangent."""
    width, times = 0.02, np.array([0.5, 0.97, 1.0, 1.01, 3.0])

    def error():
        found = stiff_and_linear_equations.solve_linear_odes(steep, np.ones(1), times, np.ones_like)[:, 0]
        return np.max(abs(found / np.exp(np.arctan((times - 1) / width) + np.arctan(1 / width)) - 1))

    def steep(t):
        return (1 / (width * (1 + ((t - 1) / width) ** 2)))[:, None, None], np.zeros((t.size, 1))

    assert error() < 1e-6
    monkeypatch.setattr(stiff_and_linear_equations, "_find_rough_panels", lambda h, *others: np.zeros(h.size, bool))
    assert error() > 1e-3


@pytest.mark.parametrize("kink", [-2.5, 0.0, 0.7, 4.0])
def test_panels_integrate_a_jump_at_their_edge(kink):
    def above(edges):
        x, weight = make_clipped_composite_rule(np.array([-GAUSSIAN_CUTOFF, *edges, GAUSSIAN_CUTOFF]))
        return np.sum(weight * normal_density(x) * (x > kink))

    assert above([kink]) == pytest.approx(ndtr(-kink), rel=1e-12)
    assert kink == 0 or abs(above([kink + 0.1]) - ndtr(-kink)) > 1e-5 * normal_density(kink)


def test_the_integral_panel_by_panel_is_that_of_the_line():
    """Moments of a normal number above an edge; edges that coincide or lie outside do not count."""

    def second(edge, cut):
        terms = lambda x: normal_density(x) * x**2 * (x > edge)  # noqa: E731
        return float(
            order_parameter_equations._integrate_panels(
                terms, jnp.array([-GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF, cut, cut, 20.0]), 32
            )
        )

    for edge in (-1.0, 0.5):
        assert second(edge, edge) == pytest.approx(ndtr(-edge) + edge * normal_density(edge), rel=1e-13)
        assert second(edge, edge + 0.1) != pytest.approx(ndtr(-edge) + edge * normal_density(edge), rel=1e-5)


@jax.jit
def moments(angle, flip):
    """Means of powers 0 to 2 of the stability: on panels, by the nodes of a linear rule, and by too few."""
    edges = [jnp.zeros(()), jnp.minimum(8.5 * abs(jnp.tan(angle)), GAUSSIAN_CUTOFF), jnp.asarray(GAUSSIAN_CUTOFF)]
    found = (
        student_fluctuations.make_stability_nodes(edges, angle, flip),
        student_fluctuations.make_linear_rule_nodes(angle, flip),
        student_fluctuations.make_stability_nodes(edges, angle, flip, nodes=3),
    )
    return [
        [jnp.sum(weight * x**n * (right + (-1) ** n * left)) for n in range(3)] for x, weight, right, left, _ in found
    ]


@pytest.mark.parametrize("theta", [1e-6, 0.3, 1.5, 3.0])
@pytest.mark.parametrize("flip", [0.0, 0.2])
def test_the_stability_has_its_known_moments(theta, flip):
    """1 and 1 of even powers, and of kappa itself (1 - 2 flip) sqrt(2/pi) cos(theta); fewer nodes miss them."""
    expected = [1, (1 - 2 * flip) * np.sqrt(2 / np.pi) * np.cos(theta), 1]
    many, linear, few = np.array(moments(theta, flip))
    assert many == pytest.approx(expected, rel=1e-10)
    assert linear == pytest.approx(expected, rel=1e-8)
    assert few != pytest.approx(expected, rel=1e-3)


def test_the_table_of_sobols_net_is_scipys():
    """Its last columns have the largest degree; a wrong digit in any initial number would change them."""
    few = field_samples.get_sobol_generators(field_samples.NUM_STORED_SOBOL_COLUMNS)
    assert (few == field_samples._read_scipy_generators(field_samples.NUM_STORED_SOBOL_COLUMNS)).all()
    assert (
        few
        == field_samples.get_sobol_generators(2 * field_samples.NUM_STORED_SOBOL_COLUMNS)[
            :, : field_samples.NUM_STORED_SOBOL_COLUMNS
        ]
    ).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, c: x**3 - c,
        lambda x, c: log_ndtr(x) + c,
        lambda x, c: np.sign(x - c),
        lambda x, c: np.tanh(1e8 * (x - c)),
        lambda x, c: np.where(x > c, np.nan, x - c),
    ],
    ids=["cubic", "tail", "jump", "steep", "not a number"],
)
def test_zeros_are_those_of_scipy_bit_for_bit(function):
    """A tenth of the brackets have no zero; a middle in place of a parabola, or a looser end, changes last digits."""
    rng = np.random.default_rng(0)
    low, high, c = -rng.uniform(0, 9, 200), rng.uniform(0, 9, 200), rng.exponential(1, 200)
    own = find_zeros(function, low, high, (c,))
    with np.errstate(all="ignore"):
        scipys = find_root(function, (low, high), args=(c,))
    np.testing.assert_array_equal(own.success, scipys.success)
    np.testing.assert_array_equal(own.x, np.where(scipys.success, scipys.x, np.nan))


def first_of(count):
    """The bytes of the students of three combinations among so many that are integrated side by side."""
    eta = [0.5, 1, 2, 0.1, 4, 0.3, 3, 5][:count]
    cells = list(Scenario(rule="adatron", t=[1, 2], eta=eta, flip=0.1).cells())
    return [
        part.tobytes() for students in order_parameter_equations.solve_cells(cells, [1, 2])[:3] for part in students
    ]


@pytest.mark.slow
def test_combinations_and_times_that_fill_up_a_program_do_not_change_a_bit(monkeypatch):
    three = first_of(3)
    assert first_of(8) == three
    monkeypatch.setattr(
        order_parameter_equations, "pad_times", lambda t, values: np.pad(t, (0, 30), constant_values=np.inf)
    )
    assert first_of(3) == three


@pytest.mark.slow
def test_combinations_that_share_a_step_size_differ_from_those_that_do_not(monkeypatch):
    """The planted error of the test before: neighbours then count."""
    monkeypatch.setenv("STATMECH_CACHE", "off")
    error = batch_integration._estimate_error
    monkeypatch.setattr(batch_integration, "_estimate_error", lambda *given: jnp.full(8, jnp.max(error(*given))))
    order_parameter_equations.solve_batch.clear_cache()
    assert first_of(3) != first_of(8)
    order_parameter_equations.solve_batch.clear_cache()
