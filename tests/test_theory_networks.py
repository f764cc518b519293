"""The equations of networks agree with their averages, an independent integrator, and all known values."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erf

import theory
from statmech import Network, ScenarioError
from statmech.keys.initial_states import StudentUnits
from statmech.parameters.parameter_fields import parameter
from statmech.students.activations import ACTIVATIONS, Erf
from theory.networks.order_parameter_equations import (
    compute_row_rates,
    make_network_setting,
    make_network_solver_options,
    pack_units,
    solve_cells,
)
from theory.networks.plateaus_and_critical_rate import _make_symmetric_units
from theory.networks.stationary_states import _evaluate_rates_and_jacobian

pytestmark = pytest.mark.quick

T = [[1.0, 0.3], [0.3, 1.2]]
GENERAL = {
    "M": 2,
    "K": 2,
    "eta": 0.8,
    "eta_v": 0.3,
    "noise": 0.4,
    "decay": 0.1,
    "teacher": {"T": T, "w": [1.0, -0.6]},
    "start": {"Q": [[0.5, 0.1], [0.1, 0.3]], "R": [[0.2, 0.05], [-0.1, 0.15]], "v": [0.8, 0.5]},
}


def network(**given):
    return Network(**{"network": "erf", "N": 1000, "t": 1} | given)


def cell_of(**given):
    return next(iter(network(**given).cells()))


compiled = jax.jit(compute_row_rates, static_argnums=0)


def rates_of(cell):
    """The rates of all entries of R, Q and v of a cell's start."""
    with jax.enable_x64(True):
        return np.asarray(
            compiled(make_network_solver_options(cell), make_network_setting([cell]), pack_units(cell.units)[:, None])[
                :, 0
            ]
        )


def terms_of(cell, fields, noise, slope=1.0):
    """What one example adds to the entries of R, Q and v, times N, for fields (K + M, n)."""
    R, Q, v = cell.units
    K, (h, y) = cell.K, np.split(fields, [cell.K])
    g, derivative = cell.activation.both(h)
    target = cell.w @ cell.teacher_activation.both(y)[0]
    e = (np.sign(target) if cell.sign else target) + cell.noise * noise - v @ g
    delta = slope * v[:, None] * derivative * e
    i, j = np.triu_indices(K)
    dR = cell.eta * delta[:, None] * y - cell.decay * R[..., None]
    dQ = cell.eta * (delta[i] * h[j] + delta[j] * h[i]) + cell.eta**2 * delta[i] * delta[j]
    return np.concatenate([dR.reshape(-1, y.shape[1]), dQ - 2 * cell.decay * Q[i, j][:, None], cell.eta_v * g * e])


def root_of(cell):
    R, Q, _ = cell.units
    return np.linalg.cholesky(np.block([[Q, R], [R.T, cell.T]]))


def deviation(cell, slope=1.0):
    """The largest deviation of the rates from the mean over random examples, in standard errors."""
    generator = np.random.default_rng(1)
    fields = root_of(cell) @ generator.standard_normal((cell.K + cell.M, 200_000))
    terms = terms_of(cell, fields, generator.standard_normal(200_000), slope)
    error = terms.std(axis=1) / np.sqrt(terms.shape[1])
    return np.max(np.abs(terms.mean(axis=1) - rates_of(cell)) / np.maximum(error, 1e-12))


@dataclass(frozen=True)
class Own(Erf):
    """erf with a gain, whose averages are not stated."""

    label = "own"
    has_closed_forms = False
    gain: float = parameter(1.0, "gain")

    def both(self, x):
        g, slope = super().both(self.gain * x)
        return g, self.gain * slope


LABELS = {"M": 1, "teacher": {"T": 1.3, "w": -0.7, "output": "sign"}}
LABELS |= {"start": GENERAL["start"] | {"R": [[0.2], [-0.1]]}}


