"""Teachers and their weights: averages over a normal field, scores and posteriors, against independent integrals."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from statmech.convex.teachers import LinearTeacher, LogitTeacher, ProbitTeacher, SignTeacher, logistic_average
from statmech.convex.weight_distributions import Binary, Gauss, MixtureComponent, Sparse, WeightDistribution

OF_LABELS = [
    SignTeacher(),
    SignTeacher(flip=0.1),
    SignTeacher(flip=1e-6),
    ProbitTeacher(noise=0.5),
    LogitTeacher(gain=0.01),
    LogitTeacher(gain=2.0),
    LogitTeacher(gain=50.0),
]
TEACHERS = [*OF_LABELS, LinearTeacher(noise=0.3)]
MEANS = np.array([-4.0, -1.5, -0.2, 0.0, 0.3, 2.0, 5.0])


@dataclass(frozen=True)
class Three(WeightDistribution):
    """Two Gaussians and an atom, of mean square 1 and mean -0.05."""

    @property
    def pieces(self):
        return (MixtureComponent(0.25, 1.0, 0.2), MixtureComponent(0.3, -1.0, 0.0), MixtureComponent(0.45, 0.0, 8 / 9))


PRIORS = [Gauss(), Binary(), Sparse(rho=0.2), Sparse(rho=0.95), Three()]


def by_trapezoids(M, V):
    """ln F and ln F' in extended precision: F = e^{M/2+V/8} E sech(u/2)/2 at mean M + V/2, F' = E sech(u/2)^2/4."""
    M, V = np.longdouble(M), np.longdouble(V)
    s, h = np.sqrt(V), np.longdouble(2.0) ** np.floor(np.log2(min(0.35, float(np.sqrt(V)) / 4)))
    low, high = min(-200, M - 16 * s, M - V - 16 * s), max(200, M + 16 * s, M + V + 16 * s)
    u = np.floor(low) + h * np.arange(int((high - low) / h) + 2).astype(np.longdouble)
    log_sech = np.log(np.longdouble(2)) - np.abs(u) / 2 - np.log1p(np.exp(-np.abs(u)))

    def log_mean(power, mean):
        terms = power * (log_sech - np.log(np.longdouble(2))) - (u - mean) ** 2 / (2 * V)
        top = terms.max()
        norm_ = np.log(h / s) - np.log(2 * np.longdouble("3.14159265358979323846")) / 2
        return top + np.log(np.sum(np.exp(terms - top))) + norm_

    return float(M / 2 + V / 8 + log_mean(1, M + V / 2)), float(log_mean(2, M))


@pytest.mark.parametrize("V", [0.1, 1.0, 10.0, 59.0, 61.0, 2500.0])
def test_the_logistic_average_is_exact_at_every_gain_and_far_in_the_tail(V):
    M = np.array([0.0, -1.0, -5.0, -20.0, -60.0, -475.0])
    average = logistic_average(M, V)
    log, log_slope = np.array([by_trapezoids(m, V) for m in M]).T
    np.testing.assert_allclose(average.log, log, rtol=1e-15, atol=4e-14)
    np.testing.assert_allclose(np.log(average.slope), log_slope - log, rtol=0, atol=1e-13)


def test_without_variance_the_logistic_average_is_the_logistic_function():
    M = -np.array([0.0, 0.3, 3.0, 40.0, 800.0])
    average = logistic_average(M, 0.0)
    np.testing.assert_allclose(average.log, -np.logaddexp(0, -M), rtol=1e-13)
    np.testing.assert_allclose(average.slope, 1 / (1 + np.exp(M)), rtol=1e-13)
    np.testing.assert_allclose(average.minus_log_curvature, np.exp(M) / (1 + np.exp(M)) ** 2, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("teacher", OF_LABELS, ids=str)
def test_right_is_the_mean_probability_of_a_label(teacher):
    for mean in MEANS:
        for variance in (1.0, 0.01):
            s = np.sqrt(variance)
            edges = np.clip(-mean / s + np.array([-99, -12, -3, -0.3, 0, 0.3, 3, 12, 99]), -12, 12)
            values = [
                quad(lambda t, m=mean, s=s: float(teacher.probability(m + s * t)) * norm.pdf(t), a, b, epsabs=1e-14)[0]
                for a, b in itertools.pairwise(edges)
            ]
            assert teacher.right(mean, variance) == pytest.approx(sum(values), abs=1e-12)


@pytest.mark.parametrize("teacher", OF_LABELS, ids=str)
def test_derivatives_of_right_and_of_its_logarithm_are_consistent(teacher):
    variance, h = 0.3, 1e-4
    difference = (teacher.right(MEANS + h, variance) - teacher.right(MEANS - h, variance)) / (2 * h)
    np.testing.assert_allclose(teacher.mean_probability_slope(MEANS, variance), difference, rtol=1e-4, atol=1e-11)
    slope = teacher.mean_probability_slope(MEANS, variance) / teacher.right(MEANS, variance)
    np.testing.assert_allclose(teacher.log_probability_slope(MEANS, variance), slope, rtol=1e-12)
    difference = (
        teacher.log_probability_slope(MEANS - h, variance) - teacher.log_probability_slope(MEANS + h, variance)
    ) / (2 * h)
    np.testing.assert_allclose(teacher.log_probability_concavity(MEANS, variance), difference, rtol=1e-4, atol=1e-10)
    first, second = teacher.probability_derivatives(MEANS, variance)[1:]
    np.testing.assert_array_equal(teacher.probability_derivatives(MEANS, variance)[0], teacher.right(MEANS, variance))
    np.testing.assert_allclose(first, teacher.mean_probability_slope(MEANS, variance), rtol=1e-13)
    difference = (
        teacher.mean_probability_slope(MEANS + h, variance) - teacher.mean_probability_slope(MEANS - h, variance)
    ) / (2 * h)
    np.testing.assert_allclose(second, difference, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(teacher.right(-MEANS, variance), 1 - teacher.right(MEANS, variance), atol=1e-15)


@pytest.mark.parametrize("teacher", OF_LABELS, ids=str)
def test_without_variance_right_is_the_probability(teacher):
    np.testing.assert_allclose(teacher.right(MEANS[MEANS != 0], 0.0), teacher.probability(MEANS[MEANS != 0]), 1e-12)
    g, steepness = teacher.score(np.ones(7), MEANS, 0.0)
    assert np.all(np.isfinite(g))
    assert np.all(np.isfinite(steepness))


def test_the_score_is_finite_where_the_label_is_all_but_impossible():
    mean, variance = np.array([-30.0]), 1e-3  # right underflows
    assert SignTeacher().right(mean, variance) == 0
    np.testing.assert_allclose(
        SignTeacher().log_probability_slope(mean, variance), 30 / 1e-3, rtol=2e-6
    )  # -x/s to order 1/x^2
    np.testing.assert_allclose(SignTeacher().log_probability_concavity(mean, variance), 1e3, rtol=2e-6)
    np.testing.assert_allclose(LogitTeacher(gain=50.0).log_probability_slope(mean, variance), 50.0, rtol=1e-13)


def outputs(teacher, mean, variance):
    """Outputs and their probabilities (weights of a quadrature for a linear teacher), given the field's mean."""
    if teacher.labels:
        return [(y, teacher.right(y * mean, variance)) for y in (-1.0, 1.0)]
    t, weight = np.polynomial.hermite_e.hermegauss(10)
    return zip(mean + np.sqrt(variance + teacher.noise**2) * t, weight / weight.sum(), strict=True)


