r"""Examples of two Gaussian clusters: labels, and inputs around the centre of their cluster.

For each N a seed has one direction between the centres and one endless list of inputs. Every alpha of a sweep uses the
first P inputs of this list. Labels +1 are equally spaced in the list, so that any first part of the list contains the
given fraction of +1 to within one example. An intercept would otherwise follow fluctuations of that fraction, which
under a strong penalty exceed the signal in the weights. The direction is drawn and scaled so that the distance between
the centres, and its part in each group of a spectrum, equal their values in the limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulate.kernels.teacher_data import INPUT_STREAM, TEACHER_STREAM, make_random_stream
from statmech.scenarios.gaussian_clusters import ClusterCell


class ClusterData(NamedTuple):
    """Labelled examples of two Gaussian clusters.

    Half the difference of the centres, N d / 2 (N,), the variances around a centre (N,), inputs (P, N) and labels (P,).
    """

    half_centre_difference: np.ndarray
    variances: np.ndarray
    X: np.ndarray
    y: np.ndarray


def draw_cluster_data(cell: ClusterCell, key: int, seed: int) -> ClusterData:
    """Draw the first P examples of two clusters for one seed.

    Parameters
    ----------
    cell
        The parameter combination.
    key, seed
        The key of the experiment's random numbers, and the run.

    Examples
    --------
    >>> from statmech import Clusters
    >>> scenario = Clusters(clusters="gaussian", loss="hinge", N=4, alpha=[0.5, 1])
    >>> few, more = (draw_cluster_data(cell, 0, 0) for cell in scenario.cells())
    >>> bool((more.X[:2] == few.X).all()), bool((more.y[:2] == few.y).all())
    (True, True)
    >>> round(float(np.sum(few.half_centre_difference**2)), 12)
    4.0
    """
    identity = {"N": cell.N, "key": key, "seed": seed}
    half = draw_cluster_direction(cell, make_random_stream(TEACHER_STREAM, **identity)) * cell.kind.distance / 2
    variances = compute_cluster_variances(cell)
    y = make_cluster_labels(cell.kind.positives, cell.P)
    far = np.where(y > 0, 2 * (1 - cell.kind.positives), 2 * cell.kind.positives)
    X = make_random_stream(INPUT_STREAM, **identity).standard_normal((cell.P, cell.N)) * np.sqrt(variances)
    return ClusterData(half, variances, X + np.outer(y * far, half / np.sqrt(cell.N)), y)


def make_cluster_labels(positive_fraction: float, P: int) -> np.ndarray:
    """Return P labels with this fraction of +1 among the first n, to within one label for every n.

    >>> make_cluster_labels(0.3, 10)
    array([-1., -1., -1.,  1., -1., -1.,  1., -1., -1.,  1.])
    """
    count = np.floor(positive_fraction * np.arange(P + 1))
    return 2 * np.diff(count) - 1


def compute_cluster_variances(cell: ClusterCell) -> np.ndarray:
    """Return N times the variances (N,) of the inputs around their centre."""
    inputs = cell.inputs
    return np.ones(cell.N) if inputs.isotropic else np.asarray(inputs.table(cell.N), float) ** 2


def draw_cluster_direction(cell: ClusterCell, rng: np.random.Generator) -> np.ndarray:
    """Draw the direction between the centres, a vector (N,) of squared length N.

    The `teacher` powers of a spectrum divide the squared length among its groups.
    """
    vector = rng.standard_normal(cell.N)
    axes = cell.inputs.axes(cell.N)
    if axes is None or axes.powers is None or axes.group is None:
        return vector * np.sqrt(cell.N) / np.linalg.norm(vector)
    sizes = np.bincount(axes.group)
    squares = np.add.reduceat(vector**2, np.cumsum(sizes) - sizes)
    return vector * np.sqrt(axes.powers * cell.N / np.repeat(squares, sizes))
