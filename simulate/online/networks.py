r"""Networks of two layers that learn one or several tasks online by gradient descent.

K student units learn from M teacher units. With the fields :math:`y_m` and :math:`h_k` of one example
(`statmech.kinds.network`),

.. math:: e = \tau + \sigma\xi - \sum_k v_k g(h_k), \qquad f_k = \eta v_k g'(h_k)\,e, \qquad
          v_k \leftarrow v_k + \frac{\eta_v}{N} g(h_k)\,e,

where :math:`\tau = \sum_m w_m g_T(y_m)` or its sign. The second layer v is passed from step to step and from block to
block. A step then needs nothing but the fields, so that both engines are exact for networks as for perceptrons.

Dropout: one uniform per unit and example decides whether the unit is silent. The g and g' of silent units are 0, and
all others are divided by 1 - p.

Identical students: without dropout, students that start identical receive the same changes. One student of each such
group is simulated, and counts in the output as often as there are `copies`: rounding would separate copies, and a
plateau would amplify their difference.

Several tasks: each step draws the task of its example. The step at t = steps/N belongs to task k with the protocol's
probability :math:`p_k(t)` (`statmech.parameters.task_protocols`), stored in the step rates of a block. One uniform
number per step chooses k. The teacher then has the output weights of that task. If each task has its own head, the
student uses the head of that task as second layer and changes only this head. The heads are concatenated along the axis
of units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from simulate.online.learning_steps import (
    EngineTask,
    OnlineLearner,
    StepRates,
    combine_basis_values,
    draw_task_masks,
    pad_protocol,
    select_task_values,
    stack_task_numbers,
)
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.students.activations import Activation
from statmech.students.student_geometry import factorise_gram

if TYPE_CHECKING:
    from statmech.kinds.network import NetworkCell
    from statmech.kinds.network_tasks import NetworkTaskCell


class StepNoise(NamedTuple):
    """The noise of steps: output noise, or None, and a uniform for each unit with dropout."""

    output: Array | None
    units: tuple[Array, ...] = ()


@dataclass(frozen=True)
class NetworkLearner(OnlineLearner):
    """Student networks that learn from a teacher network.

    `rows` (M, M) are the teacher's units B_m/sqrt N in an orthonormal basis. `dropout` is None if no unit is ever
    silent.
    """

    errors_need_field_variances: ClassVar[bool] = True
    family: RealParameterFamily
    of_teacher: RealParameterFamily
    sign: bool
    noisy: bool
    parameters: dict[str, Array]
    teacher_parameters: dict[str, Array]
    eta: Array
    eta_v: Array
    sigma: Array
    rows: Array
    w: Array
    copies: Array
    N: Array
    units: int = 0
    dropout: Array | None = None

    @property
    def uniforms_per_step(self) -> int:  # type: ignore[override]
        """The number of uniforms per step: one for each unit with dropout."""
        return self.num_dropout_units

    @property
    def num_dropout_units(self) -> int:
        """The number of units with dropout: 0 or all."""
        return 0 if self.dropout is None else len(self.copies)

    @property
    def normals_per_step(self) -> int:  # type: ignore[override]
        """The number of normals per step: one if the output is noisy."""
        return int(self.noisy)

    @cached_property
    def activation(self) -> Activation:
        """The students' activation with its parameters."""
        return self.family(**self.parameters)

    @cached_property
    def teacher_activation(self) -> Activation:
        """The teacher's activation with its parameters."""
        return self.of_teacher(**self.teacher_parameters)

    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Any:
        """Return the output noise, and the uniforms of units with dropout."""
        return self.make_noise(normals, split_step_uniforms(uniforms, self.num_dropout_units), dtype)

    def make_noise(self, normals: Array, uniforms: tuple[Array, ...], dtype: Any) -> StepNoise:
        """Make the noise from normals, and from the uniforms of units with dropout."""
        return StepNoise(self.sigma * normals.astype(dtype) if self.noisy else None, uniforms)

    def convert_to_teacher_values(self, basis: Array) -> Array:
        """Convert values for the basis into values for the teacher's units."""
        return combine_basis_values(self.rows, basis, self.units)

    def examples(self, noise: StepNoise, active: Array) -> tuple[Array, StepNoise]:
        """Return the mask of active steps and the noise."""
        return active, noise

    def start_block(self, saved_state: Array, squared_length: Array) -> Array:
        """Return the saved second layer, which is the state."""
        return saved_state

    def saved_state(self, carry: Array) -> Array:
        """Return the second layer, which the next block continues."""
        return carry

    def step(
        self,
        carry: Array,
        y: Array,
        h: Array,
        norm: Array,
        example: tuple[Array, StepNoise],
        step_rates: StepRates | None,
    ) -> tuple[Array, Array]:
        """Return the modulations f of one step, and the new second layer."""
        f, gain = self.compute_gradient_step(carry, self.reshape_to_unit_axis(self.w, y), y, h, example, step_rates)
        return f, (carry + gain).astype(h.dtype)  # cast because an activation may compute in float64

    def compute_gradient_step(
        self, v: Array, w: Array, y: Array, h: Array, example: tuple[Array, StepNoise], step_rates: StepRates | None
    ) -> tuple[Array, Array]:
        """Compute the modulations f and the change of the second layer for one example.

        Parameters
        ----------
        v, w
            Second layers of students and teacher.
        y, h
            Fields of teacher and students.
        example
            Whether the step is active, and its noise, of standard deviation 1 if the deviation changes with time.
        step_rates
            The rates of this step, or None if they are constant.
        """
        g, derivative = self.activation.both(h)
        active, (noise, uniforms) = example
        if uniforms:
            mask = self.make_dropout_mask(uniforms, step_rates)
            g, derivative = mask * g, mask * derivative
        if step_rates and noise is not None and step_rates.noise is not None:
            noise = step_rates.noise * noise
        error = jnp.where(
            active, self.label(w, y, noise) - self.sum_units(self.reshape_to_unit_axis(self.copies, h) * v * g), 0.0
        )
        f = (step_rates.eta if step_rates else self.eta) * (v * error) * derivative
        return f.astype(h.dtype), self.eta_v / self.N * (g * error)

    def make_dropout_mask(self, uniforms: Sequence[Array], step_rates: StepRates | None) -> Array:
        """Return the dropout factor of each unit in one step, given a uniform per unit.

        A factor is 1/(1 - p) with the probability 1 - p, else 0.
        """
        silent = self.dropout if step_rates is None or step_rates.dropout is None else step_rates.dropout
        assert silent is not None
        active = 1 - silent
        values = jnp.concatenate(uniforms, axis=-1) if self.units else jnp.stack(uniforms)
        return jnp.where(values < active, 1 / active, 0.0)

    def label(self, w: Array, y: Array, noise: Array | None) -> Array:
        """Compute the noisy output of a teacher network with second layer w from its fields."""
        output = self.sum_units(w * self.teacher_activation.both(y)[0])
        if self.sign:
            output = jnp.sign(output)
        return output if noise is None else output + noise

    def reshape_to_unit_axis(self, values: Array, template: Array) -> Array:
        """Reshape values of units to broadcast with the array `template` of a step."""
        return values if self.units else values.reshape(-1, *[1] * (template.ndim - 1))

    def sum_units(self, values: Array) -> Array:
        """Sum over units, keeping their axis."""
        return jnp.sum(values, axis=self.units, keepdims=True)


