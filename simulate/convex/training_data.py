r"""Random training examples of convex learners, from a teacher or from two clusters, and measurement of students.

Each part of a seed's data has its own stream of random numbers. For each N the inputs are one endless list, and every
alpha of a sweep uses the first P inputs of this list.

**Teacher.** The examples serve learners that minimise a loss, and Bayesian inference. A seed has one teacher for each N
and distribution of weights, and random numbers for the outputs of all inputs in the list. A larger flip probability
flips the same labels and more. So runs can be compared example by example, also between different kinds of scenario.

**Anisotropic inputs.** Gaussian inputs and rows of a table are expressed in the eigenbasis of their covariance, as
:math:`\sqrt N\mathbf x`. The teacher's field has variance 1:
:math:`u = \sqrt S\,\mathbf B\cdot\mathbf x/\sigma_B + \sqrt{1-S}\,\xi`. The variance
:math:`\sigma_B^2 = \sum_i\omega_iB_i^2/N` is computed for the drawn teacher, so that the *misfit* 1 - S is pure noise.
With powers :math:`T_a` the teacher is drawn, then scaled to :math:`|\mathbf B_a|^2 = NT_a` in each group. Random
features :math:`\phi(F\mathbf z/\sqrt D) - \mu_0` have projections F drawn once per seed, and a teacher of the D latent
variables.

**Students are measured** exactly from the covariance where inputs are Gaussian, on all rows of a table, and on
`NUM_TEST_EXAMPLES` new inputs of random features, the same for all students of a seed.

**Ensembles.** Each student of a seed has its own order of the examples, and learns the first examples: a larger share
adds examples, and a larger K adds students. The draws of a bootstrap are independent of this order.

**Two Gaussian clusters.** A seed has one direction between the centres for each N, and the inputs in the list lie
around the centre of their cluster. Labels +1 are equally spaced in the list, so that any first part of the list
contains the given fraction of +1 to within one example. An intercept would otherwise follow fluctuations of that
fraction, which under a strong penalty exceed the signal in the weights. The direction is drawn and scaled so that the
distance between the centres, and its part in each group of a spectrum, equal their values in the limit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from statmech.convex.teachers import LabelTeacher, label_error
from statmech.convex.weight_distributions import WeightDistribution
from statmech.inputs.input_distributions import Gaussian, InputAxes, InputPopulation
from statmech.keys.sweep_grid import hash_identity
from statmech.kinds.convex_fit import TeacherCell
from statmech.kinds.empirical_risk import RiskCell
from statmech.kinds.risk_clusters import ClusterCell

# one stream for each kind of random number
TEACHER_STREAM, START_STREAM, INPUT_STREAM, OUTPUT_STREAM, MISFIT_STREAM, PROJECTION_STREAM, TEST_STREAM = range(7)
RESAMPLING_STREAM, VOTE_STREAM = 7, 8
NULL_VARIANCE_TOL = 1e-12  # relative to N times the largest variance: smaller variances are rounding errors
NUM_TEST_EXAMPLES = 10_000  # new inputs, for students of random features


def make_random_stream(part: int, **identity: Any) -> np.random.Generator:
    """Return the random number generator for one part of the data."""
    return np.random.default_rng([*hash_identity(identity), part])


def describe_weight_prior(weights: WeightDistribution) -> dict[str, Any]:
    """Return the name and parameters of a weight prior, which identify its random stream."""
    return {"weights": type(weights).__name__, **asdict(weights)}


class StudentMeasure(ABC):
    """A measurement of students with weights (N,), whose fields are w.x/sqrt(N)."""

    ridge: np.ndarray  # penalty factor of each weight (N,)
    varying_axes: np.ndarray  # mask (N,) of axes with nonzero variance

    @abstractmethod
    def measure_student(self, cell: RiskCell, w: np.ndarray) -> dict[str, float]:
        """Compute the cosines, lengths and errors of a student."""

    @abstractmethod
    def trace_with_covariance(self, matrix: np.ndarray) -> float:
        """Compute the trace of a matrix (n, n) times the covariance of the n varying axes."""


class GaussianStudentMeasure(StudentMeasure):
    """A measurement on Gaussian inputs with independent components."""

    def __init__(self, axes: InputAxes, teacher: np.ndarray, signal: float):
        self.variances, self.ridge, self.teacher, self.signal = axes.variances, axes.ridge, teacher, signal
        self.varying_axes = axes.variances > 0

    def measure_student(self, cell: RiskCell, w: np.ndarray) -> dict[str, float]:
        N, parallel = len(w), self.variances @ (w * self.teacher) / len(w)
        length = np.sqrt(self.variances @ w**2 / N)
        R = float(np.clip(parallel / length, -1, 1)) if length > 0 else 0.0
        values = {**_compute_overlap_and_length(w, self.teacher), "R_field": R, "length_field": float(length)}
        values["eps_g"] = float(np.arccos(R) / np.pi)
        if isinstance(cell.teacher, LabelTeacher):
            return values | {"eps_y": float(label_error(cell.teacher, R))}
        return values | {"mse": float(self.variances @ (w - self.teacher) ** 2 / N + 1 - self.signal)}

    def trace_with_covariance(self, matrix: np.ndarray) -> float:
        return float(self.variances[self.varying_axes] @ np.diag(matrix))


class SampleStudentMeasure(StudentMeasure):
    """A measurement on given inputs (M, N) with the teacher's fields u (M,).

    `teacher` is None if it is not a vector in the space of the inputs.
    """

    def __init__(self, X: np.ndarray, u: np.ndarray, teacher: np.ndarray | None):
        self.X, self.u, self.teacher = X, u, teacher
        self.ridge, self.varying_axes = np.ones(X.shape[1]), np.any(X != 0, axis=0)

    def measure_student(self, cell: RiskCell, w: np.ndarray) -> dict[str, float]:
        h, u = self.X @ w / np.sqrt(len(w)), self.u
        length = np.sqrt(np.mean(h**2))
        R = float(np.mean(h * u) / length / np.sqrt(np.mean(u**2))) if length > 0 else 0.0
        values = {**_compute_overlap_and_length(w, self.teacher), "R_field": R, "length_field": float(length)}
        values["eps_g"] = float(np.mean(0.5 - 0.5 * np.sign(h) * np.sign(u)))
        if isinstance(cell.teacher, LabelTeacher):
            right = cell.teacher.probability(np.abs(u))
            agree = np.sign(h) * np.sign(u)
            return values | {"eps_y": float(np.mean(0.5 + agree * (0.5 - right)))}
        return values | {"mse": float(np.mean((h - u) ** 2))}

    def trace_with_covariance(self, matrix: np.ndarray) -> float:
        X = self.X[:, self.varying_axes]
        return float(np.sum((X @ matrix) * X) / len(X))


def _compute_overlap_and_length(w: np.ndarray, teacher: np.ndarray | None) -> dict[str, float]:
    """Compute a trained student's overlap R with the teacher, and the length of its weights."""
    norm = np.linalg.norm(w)
    length = {"length": float(norm / np.sqrt(len(w)))}
    if teacher is None:
        return length
    return {"R": float(w @ teacher / norm / np.linalg.norm(teacher)) if norm > 0 else 0.0, **length}


