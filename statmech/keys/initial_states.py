r"""Initial states of students and networks, given by order parameters or drawn as weights.

Students: their weights are drawn as in the paper of Miyoshi, Hara & Okada, or order parameters are given.

Networks: matrices describe the teacher units and the student units at t = 0. The Gram matrix of all units,
:math:`G = \begin{pmatrix} T & R^\mathsf{T}\\ R & Q\end{pmatrix}`, must be positive semidefinite. Otherwise, no weight
vectors have these overlaps.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    WithJsonSchema,
    model_serializer,
)

from statmech.errors import quote_value
from statmech.keys.key_types import Number, make_name_validator
from statmech.keys.sweep_grid import PydanticTypeOverride, make_value_or_list_type
from statmech.students.activations import ACTIVATIONS
from statmech.students.student_geometry import is_positive_semidefinite, lowest_cosine_eigenvalue

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
NUMBER_SCHEMA = {"type": "number"}
NUMBER_LIST_SCHEMA = {"type": "array", "items": NUMBER_SCHEMA, "minItems": 1}
MATRIX_SCHEMA = {"type": "array", "items": NUMBER_LIST_SCHEMA, "minItems": 1}


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
    """Explain why a floating-point type cannot represent the squares of these initial lengths."""
    max_length = MAX_STUDENT_LENGTH_BY_DTYPE[dtype]
    lengths = length if isinstance(length, tuple) else (length,)
    outside = [value for value in lengths if not 1 / max_length <= value <= max_length]
    bounds = f"length must lie between {1 / max_length:g} and {max_length:g}, where {dtype} holds its square"
    return [f"{bounds}, not {outside[0]:g}"] if outside else []


def _find_cosine_matrix_problems(q: tuple[tuple[float, ...], ...], K: int) -> list[str]:
    """Explain why the initial q is not a matrix of cosines of K students."""
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


def _make_array_or_keyword_reader(keyword: str) -> Any:
    """Return a validator of initial overlaps that converts arrays to lists, and the keyword to 1."""

    def read(value: Any) -> Any:
        """Convert an array or the keyword, or raise `ValueError` for any other string."""
        if isinstance(value, np.ndarray):
            return value.tolist()
        if not isinstance(value, str):
            return value
        if value == keyword:
            return 1.0
        possible = f'"{keyword}", a number or a matrix' if keyword else "a number or a list of numbers"
        raise ValueError(f"must be {possible}, not {quote_value(value)}")

    return BeforeValidator(read)


def _make_number_or_list_type(
    number: Any, list_type: Any, list_schema: dict[str, Any], keyword: str = ""
) -> PydanticTypeOverride:
    """Return the type of initial overlaps: a number, a list or matrix, or a keyword for 1."""
    schema = {"anyOf": [*([{"const": keyword}] if keyword else []), NUMBER_SCHEMA, list_schema]}
    return PydanticTypeOverride(
        Annotated[
            make_value_or_list_type(number, list_type), _make_array_or_keyword_reader(keyword), WithJsonSchema(schema)
        ]
    )


MatrixRows = tuple[tuple[Number, ...], ...]
PositiveNumber = Annotated[Number, Field(gt=0)]
NonnegativeOrMatrix = Annotated[
    Any, _make_number_or_list_type(Annotated[Number, Field(ge=0)], MatrixRows, MATRIX_SCHEMA)
]
TeacherMatrix = Annotated[Any, _make_number_or_list_type(PositiveNumber, MatrixRows, MATRIX_SCHEMA, "orthonormal")]
NumberOrList = Annotated[Any, _make_number_or_list_type(Number, tuple[Number, ...], NUMBER_LIST_SCHEMA)]
ActivationName = Annotated[str, AfterValidator(make_name_validator(ACTIVATIONS, "an activation"))]


class StudentUnits(NamedTuple):
    """Student units at t = 0: overlaps R (K, M) and Q (K, K), and output weights v (K,)."""

    R: np.ndarray
    Q: np.ndarray
    v: np.ndarray


class ConfigSection(BaseModel):
    """A section of a config. Keys that are not set are omitted when it is written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_serializer(mode="wrap")
    def _dump_given_keys(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise only the keys that are set."""
        return {name: value for name, value in write(self).items() if value is not None}


class TeacherSection(ConfigSection):
    r"""A teacher network: overlaps T (M, M) of its units and output weights w (M,).

    A number for T means this multiple of the identity, and a number for w means equal weights.

    The teacher's output is :math:`\sum_m w_m g(y_m)`, or the sign of this sum with `output: sign`.

    >>> TeacherSection(T=[[1, 0.5], [0.5, 1]]).compute_matrices(2)[1]
    array([1., 1.])
    """

    T: TeacherMatrix = Field(
        default=1.0, description="B_m.B_n/N: orthonormal, a multiple of the identity, or an M x M matrix"
    )
    w: NumberOrList = Field(default=1.0, description="weight of each teacher unit in the output, one value or M")
    output: Literal["linear", "sign"] = Field(
        default="linear", description="the weighted sum of the units, or its sign"
    )
    network: ActivationName | None = Field(
        default=None, description="activation of the teacher's units; by default the students'"
    )

    def compute_matrices(self, M: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the overlaps T (M, M) and weights w (M,) of M teacher units.

        Parameters
        ----------
        M
            Number of teacher units.

        Returns
        -------
        T, w : arrays
        """
        return _expand_matrix(self.T, M), np.broadcast_to(np.asarray(self.w, float), M).copy()

    def problems(self, M: int, dtype: str = "float64") -> list[str]:
        """Explain in one sentence per reason why M teacher units cannot have these matrices.

        Parameters
        ----------
        M
            Number of teacher units.
        dtype
            Floating-point type that must hold products of weight vectors.

        Returns
        -------
        list of str
            Empty if they can.
        """
        sentences = [*find_shape_problems("T", self.T, (M, M), "M"), *find_shape_problems("w", self.w, (M,), "M")]
        sentences = (
            sentences or _find_asymmetry_problems("T", self.T) or _find_overflow_problems(dtype, T=self.T, w=self.w)
        )
        if not sentences and not is_positive_semidefinite(self.compute_matrices(M)[0]):
            sentences = ["T is not positive semidefinite, so no teacher units have these products"]
        return sentences


class DiagonalOverlaps(ConfigSection):
    """Overlaps between student and teacher units of the same index, while all others are 0."""

    diagonal: Number = Field(description="J_k.B_k/N")


def _get_overlaps_union_tag(value: Any) -> str:
    """Return the union tag of initial overlaps: a section, a matrix or a number."""
    return (
        "given"
        if isinstance(value, dict | DiagonalOverlaps)
        else "axis"
        if isinstance(value, list | tuple)
        else "value"
    )


StudentTeacherOverlaps = Annotated[
    Annotated[Number, Tag("value")] | Annotated[MatrixRows, Tag("axis")] | Annotated[DiagonalOverlaps, Tag("given")],
    Discriminator(_get_overlaps_union_tag),
    _make_array_or_keyword_reader(""),
]


class NetworkStart(ConfigSection):
    r"""Student units at t = 0: R (a value or K x M), Q (a multiple of the identity or K x K), v (a value or K).

    With `R: {diagonal: 0.05}`, units of the same index have this overlap for any K and M, and other overlaps are 0.

    With `drawn`, the weights of the first layer are drawn from a normal distribution of this variance, and R and Q
    cannot be given.

    >>> NetworkStart(Q=0.25).compute_start(2, 2).Q
    array([[0.25, 0.  ],
           [0.  , 0.25]])
    """

    Q: NonnegativeOrMatrix | None = Field(
        default=None, description="J_k.J_l/N: a multiple of the identity, or a K x K matrix"
    )
    R: StudentTeacherOverlaps | None = Field(
        default=None, description="J_k.B_m/N: one value, {diagonal: value}, or a K x M matrix"
    )
    v: NumberOrList = Field(default=1.0, description="weight of each student unit in the output, one value or K")
    drawn: PositiveNumber | None = Field(
        default=None, description="variance of drawn weights of the first layer, in place of Q and R"
    )

    def compute_start(self, K: int, M: int) -> StudentUnits:
        """Return the matrices of K student units at the start, for large N if weights are drawn.

        Parameters
        ----------
        K, M
            Numbers of student and teacher units.

        Returns
        -------
        StudentUnits
            R (K, M), Q (K, K) and v (K,).
        """
        v = np.broadcast_to(np.asarray(self.v, float), K).copy()
        Q = self.drawn if self.drawn is not None else 1.0 if self.Q is None else self.Q
        return StudentUnits(self._expand_overlaps(K, M), _expand_matrix(Q, K), v)

    def _expand_overlaps(self, K: int, M: int) -> np.ndarray:
        """Expand R to a matrix (K, M)."""
        if isinstance(self.R, DiagonalOverlaps):
            return self.R.diagonal * np.eye(K, M)
        return np.broadcast_to(np.asarray(self.R or 0.0, float), (K, M)).copy()

    def problems(self, K: int, T: np.ndarray, dtype: str = "float64") -> list[str]:
        """Explain in one sentence per reason why K units cannot have this start with teacher units T (M, M).

        Parameters
        ----------
        K
            Number of student units.
        T : array (M, M)
            Products of the teacher units.
        dtype
            Floating-point type that must hold products of weight vectors.

        Returns
        -------
        list of str
            Empty if they can.
        """
        if self.drawn is not None and not (self.Q is None and self.R is None):
            return ["drawn weights have no given Q or R: give either drawn, or Q and R"]
        M = len(T)
        Q = 0.0 if self.Q is None else self.Q
        R = self.R if isinstance(self.R, tuple) else self._expand_overlaps(K, M).max()
        sentences = [
            *find_shape_problems("Q", Q, (K, K), "K"),
            *find_shape_problems("R", R, (K, M), "K, M"),
            *find_shape_problems("v", self.v, (K,), "K"),
        ]
        sentences = (
            sentences
            or _find_asymmetry_problems("Q", Q)
            or _find_overflow_problems(dtype, Q=Q, R=R, v=self.v, drawn=self.drawn or 0.0)
        )
        if sentences:
            return sentences
        units = self.compute_start(K, M)
        if not is_positive_semidefinite(np.block([[T, units.R.T], [units.R, units.Q]])):
            return [
                f"no {K} student units have these Q and R with the teacher's T: the Gram matrix of all units would "
                "not be positive semidefinite (for one teacher unit, |R| is at most sqrt(Q T))"
            ]
        return []


def make_learnt_start(K: int, T: np.ndarray, w: np.ndarray) -> NetworkStart:
    """Return a start where M of K student units equal the teacher's and the others vanish."""
    M = len(w)
    R, Q, v = np.zeros((K, M)), np.zeros((K, K)), np.ones(K)
    R[:M], Q[:M, :M], v[:M] = T, T, w
    return NetworkStart.model_validate({"R": R, "Q": Q, "v": v})


def is_permutation_symmetric(matrix: np.ndarray) -> bool:
    """Return True if all diagonal entries are equal, and all off-diagonal entries are equal.

    >>> is_permutation_symmetric(np.eye(2)), is_permutation_symmetric(np.diag([1.0, 2.0]))
    (True, False)
    """
    rest = matrix[~np.eye(len(matrix), dtype=bool)]
    return bool(np.ptp(np.diagonal(matrix)) == 0 and (rest.size == 0 or np.ptp(rest) == 0))


def _expand_matrix(value: Any, n: int) -> np.ndarray:
    """Return a matrix (n, n), or a number times the identity."""
    return np.asarray(value, float) if isinstance(value, tuple) else float(value) * np.eye(n)


def find_shape_problems(name: str, value: Any, shape: tuple[int, ...], size_names: str) -> list[str]:
    """Explain why a list or matrix of a start does not have the required shape. A number fits any shape."""
    if not isinstance(value, tuple):
        return []
    rows = [len(row) for row in value] if len(shape) > 1 else []
    expected_shape = " x ".join(map(str, shape))
    if len(set(rows)) > 1:
        return [f"{name} has rows of different lengths, {', '.join(map(str, rows))}, but must be {expected_shape}"]
    actual_shape = (len(value), *rows[:1])
    sizes = ", ".join(f"{key} = {size}" for key, size in zip(size_names.split(", "), shape, strict=False))
    if actual_shape == shape:
        return []
    if len(shape) == 1:
        values = f"{len(value)} value{'s' if len(value) != 1 else ''}"
        return [f"{name} has {values}, but {sizes} units need {expected_shape}"]
    return [f"{name} is {' x '.join(map(str, actual_shape))}, but {sizes} needs {expected_shape}"]


def _find_asymmetry_problems(name: str, value: Any) -> list[str]:
    """Explain why the matrix of a start is asymmetric or has a negative diagonal entry."""
    if not isinstance(value, tuple):
        return []
    matrix = np.asarray(value, float)
    if not np.array_equal(matrix, matrix.T):
        return [f"{name} must be symmetric"]
    return [] if np.all(np.diagonal(matrix) >= 0) else [f"{name} must not be negative on its diagonal"]


def _find_overflow_problems(dtype: str, **given: Any) -> list[str]:
    """Explain why the square of an initial value exceeds the range of a floating-point type."""
    bound = MAX_STUDENT_LENGTH_BY_DTYPE[dtype]  # products are squared and summed over N
    for name, value in given.items():
        if np.max(np.abs(np.asarray(value, float))) > bound:
            return [f"{name} must lie between {-bound:g} and {bound:g}, where {dtype} holds its square"]
    return []
