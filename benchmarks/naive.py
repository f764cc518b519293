"""The baselines, written without this library: learners step by step, loops over pairs, a damped iteration.

`numpy_loop` is a plain NumPy loop over examples and students; `sklearn_loop` gives the same examples, one
by one, to scikit-learn's Perceptron. Both simulate the model of `simulate`: inputs with N(0, 1/N) entries, a
teacher of length sqrt(N), order parameters recorded at times t = examples / N. The engines are timed
against both, and both are checked to give the same R from the same generator:

    python benchmarks/engines.py gram vectors sklearn

`covariate_model` iterates the equations of Loureiro et al. (2021), "Learning curves of generic features maps", for the
logistic loss, as GCMProject does; `benchmarks/peers.py` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from scipy.special import erf, expit, ndtr

Times = Sequence[float]
LAST_TIME, START_OVERLAP = 20.0, 0.1  # of the perceptron whose learning rates are differentiated
DIFFERENCE_STEP = 1e-4  # relative step of finite differences


def begin(rng: np.random.Generator, N: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """A teacher of length sqrt(N), shape (N,), and students with N(0, 1) entries, shape (K, N)."""
    teacher = rng.standard_normal(N)
    return teacher * np.sqrt(N) / np.linalg.norm(teacher), rng.standard_normal((K, N))


def numpy_loop(
    rng: np.random.Generator, teacher: np.ndarray, students: np.ndarray, times: Times, eta: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """R (T, K), q (T, K, K) and l (T, K) at the given times; `students` are not changed."""
    N, students, recorded, done = teacher.size, students.copy(), [], 0
    for t in times:
        for _ in range(done, round(t * N)):
            x = rng.standard_normal(N) / np.sqrt(N)
            label = 1.0 if teacher @ x > 0 else -1.0
            for student in students:
                length = np.linalg.norm(student) / np.sqrt(N)  # because rules use the normalised field u
                u = student @ x / length
                if label * u < 0:
                    student += eta * label * x
        done = round(t * N)
        recorded.append(order_parameters(teacher, students))
    R, q, length = (np.array(values) for values in zip(*recorded, strict=True))
    return R, q, length


def sklearn_loop(
    rng: np.random.Generator, teacher: np.ndarray, student: np.ndarray, times: Times, eta: float = 1.0
) -> np.ndarray:
    """R at the given times of one student, by `Perceptron.partial_fit` on one example at a time."""
    from sklearn.linear_model import Perceptron  # here, so that the NumPy loop does not need it

    N, recorded, done = teacher.size, [], 0
    model = Perceptron(fit_intercept=False, shuffle=False, eta0=eta)
    model.partial_fit(np.zeros((1, N)), [1], classes=[-1, 1])  # creates coef_; an input of zeros changes nothing
    model.coef_[0] = student
    for t in times:
        for _ in range(done, round(t * N)):
            x = rng.standard_normal(N) / np.sqrt(N)
            model.partial_fit(x[None], [1 if teacher @ x > 0 else -1])
        done = round(t * N)
        recorded.append(order_parameters(teacher, model.coef_)[0][0])
    return np.array(recorded)


def minover(z: np.ndarray, updates: int) -> np.ndarray:
    """MinOver as in the assignment's appendix: a loop over the examples z (P, N) and a sort per update."""
    P, N = z.shape
    w = np.zeros(N)
    for _ in range(updates):
        fields = sorted(((np.dot(z[mu], w), mu) for mu in range(P)), key=lambda pair: pair[0])
        w = w + z[fields[0][1]] / N
    return w


def minover_matvec(z: np.ndarray, updates: int) -> np.ndarray:
    """The same with one matrix-vector product and an argmin per update."""
    w = np.zeros(z.shape[1])
    for _ in range(updates):
        w = w + z[np.argmin(z @ w)] / w.size
    return w


