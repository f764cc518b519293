"""Theory predicts the mean and the spread of runs at finite N, to order 1/N, and says where it cannot."""

from __future__ import annotations

from math import gamma

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ndtri

import simulate
import theory
from statmech import RULES, Scenario, ScenarioError, compare, load
from statmech.numerics import statistics
from statmech.parameters.schedules_and_controls import LEARNING_RATE_SCHEDULES
from statmech.results import comparison
from statmech.results.comparison import predict_mean_and_std
from theory.online import order_parameter_equations, student_fluctuations
from theory.solutions import solve_line

pytestmark = pytest.mark.quick

LATE = {"hebb": (0.5, -0.75), "perceptron": ((4 - np.pi) / 2, -0.286), "adatron_textbook": (0.8, -0.6)}


def relative(solution) -> tuple[np.ndarray, np.ndarray]:
    """N Var(eps_g)/eps_g^2 and N bias/eps_g."""
    N, eps_g = solution.N.item(), solution.eps_g
    variance, bias = N * (solution.eps_g_std / eps_g) ** 2, N * solution.eps_g_bias / eps_g
    return variance.values.ravel(), bias.values.ravel()


@pytest.mark.slow
@pytest.mark.parametrize("rule", LATE)
def test_late_fluctuations_relative_to_eps_g_tend_to_the_known_constants(rule):
    variance, bias = relative(theory.solve(Scenario(rule=rule, N=100, t=[1e5], corrections=True)))
    assert (variance[0], bias[0]) == pytest.approx(LATE[rule], abs=3e-4)


@pytest.mark.slow
@pytest.mark.parametrize("eta", [0.5, 1.5, 2.5])
def test_the_textbook_adatron_has_its_late_constants_at_any_learning_rate(eta):
    """Where F = -c theta^2, D = d theta^3 and b = beta theta^2, the variance is d/2c and the bias beta/c - d/2c."""
    scenario = Scenario(rule="adatron_textbook", eta=eta, N=100, t=[1e6], corrections=True)
    variance, bias = relative(theory.solve(scenario))
    assert variance[0] == pytest.approx(eta * (20 - 15 * eta + 3 * eta**2) / (5 * (3 - eta)), rel=1e-4)
    assert bias[0] == pytest.approx(6 * eta * (5 * eta - 5 - eta**2) / (5 * (3 - eta)), rel=1e-4)


def radial(power: int) -> float:
    """The mean of r^power of a plane Gaussian vector."""
    return 2 ** (power / 2) * gamma(power / 2 + 1)