@pytest.mark.parametrize(
    "given",
    [
        GENERAL,
        *(
            pytest.param(GENERAL | more, marks=pytest.mark.slow)
            for more in ({"network": "linear"}, {"network": "relu"}, LABELS)
        ),
    ],
    ids=["erf", "linear", "relu", "labels"],
)
def test_the_equations_are_the_mean_of_a_step(given):
    """The largest of 9 normal deviates exceeds 4.2 once in 4,000."""
    cell = cell_of(**given)
    assert deviation(cell) < 4.2
    assert deviation(cell, slope=1.03) > 4.2, "derivatives that are 3 % too large pass unnoticed"


@pytest.mark.parametrize("name", ["erf", "linear"])
def test_the_equations_are_averages_by_quadrature(name):
    x, weight = np.polynomial.hermite_e.hermegauss(30)
    cell = cell_of(**GENERAL | LABELS | {"network": name, "noise": 0.0, "teacher": {"T": 1.3, "w": -0.7}})
    z = np.stack(np.meshgrid(*[x] * 3, indexing="ij")).reshape(3, -1)
    product = np.prod(np.meshgrid(*[weight / weight.sum()] * 3, indexing="ij"), axis=0).ravel()
    np.testing.assert_allclose(rates_of(cell), terms_of(cell, root_of(cell) @ z, 0.0) @ product, atol=1e-8)


def I2(a, b, c):
    return 2 / np.pi * np.arcsin(c / np.sqrt((1 + a) * (1 + b)))


def I3(G, i, p, a):
    wide = 1 + G[i, i]
    spread = wide * (1 + G[a, a]) - G[i, a] ** 2
    return 2 / np.pi / np.sqrt(spread) * (G[p, a] * wide - G[i, p] * G[i, a]) / wide


def I4(G, i, j, a, b):
    """Fields a and b under the Gaussians of i and j, by the inverse of their covariances."""
    ends, both = np.array([i, j]), np.array([a, b])
    wide = np.eye(2) + G[np.ix_(ends, ends)]
    rest = G[np.ix_(both, both)] - G[np.ix_(both, ends)] @ np.linalg.solve(wide, G[np.ix_(ends, both)])
    return 2 / np.pi / np.sqrt(np.linalg.det(wide)) * I2(rest[0, 0], rest[1, 1], rest[0, 1])


def slow_rates(cell, rows):
    """The equations of erf units, a loop over units."""
    K, n = cell.K, cell.K + cell.M
    R, v = rows[: K * cell.M].reshape(K, cell.M), rows[-K:]
    Q = np.zeros((K, K))
    Q[np.triu_indices(K)] = rows[K * cell.M : -K]
    Q = Q + np.triu(Q, 1).T
    G, c = np.block([[Q, R], [R.T, cell.T]]), np.concatenate([-v, cell.w])
    pull = [[v[i] * sum(c[a] * I3(G, i, p, a) for a in range(n)) for p in range(n)] for i in range(K)]
    dR = [cell.eta * pull[i][K + m] - cell.decay * R[i, m] for i in range(K) for m in range(cell.M)]
    dQ = []
    for i, j in zip(*np.triu_indices(K), strict=True):
        square = sum(c[a] * c[b] * I4(G, i, j, a, b) for a in range(n) for b in range(n))
        square += cell.noise**2 * 2 / np.pi / np.sqrt((1 + Q[i, i]) * (1 + Q[j, j]) - Q[i, j] ** 2)
        dQ.append(cell.eta * (pull[i][j] + pull[j][i]) + cell.eta**2 * v[i] * v[j] * square - 2 * cell.decay * Q[i, j])
    dv = [cell.eta_v * sum(c[a] * I2(G[i, i], G[a, a], G[i, a]) for a in range(n)) for i in range(K)]
    return np.array([*dR, *dQ, *dv])


