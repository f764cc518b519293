r"""Perceptrons that learn several tasks: each step draws the task of its example, whose teacher gives the label.

The step at t = steps/N belongs to task k with the protocol's probability :math:`p_k(t)` (`statmech.protocols`), stored
in the step rates of a block. One uniform number chooses k by the interval of (0, 1) that contains it. The label is
flipped if the number lies in the first fraction :math:`p_f` of that interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from simulate.kernels import perceptrons
from simulate.kernels.courses import Course
from simulate.kernels.drawn_tasks import chosen, drawn_tasks, for_engine
from simulate.kernels.learner import Task, combined, stacked
from simulate.kernels.perceptrons import OfUniforms
from statmech.numerics.gaussian import Array
from statmech.parameters import Family
from statmech.scenarios.network_matrices import rows_of
from statmech.scenarios.online_tasks import OnlineTaskCell


@dataclass(frozen=True)
class TaskPerceptrons(OfUniforms):
    """A student of several teachers, whose `rows` (tasks, tasks) are B/sqrt N in an orthonormal basis."""

    rows: Array = 1.0

    def teachers(self, basis: Array) -> Array:
        """Return the values of the teachers of all tasks."""
        return combined(self.rows, basis, self.units)

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, example: tuple[Array, Array], now: Course | None
    ) -> tuple[Array, Array]:
        """Return the student's f and its new squared length."""
        assert now is not None
        assert now.shares is not None
        (active, uniform), tasks = example, len(self.rows)
        masks, begins = drawn_tasks(uniform, now.shares, tasks), jnp.cumsum(now.shares) - now.shares
        flip = self.flip if now.noise is None else now.noise
        flipped = chosen([uniform < begins[k] + flip * now.shares[k] for k in range(tasks)], masks)
        right = (jnp.where(flipped, -1.0, 1.0) * active).astype(h.dtype)
        return super().step(carry, chosen(jnp.split(y, tasks, axis=self.units), masks), h, norm, right, now)


def task(cell: OnlineTaskCell, dtype: str) -> Task:
    """Return the task of an engine: a perceptron of one or several teachers in the order of its protocol."""
    single_task = replace(perceptrons.task(cell, dtype), batch=cell.batch)
    if cell.tasks == 1:
        return single_task
    changes = stacked([cell.changing])
    return replace(
        single_task,
        learner=Family(TaskPerceptrons, single_task.learner.fixed),
        parameters=single_task.parameters | {"rows": np.asarray(rows_of(cell.between), dtype)[None]},
        M=cell.tasks,
        changes=changes._replace(tasks=for_engine(cell.pieces)),
    )
