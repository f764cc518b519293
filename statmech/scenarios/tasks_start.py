"""Initial conditions of a student with several tasks: a perceptron, or units and heads of a network."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Discriminator, Field, Tag

from statmech.scenarios.axes import PydanticTypeOverride
from statmech.scenarios.initial_conditions import CosineOrList, Positive, find_length_problems
from statmech.scenarios.keys import Number
from statmech.scenarios.network_matrices import (
    EIGENVALUE_TOL,
    MATRIX_SCHEMA,
    NUMBER_LIST_SCHEMA,
    NUMBER_SCHEMA,
    ConfigSection,
    MatrixRows,
    NetworkStart,
    NonnegativeOrMatrix,
    PositiveNumber,
    StudentTeacherOverlaps,
    StudentUnits,
    factorise_gram,
    find_shape_problems,
)


def _get_heads_union_tag(value: Any) -> str:
    """Return the union tag of head weights: a number, one list, or a list per head."""
    if not isinstance(value, list | tuple):
        return "value"
    return "given" if any(isinstance(row, list | tuple) for row in value) else "axis"


HeadWeights = Annotated[
    Any,
    PydanticTypeOverride(
        Annotated[
            Annotated[Number, Tag("value")]
            | Annotated[tuple[Number, ...], Tag("axis")]
            | Annotated[MatrixRows, Tag("given")],
            Discriminator(_get_heads_union_tag),
            Field(json_schema_extra={"anyOf": [NUMBER_SCHEMA, NUMBER_LIST_SCHEMA, MATRIX_SCHEMA]}),
        ]
    ),
]


class TasksStart(ConfigSection):
    r"""Student units of a network at t = 0: Q, R or `along`, and head weights v (a value, K values, or a row per head).

    `along` (K, all teacher units) contains the coordinates of the student units on orthonormal axes. The first axes are
    the units of the first task, if these are orthonormal. The same student can thus start at every overlap: with
    :math:`T = LL^\mathsf{T}`, R is `along` times :math:`L^\mathsf{T}`.

    >>> TasksStart(Q=1, along=[[0.6, 0.5]], v=0.5).compute_start(1, np.array([[1.0, 0.8], [0.8, 1.0]]), heads=2).R
    array([[0.6 , 0.78]])
    """

    name: str | None = Field(default=None, description="name of this start on an axis of starts")
    Q: NonnegativeOrMatrix | None = Field(
        default=None, description="J_k.J_l/N: a multiple of the identity, or a K x K matrix"
    )
    R: StudentTeacherOverlaps | None = Field(
        default=None, description="J_k.B_m/N: one value, {diagonal: value}, or a row of all tasks' units per student"
    )
    along: MatrixRows | None = Field(
        default=None, description="coordinates of the students on axes that begin with the first task's units"
    )
    v: HeadWeights = Field(
        default=1.0, description="weights of the students in the output: one value, K, or a row per head"
    )
    drawn: PositiveNumber | None = Field(
        default=None, description="variance of drawn weights of the first layer, in place of Q, R and along"
    )

    def __str__(self) -> str:
        """Return the label of this start on an axis of a dataset."""
        return self.name or "given"

    @property
    def is_drawn(self) -> bool:
        """True if the first-layer weights are drawn at random."""
        return self.drawn is not None or (self.Q is None and self.R is None and self.along is None)

    def compute_start(self, K: int, T: np.ndarray, heads: int) -> StudentUnits:
        """Return the matrices R (K, M), Q (K, K) and v (heads, K) of the student units.

        Parameters
        ----------
        K
            Number of student units.
        T : array (M, M)
            Products of the teacher units of all tasks.
        heads
            Number of second layers.

        Returns
        -------
        StudentUnits
        """
        v = np.broadcast_to(np.asarray(self.v, float), (heads, K)).copy()
        return self._make_first_layer_start(T).compute_start(K, len(T))._replace(v=v)

    def problems(self, K: int, T: np.ndarray, heads: int, dtype: str = "float64") -> list[str]:
        """Explain why K student units cannot have this start with teacher units T (M, M).

        Returns one sentence per reason.

        Parameters
        ----------
        K, T, heads
            As in `compute_start`.
        dtype
            Floating-point type that must hold products of weight vectors.

        Returns
        -------
        list of str
            Empty if they can.
        """
        if self.along is not None and not (self.R is None and self.drawn is None):
            return ["along determines R at every overlap: give either along, or R, or drawn"]
        sentences = find_shape_problems("along", self.along, (K, len(T)), "K, number of all teacher units")
        if _get_heads_union_tag(self.v) == "given":
            sentences += find_shape_problems("v", self.v, (heads, K), "heads, K")
        elif isinstance(self.v, tuple):
            sentences += find_shape_problems("v", self.v, (K,), "K")
        return sentences or self._make_first_layer_start(T).problems(K, T, dtype)

    def _make_first_layer_start(self, T: np.ndarray) -> NetworkStart:
        """Return the start of the first layer, without the heads."""
        R = self.R if self.along is None else (np.asarray(self.along, float) @ factorise_gram(T).T).tolist()
        section = {"Q": self.Q, "R": R, "drawn": self.drawn}
        return NetworkStart.model_validate({name: value for name, value in section.items() if value is not None})


class PerceptronStart(ConfigSection):
    """Order parameters of a perceptron at t = 0: its length, and R with the teacher of each task.

    >>> PerceptronStart(R=[0.1, 0.05]).compute_start(2)
    (1.0, array([0.1 , 0.05]))
    """

    length: Positive = Field(default=1.0, description="|J|/sqrt(N)")
    R: CosineOrList = Field(default=0.0, description="teacher-student cosine, one value, or one per task")

    def compute_start(self, tasks: int) -> tuple[float, np.ndarray]:
        """Return the length and the overlaps R (tasks,) with the teachers."""
        return self.length, np.broadcast_to(np.asarray(self.R, float), tasks).copy()

    def problems(self, task_overlaps: np.ndarray, dtype: str = "float64") -> list[str]:
        """Explain why no student can have this start, given the cosines (tasks, tasks) of the teachers.

        Returns one sentence per reason.

        Parameters
        ----------
        task_overlaps
            Cosines of the teachers.
        dtype
            Floating-point type that must hold the squared length.

        Returns
        -------
        list of str
            Empty if a student can start like this.
        """
        tasks = len(task_overlaps)
        if sentences := find_length_problems(self.length, dtype):
            return sentences
        if isinstance(self.R, tuple) and len(self.R) != tasks:
            return [f"R lists {len(self.R)} tasks, but tasks = {tasks}"]
        R = self.compute_start(tasks)[1]
        if np.linalg.eigvalsh(np.block([[task_overlaps, R[:, None]], [R, 1.0]]))[0] > -EIGENVALUE_TOL:
            return []
        description = f"R = {R.tolist()} with teachers of overlap {task_overlaps[0, 1]:g}"
        return [f"no student has {description}: the matrix of their cosines would not be positive"]
