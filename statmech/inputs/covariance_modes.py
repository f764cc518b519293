r"""Modes: the spectra of anisotropic inputs and of the teacher's field, for the equations of theory.

The covariance of the inputs, times N, has the eigenvalue :math:`\omega_a` (`variances`) in a fraction :math:`\nu_a` of
the N directions (`shares`). These directions contain the fraction :math:`T_a` of the teacher's squared length
(`teacher`) and the fraction :math:`p_a` of its field's variance (`powers`),

.. math:: \sum_a\nu_a = 1, \qquad \sum_aT_a = 1, \qquad
          p_a = S\,\frac{\omega_aT_a}{\sum_b\omega_bT_b}, \qquad S = \sum_ap_a .

The remainder, :math:`1 - S`, is the *misfit*: the part of the teacher's field that no direction of the inputs contains.
It acts on a student as noise on this field. A penalty :math:`\tfrac\lambda2\sum_i\rho_iw_i^2` may differ between
directions, with the factor :math:`\rho_a` (`ridge`) in group a.

**Random features** :math:`\mathbf v = \phi(F\mathbf z/\sqrt D) - \mu_0` of D = `latent` N latent variables have

.. math:: \omega(s) = \mu_1^2s + \mu_*^2, \qquad p(s) = \nu(s)\,\frac{N}{D}\,\frac{\mu_1^2s}{\omega(s)},

with s the eigenvalues of :math:`FF^T/D`, which have the Marchenko-Pastur distribution, and
:math:`\mu_0 = \langle\phi\rangle`, :math:`\mu_1 = \langle z\phi\rangle`,
:math:`\mu_*^2 = \langle\phi^2\rangle - \mu_0^2 - \mu_1^2` (Goldt, Mezard, Krzakala & Zdeborova 2020; Gerace, Loureiro,
Krzakala, Mezard & Zdeborova 2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, NODES, make_composite_rule, normal_density
from statmech.students.activations import Activation

NUM_EXPLICIT_MODES = 16  # power-law modes summed one by one; later modes form blocks of doubling size
GAUSS_NODES_PER_MODE_BLOCK = 8  # sums have a relative accuracy of 1e-12
NUM_CHART_EXPLICIT_MODES, CHART_GAUSS_NODES_PER_BLOCK = 8, 4  # in charts, sums have a relative accuracy of 1e-6
MODE_ROUNDING_TOL = 1e-12  # relative to a sum or to the largest eigenvalue
MIN_EFFECTIVE_DIRECTIONS = 30.0  # theory assumes many directions and may be inaccurate for fewer
NUM_MARCHENKO_PASTUR_NODES = 64


_CHART_ACCURACY: ContextVar[bool] = ContextVar("enough for charts", default=False)


def format_direction_count(number: float) -> str:
    """Format a number of directions with a singular or plural noun.

    >>> format_direction_count(1.0004), format_direction_count(1.2)
    ('1 direction', '1.2 directions')
    """
    text = f"{number:.3g}"
    return f"{text} direction{'' if text == '1' else 's'}"


@dataclass(frozen=True, eq=False)
class Modes:
    """Groups of directions with equal variance, as arrays (d,) in the notation of this module."""

    variances: np.ndarray
    shares: np.ndarray
    powers: np.ndarray
    teacher: np.ndarray | None = None  # None: the teacher is not a vector in input space
    ridge: np.ndarray = field(default_factory=lambda: np.ones(1))  # a single entry applies to all directions

    @property
    def signal_fraction(self) -> float:
        """The fraction S of the teacher's field variance that the inputs contain."""
        total = float(self.powers.sum())
        return total if total < 1 - MODE_ROUNDING_TOL else 1.0

    @property
    def rank_fraction(self) -> float:
        """The fraction of directions with nonzero variance."""
        return float(self.shares[self.variances > 0].sum())

    @property
    def misfit(self) -> float:
        """The fraction 1 - S of the teacher's field variance that the inputs do not contain."""
        return 1 - self.signal_fraction

    @property
    def participation_ratio(self) -> float:
        """The participation ratio: the effective fraction of directions.

        It is :math:`(\\sum\\nu\\omega)^2/\\sum\\nu\\omega^2`, or 1 if all variances are equal.
        """
        return float((self.shares @ self.variances) ** 2 / (self.shares @ self.variances**2))


def make_modes(
    variances: Sequence[float] | np.ndarray,
    shares: Sequence[float] | np.ndarray = (),
    teacher: str | Sequence[float] | np.ndarray = "random",
    misfit: float = 0.0,
    ridge: Sequence[float] | np.ndarray = (),
) -> Modes:
    """Make modes from variances, fractions of directions, and the teacher's powers.

    Parameters
    ----------
    variances
        Eigenvalues of N times the covariance (d,).
    shares
        Fractions of the directions (d,), equal by default.
    teacher
        Fractions of the teacher's squared length (d,). "random" is a teacher without a preferred direction, with the
        fractions `shares`. "aligned" is a teacher with the covariance of the inputs.
    misfit
        Fraction of the teacher's field variance that the inputs do not contain.
    ridge
        Factor of the l2 penalty in each group (d,); 1 by default.

    Examples
    --------
    >>> make_modes([0.2, 1.8], teacher="aligned").powers.round(3)
    array([0.012, 0.988])
    """
    omega = np.asarray(variances, float)
    nu = np.asarray(shares, float) if len(shares) else np.full(len(omega), 1 / len(omega))
    if isinstance(teacher, str):
        weight = nu if teacher == "random" else nu * omega
        T = weight / weight.sum()
    else:
        T = np.asarray(teacher, float)
    field_power = omega * T
    return Modes(
        omega,
        nu,
        (1 - misfit) * field_power / field_power.sum(),
        T,
        np.asarray(ridge, float) if len(ridge) else np.ones(1),
    )