def order_parameters(teacher: np.ndarray, students: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """R (K,), q (K, K) and l (K,)."""
    norms = np.linalg.norm(students, axis=1)
    R = students @ teacher / (norms * np.linalg.norm(teacher))
    return R, students @ students.T / np.outer(norms, norms), norms / np.sqrt(teacher.size)


def logistic_prox(h: float, V: float) -> float:
    """The stability p that minimises log(1 + e^-p) + (p - h)^2/(2 V)."""
    return brentq(lambda p: p - h - V * expit(-p), min(h, h + V) - 1e-9, h + V + 1e-9, xtol=1e-13)


def covariate_model(omega: np.ndarray, power: np.ndarray, alpha: float, lam: float, close: float = 1e-9) -> float:
    """The error of logistic regression on labels of a linear teacher, by iterating its overlaps with damping 1/2.

    The covariance has the eigenvalues omega (d,), and power (d,) is the part of the variance of the teacher's field
    in each direction. It ends when no overlap changes by more than `close`.
    """
    V, q, m = np.full(3, 0.5)
    while True:
        hats = _hats(V, q, m, alpha)
        D = lam + hats[0] * omega
        new_V, new_m = np.mean(omega / D), hats[2] * np.sum(power * omega / D)
        new_q = hats[1] * np.mean((omega / D) ** 2) + hats[2] ** 2 * np.sum(power * (omega / D) ** 2)
        moved = max(abs(new_V - V), abs(new_q - q), abs(new_m - m))
        V, q, m = 0.5 * (V + new_V), 0.5 * (q + new_q), 0.5 * (m + new_m)
        if moved < close:
            return float(np.arccos(m / np.sqrt(q)) / np.pi)


def _hats(V: float, q: float, m: float, alpha: float) -> tuple[float, float, float]:
    """The hats of V, q and m: averages over the field of an example, both labels alike."""
    width, left = np.sqrt(q), np.sqrt(1 - m**2 / q)

    def average(of: Callable[[float, float, float], float]) -> float:
        def integrand(z: float) -> float:
            return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) * of(z, width * z, logistic_prox(width * z, V))

        return 2 * quad(integrand, -10, 10, epsabs=1e-11, epsrel=1e-10, limit=200)[0]

    def right(z: float) -> float:
        return ndtr(m / width * z / left)

    def slope(z: float) -> float:
        return np.exp(-0.5 * (m / width * z / left) ** 2) / np.sqrt(2 * np.pi) / left

    def curvature(p: float) -> float:
        return expit(p) * expit(-p)

    hat_V = alpha * average(lambda z, h, p: right(z) * curvature(p) / (1 + V * curvature(p)))
    hat_q = alpha * average(lambda z, h, p: right(z) * ((p - h) / V) ** 2)
    return hat_V, hat_q, alpha * average(lambda z, h, p: slope(z) * (p - h) / V)


def best_pair_python(X: np.ndarray, signed: np.ndarray, attributes: np.ndarray) -> tuple[int, int]:
    """The pair of indicators of different attributes with the most correlated conjunction: three nested loops."""
    true = [set(np.flatnonzero(column)) for column in X.T.tolist()]
    weights, of = signed.tolist(), attributes.tolist()
    total, best, found = sum(weights), -1.0, (0, 0)
    for i in range(len(of)):
        for j in range(i + 1, len(of)):
            if of[i] != of[j]:
                value = abs(2 * sum(weights[x] for x in true[i] if x in true[j]) - total)
                if value > best * (1 + 1e-12):
                    best, found = value, (i, j)
    return found


def best_pair_numpy(X: np.ndarray, signed: np.ndarray, attributes: np.ndarray) -> tuple[int, int]:
    """The same with one vectorised sum per pair."""
    columns, total, best, found = np.ascontiguousarray(X.T), signed.sum(), -1.0, (0, 0)
    for i in range(len(attributes)):
        weighted = columns[i] * signed
        for j in range(i + 1, len(attributes)):
            if attributes[i] != attributes[j]:
                value = abs(2 * (weighted @ columns[j]) - total)
                if value > best * (1 + 1e-12):
                    best, found = value, (i, j)
    return found


def best_pair_product(X: np.ndarray, signed: np.ndarray, attributes: np.ndarray) -> tuple[int, int]:
    """The same with one matrix product over all rows, of which the pairs are gathered."""
    one, other = np.triu_indices(len(attributes), 1)
    different = attributes[one] != attributes[other]
    one, other = one[different], other[different]
    values = np.abs(2 * ((X * signed[:, None]).T @ X)[one, other] - signed.sum())
    index = int(np.argmax(values >= values.max() * (1 - 1e-12)))
    return int(one[index]), int(other[index])


def two_tasks_loop(N: int, steps: int) -> None:
    """Two tasks in turn on weight vectors, one example after the other."""
    rng = np.random.default_rng(0)
    teachers, J = rng.standard_normal((2, N)), 0.5 * rng.standard_normal((2, N))
    V, eta = np.full((2, 2), 0.5), 1.0
    for step in range(steps):
        task, x = int(2 * step >= steps), rng.standard_normal(N) / np.sqrt(N)
        h = J @ x
        g = erf(h / np.sqrt(2))
        error = erf(teachers[task] @ x / np.sqrt(2)) - V[task] @ g
        J += np.outer(eta * error * V[task] * np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2), x)
        V[task] += eta / N * error * g


def angle_after(eta: np.ndarray, edges: np.ndarray) -> float:
    """The angle of a perceptron after learning at these rates, one on each segment, by LSODA in (R, l)."""
    state = [START_OVERLAP, 1.0]
    for rate, begin, end in zip(eta, edges[:-1], edges[1:], strict=True):

        def rates(_: float, state: np.ndarray, rate: float = rate) -> list[float]:
            R, length = state
            a, F, D = rate / length, np.arccos(R) / np.pi, 1 / np.sqrt(2 * np.pi)
            return [a * (1 - R * R) * D - a * a * R * F / 2, rate * (a * F / 2 - (1 - R) * D)]

        state = solve_ivp(rates, (begin, end), state, method="LSODA", rtol=1e-9, atol=1e-11).y[:, -1]
    return float(np.arccos(state[0]))


def gradient_by_differences(eta: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The gradient of log eps_g by one more solution a segment."""
    cost = np.log(angle_after(eta, edges))
    return np.array(
        [(np.log(angle_after(eta + DIFFERENCE_STEP * one, edges)) - cost) / DIFFERENCE_STEP for one in np.eye(eta.size)]
    )
