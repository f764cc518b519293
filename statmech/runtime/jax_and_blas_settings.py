"""Settings of numerical libraries: the device and precision of JAX, and the threads of BLAS.

Device: the CPU, except for weight vectors, which a GPU simulates faster. Equations, and chains of a few order
parameters, consist of many short sequential steps. A GPU takes longer for these steps than one core (see the tables in
benchmarks/README.md), so that they stay on the CPU of a machine with a GPU. A device that the user chose in JAX
(`jax_default_device`) is kept, as is a JAX without a CPU (`JAX_PLATFORMS=cuda`). Some theory needs NumPy and SciPy
alone, and can also be solved without JAX.

BLAS: a single thread, for use within our own threads and for products too small to parallelise.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from threadpoolctl import ThreadpoolController

from statmech.errors import MissingDeviceError

if TYPE_CHECKING:
    import jax

_DEVICE_COUNTER = itertools.count()


def use_one_blas_thread() -> AbstractContextManager[object]:
    """Return a context where every BLAS library of this process uses one thread."""
    return _find_blas_libraries(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _find_blas_libraries(module_count: int) -> ThreadpoolController:
    """Return the BLAS libraries that this process has loaded, cached by the number of imported modules.

    The search takes 2 ms, and importing a module may load another library.
    """
    return ThreadpoolController()


def has_jax() -> bool:
    """Return True if JAX is installed.

    >>> has_jax()
    True
    """
    return find_spec("jax") is not None


@cache
def check_jax_platforms() -> None:
    """Raise `MissingDeviceError` if JAX finds no device of the platforms in its settings, such as JAX_PLATFORMS."""
    import jax

    try:
        jax.local_devices()
    except (AssertionError, RuntimeError) as failure:
        platforms = getattr(jax.config, "jax_platforms", None)
        reason = f" ({str(failure).splitlines()[0]})" if str(failure) else ""
        message = f"JAX finds no device of JAX_PLATFORMS={platforms}{reason}: unset it, or set JAX_PLATFORMS=cpu"
        raise MissingDeviceError(message) from None


@contextmanager
def use_cpu_double_precision() -> Iterator[None]:
    """Open a context where JAX, if installed, computes in float64 on the CPU.

    >>> with use_cpu_double_precision():
    ...     pass
    """
    if not has_jax():
        yield
        return
    import jax

    with (
        _use_required_jax_settings(),
        _use_next_listed_device(_list_cpu_devices() if jax.default_backend() != "cpu" else []),
    ):
        yield


@contextmanager
def use_next_device(*, gpu: bool) -> Iterator[None]:
    """Open a context where JAX computes in float64 on this host's next CPU device, or with `gpu` on its next GPU.

    Units of work (a parameter combination and a batch of its seeds) are independent, so they are distributed over the
    devices without communication, and the results are bit-identical to results on one device. Sharding the seeds of one
    batch would also give identical bits, but its devices would wait for each other at every draw (docs/scaling.md).
    """
    import jax

    with _use_required_jax_settings(), _use_next_listed_device(jax.local_devices() if gpu else _list_cpu_devices()):
        yield


@contextmanager
def _use_required_jax_settings() -> Iterator[None]:
    """Open a context where JAX computes in float64, compiles, and allows all promotions and transfers.

    A user may forbid promotions and transfers. Without compilation (JAX_DISABLE_JIT) the smallest run takes minutes.
    """
    import jax

    check_jax_platforms()

    promotions = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(True), promotions[0], promotions[1], jax.transfer_guard("allow"), jax.disable_jit(False):
        yield


def _list_cpu_devices() -> list[jax.Device]:
    import jax

    try:
        return jax.local_devices(backend="cpu")
    except RuntimeError:  # the user has excluded the CPU
        return jax.local_devices()


@contextmanager
def _use_next_listed_device(devices: list[jax.Device]) -> Iterator[None]:
    """Open a context where JAX computes on the next of these devices, unless the user has chosen a device."""
    import jax

    if getattr(jax.config, "jax_default_device", None) is not None or devices in ([], jax.local_devices()[:1]):
        yield
    else:
        with jax.default_device(devices[next(_DEVICE_COUNTER) % len(devices)]):
            yield