class InGram:
    """The expansion in M = l R and Q = l^2, b = (0, <f^2 (u^2 + w^2 - 2)>), by quadrature over angles of errors."""

    x, weight = np.polynomial.legendre.leggauss(24)

    def __init__(self, power: int):
        self.power = power  # f = -eta u^power over errors, in units where sigma = 1: 0 perceptron, 1 AdaTron

    def program_flags(self, M, Q):
        """Averages of f v, 2 l f u + f^2, products of these, and f^2 (u^2 + w^2 - 2)."""
        length = np.sqrt(Q)
        theta = np.arccos(M / length)
        a = np.pi / 2 + theta * (self.x + 1) / 2
        u, v = np.cos(a), np.cos(a - theta)  # times r: u < 0 < v, the label is +1
        f = (-u) ** self.power

        def mean(*monomials):  # of (factor, powers of r)
            return sum(radial(n) * np.sum(self.weight * c) for c, n in monomials) * theta / (2 * np.pi)

        p, q = self.power, 2 * self.power
        first = mean((f * v, p + 1)), mean((2 * length * f * u, p + 1), (f**2, q))
        products = (
            mean((f**2 * v**2, q + 2)),
            mean((2 * length * f**2 * u * v, q + 2), (f**3 * v, q + p + 1)),
            mean((4 * Q * f**2 * u**2, q + 2), (4 * length * f**3 * u, q + p + 1), (f**4, 2 * q)),
        )
        return np.array(first), np.array(products), mean((f**2, q + 2), (-2 * f**2, q))

    def gradient(self, of, x):
        """Derivatives (outputs, 2) by complex steps."""
        steps = 1e-30j * np.eye(2)
        return np.array([np.imag(of(*(x + step))) / 1e-30 for step in steps]).T

    def hessian(self, of, x):
        """Second derivatives by differences of order 4, with steps that are small compared with 1 - R."""
        h = 1e-3 * (1 - x[0] / np.sqrt(x[1]))
        sides = [(1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12)]
        found = [sum(w * self.gradient(of, x + k * h * e) for k, w in sides) / h for e in np.eye(2)]
        return np.moveaxis(np.array(found), 0, -1)

    def rates(self, t, y):
        x, (mm, mq, qq), m = y[:2], y[2:5], y[5:]
        F, products, second = self.program_flags(*x)
        of = lambda M, Q: self.program_flags(M, Q)[0]  # noqa: E731
        A, C = self.gradient(of, x), np.array([[mm, mq], [mq, qq]])
        D = np.array([[products[0], products[1]], [products[1], products[2]]]) - np.outer(F, F)
        dC = A @ C + C @ A.T + D
        dm = A @ m + np.tensordot(self.hessian(of, x), C) / 2 + np.array([0.0, second]) - A @ F / 2
        return np.concatenate([F, [dC[0, 0], dC[0, 1], dC[1, 1]], dm])

    def solve(self, times):
        """eps_g, N Var / eps_g^2 and N bias / eps_g, from drawn weights: M and Q have C = diag(1, 2) and no bias."""
        start = [0.0, 1.0, 1.0, 0.0, 2.0, 0.0, 0.0]
        states = solve_ivp(self.rates, (0, times[-1]), start, "DOP853", times, rtol=1e-10, atol=1e-12).y.T
        return np.array([self.seen(state) for state in states]).T

    def seen(self, state):
        def eps_g(M, Q):
            return np.array([np.arccos(M / np.sqrt(Q)) / np.pi])

        x, C = state[:2], np.array([[state[2], state[3]], [state[3], state[4]]])
        [slope], [bend], [value] = self.gradient(eps_g, x), self.hessian(eps_g, x), eps_g(*x)
        return value, slope @ C @ slope / value**2, (slope @ state[5:] + np.tensordot(bend, C) / 2) / value


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "power"), [("perceptron", 0), ("adatron", 1)])
def test_the_expansion_in_gram_coordinates_gives_the_same_digits(rule, power):
    times = [0.5, 1, 5, 20, 50]
    solution = theory.solve(Scenario(rule=rule, N=100, t=times, corrections=True))
    eps_g, variance, bias = InGram(power).solve(times)
    np.testing.assert_allclose(solution.eps_g.values.ravel(), eps_g, rtol=1e-7)
    np.testing.assert_allclose(relative(solution), (variance, bias), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_weights_drawn_at_the_start_have_the_variance_of_random_vectors():
    scenario = Scenario(rule="hebb", N=50, t=[0, 1], seeds=4000, corrections=True)
    runs, solution = simulate.run(scenario).isel(t=0), theory.solve(scenario).isel(t=0)
    assert solution.R_std.item() == pytest.approx(50**-0.5)
    assert solution.length_std.item() == pytest.approx(100**-0.5)
    for name in ("R", "length", "eps_g"):
        seen = runs[name].std("seed", ddof=1).item()
        assert seen == pytest.approx(solution[f"{name}_std"].item(), rel=4 / 8000**0.5 + 1 / 50)


@pytest.mark.slow
def test_given_starts_have_no_spread_and_no_bias_at_first():
    solution = theory.solve(Scenario(rule="hebb", N=50, t=[0, 1], start={"R": 0.3}, corrections=True))
    for name in ("R", "length", "eps_g"):
        assert solution[f"{name}_std"].values[0, 0] == solution[f"{name}_bias"].values[0, 0] == 0
        assert solution[f"{name}_std"].values[1, 0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("K", [1, 2])
def test_corrections_are_those_of_the_recorded_step_where_n_t_is_not_whole(K):
    scenario = Scenario(rule="hebb", K=K, N=20, t=[0.11, 0.33, 0.78], seeds=4000, corrections=True)
    runs = simulate.run(scenario)

    def largest(solution):
        return max(float(abs(values).max()) for values in comparison.distances(runs, solution).values())

    assert largest(theory.solve(scenario)) < 4
    assert largest(solve_line(scenario)) > 4.5  # of times between steps


def test_corrections_of_recorded_steps_bring_the_values_to_those_of_the_step():
    between, step = ({"rule": "hebb", "N": 20, "t": [t], "corrections": True} for t in (0.11, 0.1))
    found, expected = theory.solve(Scenario(**between)), theory.solve(Scenario(**step))
    assert (found.R + found.R_bias).item() == pytest.approx((expected.R + expected.R_bias).item(), rel=1e-12)
    assert found.R.item() == pytest.approx(theory.solve(Scenario(rule="hebb", t=[0.11])).R.item(), rel=1e-12)
    assert found.R_std.item() == expected.R_std.item()


def judged(simulation, scenario: Scenario) -> tuple[float, float]:
    distance = comparison.distances(simulation, theory.solve(scenario))
    largest = max(
        abs(z) for row in comparison.iterate_deviation_rows(distance) for z in row.largest_deviations.values()
    )
    return largest, comparison.get_deviation_bound(distance)


@pytest.mark.slow
@pytest.mark.parametrize("N", [20, 50])
def test_means_lie_within_the_predicted_standard_errors_and_without_discreteness_they_do_not(N, monkeypatch):
    scenario = Scenario(rule="hebb", N=N, t=[0.5, 2, 5], seeds=500 * N, corrections=True)
    simulation = simulate.run(scenario)
    largest, bound = judged(simulation, scenario)
    assert largest < bound
    monkeypatch.setattr(order_parameter_equations, "compute_fluctuation_rates", without_discreteness)
    monkeypatch.setenv("STATMECH_CACHE", "off")
    order_parameter_equations.solve_batch.clear_cache()
    try:
        assert judged(simulation, scenario)[0] > bound
    finally:
        order_parameter_equations.solve_batch.clear_cache()


correct = student_fluctuations.compute_fluctuation_rates


def without_discreteness(field, state, t, noise, around):
    """The rates without the term -(1/2) A F."""
    found = correct(field, state, t, noise, around)
    _, AF = jax.jvp(lambda *state: field(*state, t), state, field(*state, t))
    return found._replace(bias=found.bias + jax.numpy.stack(AF) / 2)


class Chain:
    """One student of length l at angle theta, step by step: a third route beside both engines, for one rule."""

    def __init__(self, N: int, seeds: int, drift: float, decay: float, R: float):
        self.N, self.drift, self.decay = N, drift, decay
        self.rng = np.random.default_rng(5)
        self.length, self.theta = np.ones(seeds), np.full(seeds, np.arccos(R))

    def step(self, g) -> None:
        N, (u, w) = self.N, self.rng.standard_normal((2, self.length.size))
        rest = self.rng.chisquare(N - 2, self.length.size)
        label = np.sign(np.cos(self.theta) * u + np.sin(self.theta) * w)
        f = label * g(label * u, self.length)
        along, across = (1 - self.decay / N) * self.length + f * u / N, f * w / N
        cos, sin = np.cos(self.theta), np.sin(self.theta)
        out = (cos * across - sin * along) ** 2 + f**2 * rest / N**2  # squared part across the teacher
        self.theta = np.arctan2(np.sqrt(out), cos * along + sin * across)
        self.length = np.sqrt(along**2 + across**2 + f**2 * rest / N**2)
        turn = np.arccos(1 - self.drift / N)
        b = self.rng.standard_normal(u.size)
        b /= np.sqrt(b**2 + self.rng.chisquare(N - 2, u.size))
        self.theta = np.arccos(np.cos(turn) * np.cos(self.theta) + np.sin(turn) * np.sin(self.theta) * b)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["hebb", "perceptron"])
def test_drift_and_decay_enter_mean_and_spread(rule):
    N, seeds, changes = 20, 20_000, {"drift": 0.3, "decay": 0.5}
    scenario = Scenario(rule=rule, N=N, t=[2], start={"R": 0.3}, corrections=True, **changes)
    chain, solution = Chain(N, seeds, R=0.3, **changes), theory.solve(scenario)
    for _ in range(2 * N):
        chain.step(RULES[rule]().g)
    for name, values in {"length": chain.length, "eps_g": chain.theta / np.pi}.items():
        mean, std = predict_mean_and_std(solution, name)
        z = (values.mean() - mean.item()) / std.item() * seeds**0.5
        assert abs(z) < 4, name
        assert abs((values.mean() - solution[name].item()) / std.item()) * seeds**0.5 > 4.5  # without the bias
        assert values.std() / std.item() == pytest.approx(1, abs=4 / (2 * seeds) ** 0.5 + 2 / N)


FALLING = {"hyperbolic": lambda t: 1 / (1 + t), "exponential": lambda t: np.exp(-t)}


@pytest.mark.slow
@pytest.mark.parametrize("annealing", LEARNING_RATE_SCHEDULES)
def test_a_schedule_enters_with_its_explicit_derivative(annealing):
    given = {"schedule": {"t0": 1}, "annealing": annealing, "start": {"R": 0.3}}
    scenario = Scenario(rule="hebb", N=20, t=[2, 5], seeds=1, corrections=True, **given)
    chain, solution, means = Chain(20, 40_000, 0.0, 0.0, 0.3), theory.solve(scenario), []
    for n in range(100):
        chain.step(lambda kappa, length, n=n: FALLING[annealing](n / 20) + 0 * kappa)
        if n + 1 in (40, 100):
            means.append((chain.length.mean(), chain.theta.mean() / np.pi))
    for place, seen in enumerate(means):
        for name, value in zip(("length", "eps_g"), seen, strict=True):
            mean, std = (it.isel(t=place).item() for it in predict_mean_and_std(solution, name))
            assert abs(value - mean) / std * 200 < 4.5, (name, place)


@pytest.mark.parametrize("K", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_one_seed_is_compared_by_the_normal_s_bound_student_by_student(K):
    scenario = Scenario(rule="hebb", K=K, N=100, t=[1, 5], seeds=1, corrections=True)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    distance = comparison.distances(simulation, solution)
    assert distance.R.sizes["student"] == K
    values = sum(int(np.isfinite(it).sum()) for it in distance.values())
    assert comparison.get_deviation_bound(distance) == pytest.approx(
        -ndtri(statistics.FALSE_ALARM_PROBABILITY / 2 / values)
    )
    assert comparison.has_enough_seeds(distance)
    [table] = compare(simulation, solution)
    assert not any(cell.highlighted for row in table.rows for cell in row)
    [table] = compare(simulation, solution.assign(eps_g=solution.eps_g + 7 * solution.eps_g_std))
    assert any(cell.highlighted for row in table.rows for cell in row)


@pytest.mark.slow
def test_where_the_bias_is_as_large_as_the_spread_nothing_is_judged():
    """Label noise drives the length of an AdaTron to eta/2, where its fluctuations are of order 1/N."""
    scenario = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], seeds=20, corrections=True)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    distance = comparison.distances(simulation, solution)
    assert np.isfinite(distance.length.values).ravel().tolist() == [True, False]
    assert distance.attrs["unresolved"] == 1
    assert any(": 1 of the values" in note for note in compare(simulation, solution)[0].notes)


