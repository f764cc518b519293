r"""Perceptrons that learn online, from one teacher or from the teachers of several tasks.

One teacher: each of K students applies the same rule to its own field. A student's modulation is
:math:`f_k = \eta\,\sigma\,g(\sigma u_k, l_k)` with the label :math:`\sigma` and the normalised field
:math:`u_k = h_k/l_k`. Squared lengths are passed from step to step.

Several tasks: each step draws the task of its example, whose teacher gives the label. The step at t = steps/N belongs
to task k with the protocol's probability :math:`p_k(t)` (`statmech.parameters.task_protocols`), stored in the step
rates of a block. One uniform number chooses k by the interval of (0, 1) that contains it. The label is flipped if the
number lies in the first fraction :math:`p_f` of that interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from simulate.online.learning_steps import (
    EngineTask,
    OnlineLearner,
    SignedRows,
    StepRates,
    combine_basis_values,
    draw_task_masks,
    pad_protocol,
    select_task_values,
    stack_task_numbers,
    subtract_fraction,
)
from statmech.keys.time_dependent_keys import count_steps
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.students.rules import Rule
from statmech.students.student_geometry import factorise_gram

if TYPE_CHECKING:
    from statmech.kinds.moving_teacher import MovingTeacherCell
    from statmech.kinds.online_clusters import OnlineClusterCell
    from statmech.kinds.online_learning import OnlineCell
    from statmech.kinds.online_table import OnlineRowsCell
    from statmech.kinds.online_tasks import OnlineTaskCell


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
        return self.family(**self.parameters)

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
        """Return the modulations f of each perceptron and its new squared length."""
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
        """Return the modulations f of each perceptron at the present flip rate, and its new squared length."""
        active, uniform = example
        flip = self.flip if step_rates is None or step_rates.noise is None else step_rates.noise
        right = jnp.where(active, jnp.where(uniform < flip, -1.0, 1.0), 0.0).astype(h.dtype)
        return super().step(carry, y, h, norm, right, step_rates)


@dataclass(frozen=True)
class OwnExamplePerceptrons(TimeDependentFlipPerceptrons):
    """Perceptrons of one learning rule, where a student learns an example with the probability `learning_probability`.

    A step has one uniform number for the label and one for each of the K students.
    """

    K: int = 1
    learning_probability: Array = 1.0

    @property
    def uniforms_per_step(self) -> int:  # type: ignore[override]
        """The number of uniforms per step."""
        return 1 + self.K

    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Any:
        """Return the uniforms that decide which labels are flipped, and a mask of the students that learn."""
        axis = 0 if uniforms.ndim == 1 else 1  # the axis of steps
        steps = uniforms.shape[axis] // self.uniforms_per_step
        of_label, of_students = jnp.split(uniforms, [steps], axis)
        learner_mask = (of_students < self.learning_probability).reshape(
            *uniforms.shape[:axis], self.K, steps, *uniforms.shape[axis + 1 :]
        )
        return of_label, jnp.moveaxis(learner_mask, axis, axis + 1)

    def examples(self, noise: Any, active: Array) -> Any:
        """Return the mask of students that learn in each step, and the uniform numbers of the labels."""
        of_label, learner_mask = noise
        if self.units == -1:  # (M, K, seeds, 1)
            learner_mask = jnp.moveaxis(learner_mask[..., 0], 1, -1)
        return active.reshape(-1, *[1] * (learner_mask.ndim - 1)) & learner_mask, of_label


@dataclass(frozen=True)
class TableRowPerceptrons(PerceptronLearner):
    """Perceptrons of one learning rule that learn rows of a table, multiplied by their labels."""

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, right: Array, step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Return the modulations f of each perceptron for a table row, and its new squared length.

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


@dataclass(frozen=True)
class MovingTeacherPerceptrons(PerceptronLearner):
    """A moving teacher that learns from the truth, and a student that learns the moving teacher's labels."""

    teacher_family: RealParameterFamily | None = None
    teacher_parameters: dict[str, Array] | None = None

    def step(
        self, carry: Array, y: Array, h: Array, norm: Array, right: Array, step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Return the modulations f of the moving teacher and of its student, and their squared lengths."""
        assert self.teacher_family is not None
        assert self.teacher_parameters is not None
        teacher, student = slice(0, 1), slice(1, 2)
        learner = PerceptronLearner(self.teacher_family, self.teacher_parameters, self.flip, self.N)
        active = jnp.abs(right)
        teacher_step = learner.step(carry[teacher], y, h[teacher], norm, right, None)
        student_step = super().step(carry[student], h[teacher], h[student], norm, active, None)
        f, squares = (jnp.concatenate(parts) for parts in zip(teacher_step, student_step, strict=True))
        return f, squares


def make_moving_teacher_task(cell: MovingTeacherCell, dtype: str) -> EngineTask:
    """Return the engine's task for a student that learns online from a moving teacher."""
    task, teacher = make_perceptron_task(cell, dtype), get_real_parameter_family(cell.moving_teacher)
    parameters = {name: np.array([getattr(cell.moving_teacher, name)], dtype) for name in teacher.real_parameter_names}
    return replace(
        task,
        learner=RealParameterFamily(MovingTeacherPerceptrons, (*task.learner.fixed, ("teacher_family", teacher))),
        parameters={**task.parameters, "teacher_parameters": parameters},
    )


def make_cluster_perceptron_task(cell: OnlineClusterCell) -> EngineTask:
    """Return the engine's task for perceptron students that learn two clusters online."""
    online_task = make_perceptron_task(cell, "float64")
    parameters = {name: online_task.parameters[name] for name in online_task.parameters}
    parameters |= {name: np.array([value]) for name, value in vars(cell.clusters).items()}
    return replace(
        online_task, learner=RealParameterFamily(ClusterPerceptrons, online_task.learner.fixed), parameters=parameters
    )


def make_table_row_task(cell: OnlineRowsCell) -> EngineTask:
    """Return the engine's task for perceptron students that learn the rows of a table online."""
    online_task = make_perceptron_task(cell, "float64")
    inputs = SignedRows(cell.inputs.path, cell.inputs.target, cell.inputs.raw)
    return replace(
        online_task, learner=RealParameterFamily(TableRowPerceptrons, online_task.learner.fixed), inputs=inputs
    )


def make_perceptron_task(cell: OnlineCell, dtype: str, other_cells: Sequence[OnlineCell] = ()) -> EngineTask:
    """Return the engine's task for perceptron students that learn online from a teacher.

    With `other_cells`, cells of the same program are simulated side by side.
    """
    family, cells = get_real_parameter_family(cell.rule), [cell, *other_cells]
    with np.errstate(over="ignore"):  # overflow of float32 makes the student infinite, which raises DivergedError
        parameters = {
            name: np.array([getattr(item.rule, name) for item in cells], dtype) for name in family.real_parameter_names
        }
    kind = TimeDependentFlipPerceptrons if "flip" in dict(cell.controls) else PerceptronLearner
    learner = RealParameterFamily(kind, (("family", family),))
    numbers = {"parameters": parameters, "flip": np.array([item.flip for item in cells], np.float32)}
    if cell.resample is not None:
        learner = RealParameterFamily(OwnExamplePerceptrons, (("family", family), ("K", cell.K)))
        numbers["learning_probability"] = np.array([item.learning_probability for item in cells], np.float32)
    return EngineTask(
        learner=learner,
        parameters=numbers,
        K=cell.K * (2 if cell.average else 1),
        M=1,
        N=cell.N,
        dtype=dtype,
        initial_coordinates=cell.start_coordinates,
        scale=1.0,
        initial_learner_state=(),
        changes=stack_task_numbers(item.time_dependence for item in cells) if cell.has_time_dependence else None,
        drifting=cell.drift > 0,
        inputs=cell.inputs,
        first_averaged_step=count_steps_before_averaging(cell) if cell.average else None,
    )


def count_steps_before_averaging(cell: OnlineCell) -> int:
    """Return the number of steps of a cell's burn-in."""
    return int(count_steps([cell.burn_in], cell.N)[0])


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
        """Return the modulation f of a perceptron for one example of a task, and its new squared length."""
        assert step_rates is not None
        assert step_rates.task_probabilities is not None
        (active, uniform), tasks = example, len(self.rows)
        masks = draw_task_masks(uniform, step_rates.task_probabilities, tasks)
        begins = jnp.cumsum(step_rates.task_probabilities) - step_rates.task_probabilities
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
    single_task = replace(make_perceptron_task(cell, dtype), batch=cell.batch)
    if len(cell.teacher_overlaps) == 1:
        return single_task
    changes = stack_task_numbers([cell.time_dependence])
    return replace(
        single_task,
        learner=RealParameterFamily(MultitaskPerceptrons, single_task.learner.fixed),
        parameters=single_task.parameters | {"rows": np.asarray(factorise_gram(cell.teacher_overlaps), dtype)[None]},
        M=len(cell.teacher_overlaps),
        changes=changes._replace(tasks=pad_protocol(cell.teacher_pieces)),
    )
