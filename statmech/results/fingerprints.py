r"""Fingerprints: 64 bits per run that bind its numbers to their sweep, their variables and their place.

A checksum behind a chunk knows its bytes; it cannot tell that they belong elsewhere. The fingerprint of run p is

.. math:: F_p = p\,a + \sum_v \sum_j k_{vj}\,(x_{vj} \oplus \lfloor x_{vj} / 2^{32} \rfloor) \mod 2^{64}

over the 64-bit words x of its values of each variable v, with odd numbers a and k that are drawn from the config, the
digests of its data and the variable's name. A run's number p counts the whole sweep, its last axis and the seeds
fastest. Two runs, variables or sweeps that are exchanged agree with a probability of about :math:`2^{-32}`. It guards
against accidents, not against forgery. Each run has its own, so that a block may be filled in several goes, and a kill
between two files leaves whatever is done verifiable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

FINGERPRINT = "fingerprint"  # of each run, in a store that grows
ROWS = 2**20  # words that are read together, so that memory stays small beside the values


def salt_of(config: Mapping[str, Any], data: Mapping[str, str]) -> bytes:
    """What the fingerprints of a sweep begin with: its config, but for the figure, and the digests of its data.

    >>> salt_of({"rule": "hebb", "figure": "overlay"}, {}) == salt_of({"rule": "hebb"}, {})
    True
    """
    said = {name: value for name, value in config.items() if name != "figure"}
    return hashlib.sha256(json.dumps([said, dict(data)], sort_keys=True).encode()).digest()


def fingerprints(values: Mapping[str, np.ndarray], runs: np.ndarray, salt: bytes) -> np.ndarray:
    """The fingerprint of each run, in the shape of `runs`.

    `values` holds each variable's values, (*runs.shape, ...), and `runs` the number of each run in its sweep.

    >>> runs, salt = np.arange(3), salt_of({"rule": "hebb"}, {})
    >>> one = fingerprints({"R": np.array([0.1, 0.2, 0.3])}, runs, salt)
    >>> other = fingerprints({"R": np.array([0.2, 0.1, 0.3])}, runs, salt)
    >>> (one == other).tolist()
    [False, False, True]
    """
    found = runs.astype(np.uint64).ravel() * _numbers(salt, "", 1)[0]
    for name, array in sorted(values.items()):
        flat = np.ascontiguousarray(array).reshape(runs.size, -1)
        numbers = _numbers(salt, name, _words(flat[:1]).shape[1])
        step = max(1, ROWS // max(1, numbers.size))
        for at in range(0, runs.size, step):
            words = _words(flat[at : at + step])
            found[at : at + step] += (words ^ (words >> np.uint64(32))) @ numbers
    return found.reshape(runs.shape)


def _words(flat: np.ndarray) -> np.ndarray:
    """The bytes of each row as 64-bit words, the last one filled up with zeros."""
    octets = flat.view(np.uint8).reshape(len(flat), -1) if flat.size else np.zeros((len(flat), 0), np.uint8)
    lacking = -octets.shape[1] % 8
    return (np.pad(octets, ((0, 0), (0, lacking))) if lacking else octets).view(np.uint64)


def _numbers(salt: bytes, name: str, count: int) -> np.ndarray:
    """Odd 64-bit numbers of a variable, the same on every machine."""
    drawn = hashlib.shake_128(salt + name.encode()).digest(8 * count)
    return np.frombuffer(drawn, "<u8").astype(np.uint64) | np.uint64(1)
