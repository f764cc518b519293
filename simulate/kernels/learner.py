"""Learners, which the engines simulate: they turn the fields of one example into changes of weights and of their state.

An engine draws inputs, knows the fields :math:`y_m` of M teachers and :math:`h_k` of K students, and adds
:math:`f_k\\mathbf x` to the students. What f is, the learner says: perceptrons (`simulate.kernels.perceptrons`) and
networks of two layers (`simulate.kernels.networks`).

A learner is a dataclass whose whole numbers, words and classes are known when a program is compiled (they are the
`fixed` ones of its family, `statmech.parameters.Family`), and whose real numbers are arrays.
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

from simulate.kernels.courses import Course
from statmech.inputs import Gaussian, Inputs
from statmech.numerics.gaussian import Array
from statmech.parameters import Family
from statmech.schedules import Changes

GAUSSIAN = Gaussian()
State = Any  # arrays with the students' axis first, or none


class Learner(ABC):
    """The students and their teachers, as an engine sees them.

    Arrays of one step have an axis of units, `units`: the first (0; a trailing axis may follow, one lane per seed), or
    the last (-1, after an axis of seeds).
    """

    normals: ClassVar[int] = 0  # that the noise of a step needs
    uniforms: ClassVar[int] = 0
    sizes: ClassVar[bool] = False  # whether errors depend on the variances of fields, and not on their angles alone
    eta: Array  # learning rate of the students' weights
    N: Array
    units: int

    @abstractmethod
    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Any:
        """The noise of steps from as many normals and uniforms as each needs, or None."""

    @abstractmethod
    def examples(self, noise: Any, active: Array) -> Any:
        """Return what M steps depend on besides the fields, arrays (M, ...); no step where `active` (M,) is False."""

    def teachers(self, basis: Array) -> Array:
        """The teachers (M, ...) from what an orthonormal basis of them (M, ...) has: coordinates, fields or vectors."""
        return basis

    def centres(self, noise: Any) -> Array | None:
        """The means c (M, ...) of M inputs, which are c B/N with the first teacher B; None: all are 0."""
        return None

    @abstractmethod
    def begin(self, kept: State, squared_length: Array) -> State:
        """Return the state that the steps of a block carry, given the students' squared lengths J^2/N."""

    @abstractmethod
    def kept(self, carry: State) -> State:
        """Return the state passed on to the next block."""

    @abstractmethod
    def step(
        self, carry: State, y: Array, h: Array, norm: Array, example: Any, now: Course | None
    ) -> tuple[Array, State]:
        """Return the students' f and the carried state after one step; nothing changes where there is none.

        Parameters
        ----------
        carry
            The carried state.
        y, h
            Fields of teachers and students.
        norm
            The input's squared length x.x.
        example
            What the step sees beside fields (see `examples`).
        now
            The course of this step, if there is one.
        """


@dataclass(frozen=True)
class Task:
    """A learner to simulate: what is known when its program is compiled, its numbers, and where it starts.

    It is one task, or several that differ in numbers: these have a first axis of tasks, of length 1 if all share them.
    """

    learner: Family
    parameters: dict[str, Any]
    K: int
    M: int
    N: float
    dtype: str
    coordinates: np.ndarray | None  # students (K, M + K) in a basis that begins with the teachers'; None: drawn
    scale: float  # standard deviation of drawn weights
    kept: State  # what the learner keeps, at t = 0
    changes: Changes | None = None
    drifting: bool = False
    inputs: Inputs = GAUSSIAN
    batch: int = 1  # examples of a step, which averages their f

    def numbers(self, which: Any = 0) -> tuple[dict[str, Any], Changes | None]:
        """The parameters and changes of one of the tasks, or, for indices (lanes,), of the task in each lane."""

        def select(values: np.ndarray) -> Any:
            return values[which] if values.ndim == 1 else values[0]

        selected: tuple[dict[str, Any], Changes | None] = jax.tree.map(select, (self.parameters, self.changes))
        return selected


def stacked(numbers: Iterable[Any], dtype: str = "float64") -> Any:
    """Numbers of several tasks, or trees of them, as arrays (tasks,)."""
    return jax.tree.map(lambda *values: np.array(values, dtype), *numbers)


def combined(rows: Array, basis: Array, units: int) -> Array:
    """B_m/sqrt N = sum_n rows_mn e_n, of what an orthonormal basis e of the teachers has (M, ...).

    `units` is the axis of units of one step (`Learner`): 0 where seeds are lanes, whose sums are unrolled.
    """
    if units:
        return jnp.tensordot(rows, basis, 1)
    columns = rows.reshape(*rows.shape, *[1] * (basis.ndim - 1))
    return reduce(add, (columns[:, n] * basis[n] for n in range(len(basis))))


class Record(NamedTuple):
    """The result of an engine: students at the recorded times, seeds first.

    `along` (seeds, T, K, M) are their coordinates along the teachers' basis, `across` (seeds, T, K, K) the Gram matrix
    of the rest, and `kept` (seeds, T, K) what a learner keeps beside its weights, if anything. `measured` (seeds, T,
    K + 2) are the errors of perceptrons, their vote and mean on new inputs, where angles do not give them.
    `along_field` and `across_field` are `along` and `across` of the fields, where their angles do, and `basis_field`
    (seeds, T, M, M) are the coordinates of the fields of the teachers' basis, on the same axes as `along_field`.
    `weights` (seeds, T, K, N) are the students themselves, where errors are those on a table.
    """

    along: Array
    across: Array
    kept: Array | None = None
    measured: Array | None = None
    along_field: Array | None = None
    across_field: Array | None = None
    basis_field: Array | None = None
    weights: Array | None = None
