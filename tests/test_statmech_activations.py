"""Averages of activations equal quadrature, also of degenerate fields, and the error from them keeps its digits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from statmech import ACTIVATIONS, Activation
from statmech.numerics import orthants
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, get_array_module, make_panel_rules
from statmech.numerics.orthants import orthant_probability_2, orthant_probability_3, orthant_probability_4
from statmech.students import network_error as errors
from statmech.students.activations import Erf, LatticeAverages, Linear, Relu, ensure_gaussian_averages
from statmech.students.network_error import (
    TeacherNetwork,
    generalization_error,
    generalization_error_from_coordinates,
    label_error,
    measured_error,
)

NODES = 56  # of a panel of the reference
FIELDS = {"I2": "gg", "I3": "dxg", "I4": "ddgg", "J2": "dd", "S2": "gs", "S3": "dxs", "S4": "ddgs"}
without_relu = pytest.mark.parametrize(  # whose averages take seconds to compile
    "name", [pytest.param(it, marks=pytest.mark.slow) if it == "relu" else it for it in ACTIVATIONS]
)
GENERIC = np.array([[1.0, 0.3, 0.5, -0.2], [0.3, 0.8, 0.1, 0.25], [0.5, 0.1, 1.5, 0.4], [-0.2, 0.25, 0.4, 0.6]])
OTHER = np.array([[0.5, -0.2, 0.3, 0.1], [-0.2, 1.2, -0.4, 0.5], [0.3, -0.4, 0.9, -0.3], [0.1, 0.5, -0.3, 1.1]])


def factor(activation, letter, x):
    """A factor of an average: g, its derivative d, the field x, its sign s, or 1."""
    g, derivative = activation.both(x)
    return {"g": g, "d": derivative, "x": x, "s": np.sign(x), "1": np.ones_like(x)}[letter]


def reference(activation, letters, C):
    """The average over four fields by quadrature cut at 0, as matrix products: the density is a product over pairs."""
    full = np.eye(4)
    full[: len(letters), : len(letters)] = C[: len(letters), : len(letters)]
    inverse = np.linalg.inv(full)
    reach = GAUSSIAN_CUTOFF * np.sqrt(np.diag(full))
    x, weight = zip(*[make_panel_rules(np.array([-end, 0.0, end]), NODES) for end in reach], strict=True)
    x, weight = [part.ravel() for part in x], [part.ravel() for part in weight]
    values = [
        weight[i] * factor(activation, letter, x[i]) * np.exp(-inverse[i, i] * x[i] ** 2 / 2)
        for i, letter in enumerate(letters.ljust(4, "1"))
    ]
    pair = {(i, j): np.exp(-inverse[i, j] * np.outer(x[i], x[j])) for i, j in itertools.combinations(range(4), 2)}
    total = 0.0
    for n, first in enumerate(values[0]):
        b, c, d = (values[j] * pair[0, j][n] for j in (1, 2, 3))
        total += first * np.einsum("j,k,jk,jk", b, c, pair[1, 2], (pair[1, 3] * d) @ pair[2, 3].T)
    return total / np.sqrt(np.linalg.det(2 * np.pi * full))


def closed(activation, name, C):
    n = len(FIELDS[name])
    return getattr(activation, name)(C[:n, :n])


@pytest.mark.parametrize("average", FIELDS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_closed_forms_equal_quadrature(name, average):
    activation = ACTIVATIONS[name]()
    assert activation.has_closed_forms
    for C in (GENERIC, OTHER):
        assert closed(activation, average, C) == pytest.approx(reference(activation, FIELDS[average], C), abs=3e-14)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_closed_forms_equal_means_over_fields(name):
    activation, n = ACTIVATIONS[name](), 40_000
    x = np.linalg.cholesky(GENERIC) @ np.random.default_rng(1).standard_normal((4, n))
    for average, letters in FIELDS.items():
        values = np.prod([factor(activation, letter, x[i]) for i, letter in enumerate(letters)], axis=0)
        expected, tolerance = closed(activation, average, GENERIC), 4 * values.std() / np.sqrt(n) + 1e-12
        assert abs(values.mean() - expected) < tolerance
        assert abs(values.mean() - (expected + 2.1 * tolerance)) > tolerance  # the planted error


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_average_at_a_given_mean_and_the_slope_of_j2_equal_differences_and_quadrature(name):
    activation, C, E = ACTIVATIONS[name](), GENERIC[:2, :2], OTHER[:2, :2]
    ahead, behind = (activation.J2(C + change * E) for change in (1e-5, -1e-5))
    assert activation.J2_along(C, E) == pytest.approx((ahead - behind) / 2e-5, abs=1e-9)
    mean, variance = np.array([-1.0, 0.4]), np.array([0.7, 2.0])
    x, weight = make_panel_rules(np.array([mean - 20, 0 * mean, mean + 20]), 100)
    density = np.exp(-((x - mean[:, None]) ** 2) / 2 / variance[:, None]) / np.sqrt(2 * np.pi * variance[:, None])
    expected = (weight * density * activation.both(x)[0]).sum((0, -1))
    assert activation.given(mean, variance) == pytest.approx(expected, abs=1e-13)
    assert activation.given(mean, 0 * mean) == pytest.approx(activation.both(mean)[0], abs=1e-15)


def degenerate():
    """Fields of two students that are their teacher units, or opposite to them, twice as long, in a plane, or 0."""
    signs = [(1, 1, 1, 1), (-1, 1, 1, 1), (1, 1, -2, 1), (0, 1, 1, 1), (1, 1, 1, 0)]
    units = [at for at in itertools.product(range(2), repeat=4)]
    for at, sign in itertools.product(units, signs):
        yield at, np.array(sign, dtype=float), (GENERIC[:2, :2][np.ix_(at, at)] * np.outer(sign, sign))


def of_two(activation, letters, at, sign):
    """The average where four fields are multiples of two: over the plane, cut along both axes."""
    edges = [np.array([-end, 0.0, end]) for end in GAUSSIAN_CUTOFF * np.sqrt(np.diag(GENERIC)[:2])]
    (x, wx), (y, wy) = (map(np.ravel, make_panel_rules(edge, NODES)) for edge in edges)
    fields, inverse = (x[:, None] + 0 * y, y + 0 * x[:, None]), np.linalg.inv(GENERIC[:2, :2])
    exponent = sum(inverse[i, j] * fields[i] * fields[j] for i in range(2) for j in range(2)) / 2
    values = np.prod([factor(activation, letter, sign[i] * fields[at[i]]) for i, letter in enumerate(letters)], axis=0)
    return wx @ (values * np.exp(-exponent)) @ wy / np.sqrt(np.linalg.det(2 * np.pi * GENERIC[:2, :2]))


@pytest.mark.parametrize("average", ["I4", "S4"])
def test_relu_of_fields_that_coincide_are_opposite_or_vanish(average):
    cases = list(degenerate())
    C = np.stack([case[2] for case in cases], axis=-1)
    expected = [of_two(Relu(), FIELDS[average], at, sign) for at, sign, _ in cases]
    assert getattr(Relu(), average)(C) == pytest.approx(np.array(expected), abs=1e-14)


@without_relu
def test_averages_in_jax_equal_those_in_numpy_and_are_never_nan(name):
    activation = ACTIVATIONS[name]()
    C = np.stack([GENERIC, OTHER, *(case for _, sign, case in degenerate() if sign[3] != 0)], axis=-1)

    def all_averages(C):
        return [closed(activation, average, C) for average in FIELDS]

    with jax.enable_x64():
        compiled = jax.jit(all_averages)(C)
    for mine, theirs in zip(all_averages(C), compiled, strict=True):
        assert np.isfinite(mine).all()
        assert np.asarray(theirs) == pytest.approx(mine, abs=1e-13)


@pytest.mark.quick
@without_relu
def test_averages_have_derivatives(name):
    """Of erf and linear also where students are their teacher units."""
    activation = ACTIVATIONS[name]()
    at = np.array([0, 1, 0, 1])
    for C in (GENERIC, GENERIC[np.ix_(at, at)])[: 1 if name == "relu" else 2]:
        with jax.enable_x64():
            _, slope = jax.jit(lambda C: jax.jvp(activation.I4, (C,), (OTHER,)))(C)
        ahead, behind = (activation.I4(C + change * OTHER) for change in (1e-6, -1e-6))
        assert float(slope) == pytest.approx((ahead - behind) / 2e-6, abs=1e-8)


def vectors(seed, rank, scale=1.0, lanes=50):
    """Covariances (4, 4, lanes) of a rank; the last two fields are the first two but for differences of this size."""
    first, rest = np.random.default_rng(seed).standard_normal((2, 4, rank, lanes))
    if scale < 1:
        first[2:] = first[:2] + scale * rest[2:]
    return np.einsum("iax,jax->ijx", first, first)


def test_orthants_of_known_correlations():
    equal = lambda n, r: (1 - r) * np.eye(n) + r  # noqa: E731
    for n, probability in ((2, orthant_probability_2), (3, orthant_probability_3), (4, orthant_probability_4)):
        assert probability(equal(n, 0.0)) == pytest.approx(2.0**-n, abs=1e-15)
        assert probability(equal(n, 0.5)) == pytest.approx(1 / (n + 1), abs=2e-15)
        assert probability(equal(n, 1.0)) == pytest.approx(0.5, abs=2e-15)
    pairs = np.kron(np.eye(2), equal(2, -0.7))
    assert orthant_probability_4(pairs) == pytest.approx(orthant_probability_2(equal(2, -0.7)) ** 2, abs=1e-15)
    cdf = multivariate_normal.cdf(np.zeros(4), cov=GENERIC, abseps=1e-6, releps=1e-6, rng=np.random.default_rng(0))
    assert orthant_probability_4(GENERIC) == pytest.approx(cdf, abs=1e-5)


@pytest.mark.parametrize(("rank", "scale", "error"), [(4, 1, 2e-14), (3, 1, 1e-12), (4, 0.1, 1e-12)])
def test_the_orthants_of_a_field_and_its_opposite_add_up(rank, scale, error):
    C, flip = vectors(0, rank, scale), np.diag([1.0, 1.0, 1.0, -1.0])
    total = orthant_probability_4(C) + orthant_probability_4(np.einsum("ij,jkx,kl->ilx", flip, C, flip))
    assert total == pytest.approx(orthant_probability_3(C[:3, :3]), abs=error)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_orthants_do_not_depend_on_the_order_of_fields(order):
    for scale, error in ((1, 2e-14), (0.1, 2e-12), (1e-8, 1e-7)):
        C = vectors(1, 4, scale)
        assert orthant_probability_4(C[np.ix_(order, order)]) == pytest.approx(orthant_probability_4(C), abs=error)


@pytest.mark.parametrize(("scale", "error"), [(1, 4e-14), (0.1, 4e-14), (1e-2, 4e-14), (1e-4, 1e-13), (1e-6, 1e-7)])
def test_more_nodes_of_the_line_integral_change_no_orthant(scale, error, monkeypatch):
    C = vectors(3, 4, scale, lanes=100)
    probability = orthant_probability_4(C)
    monkeypatch.setattr(orthants, "NODES", 400)
    assert orthant_probability_4(C) == pytest.approx(probability, abs=error)


def test_the_error_of_the_symmetric_plateau():
    """K = M = 2 and a small learning rate: R = 1/sqrt 6, Q = 1/3 (Saad & Solla 1995)."""
    R, Q = np.full((2, 2), 6**-0.5), np.full((2, 2), 1 / 3)
    expected = 2 / np.pi * (np.pi / 6 - 2 * np.arcsin(1 / 4))
    assert generalization_error(Erf(), np.eye(2), np.ones(2), R, Q, np.ones(2)) == pytest.approx(expected, abs=1e-15)


# lim eps_g / change^2 of one unit, T = w = v = 1: <g'^2>/2 across, <g'^2 y^2>/2 along, <g^2>/2 of the output weight
LIMITS = {
    "erf": (1 / np.pi / 3**0.5, 1 / np.pi / 3**1.5, 1 / 6),
    "relu": (1 / 4, 1 / 4, 1 / 4),
    "linear": (1 / 2, 1 / 2, 1 / 2),
}


@pytest.mark.parametrize("change", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_error_of_coordinates_keeps_its_digits(name, change):
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    cases = [(one, one * change**2, np.ones(1)), (one + change, zero, np.ones(1)), (one, zero, np.ones(1) + change)]
    for (along, across, v), limit in zip(cases, LIMITS[name], strict=True):
        actual = (along[0, 0] - 1) ** 2 + across[0, 0] + (v[0] - 1) ** 2  # 1 + 1e-12 rounds
        error = generalization_error_from_coordinates(ACTIVATIONS[name](), one, np.ones(1), along, across, v)
        assert error / actual == pytest.approx(limit, rel=1e-12 + 2 * change)


def students(K, scale, seed=0, lanes=20):
    """Students near two correlated teacher units: the third with the first, or far from both with a small weight."""
    draw = np.random.default_rng(seed).standard_normal
    rows, w = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([1.0, -0.7])
    along, v = rows[[0, 1, 0, 0]][:K] + scale * draw((lanes, K, 2)), np.array([1.0, -0.7, 0.0, 0.0])[:K]
    across = scale * draw((lanes, K, 3))
    if K == 3:
        v = np.array([0.4, -0.7, 0.6])
    if K == 4:
        along[:, 2:], across[:, 2:] = draw((lanes, 2, 2)), draw((lanes, 2, 3))
    return rows, w, along, across @ across.swapaxes(1, 2), v + scale * draw((lanes, K))


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_the_two_forms_of_the_error_agree_where_both_are_accurate(name, K, monkeypatch):
    both = []
    for near in (0.0, np.inf):
        monkeypatch.setattr(errors, "MAX_CANCELLING_ERROR", near)
        both.append(generalization_error_from_coordinates(ACTIVATIONS[name](), *students(K, 1e-2)))
    assert both[1] == pytest.approx(both[0], rel=1e-9)
    assert abs(both[1] / both[0] - 1).max() > 1e-15  # they are two forms


def test_linear_units_need_not_be_those_of_the_teacher():
    rows, w, along, across, v = students(3, 0.3)
    expected = generalization_error(
        Linear(), rows @ rows.T, w, along @ rows.T, along @ along.swapaxes(1, 2) + across, v
    )
    assert generalization_error_from_coordinates(Linear(), rows, w, along, across, v) == pytest.approx(
        expected, rel=1e-12
    )
    along, v = np.array([[[3.0, 1.0], [1 - 3.0, 1e-12 - 1.0]]]), np.ones((1, 2))  # add up to (1, 1e-12)
    error = generalization_error_from_coordinates(
        Linear(), np.eye(2), np.array([1.0, 0.0]), along, np.zeros((1, 2, 2)), v
    )
    assert error == pytest.approx(0.5e-24, rel=1e-3)


def test_a_student_of_odd_units_may_be_the_opposite_of_a_teacher_unit():
    rows, w, along, across, v = students(2, 1e-9)
    flip = np.array([1.0, -1.0])
    flipped = generalization_error_from_coordinates(
        Erf(), rows, w, along * flip[:, None], across * np.outer(flip, flip), v * flip
    )
    assert flipped == pytest.approx(generalization_error_from_coordinates(Erf(), rows, w, along, across, v), rel=1e-12)


def test_networks_may_have_any_leading_axes(monkeypatch):
    rows, w, along, across, v = students(2, 1e-3, lanes=6)
    errors_of_all = generalization_error_from_coordinates(Erf(), rows, w, along, across, v)
    monkeypatch.setattr(errors, "BLOCK_NETWORKS", 8)  # blocks of two networks
    shaped = generalization_error_from_coordinates(
        Erf(), rows, w, along.reshape(2, 3, 2, 2), across.reshape(2, 3, 2, 2), v.reshape(2, 3, 2)
    )
    assert shaped == pytest.approx(errors_of_all.reshape(2, 3), rel=1e-12)


def test_an_activation_without_the_slope_of_j2_has_the_error_of_the_sums():
    class Stated(Erf):
        J2_along = Activation.J2_along

    rows, w, along, across, v = students(2, 1e-3)
    sums = generalization_error(Erf(), rows @ rows.T, w, along @ rows.T, along @ along.swapaxes(1, 2) + across, v)
    assert (generalization_error_from_coordinates(Stated(), rows, w, along, across, v) == sums).all()


@pytest.mark.parametrize("scale", [1e-4, 1e-9])
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_more_nodes_do_not_change_the_error_near_perfect_learning(name, scale, monkeypatch):
    for K in (2, 4):
        error = generalization_error_from_coordinates(ACTIVATIONS[name](), *students(K, scale))
        with monkeypatch.context() as patch:
            patch.setattr(errors, "NODES", 48)
            patch.setattr(errors, "SHORT_CHANGE_NODES", 12)
            assert generalization_error_from_coordinates(ACTIVATIONS[name](), *students(K, scale)) == pytest.approx(
                error, rel=1e-11
            )
        assert ((error > 0) & (error < 1e3 * scale**2)).all()


def test_a_measured_error_is_that_of_the_closed_form():
    """For students of every activation and the labels of one unit; 3 standard errors of 40 repetitions."""
    R, Q, v, T = np.array([[0.5], [0.2]]), np.array([[1.0, 0.3], [0.3, 0.8]]), np.array([0.8, 0.5]), np.ones((1, 1))
    teacher, generator = TeacherNetwork(Linear(), T, np.ones(1), "sign"), np.random.default_rng(2)
    for activation in (Erf(), Relu(), Linear(), Plain()):
        averages = Erf() if isinstance(activation, Plain) else activation
        exact = generalization_error(averages, T, np.ones(1), R, Q, v, "sign")
        runs = np.array([measured_error(activation, teacher, R, Q, v, generator, 500) for _ in range(40)])
        tolerance = 3 * runs.std() / np.sqrt(40)
        assert abs(runs.mean() - exact) < tolerance
        assert abs(runs.mean() - exact - 2.1 * tolerance) > tolerance  # the planted error


def test_the_fraction_of_wrong_labels_is_the_angle_over_pi():
    teacher = TeacherNetwork(Linear(), np.ones((1, 1)), np.ones(1), "sign")
    R, Q, v = np.array([[[0.6]], [[-0.6]], [[0.0]]]), np.array([[[1.0]], [[1.0]], [[0.0]]]), np.ones(1)
    n = 20_000
    wrong = label_error(Erf(), teacher, R, Q, v, np.random.default_rng(0), n)
    expected = np.array([np.arccos(0.6), np.arccos(-0.6), np.pi / 2]) / np.pi
    tolerance = 4 * np.sqrt(expected * (1 - expected) / n)
    assert (abs(wrong - expected) < tolerance).all()
    assert wrong[2] == 0.5  # ties
    assert abs(wrong[0] - np.arccos(0.65) / np.pi) > tolerance[0]  # the planted error


@dataclass(frozen=True)
class Plain(Erf):
    """The error function without closed forms."""

    def both(self, x):
        return Erf.both(self, x)


@dataclass(frozen=True)
class Tanh(Plain):
    """The hyperbolic tangent."""

    def both(self, x):
        g = get_array_module(x).tanh(x)
        return g, 1 - g * g


@pytest.mark.slow
@pytest.mark.parametrize("average", ["I2", "I3", "J2", "I4"])
def test_averages_on_a_lattice_equal_closed_forms_and_quadrature(average):
    assert ensure_gaussian_averages(Erf()) == Erf()
    lattice = ensure_gaussian_averages(Plain())
    assert isinstance(lattice, LatticeAverages)
    singular = GENERIC[np.ix_([0, 1, 0, 1], [0, 1, 0, 1])]
    C = np.stack([GENERIC, singular], axis=-1)
    assert closed(lattice, average, C) == pytest.approx(closed(Erf(), average, C), abs=2e-10)
    assert closed(ensure_gaussian_averages(Tanh()), average, GENERIC) == pytest.approx(
        reference(Tanh(), FIELDS[average], GENERIC), abs=2e-8
    )


def test_averages_on_a_lattice_are_compiled_by_jax_and_refuse_kinks():
    lattice = ensure_gaussian_averages(Plain())
    C = GENERIC[:3, :3, None]
    with jax.enable_x64():
        assert np.asarray(jax.jit(lattice.I3)(C)) == pytest.approx(lattice.I3(C), abs=1e-14)

    class Kinked(Plain):
        kinks = (0.0,)

    with pytest.raises(NotImplementedError, match="has kinks"):
        ensure_gaussian_averages(Kinked())