@pytest.mark.slow
def test_the_standard_deviation_is_off_by_more_than_an_eighth_where_nothing_is_judged():
    """Of eps_g and of 1 - R of few inputs the next order multiplies the spread; of a length that decays, too."""
    scenario = Scenario(rule="adatron", N=5, t=[50], seeds=4000, corrections=True)
    runs, solution = simulate.run(scenario), theory.solve(scenario)
    for name in ("R", "eps_g", "length"):
        assert comparison.find_unresolved_std_mask(solution, name).all()
        assert runs[name].std("seed", ddof=1).item() / solution[f"{name}_std"].item() > 1.125 + 4 / 8000**0.5
    forgetting = Scenario(rule="adatron_textbook", N=100, decay=5, schedule={"t0": 1}, t=[0.1, 2], corrections=True)
    assert comparison.find_resolved_std_mask(theory.solve(forgetting), "length").values.ravel().tolist() == [
        True,
        False,
    ]
    drifting = {"rule": "adatron", "flip": 0.1, "drift": 0.3, "start": {"length": 1, "R": 0.1}, "t": 6}
    at = theory.solve(Scenario(**drifting, N=[100, 1000], corrections=True))
    assert comparison.find_resolved_std_mask(at, "length").values.ravel().tolist() == [False, True]
    assert comparison.find_resolved_std_mask(at, "eps_g").all()