class TeacherInputs(NamedTuple):
    """Inputs X (P, N), teacher's fields u (P,), teacher's weights, and a measurement of students."""

    X: np.ndarray
    u: np.ndarray
    teacher: np.ndarray
    student_measure: StudentMeasure


def draw_teacher_inputs(cell: RiskCell, stream_identity: dict[str, int]) -> TeacherInputs:
    """Draw the inputs and teacher's fields of the first P examples of a seed.

    The keyword arguments `stream_identity` identify the random numbers.
    """
    if D := cell.inputs.count_latent_variables(cell.N):
        return _draw_random_features(cell, D, stream_identity)
    axes = cell.inputs.axes(cell.N)
    return _draw_gaussian_axis_inputs(cell, axes, stream_identity) if axes else _draw_table_rows(cell, stream_identity)


def _draw_gaussian_axis_inputs(cell: RiskCell, axes: InputAxes, identity: dict[str, int]) -> TeacherInputs:
    weights = cell.weights.draw(
        make_random_stream(TEACHER_STREAM, **identity, **describe_weight_prior(cell.weights)), cell.N
    )
    modes = cell.inputs.modes(cell.N)
    assert modes is not None
    B = weights if axes.powers is None else _scale_to_group_powers(weights, axes)
    B = B * np.sqrt(modes.signal_fraction * cell.N / (axes.variances @ B**2))
    X = make_random_stream(INPUT_STREAM, **identity).standard_normal((cell.P, cell.N)) * np.sqrt(axes.variances)
    misfit = (
        make_random_stream(MISFIT_STREAM, **identity).standard_normal(cell.P) * np.sqrt(modes.misfit)
        if modes.misfit
        else 0.0
    )
    return TeacherInputs(X, _compute_fields(X, B) + misfit, B, GaussianStudentMeasure(axes, B, modes.signal_fraction))


