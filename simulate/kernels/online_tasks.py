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
from simulate.kernels.courses import StepRates
from simulate.kernels.drawn_tasks import draw_task_masks, pad_protocol, select_task_values
from simulate.kernels.learner import EngineTask, combine_basis_values, stack_task_numbers
from simulate.kernels.perceptrons import PerceptronsWithFlipUniforms
from statmech.numerics.gaussian import Array
from statmech.parameters import RealParameterFamily
from statmech.scenarios.network_matrices import factorise_gram
from statmech.scenarios.online_tasks import OnlineTaskCell


@dataclass(frozen=True)
class MultitaskPerceptrons(PerceptronsWithFlipUniforms):
    """A student of several teachers. Their `rows` (tasks, tasks) are B/sqrt N in an orthonormal basis."""

    rows: Array = 1.0

    def convert_to_teacher_values(self, basis: Array) -> Array:
        """Convert values for the basis into values for the teachers of all tasks."""
        return combine_basis_values(self.rows, basis, self.units)

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, example: tuple[Array, Array], step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Return the modulation f of one step, and the student's new squared length."""
        assert step_rates is not None
        assert step_rates.task_probabilities is not None
        (active, uniform), tasks = example, len(self.rows)
        masks, begins = (
            draw_task_masks(uniform, step_rates.task_probabilities, tasks),
            jnp.cumsum(step_rates.task_probabilities) - step_rates.task_probabilities,
        )
        flip = self.flip if step_rates.noise is None else step_rates.noise
        flipped = select_task_values(
            [uniform < begins[k] + flip * step_rates.task_probabilities[k] for k in range(tasks)], masks
        )
        right = (jnp.where(flipped, -1.0, 1.0) * active).astype(h.dtype)
        return super().step(
            carry, select_task_values(jnp.split(y, tasks, axis=self.units), masks), h, norm, right, step_rates
        )


def make_multitask_perceptron_task(cell: OnlineTaskCell, dtype: str) -> EngineTask:
    """Return the engine's task for a perceptron that learns the tasks of a protocol."""
    single_task = replace(perceptrons.make_perceptron_task(cell, dtype), batch=cell.batch)
    if cell.tasks == 1:
        return single_task
    changes = stack_task_numbers([cell.time_dependence])
    return replace(
        single_task,
        learner=RealParameterFamily(MultitaskPerceptrons, single_task.learner.fixed),
        parameters=single_task.parameters | {"rows": np.asarray(factorise_gram(cell.task_overlaps), dtype)[None]},
        M=cell.tasks,
        changes=changes._replace(tasks=pad_protocol(cell.protocol_pieces)),
    )