@pytest.mark.parametrize("teacher", TEACHERS, ids=str)
@pytest.mark.parametrize("mse", [0.9, 0.2, 1e-3])
def test_information_is_the_mean_square_of_the_score_and_minus_its_mean_derivative(teacher, mse):
    deviation = np.sqrt(1 - mse)
    scale = min(10.0, 30 * (teacher.width(mse) if teacher.labels else 1.0) / deviation)

    def mean_of(of):
        def at(t):
            terms = [p * of(*teacher.score(y, deviation * t, mse)) for y, p in outputs(teacher, deviation * t, mse)]
            return sum(terms) * norm.pdf(t)

        edges = [-scale, -scale / 10, 0, scale / 10, scale]
        return sum(quad(at, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in itertools.pairwise(edges))

    information = teacher.fisher_information(np.array([mse]))[0]
    assert information == pytest.approx(mean_of(lambda g, steepness: g * g), rel=1e-9)
    assert information == pytest.approx(mean_of(lambda g, steepness: steepness), rel=1e-9)


@pytest.mark.parametrize("teacher", TEACHERS, ids=str)
def test_information_is_the_rate_at_which_the_log_evidence_falls_with_the_error(teacher):
    mse = np.array([0.9, 0.3, 0.03])
    h = 1e-4 * mse
    rate = (teacher.mean_log_evidence(mse - h) - teacher.mean_log_evidence(mse + h)) / h
    np.testing.assert_allclose(teacher.fisher_information(mse), rate, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("teacher", TEACHERS, ids=str)
def test_information_at_one_error_does_not_depend_on_the_others(teacher):
    mse = np.array([1.0, 0.7, 1e-3, 1e-9])
    alone = np.concatenate([teacher.fisher_information(mse[i : i + 1]) for i in range(4)])
    np.testing.assert_array_equal(teacher.fisher_information(mse), alone)


def marginal(weights, r, s):
    """The density of fields r, and the posterior's mean and variance, from the definition."""
    total = first = square = 0.0
    for p, mean, variance in weights.pieces:
        density = p * norm.pdf(r, s * mean, np.sqrt(s + s * s * variance))
        a, v = (mean + variance * r) / (1 + s * variance), variance / (1 + s * variance)
        total, first, square = total + density, first + density * a, square + density * (a * a + v)
    return total, first / total, square / total - (first / total) ** 2


@pytest.mark.parametrize("weights", PRIORS, ids=str)
@pytest.mark.parametrize("s", [0.3, 4.0, 40.0])
def test_mean_squared_error_and_information_of_a_prior_are_those_of_its_definition(weights, s):
    reach = max(s * abs(mean) + 10 * np.sqrt(s + s * s * variance) for _, mean, variance in weights.pieces)
    r = np.linspace(-reach, reach, 40_001)  # the rule converges geometrically
    density, mean, variance = marginal(weights, r, s)
    step = r[1] - r[0]
    np.testing.assert_allclose(weights.posterior(r[::1000], s), [mean[::1000], variance[::1000]], rtol=1e-9, atol=1e-9)
    assert weights.mse(np.array([s]))[0] == pytest.approx(step * np.sum(density * variance), rel=1e-9, abs=1e-13)
    entropy = -step * np.sum(density * np.log(np.maximum(density, 1e-300)))
    known = entropy - 0.5 * np.log(2 * np.pi * np.e * s)
    assert weights.mutual_information(np.array([s]))[0] == pytest.approx(known, abs=1e-8)


@pytest.mark.parametrize("weights", PRIORS, ids=str)
def test_information_of_a_prior_grows_by_half_the_error(weights):
    s = np.array([0.01, 1.0, 30.0])
    rate = (weights.mutual_information(1.0001 * s) - weights.mutual_information(0.9999 * s)) / (2e-4 * s)
    np.testing.assert_allclose(2 * rate, weights.mse(s), rtol=1e-6)


@pytest.mark.parametrize("s", [100.0, 1000.0])
def test_the_error_of_binary_weights_keeps_its_digits_where_it_is_exponentially_small(s):
    scaled = quad(lambda r: norm.pdf(r, 0, np.sqrt(s)) / np.cosh(r), -40, 40, points=[0], epsabs=0, epsrel=1e-12)[0]
    np.testing.assert_allclose(Binary().mse(np.array([s])), np.exp(-s / 2) * scaled, rtol=1e-11)
    r = np.array([-300.0, 0.0, 20.0])
    np.testing.assert_allclose(Binary().posterior(r, s)[1], 1 / np.cosh(r) ** 2, rtol=1e-12)


def test_draws_have_mean_square_1_and_the_shares_of_their_pieces():
    rng = np.random.default_rng(0)
    for weights in PRIORS:
        w = weights.draw(rng, 10_000)
        assert w @ w == pytest.approx(10_000, rel=1e-12)
    assert np.mean(Sparse(rho=0.2).draw(rng, 10_000) != 0) == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 10_000))
    assert [weights.continuous_fraction for weights in PRIORS] == pytest.approx([1, 0, 0.2, 0.95, 0.7])