def compute_group_sizes(fractions: np.ndarray, N: int) -> np.ndarray:
    """Return the integer number of directions in each group, with sum N.

    Parameters
    ----------
    fractions
        Fractions of the directions (d,).
    N
        Number of directions.

    Examples
    --------
    >>> compute_group_sizes(np.array([0.4, 0.35, 0.25]), 10)
    array([4, 4, 2])
    """
    ends = np.rint(np.cumsum(fractions) * N / np.sum(fractions)).astype(int)
    return np.diff(ends, prepend=0)


def make_power_law_modes(decay: float, teacher_decay: float, modes: int) -> Modes:
    r"""Return modes with variances :math:`\omega_i\propto i^{-a}` and powers :math:`p_i\propto i^{-b}`, i = 1 ... M.

    Only the first modes are kept one by one. A block of later modes, from i = m to 2m - 1, is replaced by a Gauss rule
    for sums over integers, with the orthogonal polynomials of Chebyshev and Gram.

    Parameters
    ----------
    decay, teacher_decay
        The exponents a and b.
    modes
        The number M of modes.

    Examples
    --------
    >>> few = make_power_law_modes(1.5, 1.75, modes=10**6)
    >>> len(few.variances), round(float(few.shares @ few.variances), 12), round(few.signal_fraction, 12)
    (144, 1.0, 1.0)
    """
    sizes = (
        (NUM_CHART_EXPLICIT_MODES, CHART_GAUSS_NODES_PER_BLOCK)
        if is_chart_accuracy_active()
        else (NUM_EXPLICIT_MODES, GAUSS_NODES_PER_MODE_BLOCK)
    )
    number, count = _compress_power_law_modes(modes, *sizes)
    log = np.log(number)
    omega, p = (count * np.exp(-exponent * log) for exponent in (decay, teacher_decay))
    omega, p = np.exp(-decay * log) * modes / omega.sum(), p / p.sum()
    T = p / omega
    return Modes(omega, count / modes, p, T / T.sum())


def condense_modes(modes: Modes) -> Modes:
    """Condense modes to fewer modes with the same sums, for a teacher without a preferred direction.

    The eigenvalues from x to 2x are replaced by a Gauss rule: sums of functions that are smooth on the scale of their
    argument, as in theory, have a relative accuracy of 1e-12. Eigenvalues that are 0 up to rounding are merged.

    Parameters
    ----------
    modes
        Modes, for example of a table.

    Examples
    --------
    >>> every = make_modes(np.linspace(0.01, 1.99, 1000))
    >>> few = condense_modes(every)
    >>> ratio = (few.shares @ np.exp(-few.variances)) / (every.shares @ np.exp(-every.variances))
    >>> len(few.variances), round(float(ratio), 12)
    (59, 1.0)
    """
    if modes.teacher is None or not np.allclose(modes.teacher, modes.shares, rtol=1e-12, atol=0):
        return modes
    omega = np.where(modes.variances > MODE_ROUNDING_TOL * modes.variances.max(), modes.variances, 0.0)
    octave = np.where(omega > 0, np.floor(np.log2(np.where(omega > 0, omega, 1.0))), -np.inf)
    blocks = [_lanczos_gauss_rule(omega[octave == level], modes.shares[octave == level]) for level in np.unique(octave)]
    variances, shares = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return make_modes(variances, shares)


