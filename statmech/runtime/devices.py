"""The device on which JAX computes: the CPU, but for weight vectors, which a GPU simulates faster.

Equations, and chains of a few order parameters, are many short steps, one after the other. A GPU takes longer for them
than one core (the tables in benchmarks/README.md), so that they stay on the CPU of a machine with a GPU. A device that
the user chose in JAX (`jax_default_device`) is kept, as is a JAX without a CPU (`JAX_PLATFORMS=cuda`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import jax

_TURNS = itertools.count()


@contextmanager
def double_precision() -> Iterator[None]:
    """Within this context JAX computes in float64, on the CPU."""
    with jax.enable_x64(True), _on(_cpus() if jax.default_backend() != "cpu" else []):
        yield


@contextmanager
def next_device(*, gpu: bool) -> Iterator[None]:
    """Within this context JAX computes in float64 on the next of this host's CPU devices, or GPUs if it has any.

    Units of work (a parameter combination and a batch of its seeds) are independent, so they are distributed over the
    devices without communication, and the bits are those of one device. Sharding the seeds of one batch would give the
    same bits, too, but its devices would wait for each other at every draw (docs/scaling.md).
    """
    with jax.enable_x64(True), _on(jax.local_devices() if gpu else _cpus()):
        yield


def _cpus() -> list[jax.Device]:
    try:
        return jax.local_devices(backend="cpu")
    except RuntimeError:  # left out by the user
        return jax.local_devices()


@contextmanager
def _on(devices: list[jax.Device]) -> Iterator[None]:
    """Within this context JAX computes on the next of these devices, unless it would anyway or the user chose one."""
    if getattr(jax.config, "jax_default_device", None) is not None or devices in ([], jax.local_devices()[:1]):
        yield
    else:
        with jax.default_device(devices[next(_TURNS) % len(devices)]):
            yield
