"""Perceptrons as learners: K students of one teacher, each with the same rule on its own field.

A student's modulation is :math:`f_k = \\eta\\,\\sigma\\,g(\\sigma u_k, l_k)` with the label :math:`\\sigma` and the
normalised field :math:`u_k = h_k/l_k`. Squared lengths are passed from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from simulate.kernels.courses import StepRates
from simulate.kernels.field_steps import subtract_fraction
from simulate.kernels.learner import EngineTask, OnlineLearner, stack_task_numbers
from simulate.kernels.signed_rows import SignedRows
from statmech.numerics.gaussian import Array
from statmech.parameters import RealParameterFamily, get_real_parameter_family
from statmech.rules import Rule

if TYPE_CHECKING:
    from statmech.scenarios.online_clusters import OnlineClusterCell
    from statmech.scenarios.online_rows import OnlineRowsCell
    from statmech.scenarios.online_student import OnlineCell


@dataclass(frozen=True)
class PerceptronLearner(OnlineLearner):
    """Perceptrons of one learning rule whose labels are flipped with the probability `flip`."""

    uniforms_per_step: ClassVar[int] = 1
    family: RealParameterFamily
    parameters: dict[str, Array]
    flip: Array
    N: Array
    units: int = 0

    @cached_property
    def rule(self) -> Rule:
        """The rule with its parameters."""
        rule: Rule = self.family(**self.parameters)
        return rule

    @property
    def eta(self) -> Array:
        """The rule's learning rate."""
        return self.rule.eta

    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Array:
        """Return 1 for a true label, -1 for a flipped label."""
        return jnp.where(uniforms < self.flip, -1.0, 1.0).astype(dtype)

    def examples(self, noise: Array, active: Array) -> Array:
        """Return 1 for a true label, -1 for a flipped label, and 0 for an inactive step."""
        return jnp.where(active.reshape(-1, *[1] * (noise.ndim - 1)), noise, 0.0)

    def start_block(self, saved_state: tuple[()], squared_length: Array) -> Array:
        """Return the squared lengths, which are the state."""
        return squared_length

    def saved_state(self, carry: Array) -> tuple[()]:
        """Return an empty state, because the weights determine the squared lengths."""
        return ()

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, right: Array, step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Return the modulations f and the students' new squared lengths."""
        label = jnp.where(y > 0, right, -right)
        length = jnp.sqrt(carry)
        # the normalised field is undefined for length 0: setting it to 0 is wrong only for a rule with a margin > 0
        u = h / jnp.where(length > 0, length, 1.0)
        f = ((step_rates.eta if step_rates else self.eta) * label * self.rule.g(label * u, length)).astype(h.dtype)
        h = subtract_fraction(h, h, step_rates and step_rates.decay)
        gain = subtract_fraction(
            (2 * f * h + f * f * norm) / self.N, carry, step_rates and step_rates.decay * (2 - step_rates.decay)
        )
        return f, jnp.maximum(carry + gain, 0.0)


@dataclass(frozen=True)
class PerceptronsWithFlipUniforms(PerceptronLearner):
    """Perceptrons of one learning rule whose labels are decided at each step by one uniform number."""

    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Array:
        """Return the uniform numbers that decide which labels are flipped."""
        return uniforms

    def examples(self, noise: Array, active: Array) -> Any:
        """Return the mask of active steps and the uniform numbers."""
        return active, noise


@dataclass(frozen=True)
class TimeDependentFlipPerceptrons(PerceptronsWithFlipUniforms):
    """Perceptrons of one learning rule whose flip probability changes with time."""

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, example: Any, step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Return the modulations f and the students' new squared lengths."""
        assert step_rates is not None
        active, uniform = example
        right = jnp.where(active, jnp.where(uniform < step_rates.noise, -1.0, 1.0), 0.0).astype(h.dtype)
        return super().step(carry, y, h, norm, right, step_rates)


@dataclass(frozen=True)
class TableRowPerceptrons(PerceptronLearner):
    """Perceptrons of one learning rule that learn rows of a table, multiplied by their labels."""

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, right: Array, step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Return the modulations f and the students' new squared lengths.

        Labels belong to the inputs and do not depend on a teacher's field.
        """
        return super().step(carry, jnp.ones_like(y), h, norm, right, step_rates)


@dataclass(frozen=True)
class ClusterPerceptrons(TableRowPerceptrons):
    """Perceptrons of one learning rule that learn to separate two clusters.

    The direction between the centres replaces the teacher.
    """

    distance: Array = 0.0
    positives: Array = 0.0

    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Array:
        """Return the labels, 1 or -1."""
        return jnp.where(uniforms < self.positives, 1.0, -1.0).astype(dtype)

    def input_means(self, noise: Array) -> Array:
        """Return the means of inputs with these labels, along the direction between the centres."""
        return noise * jnp.where(noise > 0, 1 - self.positives, self.positives) * self.distance


def make_cluster_perceptron_task(cell: OnlineClusterCell) -> EngineTask:
    """Return the engine's task for perceptrons that learn two clusters online."""
    online_task = make_perceptron_task(cell, "float64")
    parameters = {name: online_task.parameters[name] for name in online_task.parameters}
    parameters |= {name: np.array([value]) for name, value in vars(cell.clusters).items()}
    return replace(
        online_task, learner=RealParameterFamily(ClusterPerceptrons, online_task.learner.fixed), parameters=parameters
    )


def make_table_row_task(cell: OnlineRowsCell) -> EngineTask:
    """Return the engine's task for perceptrons that learn the rows of a table online."""
    online_task = make_perceptron_task(cell, "float64")
    inputs = SignedRows(cell.inputs.path, cell.inputs.target, cell.inputs.raw)
    return replace(
        online_task, learner=RealParameterFamily(TableRowPerceptrons, online_task.learner.fixed), inputs=inputs
    )


def make_perceptron_task(cell: OnlineCell, dtype: str, other_cells: Sequence[OnlineCell] = ()) -> EngineTask:
    """Return the engine's task for perceptrons that learn online from a teacher.

    With `other_cells`, cells of the same program are simulated side by side.
    """
    family, cells = get_real_parameter_family(cell.rule), [cell, *other_cells]
    with np.errstate(over="ignore"):  # overflow of float32 makes the student infinite, which raises DivergedError
        parameters = {
            name: np.array([getattr(item.rule, name) for item in cells], dtype) for name in family.real_parameter_names
        }
    kind = TimeDependentFlipPerceptrons if "flip" in dict(cell.controls) else PerceptronLearner
    return EngineTask(
        learner=RealParameterFamily(kind, (("family", family),)),
        parameters={"parameters": parameters, "flip": np.array([item.flip for item in cells], np.float32)},
        K=cell.K,
        M=1,
        N=cell.N,
        dtype=dtype,
        initial_coordinates=cell.start_coordinates,
        scale=1.0,
        initial_learner_state=(),
        changes=stack_task_numbers(item.time_dependence for item in cells) if cell.has_time_dependence else None,
        drifting=cell.drift > 0,
        inputs=cell.inputs,
    )