def _scale_to_group_powers(weights: np.ndarray, axes: InputAxes) -> np.ndarray:
    """Scale a teacher to the squared length N T in each group."""
    assert axes.powers is not None
    assert axes.group is not None
    square = np.bincount(axes.group, weights**2)[axes.group]
    direction = np.where(square > 0, weights / np.sqrt(np.where(square > 0, square, 1)), 0.0)
    is_empty = square == 0  # a small group may have no nonzero weights
    count = np.bincount(axes.group)[axes.group]
    return np.where(is_empty, 1 / np.sqrt(count), direction) * np.sqrt(len(weights) * axes.powers)


def _draw_table_rows(cell: RiskCell, identity: dict[str, int]) -> TeacherInputs:
    """Draw rows of a table with replacement, rotated into the eigenbasis of their covariance."""
    population = cell.loss_setting.inputs
    assert population is not None
    table = _rotate_to_eigenbasis(population)
    B = cell.weights.draw(make_random_stream(TEACHER_STREAM, **identity, **describe_weight_prior(cell.weights)), cell.N)
    B = B / np.sqrt(np.mean(_compute_fields(table, B) ** 2))
    which = make_random_stream(INPUT_STREAM, **identity).integers(0, len(table), cell.P)
    u = _compute_fields(table, B)
    return TeacherInputs(table[which], u[which], B, SampleStudentMeasure(table, u, B))


@lru_cache(maxsize=2)  # all runs of a sweep use the same table
def _rotate_to_eigenbasis(population: InputPopulation) -> np.ndarray:
    """Rotate the rows of a table, times sqrt(N), into the eigenbasis of their covariance."""
    N = population.N
    table = np.asarray(population.inputs.table(N), float) * np.sqrt(N)
    omega, basis = np.linalg.eigh(table.T @ table / len(table))
    return np.where(omega > omega[-1] * N * NULL_VARIANCE_TOL, table @ basis, 0.0)


