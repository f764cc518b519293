r"""Fingerprints: 64 bits per run that tie its numbers to a sweep, their variables and a position.

A checksum detects that a file has changed, but not that it belongs elsewhere. The fingerprint of run p is

.. math:: F_p = p\,a + \sum_v \sum_j k_{vj}\,(x_{vj} \oplus \lfloor x_{vj} / 2^{32} \rfloor) \mod 2^{64}

where x are the 64-bit words of the run's values of each variable v, and a and k are odd numbers that are derived from
the config, the digests of its data and the variable's name. Runs are numbered over the entire sweep, with the seeds and
then its last axis varying fastest. Two runs, variables or sweeps that are exchanged agree with a probability of about
:math:`2^{-32}`. This guards against accidents, not against forgery. Each run has its own fingerprint, so that a chunk
may be filled in several passes, and a kill between two files leaves finished runs verifiable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from statmech.results.stored_config import remove_figure

FINGERPRINT_VARIABLE = "fingerprint"  # stored variable of a sweep, with one value per run
MAX_WORDS_PER_BLOCK = 2**20  # limits the memory of temporary arrays


def compute_fingerprint_salt(config: Mapping[str, Any], data: Mapping[str, str]) -> bytes:
    """Return the hash key of a sweep's fingerprints, from its config (without the figure) and its data digests.

    >>> salt = compute_fingerprint_salt({"rule": "hebb"}, {})
    >>> compute_fingerprint_salt({"rule": "hebb", "figure": "overlay"}, {}) == salt
    True
    """
    return hashlib.sha256(json.dumps([remove_figure(config), dict(data)], sort_keys=True).encode()).digest()


def compute_fingerprints(values: Mapping[str, np.ndarray], runs: np.ndarray, salt: bytes) -> np.ndarray:
    """Compute the fingerprint of each run.

    Parameters
    ----------
    values
        The values of each variable, of shape (*runs.shape, ...).
    runs
        The number of each run in its sweep.
    salt
        The key of the sweep (`compute_fingerprint_salt`).

    Returns
    -------
    64-bit numbers in the shape of `runs`.

    >>> runs, salt = np.arange(3), compute_fingerprint_salt({"rule": "hebb"}, {})
    >>> one = compute_fingerprints({"R": np.array([0.1, 0.2, 0.3])}, runs, salt)
    >>> other = compute_fingerprints({"R": np.array([0.2, 0.1, 0.3])}, runs, salt)
    >>> (one == other).tolist()
    [False, False, True]
    """
    sums = runs.astype(np.uint64).ravel() * _derive_odd_keys(salt, "", 1)[0]
    for name, array in sorted(values.items()):
        flat = np.ascontiguousarray(array).reshape(runs.size, -1)
        numbers = _derive_odd_keys(salt, name, _pack_as_uint64(flat[:1]).shape[1])
        step = max(1, MAX_WORDS_PER_BLOCK // max(1, numbers.size))
        for start in range(0, runs.size, step):
            integers = _pack_as_uint64(flat[start : start + step])
            sums[start : start + step] += (integers ^ (integers >> np.uint64(32))) @ numbers
    return sums.reshape(runs.shape)


def _pack_as_uint64(flat: np.ndarray) -> np.ndarray:
    """Return the bytes of each row as 64-bit integers, padded with zeros at the end."""
    octets = flat.view(np.uint8).reshape(len(flat), -1) if flat.size else np.zeros((len(flat), 0), np.uint8)
    padding = -octets.shape[1] % 8
    return (np.pad(octets, ((0, 0), (0, padding))) if padding else octets).view(np.uint64)


def _derive_odd_keys(salt: bytes, name: str, count: int) -> np.ndarray:
    """Derive odd 64-bit keys for a variable, identical on every machine."""
    random_bytes = hashlib.shake_128(salt + name.encode()).digest(8 * count)
    return np.frombuffer(random_bytes, "<u8").astype(np.uint64) | np.uint64(1)
