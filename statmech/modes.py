r"""Modes: all that theory needs to know of inputs that are not isotropic, and of the teacher among them.

The covariance of the inputs, times N, has the eigenvalue :math:`\omega_a` (`variances`) in a fraction :math:`\nu_a` of
the N directions (`shares`). In them lies the fraction :math:`T_a` of the teacher's squared length (`teacher`) and the
fraction :math:`p_a` of the variance of its field (`powers`),

.. math:: \sum_a\nu_a = 1, \qquad \sum_aT_a = 1, \qquad
          p_a = S\,\frac{\omega_aT_a}{\sum_b\omega_bT_b}, \qquad S = \sum_ap_a .

What is left, :math:`1 - S`, is the *misfit*: the part of the teacher's field that no direction of the inputs contains,
which acts on a student as noise on that field. A penalty may differ from direction to direction
:math:`\tfrac\lambda2\sum_i\rho_iw_i^2`, with the factor :math:`\rho_a` (`ridge`) in group a.

**Random features** :math:`\mathbf v = \phi(F\mathbf z/\sqrt D) - \mu_0` of D = `latent` N latent variables have

.. math:: \omega(s) = \mu_1^2s + \mu_*^2, \qquad p(s) = \nu(s)\,\frac{N}{D}\,\frac{\mu_1^2s}{\omega(s)},

with s the eigenvalues of :math:`FF^T/D`, which follow Marchenko and Pastur's law, and
:math:`\mu_0 = \langle\phi\rangle`, :math:`\mu_1 = \langle z\phi\rangle`,
:math:`\mu_*^2 = \langle\phi^2\rangle - \mu_0^2 - \mu_1^2` (Goldt, Mezard, Krzakala & Zdeborova 2020; Gerace, Loureiro,
Krzakala, Mezard & Zdeborova 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from statmech.activations import Activation
from statmech.numerics.accuracy import is_enough_for_charts
from statmech.numerics.gaussian import NODES, TAIL, composite_legendre, density

FIRST = 16  # modes of a power law that are summed one by one; those beyond in blocks up to twice as far
PER_BLOCK = 8  # nodes of such a block: a sum over it is right to 1e-12
FIRST_DRAWN, PER_BLOCK_DRAWN = 8, 4  # for a chart: right to 1e-6
ROUNDING = 1e-12  # relative: of sums, and of the largest eigenvalue
FEW_DIRECTIONS = 30.0  # in which inputs vary effectively, below which theory, which assumes many, may be off
OF_FEATURES = 64  # nodes of Marchenko and Pastur's law


def format_directions(number: float) -> str:
    """Return a number of directions with its noun.

    >>> format_directions(1.0004), format_directions(1.2)
    ('1 direction', '1.2 directions')
    """
    text = f"{number:.3g}"
    return f"{text} direction{'' if text == '1' else 's'}"


@dataclass(frozen=True, eq=False)
class Modes:
    """Directions of equal variance: arrays (d,), in the notation of this module."""

    variances: np.ndarray
    shares: np.ndarray
    powers: np.ndarray
    teacher: np.ndarray | None = None  # None: the teacher is not a vector in the space of the inputs
    ridge: np.ndarray = field(default_factory=lambda: np.ones(1))  # of one entry: the same in all directions

    @property
    def signal(self) -> float:
        """S, the part of the variance of the teacher's field that the inputs contain."""
        total = float(self.powers.sum())
        return total if total < 1 - ROUNDING else 1.0

    @property
    def rank(self) -> float:
        """The fraction of the directions in which the inputs vary."""
        return float(self.shares[self.variances > 0].sum())

    @property
    def misfit(self) -> float:
        """1 - S, the part that they do not contain."""
        return 1 - self.signal

    @property
    def participation(self) -> float:
        """The effective part of directions, :math:`(\\sum\\nu\\omega)^2/\\sum\\nu\\omega^2`; 1 if they are equal."""
        return float((self.shares @ self.variances) ** 2 / (self.shares @ self.variances**2))


