r"""Initial teachers and students in the bases of groups, for `simulate.kernels.gram_of_groups`.

In the basis of its span in a group of :math:`N_a` directions, a vector drawn after n others has n normals and, on the
next axis, a chi with :math:`N_a - n` degrees; coordinates above the :math:`N_a`-th are 0. Teachers are orthonormal in
the space of all groups. Without a preferred direction they are such vectors, orthonormalised. With given powers
:math:`T_a` their parts have the length :math:`\sqrt{T_a}` in each group, and are perpendicular in each group with at
least as many directions as teachers (as in `simulate.kernels.vectors`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulate.kernels.learner import EngineTask
from statmech.modes import Modes
from statmech.random_numbers import make_generators


class GroupStart(NamedTuple):
    """Coordinates of teachers and students in the bases of groups.

    An orthonormal basis of M teachers (M, M, groups, seeds), which spans the first axes of each group, and K students
    (K, M + K, groups, seeds).
    """

    teachers: np.ndarray
    students: np.ndarray


def draw_group_start(task: EngineTask, modes: Modes, sizes: np.ndarray, seeds: int, key: np.ndarray) -> GroupStart:
    """Draw the initial teachers and students of a task.

    Parameters
    ----------
    task
        The task.
    modes
        Modes of its inputs, one for each group.
    sizes
        Numbers of directions (groups,).
    seeds
        Number of seeds.
    key
        Key (2,) of the random numbers.
    """
    [rng] = make_generators(key[None])
    teachers = _draw_teacher_basis(modes, sizes, task.M, seeds, rng)
    rows = np.stack(
        [_draw_group_vectors(rng, task.K, task.M, size, seeds) for size in sizes.tolist()], axis=2
    ) / np.sqrt(task.N)
    if task.initial_coordinates is None:
        return GroupStart(teachers, rows * task.scale)
    first = np.pad(teachers, ((0, 0), (0, task.K), (0, 0), (0, 0)))
    basis = _orthonormalise(np.concatenate([first, rows]))
    return GroupStart(teachers, np.einsum("kj,jigs->kigs", task.initial_coordinates.reshape(task.K, -1), basis))


def _draw_group_vectors(
    rng: np.random.Generator, num_vectors: int, num_previous: int, dimension: int, seeds: int
) -> np.ndarray:
    """Draw normal vectors of a group, as coordinates in the basis of these and earlier vectors.

    The result (number, after + number, seeds) adds `num_vectors` vectors of dimension `dimension` to `num_previous`
    earlier vectors.
    """
    rows = np.tril(rng.standard_normal((seeds, num_vectors, num_previous + num_vectors)), num_previous - 1)
    degrees = dimension - num_previous - np.arange(num_vectors)
    chi_squared = rng.chisquare(np.maximum(degrees, 1), (seeds, num_vectors))
    rows[..., np.arange(num_vectors), num_previous + np.arange(num_vectors)] = np.where(
        degrees > 0, np.sqrt(chi_squared), 0.0
    )
    rows[..., dimension:] = 0.0  # a group of `size` directions has no further axes
    return np.moveaxis(rows, 0, -1)


def _draw_teacher_basis(modes: Modes, sizes: np.ndarray, M: int, seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the teachers' basis (M, M, groups, seeds), with the given powers or without a preferred direction."""
    powers = modes.teacher
    if powers is not None and np.allclose(powers, modes.shares, rtol=1e-12):
        powers = None
    if M == 1:
        squares = _draw_group_powers(sizes, seeds, rng) if powers is None else np.repeat(powers[:, None], seeds, axis=1)
        return np.sqrt(squares)[None, None]
    parts = [_draw_group_vectors(rng, M, 0, size, seeds) for size in sizes.tolist()]
    if powers is not None:
        orthogonal = np.repeat(np.eye(M)[..., None], seeds, axis=2)
        parts = [orthogonal if size >= M else part for size, part in zip(sizes.tolist(), parts, strict=True)]
        parts = [
            part * np.sqrt(power / np.sum(part**2, axis=1))[:, None] for power, part in zip(powers, parts, strict=True)
        ]
    return _orthonormalise(np.stack(parts, axis=2))


def _draw_group_powers(sizes: np.ndarray, seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the squared lengths (groups, seeds) of a random unit vector's parts in the groups."""
    squares = rng.chisquare(sizes, (seeds, len(sizes))).T
    divided: np.ndarray = squares / squares.sum(axis=0)
    return divided


def _orthonormalise(rows: np.ndarray) -> np.ndarray:
    """Orthonormalise rows (n, axes, groups, seeds) one after the other, in the space of all groups."""
    basis: list[np.ndarray] = []
    for row in rows:
        for axis in basis:
            row = row - np.sum(row * axis, axis=(0, 1)) * axis
        basis.append(row / np.sqrt(np.sum(row**2, axis=(0, 1))))
    return np.stack(basis)
