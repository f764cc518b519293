"""Learners for the engines: conversion of an example's fields into changes of weights and state.

An engine draws inputs, knows the fields :math:`y_m` of M teachers and :math:`h_k` of K students, and adds
:math:`f_k\\mathbf x` to the students. The learner defines f: perceptrons (`simulate.kernels.perceptrons`) or networks
of two layers (`simulate.kernels.networks`).

A learner is a dataclass. Its integers, strings and classes are known when a program is compiled (the `fixed` parameters
of its family, `statmech.parameters.RealParameterFamily`), and its real numbers are arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simulate.kernels.courses import StepRates
from statmech.inputs import Gaussian, Inputs
from statmech.numerics.gaussian import Array
from statmech.parameters import RealParameterFamily
from statmech.schedules import TimeDependence

DEFAULT_INPUTS = Gaussian()
LearnerStateArrays = Any  # a tree of arrays with students on the first axis


class OnlineLearner(ABC):
    """The interface of students and teachers to an engine.

    Arrays of one step have an axis of units, `units`: the first (0; an axis of batch elements, one per seed, may
    follow), or the last (-1, after an axis of seeds).
    """

    normals_per_step: ClassVar[int] = 0  # number of normals that the noise of a step needs
    uniforms_per_step: ClassVar[int] = 0  # number of uniforms that the noise of a step needs
    errors_need_field_variances: ClassVar[bool] = (
        False  # whether errors also depend on the variances of fields, not only on angles
    )
    eta: Array  # learning rate of the students' weights
    N: Array
    units: int

    @abstractmethod
    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Any:
        """Make the noise of each step from its normals and uniforms, or return None."""

    @abstractmethod
    def examples(self, noise: Any, active: Array) -> Any:
        """Return the learner's additional input to the fields for M steps, as arrays (M, ...).

        No step takes place where `active` (M,) is False.
        """

    def convert_to_teacher_values(self, basis: Array) -> Array:
        """Convert values (M, ...) for an orthonormal basis of the teachers into values for the teachers.

        The values are coordinates, fields or vectors.
        """
        return basis

    def input_means(self, noise: Any) -> Array | None:
        """Return the means c (M, ...) of M inputs, or None if all means are 0.

        The mean of an input is c B/N with the first teacher B.
        """
        return None

    @abstractmethod
    def start_block(self, saved_state: LearnerStateArrays, squared_length: Array) -> LearnerStateArrays:
        """Return the state at the start of a block, given the students' squared lengths J^2/N."""

    @abstractmethod
    def saved_state(self, carry: LearnerStateArrays) -> LearnerStateArrays:
        """Return the part of the state that is passed on to the next block."""

    @abstractmethod
    def step(
        self, carry: LearnerStateArrays, y: Array, h: Array, norm: Array, example: Any, step_rates: StepRates | None
    ) -> tuple[Array, LearnerStateArrays]:
        """Return the modulations f of one step, and the state after the step.

        Nothing changes where the example is inactive.

        Parameters
        ----------
        carry
            The carried state.
        y, h
            Fields of teachers and students.
        norm
            The input's squared length x.x.
        example
            Input of the step in addition to fields (see `examples`).
        step_rates
            The rates of this step, or None if they are constant.
        """


@dataclass(frozen=True)
class EngineTask:
    """A learner to simulate, with its static constants, numerical parameters and initial state.

    Either one task, or several that differ in numbers: the numbers then have a first axis of tasks, of length 1 if all
    tasks share them.
    """

    learner: RealParameterFamily
    parameters: dict[str, Any]
    K: int
    M: int
    N: float
    dtype: str
    initial_coordinates: np.ndarray | None  # initial students (K, M + K), teachers' axes first, or None to draw them
    scale: float  # standard deviation of drawn weights
    initial_learner_state: LearnerStateArrays  # the learner's saved state at t = 0
    changes: TimeDependence | None = None
    drifting: bool = False
    inputs: Inputs = DEFAULT_INPUTS
    batch: int = 1  # number of examples averaged in a step

    def numbers(self, which: Any = 0) -> tuple[dict[str, Any], TimeDependence | None]:
        """Return the parameters and changes of one task, or of the tasks with these indices (width,)."""

        def select(values: np.ndarray) -> Any:
            return values[which] if values.ndim == 1 else values[0]

        selected: tuple[dict[str, Any], TimeDependence | None] = jax.tree.map(select, (self.parameters, self.changes))
        return selected


def stack_task_numbers(numbers: Iterable[Any], dtype: str = "float64") -> Any:
    """Stack the numbers, or trees of numbers, of several tasks into arrays (tasks,)."""
    return jax.tree.map(lambda *values: np.array(values, dtype), *numbers)


def combine_basis_values(rows: Array, basis: Array, unit_axis: int) -> Array:
    """Convert values (M, ...) for an orthonormal basis e of the teachers into values for the teachers.

    The coefficients are the `rows`: B_m/sqrt N = sum_n rows_mn e_n. `unit_axis` is the axis of units of one step (see
    `OnlineLearner`): 0 where the last axis is the batch, whose sums are unrolled.
    """
    if unit_axis:
        return jnp.tensordot(rows, basis, 1)
    columns = rows.reshape(*rows.shape, *[1] * (basis.ndim - 1))
    return reduce(add, (columns[:, n] * basis[n] for n in range(len(basis))))


class EngineRecord(NamedTuple):
    """The result of an engine: students at the recorded times, with seeds on the first axis.

    `parallel` (seeds, T, K, M) are their coordinates in the teachers' basis, `perpendicular` (seeds, T, K, K) the Gram
    matrix of the rest, and `initial_learner_state` (seeds, T, K) the learner's state in addition to the weights.
    `measured` (seeds, T, K + 2) are errors on new inputs of perceptrons, their vote and their mean, where angles do not
    determine the errors. `parallel_fields` and `perpendicular_fields` are `parallel` and `perpendicular` of the fields,
    where the angles of fields determine the errors. `teacher_basis_fields` (seeds, T, M, M) are the coordinates of the
    fields of the teachers' basis, on the same axes as `parallel_fields`. `weights` (seeds, T, K, N) are the students
    themselves, for errors on a table.
    """

    parallel: Array
    perpendicular: Array
    saved_state: Array | None = None
    measured: Array | None = None
    parallel_fields: Array | None = None
    perpendicular_fields: Array | None = None
    teacher_basis_fields: Array | None = None
    weights: Array | None = None