OVER = {"K": 3, "start": {"Q": 0.25, "R": [[0.05, 0], [0, 0.05], [0, 0]]}, "noise": 0.2, "eta_v": 0.1}
UNDER = {"K": 1, "start": {"Q": 0.25, "R": [[0.05, 0.1]]}, "decay": 0.02}
ESCAPE = {"start": {"Q": 0.25, "R": [[0.05, 0], [0, 0.05]]}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "times"),
    [(GENERAL, [1, 5, 20]), (OVER, [1, 10]), (UNDER, [1, 10, 50]), ({"eta": 1.5, **ESCAPE}, [20, 60, 100])],
    ids=["general", "over", "under", "escape"],
)
def test_trajectories_are_those_of_another_integrator(given, times):
    cell = cell_of(**given)
    found = solve_cells([cell], times)[0]
    other = solve_ivp(
        lambda _, rows: slow_rates(cell, rows),
        (0, times[-1]),
        pack_units(cell.units),
        "DOP853",
        times,
        rtol=1e-11,
        atol=1e-12,
    )
    rows = [pack_units(StudentUnits(*(part[at] for part in found))) for at in range(len(times))]
    np.testing.assert_allclose(rows, other.y.T, atol=3e-9)


def test_a_linear_unit_learns_as_by_hand():
    r"""For g(x) = x, K = M = 1, v = w = T = 1 the error is e = y - h + sigma xi, and the equations are linear,

    .. math:: \dot R = \eta(1-R), \qquad \dot D = -2\eta D + \eta^2(D + \sigma^2), \quad D = Q - 2R + 1 = 2\epsilon_g,

    so that 1 - R falls as exp(-eta t), and D to eta sigma^2/(2 - eta) as exp(-eta (2 - eta) t). With decay
    R tends to eta/(eta + decay) as exp(-(eta + decay) t).
    """
    eta, sigma, t = 0.7, 0.3, np.array([0.5, 2.0, 5.0])
    given = {"network": "linear", "M": 1, "K": 1, "eta": eta, "noise": sigma, "t": t.tolist()}
    found = theory.solve(network(**given, start={"Q": 0.5, "R": 0.2}))
    rest = eta * sigma**2 / (2 - eta)
    np.testing.assert_allclose(found.R.squeeze(), 1 - 0.8 * np.exp(-eta * t), atol=1e-11)
    np.testing.assert_allclose(2 * found.eps_g, rest + (1.1 - rest) * np.exp(-eta * (2 - eta) * t), atol=1e-11)
    decayed = theory.solve(network(**given, decay=0.2, start={"Q": 0.5, "R": 0.2}))
    last = eta / (eta + 0.2)
    np.testing.assert_allclose(decayed.R.squeeze(), last + (0.2 - last) * np.exp(-(eta + 0.2) * t), atol=1e-11)


@pytest.mark.slow
def test_trajectories_take_recorded_values():
    """Those of the integrator above, at rtol 1e-12."""
    found = theory.solve(network(eta=1.5, **ESCAPE, t=[20, 60, 100])).squeeze()
    np.testing.assert_allclose(found.eps_g, [0.0318380016239, 0.0015661317154, 0.0000103909234], atol=2e-10)
    np.testing.assert_allclose(
        found.R.sel(student=1, teacher_unit=1), [0.573977632806, 0.944317236563, 0.996205118449], atol=2e-9
    )
    np.testing.assert_allclose(
        found.Q.sel(student=1, other=2), [0.241676157863, 0.050320507642, 0.003705016410], atol=2e-9
    )