def _draw_random_features(cell: RiskCell, D: int, identity: dict[str, int]) -> TeacherInputs:
    names = {**identity, "latent": D}
    B = cell.weights.draw(make_random_stream(TEACHER_STREAM, **names, **describe_weight_prior(cell.weights)), D)
    B = B * np.sqrt(D / (B @ B))
    F = make_random_stream(PROJECTION_STREAM, **names).standard_normal((cell.N, D)) / np.sqrt(D)

    def examples(part: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        z = make_random_stream(part, **names).standard_normal((number, D))
        return cell.inputs.map_latent_fields(z @ F.T), _compute_fields(z, B)

    return TeacherInputs(
        *examples(INPUT_STREAM, cell.P), B, SampleStudentMeasure(*examples(TEST_STREAM, NUM_TEST_EXAMPLES), None)
    )


def _compute_fields(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Compute fields (P,) row by row, so that each field's bits are independent of other rows."""
    return np.einsum("pi,i->p", X, w) / np.sqrt(X.shape[1])


class TeacherData(NamedTuple):
    """A teacher's weights (N,), inputs X (P, N) and outputs y (P,).

    With unequal variances also the measure of students.
    """

    teacher: np.ndarray
    X: np.ndarray
    y: np.ndarray
    student_measure: StudentMeasure | None = None


def draw_teacher_data(cell: TeacherCell, key: int, seed: int) -> TeacherData:
    """Draw the first P training examples of a seed and their teacher.

    >>> from statmech import Inference
    >>> scenario = Inference(prior="binary", N=4, alpha=[0.5, 1])
    >>> few, more = (draw_teacher_data(cell, key=0, seed=0) for cell in scenario.cells())
    >>> bool((more.X[:2] == few.X).all()), bool((more.y[:2] == few.y).all()), abs(few.teacher).tolist()
    (True, True, [1.0, 1.0, 1.0, 1.0])
    """
    N, identity = cell.N, {"N": cell.N, "key": key, "seed": seed}
    inputs = cell.inputs if isinstance(cell, RiskCell) else Gaussian()
    if not inputs.isotropic:
        assert isinstance(cell, RiskCell)
        examples = draw_teacher_inputs(cell, identity)
        y = cell.teacher.draw(make_random_stream(OUTPUT_STREAM, **identity), examples.u)
        return TeacherData(examples.teacher, examples.X, y, examples.student_measure)
    w = cell.weights.draw(make_random_stream(TEACHER_STREAM, **identity, **describe_weight_prior(cell.weights)), N)
    X = inputs.draw_examples(make_random_stream(INPUT_STREAM, **identity), cell.P, N)
    u = np.einsum("pi,i->p", X, w) / np.sqrt(N)  # row by row: each field's bits are independent of other rows
    return TeacherData(w, X, cell.teacher.draw(make_random_stream(OUTPUT_STREAM, **identity), u))


def draw_learnt_examples(cell: RiskCell, key: int, seed: int, student: int) -> np.ndarray:
    """Draw the positions of the examples that one student of an ensemble learns, with repetitions for a bootstrap.

    >>> from statmech import Risk
    >>> scenario = Risk(loss="square", K=2, resample={"share": [0.2, 0.5]}, N=10, alpha=1)
    >>> few, more = (draw_learnt_examples(cell, key=0, seed=0, student=0) for cell in scenario.cells())
    >>> len(few), len(more), bool((more[:2] == few).all())
    (2, 5, True)
    """
    rng = make_random_stream(RESAMPLING_STREAM, N=cell.N, key=key, seed=seed, student=student)
    if cell.is_bootstrap:
        return rng.integers(0, cell.P, cell.P)
    return rng.permutation(cell.P)[: cell.num_learnt_examples]


class ClusterData(NamedTuple):
    """Labelled examples of two Gaussian clusters.

    Half the difference of the centres, N d / 2 (N,), the variances around a centre (N,), inputs (P, N) and labels (P,).
    """

    half_centre_difference: np.ndarray
    variances: np.ndarray
    X: np.ndarray
    y: np.ndarray


def draw_cluster_data(cell: ClusterCell, key: int, seed: int) -> ClusterData:
    """Draw the first P training examples of two clusters for one seed.

    Parameters
    ----------
    cell
        The parameter combination.
    key, seed
        The key of the experiment's random numbers, and the run.

    Examples
    --------
    >>> from statmech import Clusters
    >>> scenario = Clusters(clusters="gaussian", loss="hinge", N=4, alpha=[0.5, 1])
    >>> few, more = (draw_cluster_data(cell, 0, 0) for cell in scenario.cells())
    >>> bool((more.X[:2] == few.X).all()), bool((more.y[:2] == few.y).all())
    (True, True)
    >>> round(float(np.sum(few.half_centre_difference**2)), 12)
    4.0
    """
    identity = {"N": cell.N, "key": key, "seed": seed}
    half = draw_cluster_direction(cell, make_random_stream(TEACHER_STREAM, **identity)) * cell.kind.distance / 2
    variances = compute_cluster_variances(cell)
    y = make_cluster_labels(cell.kind.positives, cell.P)
    far = np.where(y > 0, 2 * (1 - cell.kind.positives), 2 * cell.kind.positives)
    X = make_random_stream(INPUT_STREAM, **identity).standard_normal((cell.P, cell.N)) * np.sqrt(variances)
    return ClusterData(half, variances, X + np.outer(y * far, half / np.sqrt(cell.N)), y)


def make_cluster_labels(positive_fraction: float, P: int) -> np.ndarray:
    """Return P labels with this fraction of +1 among the first n, to within one label for every n.

    >>> make_cluster_labels(0.3, 10)
    array([-1., -1., -1.,  1., -1., -1.,  1., -1., -1.,  1.])
    """
    count = np.floor(positive_fraction * np.arange(P + 1))
    return 2 * np.diff(count) - 1


def compute_cluster_variances(cell: ClusterCell) -> np.ndarray:
    """Return N times the variances (N,) of the inputs around their centre."""
    inputs = cell.inputs
    return np.ones(cell.N) if inputs.isotropic else np.asarray(inputs.table(cell.N), float) ** 2


def draw_cluster_direction(cell: ClusterCell, rng: np.random.Generator) -> np.ndarray:
    """Draw the direction between the centres of training clusters, a vector (N,) of squared length N.

    The `teacher` powers of a spectrum divide the squared length among its groups.
    """
    vector = rng.standard_normal(cell.N)
    axes = cell.inputs.axes(cell.N)
    if axes is None or axes.powers is None or axes.group is None:
        return vector * np.sqrt(cell.N) / np.linalg.norm(vector)
    sizes = np.bincount(axes.group)
    squares = np.add.reduceat(vector**2, np.cumsum(sizes) - sizes)
    return vector * np.sqrt(axes.powers * cell.N / np.repeat(squares, sizes))
