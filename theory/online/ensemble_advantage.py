r"""Advantage of an infinite ensemble: the ratio of its error to the error of a single student during learning.

The sum of K equal students at angle :math:`\theta` to the teacher, with transverse cosine c, has a component
:math:`Kl\cos\theta` parallel to the teacher and :math:`Kl\sin\theta\sqrt{c + (1-c)/K}` perpendicular to it. For
K -> infinity the weight mean, and with it the majority vote (`statmech.students.ensemble_vote`), has the angle
:math:`\Theta` with

.. math:: \tan\Theta = \sqrt c\,\tan\theta, \qquad \epsilon_g(\infty)/\epsilon_g(1) = \Theta/\theta,

so that at late times, :math:`\theta\to0`, the ratio is :math:`\sqrt c`. It is computed from the integrated variables
:math:`1-R` and c (`theory.online.order_parameter_equations`), and keeps its digits where R and q round to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from statmech.errors import ScenarioError
from statmech.kinds.online_learning import OnlineCell
from statmech.kinds.online_perceptron import Scenario
from statmech.stores.dataset import make_empty_dataset
from statmech.students.ensemble_vote import mean_weight_vector_error
from statmech.students.order_parameters import angle_from_versine
from theory.online.trajectories import solve_cells

if TYPE_CHECKING:
    import xarray as xr

NUM_PAIR_STUDENTS = 2  # one pair determines the error of an infinite ensemble


def advantage(scenario: Scenario) -> xr.DataArray:
    r"""Compute the error of an infinite ensemble divided by the error of one student, at each recorded time.

    .. math:: \epsilon_g(K\to\infty)/\epsilon_g(1) = \arctan(\sqrt c\,\tan\theta)/\theta

    with the angle :math:`\theta` to the teacher and the transverse cosine c of two students. The ratio is the same for
    the majority vote and for the weight mean.

    Parameters
    ----------
    scenario : Scenario
        A scenario with equal students. Its K and N do not matter.

    Returns
    -------
    xarray.DataArray
        The ratio on the sweep axes without K and N, and on t.

    Raises
    ------
    ScenarioError
        For students with unequal starts, or for a start with q < R^2, which an infinite ensemble cannot have.

    Examples
    --------
    >>> from statmech import Scenario
    >>> gain = advantage(Scenario(rule=["hebb", "perceptron"], t=[1, 50]))
    >>> gain.sel(t=50).values.round(6)
    array([0.990349, 0.718756])
    """
    config = scenario.config()
    first = config["N"][0] if isinstance(config["N"], list) else config["N"]
    pair = type(scenario)(**{**config, "K": NUM_PAIR_STUDENTS, "N": first})
    cells = list(pair.cells())
    _check_equal_starts(cells)
    ratio = make_empty_dataset(pair, seeds=None).eps_g_weight_mean
    for cell, students in zip(cells, solve_cells(cells, pair.t), strict=True):
        theta, c = angle_from_versine(students.y[:, 0]), students.c[:, 0]
        ratio[cell.index] = _infinite_ensemble_error_ratio(theta, c)
    return ratio.rename("advantage").assign_attrs(long_name="error of infinitely many students over that of one")


def _infinite_ensemble_error_ratio(theta: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Compute eps_g of the mean of infinitely many students divided by eps_g of one student.

    For students on the teacher's axis, the result is the limit of this ratio.
    """
    off_axis = np.where(theta > 0, theta, 1.0)
    together = mean_weight_vector_error(off_axis, c, np.full(c.shape, np.inf)) * np.pi / off_axis
    return np.where(theta > 0, together, np.sqrt(np.maximum(c, 0.0)))


def _check_equal_starts(cells: Sequence[OnlineCell]) -> None:
    for cell in cells:
        if not cell.has_equal_starts:
            raise ScenarioError([(("start",), "an infinite ensemble requires equal starts of all students")])
        _, R, q = cell.start_order_parameters
        if q[0, 1] < R[0] ** 2:
            raise ScenarioError([(("start",), "an infinite ensemble requires q >= R^2")])