@pytest.mark.slow
def test_small_errors_keep_their_digits():
    """They fall exponentially far below rounding, at a rate of the plain equations at perfect learning; those of one
    linear unit are known, D exp(-eta (2 - eta) t)/2 (see above), and become small at different times."""
    t = [90, 120, 700, 4000, 4100]
    found = theory.solve(network(eta=1.5, **ESCAPE, t=t)).eps_g.values
    with_rounding = theory.solve(network(eta=1.5, **ESCAPE, t=120)).eps_g.values
    assert abs(found[1] / with_rounding[0] - 1) < 1e-6
    growth = _evaluate_rates_and_jacobian(cell_of(eta=1.5), pack_units(StudentUnits(np.eye(2), np.eye(2), np.ones(2))))[
        1
    ][:-2, :-2]
    decay = np.log(found[4] / found[3]) / 100
    assert 0 < found[4] < 1e-200
    assert np.min(np.abs(np.linalg.eigvals(growth).real - decay)) < 1e-6
    given, eta = {"network": "linear", "M": 1, "K": 1, "t": [5, 8, 14, 100]}, np.array([0.3, 0.7, 1.0])
    one = theory.solve(network(**given, eta=eta.tolist(), start={"Q": 0.5, "R": 0.2})).eps_g.values
    np.testing.assert_allclose(one, 0.55 * np.exp(-np.outer(eta * (2 - eta), given["t"])), rtol=1e-7)


@pytest.mark.slow
def test_a_permutation_of_students_permutes_their_trajectories():
    turned = GENERAL["start"] | {"Q": [[0.3, 0.1], [0.1, 0.5]], "R": [[-0.1, 0.15], [0.2, 0.05]], "v": [0.5, 0.8]}
    one, other = (theory.solve(network(**GENERAL | {"start": start, "t": 5})) for start in (GENERAL["start"], turned))
    np.testing.assert_allclose(one.R, other.R[..., ::-1, :], atol=1e-12)
    np.testing.assert_allclose(one.Q, other.Q[..., ::-1, ::-1], atol=1e-12)
    np.testing.assert_allclose(one.specialisation, other.specialisation, atol=1e-12)
    np.testing.assert_allclose(one.eps_g, other.eps_g, atol=1e-12)


def test_students_that_start_alike_stay_alike():
    found = theory.solve(network(eta=1.5, start={"Q": [[0.25, 0.25], [0.25, 0.25]], "R": 0.1}, t=[5, 1000]))
    np.testing.assert_allclose(found.Q, found.Q[..., ::-1, :], atol=1e-12)
    assert abs(found.eps_g.values[-1] - 0.0411059790) < 1e-9  # the other symmetric fixed point


@pytest.mark.slow
def test_many_scenarios_in_one_call_are_those_solved_one_by_one():
    swept = network(eta=np.linspace(0.1, 2.0, 200).tolist(), **ESCAPE, t=[1, 10])
    cells = list(swept.cells())
    together = solve_cells(cells, swept.t)
    for at in (0, 57, 199):
        for part, alone in zip(together[at], solve_cells([cells[at]], swept.t)[0], strict=True):
            np.testing.assert_allclose(part, alone, atol=1e-10)


@pytest.mark.slow
def test_an_activation_without_closed_forms_is_averaged_by_quadrature(monkeypatch):
    """A gain of 1.2 is a scale of all weights, and of eta."""
    monkeypatch.setitem(ACTIVATIONS, "own", Own)
    start, teacher = {"Q": 0.5, "R": [[0.2], [-0.1]]}, {"T": 1.3, "w": -0.7}
    given = {"M": 1, "K": 2, "eta": 0.5, "eta_v": 0.2, "noise": 0.2, "decay": 0.1, "t": [1, 3]}
    own = theory.solve(network(**given | {"network": "own", "gain": 1.2}, start=start, teacher=teacher)).squeeze()
    wide = {"Q": 0.5 * 1.44, "R": [[0.2 * 1.44], [-0.1 * 1.44]]}
    scaled = theory.solve(network(**given | {"eta": 0.5 * 1.44}, start=wide, teacher=teacher | {"T": 1.3 * 1.44}))
    np.testing.assert_allclose(own.R * 1.44, scaled.R.squeeze(), atol=1e-8)
    np.testing.assert_allclose(own.eps_g, scaled.eps_g.squeeze(), atol=1e-8)
    assert own.attrs["averages"] == "own: quadrature"
    assert "needs quadrature, here over 5 fields" in network(network="own", M=2, K=3).unsolved