@pytest.mark.slow
def test_all_values_of_the_figure_of_fluctuations_are_judged():
    solution = theory.solve(load("fluctuations"))
    assert all(
        comparison.find_resolved_std_mask(solution, name).all()
        for name in ("R", "length", "eps_g", "eps_g_weight_mean")
    )


@pytest.mark.slow
def test_n_is_an_axis_whose_cells_share_one_integration(monkeypatch):
    solved, original = [], order_parameter_equations._solve_by_program

    def counted(cells, *others):
        solved.append(len(cells))
        return original(cells, *others)

    monkeypatch.setattr(order_parameter_equations, "_solve_by_program", counted)
    scenario = Scenario(rule="hebb", N=[10, 1000], t=[1], corrections=True)
    solution = theory.solve(scenario)
    assert solved == [1]
    assert scenario.keys_ignored_by_theory == {}
    ratio = solution.isel(N=0) / solution.isel(N=1)
    assert ratio.eps_g.item() == 1
    assert (ratio.eps_g_std.item(), ratio.eps_g_bias.item()) == pytest.approx((10, 100))


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["hebb", "perceptron"])
def test_unequal_students_have_corrections_each(rule):
    scenario = Scenario(rule=rule, K=2, N=50, t=[0, 2], start={"R": [0.2, 0.6]}, corrections=True)
    both = theory.solve(scenario)
    for student, R in enumerate((0.2, 0.6)):
        one = theory.solve(Scenario(rule=rule, N=50, t=[0, 2], start={"R": R}, corrections=True))
        for name in ("R_std", "length_bias", "eps_g_std"):
            assert both[name].values[1, student] == pytest.approx(one[name].values[1, 0], rel=1e-7)
    assert "q_std" not in both
    assert "eps_g_majority_vote_std" not in both


@pytest.mark.slow
def test_rules_of_one_program_keep_their_own_fluctuations():
    together = theory.solve(Scenario(rule=["hebb", "perceptron"], N=50, t=[1, 5], corrections=True))
    for place, rule in enumerate(("hebb", "perceptron")):
        alone = theory.solve(Scenario(rule=rule, N=50, t=[1, 5], corrections=True))
        assert together.eps_g_std.values[place] == pytest.approx(alone.eps_g_std.values, rel=1e-8)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"start": {"R": 1}}, "a student that starts on the teacher's axis"),
        ({"K": 2, "start": {"R": [0.5, -1], "q": -0.5}}, "a student that starts on the teacher's axis"),
        ({"inputs": "sphere"}, "need gaussian inputs, not sphere"),
    ],
)
def test_what_has_no_expansion_is_refused(given, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        Scenario(rule="hebb", N=50, t=[1], corrections=True, **given)