def make_network_task(cell: NetworkCell, dtype: str, other_cells: Sequence[NetworkCell] = ()) -> EngineTask:
    """Return the engine's task for a network of two layers.

    With `other_cells`, cells of the same program are simulated side by side.
    """
    first, group = find_distinct_students(cell)
    R, Q, v = cell.units.R[first], cell.units.Q[np.ix_(first, first)], cell.units.v[..., first]
    rows = factorise_gram(np.block([[cell.T, R.T], [R, Q]]))
    fixed = {
        "family": get_real_parameter_family(cell.activation),
        "of_teacher": get_real_parameter_family(cell.teacher_activation),
        "sign": cell.sign,
        "noisy": cell.noise > 0 or "noise" in dict(cell.controls),
    }
    common = {"rows": factorise_gram(cell.T)[None], "w": cell.w[None], "copies": np.bincount(group)[None]}
    cells = [cell, *other_cells]
    numbers = stack_task_numbers(map(_collect_varying_parameters, cells), dtype)
    return EngineTask(
        learner=RealParameterFamily(NetworkLearner, tuple(fixed.items())),
        parameters=numbers | {name: np.asarray(array, dtype) for name, array in common.items()},
        K=len(first),
        M=cell.M,
        N=cell.N,
        dtype=dtype,
        initial_coordinates=None if cell.drawn else rows[cell.M :],
        scale=float(np.sqrt(cell.units.Q[0, 0])),
        initial_learner_state=v.astype(dtype),
        inputs=cell.inputs,
        changes=stack_task_numbers(item.time_dependence for item in cells) if cell.decay > 0 or cell.controls else None,
    )


def _collect_varying_parameters(cell: NetworkCell) -> dict[str, Any]:
    """Collect the network parameters that may differ between cells simulated by one program."""
    parameters = {
        "parameters": get_real_parameters(cell.activation),
        "teacher_parameters": get_real_parameters(cell.teacher_activation),
    }
    sigma = 1.0 if "noise" in dict(cell.controls) else cell.noise
    dropout = {"dropout": cell.dropout} if cell.has_dropout else {}
    return {"eta": cell.eta, "eta_v": cell.eta_v, "sigma": sigma, **dropout, **parameters}


def find_distinct_students(cell: NetworkCell) -> tuple[np.ndarray, np.ndarray]:
    """Group identical students of a network, and return each group's first student and each student's group (K,)."""
    if cell.drawn or cell.has_dropout:
        return np.arange(cell.K), np.arange(cell.K)
    R, Q, v = cell.units
    described = np.column_stack([R, Q, v.T, np.diagonal(Q)])  # v (K,), or (heads, K) for several tasks
    same = (described[:, None] == described[None]).all(-1) & (np.diagonal(Q) == Q)
    first, group = np.unique(np.argmax(same, axis=1), return_inverse=True)
    return first, group


def split_step_uniforms(uniforms: Array, number: int) -> tuple[Array, ...]:
    """Split the uniforms of all steps into `number` arrays, each with an axis of steps."""
    return tuple(jnp.split(uniforms, number, axis=0 if uniforms.ndim == 1 else -2)) if number else ()


def get_real_parameters(activation: Activation) -> dict[str, float]:
    """Return the real parameters of an activation: arguments of a program, not constants."""
    return {name: getattr(activation, name) for name in get_real_parameter_family(activation).real_parameter_names}


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
        """Return the modulations f of a network for one example of a task, and the network's new heads."""
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
    single_task = make_network_task(cell, dtype)
    changes: TimeDependence = stack_task_numbers([cell.time_dependence])
    return replace(
        single_task,
        learner=RealParameterFamily(MultitaskNetworks, single_task.learner.fixed),
        initial_learner_state=single_task.initial_learner_state.reshape(-1),
        changes=changes._replace(tasks=pad_protocol(cell.protocol_pieces)),
        batch=cell.batch,
    )
