r"""Distributions of a teacher's weights: mixtures of Gaussians, each of second moment 1.

A mixture is a list of pieces (share, mean, variance). Drawing, the denoiser of message passing, overlaps and free
entropies follow from the pieces. **To add a distribution** write one class with `pieces` and one line in `WEIGHTS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from statmech.parameters import parameter


class Piece(NamedTuple):
    """A Gaussian of a mixture; variance 0 is an atom."""

    share: float
    mean: float
    variance: float


@dataclass(frozen=True)
class Weights(ABC):
    """A distribution of weights of mean square 1; subclasses state `label` and `pieces`."""

    label: ClassVar[str]
    equation: ClassVar[str] = ""
    cites: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """The Gaussians of the mixture, of total share 1."""

    def draw(self, rng: np.random.Generator, N: int) -> np.ndarray:
        """Weights (N,), scaled so that their mean square is 1 exactly."""
        share, mean, variance = np.array(self.pieces).T
        which = rng.choice(len(share), size=N, p=share)
        w = mean[which] + np.sqrt(variance[which]) * rng.standard_normal(N)
        if not np.any(w):  # none of a few sparse weights: one of them
            w[rng.integers(N)] = 1.0
        return w * np.sqrt(N / (w @ w))


@dataclass(frozen=True)
class Gauss(Weights):
    """Normal weights."""

    label: ClassVar = "Gaussian"
    equation: ClassVar = r"w \sim N(0, 1)"

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(1.0, 0.0, 1.0),)


@dataclass(frozen=True)
class Binary(Weights):
    """Weights of +1 and -1."""

    label: ClassVar = "binary"
    equation: ClassVar = r"w = \pm 1"

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(0.5, -1.0, 0.0), Piece(0.5, 1.0, 0.0))


@dataclass(frozen=True)
class Sparse(Weights):
    """A share rho of normal weights, the others 0."""

    label: ClassVar = "sparse"
    equation: ClassVar = r"w \sim (1-\rho)\,\delta_0 + \rho\,N(0, 1/\rho)"
    rho: float = parameter(0.2, "share of weights that are not 0", symbol=r"$\rho$", above=0, at_most=1)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        normal = Piece(self.rho, 0.0, 1 / self.rho)
        return (normal,) if self.rho == 1 else (Piece(1 - self.rho, 0.0, 0.0), normal)


WEIGHTS: dict[str, type[Weights]] = {"gauss": Gauss, "binary": Binary, "sparse": Sparse}
