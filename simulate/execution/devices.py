"""Several devices of one host: each unit of work goes to the next one.

Units (a cell and a batch of its seeds) know nothing of each other, so that seeds and cells are spread over the devices
without a word between them, and the bits are those of one device. Sharding the seeds of one batch would have the same
bits, too, but its devices would wait for each other at every draw (docs/scaling.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import jax

_TURNS = itertools.count()


@contextmanager
def next_device() -> Iterator[None]:
    """Within, JAX computes on the next of this host's devices; one device, or one that the user chose, stays."""
    devices = jax.local_devices()
    if len(devices) == 1 or getattr(jax.config, "jax_default_device", None) is not None:
        yield
    else:
        with jax.default_device(devices[next(_TURNS) % len(devices)]):
            yield