def _lanczos_gauss_rule(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute nodes and weights of the Gauss rule for sums over modes x by Lanczos's recurrence."""
    if x[0] == 0:
        return np.zeros(1), weight.sum(keepdims=True)
    if len(x) <= GAUSS_NODES_PER_MODE_BLOCK:
        return x, weight
    centre, total = x.mean(), weight.sum()
    vectors = [np.sqrt(weight / total)]
    while len(vectors) < GAUSS_NODES_PER_MODE_BLOCK:
        following = (x - centre) * vectors[-1]
        for _ in range(2):  # orthogonalise twice, against rounding errors
            following = following - sum((vector @ following) * vector for vector in vectors)
        size = np.linalg.norm(following)
        if size < MODE_ROUNDING_TOL * centre:  # every distinct eigenvalue is already a node
            break
        vectors.append(following / size)
    basis = np.stack(vectors)
    node, vector = np.linalg.eigh(basis @ ((x - centre) * basis).T)
    return centre + node, total * vector[0] ** 2


def _compress_power_law_modes(modes: int, num_explicit: int, nodes_per_block: int) -> tuple[np.ndarray, np.ndarray]:
    """Return real-valued indices of modes as nodes, and the number of modes that each node represents."""
    first = np.arange(1, min(modes, num_explicit) + 1, dtype=float)
    parts = [(first, np.ones_like(first))]
    begin = num_explicit + 1
    while begin <= modes:
        size = min(begin - 1, modes - begin + 1)
        node, weight = _gauss_sum_rule(size, nodes_per_block)
        parts.append((begin + node, weight))
        begin += size
    number, count = zip(*parts, strict=True)
    return np.concatenate(number), np.concatenate(count)


def _gauss_sum_rule(size: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the Gauss rule for sums over modes 0 ... size - 1."""
    n = np.arange(1, min(nodes, size))
    off = 0.5 * n * np.sqrt((size**2 - n**2) / (4.0 * n**2 - 1))
    matrix = np.diag(np.full(len(n) + 1, 0.5 * (size - 1))) + np.diag(off, 1) + np.diag(off, -1)
    node, vector = np.linalg.eigh(matrix)
    return node, size * vector[0] ** 2


class HermiteCoefficients(NamedTuple):
    """Hermite coefficients of an activation: mean, linear coefficient, and size of the nonlinear part."""

    constant: float
    linear: float
    nonlinear_norm: float


def hermite_coefficients(activation: Activation) -> HermiteCoefficients:
    r"""Compute the coefficients :math:`\mu_0`, :math:`\mu_1` and :math:`\mu_*` of an activation for modes of features.

    Parameters
    ----------
    activation
        The activation.

    Examples
    --------
    >>> from statmech.students.activations import ACTIVATIONS
    >>> [round(value, 8) for value in hermite_coefficients(ACTIVATIONS["relu"]())]
    [0.39894228, 0.5, 0.30140514]
    """
    z, weight = make_composite_rule(
        np.sort(np.array([-GAUSSIAN_CUTOFF, -3.0, 0.0, 3.0, GAUSSIAN_CUTOFF, *activation.kinks])), NODES
    )
    weight = weight * normal_density(z)
    value = np.asarray(activation.both(z)[0], float)
    constant, linear = float(weight @ value), float(weight @ (z * value))
    rest = weight @ (value - constant - linear * z) ** 2
    return HermiteCoefficients(constant, linear, float(np.sqrt(rest)))


def make_feature_modes(coefficients: HermiteCoefficients, latent: float) -> Modes:
    """Return the modes of random features for a teacher in the latent space.

    Parameters
    ----------
    coefficients
        Hermite coefficients of the activation.
    latent
        Latent variables per feature, D / N.

    Examples
    --------
    >>> modes = make_feature_modes(HermiteCoefficients(0.0, 0.5, 0.30140514), latent=0.5)
    >>> round(modes.misfit, 8)
    0.2282998
    """
    s, nu = marchenko_pastur_rule(1 / latent)
    omega = coefficients.linear**2 * s + coefficients.nonlinear_norm**2
    return Modes(omega, nu, nu * coefficients.linear**2 * s / (latent * omega))


def marchenko_pastur_rule(ratio: float, nodes: int = NUM_MARCHENKO_PASTUR_NODES) -> tuple[np.ndarray, np.ndarray]:
    r"""Return nodes s and weights of a Gauss rule for modes that follow the Marchenko-Pastur distribution.

    This is the distribution of the eigenvalues of :math:`FF^T/D` for a matrix F (N, D) of normal entries. With
    :math:`s = 1 + r + 2\sqrt r\cos\vartheta`, r = N/D, its density is :math:`\frac2\pi\sin^2\vartheta/s`, a Gauss
    rule. The node s = 0 has the remaining weight. For r near 1, the weights have a pole next to the interval and this
    node also completes the rule: averages of functions that are smooth at s = 0 are accurate at every r.

    Parameters
    ----------
    ratio
        N / D.
    nodes
        Number of nodes above 0.

    Examples
    --------
    >>> s, weight = marchenko_pastur_rule(0.5)
    >>> round(float(weight @ s), 12), round(float(weight @ s**2), 12)
    (1.0, 1.5)
    """
    angle = np.arange(1, nodes + 1) * np.pi / (nodes + 1)
    s = 1 + ratio + 2 * np.sqrt(ratio) * np.cos(angle)
    weight = 2 * np.sin(angle) ** 2 / ((nodes + 1) * s)
    return np.append(s, 0.0), np.append(weight, 1 - weight.sum())


@contextmanager
def use_chart_accuracy() -> Iterator[None]:
    """Lower the accuracy of theory with many modes to a relative error of about 1e-5 within a `with` block.

    >>> with use_chart_accuracy():
    ...     is_chart_accuracy_active()
    True
    """
    token = _CHART_ACCURACY.set(True)
    try:
        yield
    finally:
        _CHART_ACCURACY.reset(token)


def is_chart_accuracy_active() -> bool:
    """Return True if theory may have a relative error of about 1e-5.

    >>> is_chart_accuracy_active()
    False
    """
    return _CHART_ACCURACY.get()
