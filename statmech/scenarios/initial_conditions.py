"""Initial conditions of students: drawn as in the paper, or given by order parameters."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from statmech.order_parameters import lowest_cosine_eigenvalue
from statmech.scenarios.axes import PydanticTypeOverride, make_value_or_list_type

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
Cosine = Annotated[Finite, Field(ge=-1, le=1)]


# Squares and products of lengths must neither overflow nor lose digits. In float64 (1e-308 to 1e308), lengths from
# 1e-100 to 1e100 have squares from 1e-200 to 1e200. The vectors engine sums N squares, and adds products divided by N.
# In float32 (1e-38 to 1e38), lengths from 1e-10 to 1e10 give 1e-20/N to 1e20 N, which allows the largest N, 1e15.
MAX_STUDENT_LENGTH_BY_DTYPE = {"float64": 1e100, "float32": 1e10}

LengthOrList = Annotated[Any, PydanticTypeOverride(make_value_or_list_type(Positive, tuple[Positive, ...]))]
CosineOrList = Annotated[Any, PydanticTypeOverride(make_value_or_list_type(Cosine, tuple[Cosine, ...]))]
CosineOrMatrix = Annotated[Any, PydanticTypeOverride(make_value_or_list_type(Cosine, tuple[tuple[Cosine, ...], ...]))]


class OrderParameters(NamedTuple):
    """Order parameters of K students: lengths (K,), teacher overlaps R (K,) and mutual overlaps q (K, K)."""

    length: np.ndarray
    R: np.ndarray
    q: np.ndarray


class Start(BaseModel):
    r"""Order parameters of the students at t = 0: length and R (one value or K), q (one value or K x K).

    `length` is :math:`|\mathbf J|/\sqrt N`, from 1e-100 to 1e100, or from 1e-10 to 1e10 with `dtype: float32`; R and q
    are cosines. The scenario raises `ScenarioError` for lengths outside these bounds, and for order parameters that
    K vectors cannot have.

    >>> Start(R=[0.5, 0.1]).compute_start(2).R
    array([0.5, 0.1])
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    length: LengthOrList = Field(default=1.0, description="|J|/sqrt(N), one value, or one per student")
    R: CosineOrList = Field(default=0.0, description="teacher-student cosine, one value, or one per student")
    q: CosineOrMatrix = Field(default=0.0, description="student-student cosine, one value or a K x K matrix")

    @property
    def has_equal_starts(self) -> bool:
        """True if all students start with the same order parameters."""
        return not any(isinstance(value, tuple) for value in (self.length, self.R, self.q))

    def compute_start(self, K: int) -> OrderParameters:
        """Return the initial order parameters of K students.

        Parameters
        ----------
        K
            Number of students.

        Returns
        -------
        OrderParameters
            R, q and length of each student.
        """
        length, R = (np.broadcast_to(np.asarray(v, float), K).copy() for v in (self.length, self.R))
        q = np.broadcast_to(np.asarray(self.q, float), (K, K)).copy()
        np.fill_diagonal(q, 1.0)
        return OrderParameters(length, R, q)

    def problems(self, K: int, dtype: str = "float64") -> list[str]:
        """Explain in one sentence per reason why K students cannot have this start.

        Parameters
        ----------
        K
            Number of students.
        dtype
            Floating-point type that must hold the squared lengths.

        Returns
        -------
        list of str
            Empty if K students can start like this.
        """
        sentences = [*find_length_problems(self.length, dtype)]
        sentences += [
            f"{name} lists {len(value)} students, but K = {K}"
            for name, value in (("length", self.length), ("R", self.R))
            if isinstance(value, tuple) and len(value) != K
        ]
        if isinstance(self.q, tuple):
            sentences += _find_cosine_matrix_problems(self.q, K)
        if sentences:
            return sentences
        if self.has_equal_starts:  # the eigenvectors are (1, ..., 1) and differences of students
            lowest = min((1 + (K - 1) * self.q) / K - self.R**2, 1 - self.q) if K > 1 else 0.0
        else:
            lowest = lowest_cosine_eigenvalue(np.broadcast_to(np.asarray(self.R, float), K), np.asarray(self.q, float))
        if lowest < -1e-12:
            return [
                f"no {K} students have R = {_abbreviate_value(self.R)} and q = {_abbreviate_value(self.q)}: "
                "their matrix of cosines with "
                f"the teacher would not be positive (for two or more equal students q is at least "
                f"(K R^2 - 1)/(K - 1))"
            ]
        return []


DRAWN_START_LARGE_N_LIMIT = Start(length=1.0, R=0.0, q=0.0)  # large-N limit for weights drawn from N(0, 1)


def find_length_problems(length: float | tuple[float, ...], dtype: str) -> list[str]:
    """Explain why a floating-point type cannot represent the squares of these lengths."""
    max_length = MAX_STUDENT_LENGTH_BY_DTYPE[dtype]
    lengths = length if isinstance(length, tuple) else (length,)
    outside = [value for value in lengths if not 1 / max_length <= value <= max_length]
    bounds = f"length must lie between {1 / max_length:g} and {max_length:g}, where {dtype} holds its square"
    return [f"{bounds}, not {outside[0]:g}"] if outside else []


def _find_cosine_matrix_problems(q: tuple[tuple[float, ...], ...], K: int) -> list[str]:
    """Explain why q is not a matrix of cosines of K students."""
    if len(q) != K or any(len(row) != K for row in q):
        return [f"q is {len(q)} x {len(q[0]) if q else 0}, but K = {K} students need {K} x {K}"]
    matrix = np.asarray(q)
    if not np.array_equal(matrix, matrix.T) or not np.all(np.diag(matrix) == 1):
        return ["q must be symmetric with ones on its diagonal"]
    return []


def _abbreviate_value(value: Any) -> str:
    """Format a value as text, cut to 200 characters."""
    text = str(value if not isinstance(value, tuple) else [*value])
    return text if len(text) <= 200 else f"{text[:197]}..."