def test_the_error_is_the_mean_square():
    found = theory.solve(network(**GENERAL | {"t": 2})).squeeze()
    R, Q, v = (found[name].values for name in ("R", "Q", "v"))
    root = np.linalg.cholesky(np.block([[Q, R], [R.T, np.array(T)]]))
    h, y = np.split(root @ np.random.default_rng(0).standard_normal((4, 400_000)), 2)
    square = (np.array([1.0, -0.6]) @ erf(y / np.sqrt(2)) - v @ erf(h / np.sqrt(2))) ** 2 / 2
    assert abs(square.mean() - found.eps_g) < 4 * square.std() / np.sqrt(square.size)
    assert found.attrs["averages"] == "erf: closed form"


PLATEAUS = {
    0: (0.0116108403, 0.4082482905, 0.3333333333, 0.3333333333, 0.0),
    0.5: (0.0146448497, 0.4143941509, 0.3677196991, 0.3253855479, 0.0316181621),
    1.5: (0.0346277364, 0.4537779284, 0.6045881858, 0.2696592811, 0.0763639978),
}


@pytest.mark.slow
@pytest.mark.parametrize("eta", PLATEAUS)
def test_plateaus_take_their_known_values(eta):
    found = theory.plateau(M=2, K=2, eta=eta)
    np.testing.assert_allclose([found.eps_g, found.R, found.Q, found.C, found.escape_rate], PLATEAUS[eta], atol=6e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("K", "M"), [(3, 2), (2, 3), (4, 4), (1, 2)])
def test_a_plateau_is_a_fixed_point_with_the_escape_rate_of_its_full_jacobian(K, M):
    eta = 0.6
    found = theory.plateau(M, K, eta)
    values = [found.R, found.C, found.Q - found.C] if K > 1 else [found.R, found.Q]
    rates, slope = _evaluate_rates_and_jacobian(
        cell_of(M=M, K=K, eta=eta), pack_units(_make_symmetric_units(K, M, np.array(values)))
    )
    np.testing.assert_allclose(rates[:-K], 0, atol=1e-13)
    assert abs(np.max(np.linalg.eigvals(slope[:-K, :-K]).real) - found.escape_rate) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("K", [3, 5])
def test_the_plateau_of_small_rates_is_known(K):
    found = theory.plateau(K, K, 0)
    np.testing.assert_allclose([found.Q, found.C, found.R**2 * K], 1 / (2 * K - 1), rtol=1e-12)
    assert abs(found.eps_g - K / np.pi * (np.pi / 6 - K * np.arcsin(1 / (2 * K)))) < 1e-15


@pytest.mark.slow
def test_critical_rates_take_their_known_values():
    found = [theory.critical_rate(K) for K in (1, 2)]
    np.testing.assert_allclose(found, [4.0557786760, 2.3068276961], atol=6e-11)


@pytest.mark.slow
def test_perfect_learning_loses_stability_at_the_critical_rate():
    """By the full Jacobian; the formula without off-diagonal terms is 0.5 % too high."""
    rate = theory.critical_rate(3)
    assert abs(rate - 1.6206745061) < 6e-11
    assert abs(np.sqrt(3) * np.pi / (2 + 3 / np.sqrt(5)) / rate - 1.005) < 1e-3
    learnt = pack_units(StudentUnits(np.eye(3), np.eye(3), np.ones(3)))
    growth = [
        np.max(np.linalg.eigvals(_evaluate_rates_and_jacobian(cell_of(M=3, K=3, eta=eta), learnt)[1][:-3, :-3]).real)
        for eta in (rate * (1 - 1e-6), rate * (1 + 1e-6))
    ]
    assert growth[0] < 0 < growth[1]


