r"""Networks that learn several tasks, where each step draws the task of its example.

The step at t = steps/N belongs to task k with the protocol's probability :math:`p_k(t)` (`statmech.protocols`), stored
in the step rates of a block; one uniform number per step chooses k. The teacher then has the output weights of that
task. If each task has its own head, the student uses the head of that task as second layer and changes only this head.
The heads are concatenated along the axis of units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from simulate.kernels import networks
from simulate.kernels.courses import StepRates
from simulate.kernels.drawn_tasks import draw_task_masks, pad_protocol, select_task_values
from simulate.kernels.learner import EngineTask, stack_task_numbers
from simulate.kernels.networks import NetworkLearner, StepNoise, split_step_uniforms
from statmech.numerics.gaussian import Array
from statmech.parameters import RealParameterFamily
from statmech.scenarios.network_tasks import NetworkTaskCell
from statmech.schedules import TimeDependence


@dataclass(frozen=True)
class MultitaskNetworks(NetworkLearner):
    """A network that learns several tasks.

    `w` (tasks, M) are the output weights of the teacher units in each task.
    """

    @property
    def uniforms_per_step(self) -> int:  # type: ignore[override]
        """The number of uniforms per step: one for the task, and one for each unit with dropout."""
        return 1 + self.num_dropout_units

    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> tuple[StepNoise, Array]:
        """Return the noise of outputs and units, and the uniforms that draw the tasks."""
        of_task, *of_units = split_step_uniforms(uniforms, self.uniforms_per_step)
        return self.make_noise(normals, tuple(of_units), dtype), of_task

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, example: tuple[Array, Any], step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Return the modulations f of one step, and the new heads."""
        assert step_rates is not None
        assert step_rates.task_probabilities is not None
        active, (noise, uniform) = example
        masks = draw_task_masks(uniform, step_rates.task_probabilities, len(self.w))
        heads = jnp.split(carry, carry.shape[self.units] // h.shape[self.units], axis=self.units)
        has_own_heads = len(heads) > 1
        w = select_task_values([self.reshape_to_unit_axis(row, y) for row in self.w], masks)
        f, gain = self.compute_gradient_step(
            select_task_values(heads, masks) if has_own_heads else carry, w, y, h, (active, noise), step_rates
        )
        gain = jnp.concatenate([mask * gain for mask in masks], axis=self.units) if has_own_heads else gain
        return f, (carry + gain).astype(h.dtype)


def make_multitask_network_task(cell: NetworkTaskCell, dtype: str) -> EngineTask:
    """Return the engine's task for a network that learns the tasks of a protocol."""
    single_task = networks.make_network_task(cell, dtype)
    changes: TimeDependence = stack_task_numbers([cell.time_dependence])
    return replace(
        single_task,
        learner=RealParameterFamily(MultitaskNetworks, single_task.learner.fixed),
        initial_learner_state=single_task.initial_learner_state.reshape(-1),
        changes=changes._replace(tasks=pad_protocol(cell.protocol_pieces)),
        batch=cell.batch,
    )
