"""What a user would write without this library: the online perceptron and MinOver, step by step; pairs in loops.

`numpy_loop` is a plain NumPy loop over examples and students; `sklearn_loop` gives the same examples, one
by one, to scikit-learn's Perceptron. Both simulate the model of `simulate`: inputs of N(0, 1/N) entries, a
teacher of length sqrt(N), order parameters recorded at times t = examples / N. The engines are timed
against both, and both are checked to give the same R from the same generator:

    python benchmarks/engines.py gram vectors sklearn
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Times = Sequence[float]


def begin(rng: np.random.Generator, N: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """A teacher of length sqrt(N), shape (N,), and students of N(0, 1) entries, shape (K, N)."""
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
                length = np.linalg.norm(student) / np.sqrt(N)  # as every rule in u needs it
                u = student @ x / length
                if label * u < 0:
                    student += eta * label * x
        done = round(t * N)
        recorded.append(order_parameters(teacher, students))
    R, q, length = (np.array(part) for part in zip(*recorded, strict=True))
    return R, q, length


def sklearn_loop(
    rng: np.random.Generator, teacher: np.ndarray, student: np.ndarray, times: Times, eta: float = 1.0
) -> np.ndarray:
    """R at the given times of one student, by `Perceptron.partial_fit` on one example at a time."""
    from sklearn.linear_model import Perceptron  # here, so that the NumPy loop does not need it

    N, recorded, done = teacher.size, [], 0
    model = Perceptron(fit_intercept=False, shuffle=False, eta0=eta)
    model.partial_fit(np.zeros((1, N)), [1], classes=[-1, 1])  # makes coef_; an input of zeros moves nothing
    model.coef_[0] = student
    for t in times:
        for _ in range(done, round(t * N)):
            x = rng.standard_normal(N) / np.sqrt(N)
            model.partial_fit(x[None], [1 if teacher @ x > 0 else -1])
        done = round(t * N)
        recorded.append(order_parameters(teacher, model.coef_)[0][0])
    return np.array(recorded)


def minover(z: np.ndarray, updates: int) -> np.ndarray:
    """MinOver as the assignment's appendix goes about it: a loop over the examples z (P, N) and a sort an update."""
    P, N = z.shape
    w = np.zeros(N)
    for _ in range(updates):
        fields = sorted(((np.dot(z[mu], w), mu) for mu in range(P)), key=lambda pair: pair[0])
        w = w + z[fields[0][1]] / N
    return w


def minover_matvec(z: np.ndarray, updates: int) -> np.ndarray:
    """The same with one matrix-vector product and an argmin an update."""
    w = np.zeros(z.shape[1])
    for _ in range(updates):
        w = w + z[np.argmin(z @ w)] / w.size
    return w


def order_parameters(teacher: np.ndarray, students: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """R (K,), q (K, K) and l (K,)."""
    norms = np.linalg.norm(students, axis=1)
    R = students @ teacher / (norms * np.linalg.norm(teacher))
    return R, students @ students.T / np.outer(norms, norms), norms / np.sqrt(teacher.size)


def best_pair_python(X: np.ndarray, signed: np.ndarray, attributes: np.ndarray) -> tuple[int, int]:
    """The pair of indicators of two attributes whose conjunction correlates most: a loop in a loop in a loop."""
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
    """The same with one vectorised sum a pair."""
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
    apart = attributes[one] != attributes[other]
    one, other = one[apart], other[apart]
    values = np.abs(2 * ((X * signed[:, None]).T @ X)[one, other] - signed.sum())
    at = int(np.argmax(values >= values.max() * (1 - 1e-12)))
    return int(one[at]), int(other[at])
