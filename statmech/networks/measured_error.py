"""Network errors measured on test fields, for labels and for teachers without closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from statmech.activations import Activation
from statmech.networks.network_error import average_field_pairs, get_diagonals, sum_weighted_pairs
from statmech.order_parameters import factor_semidefinite_matrix

NUM_TEST_FIELDS = 4096


class TeacherNetwork(NamedTuple):
    """A teacher network: activation, unit products T (M, M), output weights w (M,), and output "linear" or "sign"."""

    activation: Activation
    T: np.ndarray
    w: np.ndarray
    output: str = "linear"

    def compute_outputs(self, fields: np.ndarray) -> np.ndarray:
        """Return the outputs (n,) for fields (M, n) of the units."""
        sums = self.w @ self.activation.both(fields)[0]
        return np.sign(sums) if self.output == "sign" else sums


def measured_error(
    activation: Activation,
    teacher: TeacherNetwork,
    R: np.ndarray,
    Q: np.ndarray,
    v: np.ndarray,
    generator: np.random.Generator,
    num_fields: int = NUM_TEST_FIELDS,
) -> np.ndarray:
    r"""Estimate the generalization error as a mean over test fields, for teachers without a closed form.

    For students with closed forms only the teacher's fields y are drawn:

    .. math:: \epsilon_g = \tfrac12\Big\langle Y^2 - 2Y\sum_kv_k\langle g(h_k)|y\rangle\Big\rangle_y
              + \tfrac12\sum_{kl}v_kv_lI_2(Q_{kl}) .

    Parameters
    ----------
    activation : Activation
        Activation of the students.
    teacher : Teacher
        The teacher network.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units.
    v : array (..., K)
        Weights of student units in the output.
    generator : numpy Generator
        Draws the same fields for all leading axes.
    num_fields : int
        Number of test fields. The standard error decays with its square root.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from statmech.activations import Erf
    >>> teacher, I = TeacherNetwork(Erf(), np.eye(2), np.ones(2), "sign"), np.eye(2)
    >>> round(float(measured_error(Erf(), teacher, I, I, np.ones(2), np.random.default_rng(0))), 2)
    0.17
    """

    def compute_error(network: _StudentNetwork, y: np.ndarray, normals: np.ndarray) -> float:
        target = teacher.compute_outputs(y)
        if not activation.has_closed_forms:
            return float(np.mean((target - network.v @ activation.both(network.fields(y, normals))[0]) ** 2)) / 2
        outputs = network.v @ activation.given(network.teacher_coefficients @ y, network.residual_variances[:, None])
        squares = sum_weighted_pairs(
            average_field_pairs(activation.I2, get_diagonals(network.Q), network.Q, get_diagonals(network.Q)),
            network.v,
            network.v,
        )
        return float(np.mean(target * target - 2 * target * outputs) + squares) / 2

    return _average_error_over_fields(compute_error, teacher, R, Q, v, generator, num_fields)


def label_error(
    activation: Activation,
    teacher: TeacherNetwork,
    R: np.ndarray,
    Q: np.ndarray,
    v: np.ndarray,
    generator: np.random.Generator,
    num_fields: int = NUM_TEST_FIELDS,
) -> np.ndarray:
    """Estimate on test fields the fraction of labels that the student network mispredicts.

    A tie counts 1/2.

    Parameters
    ----------
    activation : Activation
        Activation of the students.
    teacher : Teacher
        The teacher network, whose output is a label.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units.
    v : array (..., K)
        Weights of student units in the output.
    generator : numpy Generator
        Draws the same fields for all leading axes.
    num_fields : int
        Number of test fields. The standard error decays with its square root.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from statmech.activations import Linear
    >>> teacher, I = TeacherNetwork(Linear(), np.eye(1), np.ones(1), "sign"), np.eye(1)
    >>> float(label_error(Linear(), teacher, -I, I, np.ones(1), np.random.default_rng(0)))
    1.0
    """

    def compute_error(network: _StudentNetwork, y: np.ndarray, normals: np.ndarray) -> float:
        outputs = network.v @ activation.both(network.fields(y, normals))[0]
        return float(np.mean(1 - np.sign(teacher.compute_outputs(y)) * np.sign(outputs))) / 2

    return _average_error_over_fields(compute_error, teacher, R, Q, v, generator, num_fields)


class _StudentNetwork(NamedTuple):
    """A student network, whose fields are mean @ y plus noise, given the teacher's fields y (M, n)."""

    teacher_coefficients: np.ndarray
    residual_covariance: np.ndarray
    Q: np.ndarray
    v: np.ndarray

    @property
    def residual_variances(self) -> np.ndarray:
        return np.maximum(get_diagonals(self.residual_covariance), 0.0)

    def fields(self, y: np.ndarray, normals: np.ndarray) -> np.ndarray:
        return self.teacher_coefficients @ y + factor_semidefinite_matrix(self.residual_covariance) @ normals


def _average_error_over_fields(
    compute_error: Callable[[_StudentNetwork, np.ndarray, np.ndarray], float],
    teacher: TeacherNetwork,
    R: np.ndarray,
    Q: np.ndarray,
    v: np.ndarray,
    generator: np.random.Generator,
    num_fields: int,
) -> np.ndarray:
    """Estimate the error of each network on the leading axes, with the same test fields for all."""
    leading = np.broadcast_shapes(R.shape[:-2], Q.shape[:-2], v.shape[:-1])
    R, Q = (np.broadcast_to(G, leading + G.shape[-2:]) for G in (R, Q))
    v = np.broadcast_to(v, leading + v.shape[-1:])
    M, K = len(teacher.w), v.shape[-1]
    y = factor_semidefinite_matrix(teacher.T) @ generator.standard_normal((M, num_fields))
    normals = generator.standard_normal((K, num_fields))
    mean = R @ np.linalg.pinv(teacher.T, hermitian=True)
    rest = Q - mean @ R.swapaxes(-1, -2)
    networks = (_StudentNetwork(mean[index], rest[index], Q[index], v[index]) for index in np.ndindex(leading))
    return np.array([compute_error(network, y, normals) for network in networks]).reshape(leading)
