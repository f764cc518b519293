"""Several devices of one host: each unit of work goes to the next device in turn.

Units (a parameter combination and a batch of its seeds) are independent, so they are distributed over the devices
without communication, and the bits are those of one device. Sharding the seeds of one batch would give the same bits,
too, but its devices would wait for each other at every draw (docs/scaling.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import jax

_TURNS = itertools.count()


@contextmanager
def next_device() -> Iterator[None]:
    """Within this context JAX computes on the next of this host's devices; a device that the user chose is kept."""
    devices = jax.local_devices()
    if len(devices) == 1 or getattr(jax.config, "jax_default_device", None) is not None:
        yield
    else:
        with jax.default_device(devices[next(_TURNS) % len(devices)]):
            yield