def modes_of(
    variances: Sequence[float] | np.ndarray,
    shares: Sequence[float] | np.ndarray = (),
    teacher: str | Sequence[float] | np.ndarray = "random",
    misfit: float = 0.0,
    ridge: Sequence[float] | np.ndarray = (),
) -> Modes:
    """Modes from variances, shares and the teacher's powers.

    Parameters
    ----------
    variances
        Eigenvalues of N times the covariance (d,).
    shares
        Fractions of the directions (d,); equal ones by default.
    teacher
        Fractions of the teacher's squared length (d,); "random" for those of a teacher without a preferred direction,
        which are `shares`, or "aligned" for a teacher whose weights have the covariance of the inputs.
    misfit
        Part of the variance of the teacher's field that the inputs do not contain.
    ridge
        Factor of the l2 penalty in each group (d,); 1 by default.

    Examples
    --------
    >>> modes_of([0.2, 1.8], teacher="aligned").powers.round(3)
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


def group_sizes(shares: np.ndarray, N: int) -> np.ndarray:
    """The numbers of directions of each group, whole ones that add up to N.

    Parameters
    ----------
    shares
        Fractions of the directions (d,).
    N
        Number of directions.

    Examples
    --------
    >>> group_sizes(np.array([0.4, 0.35, 0.25]), 10)
    array([4, 4, 2])
    """
    ends = np.rint(np.cumsum(shares) * N / np.sum(shares)).astype(int)
    return np.diff(ends, prepend=0)


def power_law(decay: float, teacher_decay: float, modes: int) -> Modes:
    r"""The modes of variances :math:`\omega_i\propto i^{-a}` and powers :math:`p_i\propto i^{-b}`, i = 1 ... M.

    The first are modes of their own. Those beyond are compressed: a block from i = m to 2m - 1 is a Gauss rule for sums
    over whole numbers, whose orthogonal polynomials are those of Chebyshev and Gram.

    Parameters
    ----------
    decay, teacher_decay
        The exponents a and b.
    modes
        The number M of modes.

    Examples
    --------
    >>> few = power_law(1.5, 1.75, modes=10**6)
    >>> len(few.variances), round(float(few.shares @ few.variances), 12), round(few.signal, 12)
    (144, 1.0, 1.0)
    """
    sizes = (FIRST_DRAWN, PER_BLOCK_DRAWN) if is_enough_for_charts() else (FIRST, PER_BLOCK)
    number, count = _compressed(modes, *sizes)
    log = np.log(number)
    omega, p = (count * np.exp(-exponent * log) for exponent in (decay, teacher_decay))
    omega, p = np.exp(-decay * log) * modes / omega.sum(), p / p.sum()
    T = p / omega
    return Modes(omega, count / modes, p, T / T.sum())


def condensed(modes: Modes) -> Modes:
    """Fewer modes with the same sums, where the teacher has no preferred direction.

    The eigenvalues from x to 2x are replaced by a Gauss rule for sums over them: a sum of a function that is smooth on
    the scale of its argument, as those of theory are, is right to 1e-12. Eigenvalues of 0 and of rounding become one.

    Parameters
    ----------
    modes
        Those of a table, for example.

    Examples
    --------
    >>> every = modes_of(np.linspace(0.01, 1.99, 1000))
    >>> few = condensed(every)
    >>> ratio = (few.shares @ np.exp(-few.variances)) / (every.shares @ np.exp(-every.variances))
    >>> len(few.variances), round(float(ratio), 12)
    (59, 1.0)
    """
    if modes.teacher is None or not np.allclose(modes.teacher, modes.shares, rtol=1e-12, atol=0):
        return modes
    omega = np.where(modes.variances > ROUNDING * modes.variances.max(), modes.variances, 0.0)
    octave = np.where(omega > 0, np.floor(np.log2(np.where(omega > 0, omega, 1.0))), -np.inf)
    blocks = [_gauss_rule(omega[octave == level], modes.shares[octave == level]) for level in np.unique(octave)]
    variances, shares = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return modes_of(variances, shares)


def _gauss_rule(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss's rule for sums over x with these weights, by Lanczos's recurrence."""
    if x[0] == 0:
        return np.zeros(1), weight.sum(keepdims=True)
    if len(x) <= PER_BLOCK:
        return x, weight
    centre, total = x.mean(), weight.sum()
    vectors = [np.sqrt(weight / total)]
    while len(vectors) < PER_BLOCK:
        following = (x - centre) * vectors[-1]
        for _ in range(2):  # orthogonal to all, and again to rounding
            following = following - sum((vector @ following) * vector for vector in vectors)
        size = np.linalg.norm(following)
        if size < ROUNDING * centre:  # as many different eigenvalues as nodes
            break
        vectors.append(following / size)
    basis = np.stack(vectors)
    node, vector = np.linalg.eigh(basis @ ((x - centre) * basis).T)
    return centre + node, total * vector[0] ** 2


