"""Thresholds in alpha for linear separability and for exact recovery by an l1 norm."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import ArrayLike

from statmech.convex.separability import compute_separability_threshold
from statmech.convex.teachers import TEACHERS, LabelTeacher
from statmech.errors import ScenarioError
from statmech.parameters import get_parameters
from theory.convex.recovery import find_l1_recovery_threshold

LABEL_TEACHER_NAMES = tuple(name for name, kind in TEACHERS.items() if issubclass(kind, LabelTeacher))


def separability(
    teacher: str = "sign",
    *,
    flip: ArrayLike | None = None,
    gain: ArrayLike | None = None,
    noise: ArrayLike | None = None,
) -> np.ndarray:
    r"""Compute the threshold in alpha for linear separability of a teacher's labels.

    For smaller alpha, labels are separable and logistic regression without a penalty has no solution. With v the
    teacher's field times its label and :math:`\xi` a standard normal,

    .. math:: \frac1{\alpha_c} = \min_t\,\langle(\xi - tv)_+^2\rangle

    (Candes & Sur 2020, eq 3, there with an intercept). With flips it is `noisy_capacity`.

    Parameters
    ----------
    teacher
        "sign" (with `flip`), "probit" (`noise`, the standard deviation) or "logit" (`gain`).
    flip, gain, noise : array_like
        The parameter of the teacher, by default no flips, no noise and gain 1.

    Returns
    -------
    array
        P/N, in the shape of the parameter: 2 for labels independent of the teacher, infinite for labels without noise.

    Raises
    ------
    ScenarioError
        For another teacher, a parameter that this teacher does not have, or a value outside its bounds.

    Examples
    --------
    >>> separability("logit", gain=[1, 5]).round(6)
    array([2.278221, 5.403891])
    >>> separability("sign", flip=[0, 0.1]).round(6)
    array([     inf, 2.992286])
    """
    parameters = {
        name: value for name, value in (("flip", flip), ("gain", gain), ("noise", noise)) if value is not None
    }
    kind = _check_label_teacher(teacher, parameters)
    names = [field.name for field in fields(kind)]
    values = np.broadcast_arrays(*(np.asarray(parameters.get(name, getattr(kind(), name)), float) for name in names))
    points = zip(*(value.ravel().tolist() for value in values), strict=True)
    alphas = [compute_separability_threshold(kind(**dict(zip(names, point, strict=True)))) for point in points]
    return np.array(alphas).reshape(values[0].shape)[()]


def _check_label_teacher(name: str, parameters: dict[str, ArrayLike]) -> type[LabelTeacher]:
    """Return the class of a label teacher after checking the given parameters."""
    kind = TEACHERS.get(name)
    if kind is None or not issubclass(kind, LabelTeacher):
        raise ScenarioError([(("teacher",), f"must be one of {', '.join(LABEL_TEACHER_NAMES)}, not {name}")])
    keys = get_parameters(kind)
    for key, values in parameters.items():
        if key not in keys:
            raise ScenarioError([((key,), f"teacher {name} takes {', '.join(keys)}, not {key}")])
        for value in np.ravel(values).tolist():
            if problem := keys[key].problem(value):
                raise ScenarioError([((key,), problem)])
    return kind


def l1_recovery(rho: ArrayLike) -> np.ndarray:
    r"""Compute the alpha required to recover sparse weights from noiseless outputs by the minimum l1 norm.

    .. math:: \alpha_c = \min_\tau\,\left\{\rho(1+\tau^2)
              + 2(1-\rho)\left[(1+\tau^2)\Phi(-\tau) - \tau\varphi(\tau)\right]\right\}

    (Donoho & Tanner 2009; in this form Donoho, Maleki & Montanari 2009, eq 4).

    Parameters
    ----------
    rho : array_like
        Fraction of nonzero weights, above 0 and at most 1.

    Returns
    -------
    array
        Examples per weight, in the shape of `rho`.

    Raises
    ------
    ScenarioError
        For rho outside (0, 1].

    Examples
    --------
    >>> l1_recovery([0.1, 0.2, 0.4, 1]).round(6)
    array([0.328794, 0.51113 , 0.749739, 1.      ])
    """
    rho = np.asarray(rho, float)
    bad = rho[~((rho > 0) & (rho <= 1))]
    if bad.size:
        raise ScenarioError([(("rho",), f"must be greater than 0 and at most 1, not {bad[0]:g}")])
    return np.array([find_l1_recovery_threshold(value) for value in rho.ravel().tolist()]).reshape(rho.shape)[()]