@pytest.mark.slow
def test_critical_rates_fall_with_the_number_of_units_up_to_64():
    found = np.array([theory.critical_rate(K) for K in (4, 64)])
    formula = np.sqrt(3) * np.pi / (np.array([4, 64]) + 3 / np.sqrt(5) - 1)
    assert np.all((found < formula) & (found > 0.99 * formula))


def test_bad_arguments_are_refused_in_a_sentence():
    with pytest.raises(ScenarioError, match="eta: must be a number of at least 0, not -1"):
        theory.plateau(2, 2, -1)
    with pytest.raises(ScenarioError, match="K: must be an integer of at least 1, not 0"):
        theory.critical_rate(0)


FLOORS = {(2, 2): 4.018747429e-4}
SLOW_FLOORS = {(3, 2): 8.006544524e-4, (4, 4): 8.738220173e-4, (5, 4): 1.348324452e-3}


@pytest.mark.parametrize(
    ("units", "known"), [*FLOORS.items(), *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW_FLOORS.items())]
)
def test_noise_floors_take_their_known_values(units, known):
    found = theory.noise_floor(network(K=units[0], M=units[1], eta=0.2, noise=0.1))
    assert abs(found.item() - known) < 6e-13


@pytest.mark.slow
def test_small_noise_floors_are_those_of_first_order():
    found = theory.noise_floor(network(K=[2, 3], M=2, eta=0.01, noise=0.1))
    first = 0.01 * 0.1**2 / (2 * np.pi) * (np.array([0, 1]) + 2 / np.sqrt(3))
    np.testing.assert_allclose(found / first, [1.0043, 1.0072], atol=1e-4)


def test_the_equations_tend_to_the_noise_floor():
    given = GENERAL | {"eta": 0.5, "decay": 0.0, "noise": 0.2, "start": {"R": T, "Q": T, "v": [1.0, -0.6]}}
    late = theory.solve(network(**given | {"t": 20_000}))
    assert abs(theory.noise_floor(network(**given)) / late.eps_g.item() - 1) < 1e-8


def test_decay_has_a_floor_without_noise():
    given = {"eta": 0.5, "decay": 0.02, **ESCAPE}
    late = theory.solve(network(**given, t=3000))
    assert abs(theory.noise_floor(network(**given)) / late.eps_g.item() - 1) < 1e-8


@pytest.mark.slow
def test_extra_units_have_no_stable_floor_if_there_are_two():
    given = network(K=[3, 4], M=2, eta=0.05, noise=0.1)
    found, every = theory.noise_floor(given), theory.noise_floor(given, stable=False)
    assert np.isnan(found.values).tolist() == [False, True]
    assert "K = 4" in found.attrs["absent"]
    assert "not stable" in found.attrs["absent"]
    first = 0.05 * 0.1**2 / (2 * np.pi) * (2 + 2 / np.sqrt(3))
    assert 1 < every.values[1] / first < 1.06


def test_too_large_rates_have_no_floor():
    found = theory.noise_floor(network(K=2, M=2, eta=[2.3, 2.31], noise=0))
    assert found.values[0] == 0
    assert np.isnan(found.values[1])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"teacher": {"output": "sign"}}, "labels of a teacher of several units, here M = 2"),
        ({"teacher": {"network": "relu"}}, "teacher units with the students' activation only"),
    ],
)
def test_networks_without_equations_say_why(given, why):
    with pytest.raises(ScenarioError, match=why):
        theory.solve(network(**given))


def test_labels_of_units_that_change_sign_elsewhere_have_no_equations(monkeypatch):
    class Shifted(Erf):
        def both(self, x):
            return super().both(x + 1.0)

    monkeypatch.setitem(ACTIVATIONS, "shifted", Shifted)
    with pytest.raises(ScenarioError, match=r"teacher units whose g\(x\) has the sign of x"):
        theory.solve(network(network="shifted", M=1, teacher={"output": "sign"}))