def _compressed(modes: int, single: int, per_block: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of modes, real ones in blocks, and how many modes each stands for."""
    first = np.arange(1, min(modes, single) + 1, dtype=float)
    parts = [(first, np.ones_like(first))]
    begin = single + 1
    while begin <= modes:
        size = min(begin - 1, modes - begin + 1)
        node, weight = _sum_rule(size, per_block)
        parts.append((begin + node, weight))
        begin += size
    number, count = zip(*parts, strict=True)
    return np.concatenate(number), np.concatenate(count)


def _sum_rule(size: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss's rule for sums over 0 ... size - 1."""
    n = np.arange(1, min(nodes, size))
    off = 0.5 * n * np.sqrt((size**2 - n**2) / (4.0 * n**2 - 1))
    matrix = np.diag(np.full(len(n) + 1, 0.5 * (size - 1))) + np.diag(off, 1) + np.diag(off, -1)
    node, vector = np.linalg.eigh(matrix)
    return node, size * vector[0] ** 2


class Hermite(NamedTuple):
    """The mean of an activation of a standard normal, its linear coefficient, and the deviation of what is left."""

    constant: float
    linear: float
    rest: float


def hermite(activation: Activation) -> Hermite:
    r"""The coefficients :math:`\mu_0`, :math:`\mu_1` and :math:`\mu_*` of an activation.

    Parameters
    ----------
    activation
        The activation.

    Examples
    --------
    >>> from statmech.activations import ACTIVATIONS
    >>> [round(value, 8) for value in hermite(ACTIVATIONS["relu"]())]
    [0.39894228, 0.5, 0.30140514]
    """
    z, weight = composite_legendre(np.sort(np.array([-TAIL, -3.0, 0.0, 3.0, TAIL, *activation.kinks])), NODES)
    weight = weight * density(z)
    value = np.asarray(activation.both(z)[0], float)
    constant, linear = float(weight @ value), float(weight @ (z * value))
    rest = weight @ (value - constant - linear * z) ** 2
    return Hermite(constant, linear, float(np.sqrt(rest)))


def of_features(coefficients: Hermite, latent: float) -> Modes:
    """The modes of random features, for a teacher that is a vector of the latent space.

    Parameters
    ----------
    coefficients
        Those of the activation.
    latent
        Latent variables per feature, D / N.

    Examples
    --------
    >>> modes = of_features(Hermite(0.0, 0.5, 0.30140514), latent=0.5)
    >>> round(modes.misfit, 8)
    0.2282998
    """
    s, nu = marchenko_pastur(1 / latent)
    omega = coefficients.linear**2 * s + coefficients.rest**2
    return Modes(omega, nu, nu * coefficients.linear**2 * s / (latent * omega))


def marchenko_pastur(ratio: float, nodes: int = OF_FEATURES) -> tuple[np.ndarray, np.ndarray]:
    r"""Nodes s and weights of Marchenko and Pastur's law, of :math:`FF^T/D` for a matrix F (N, D) of normal entries.

    With :math:`s = 1 + r + 2\sqrt r\cos\vartheta`, r = N/D, its density is :math:`\frac2\pi\sin^2\vartheta/s`, a Gauss
    rule; s = 0 has the weight that is left. Where r is near 1 that also completes the rule, whose weights have a pole
    next to the interval, so that averages of functions that are smooth at s = 0 are right at every r.

    Parameters
    ----------
    ratio
        N / D.
    nodes
        Number of nodes above 0.

    Examples
    --------
    >>> s, weight = marchenko_pastur(0.5)
    >>> round(float(weight @ s), 12), round(float(weight @ s**2), 12)
    (1.0, 1.5)
    """
    angle = np.arange(1, nodes + 1) * np.pi / (nodes + 1)
    s = 1 + ratio + 2 * np.sqrt(ratio) * np.cos(angle)
    weight = 2 * np.sin(angle) ** 2 / ((nodes + 1) * s)
    return np.append(s, 0.0), np.append(weight, 1 - weight.sum())
