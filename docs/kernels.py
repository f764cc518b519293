"""Kernels of pages, forked from a process that has imported what pages import: one starts in a tenth of a second."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
from importlib.metadata import version
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jupyter_client
from jupyter_client.provisioning import local_provisioner

IMPORTED = (  # no program is compiled before the fork, and no figure drawn
    "dask.array",  # xarray looks for it
    "figures.overlay",
    "ipykernel.kernelapp",
    "jax",
    "scipy.stats",
    "simulate.execution.store_simulation",
    "simulate.kinds.seed_batches",
    "simulate.classification.cross_validation",
    "simulate.kinds.network_tasks",
    "statmech.cli.command_group",
    "theory",
    "xarray",
    "zarr",
)
# compile in two thirds of the time; what is compiled takes up to a fifth longer
FLAGS = [
    "--xla_backend_optimization_level=1",
    *(  # gone in 0.12: `statmech.runtime.compiled_programs.OLD_FUSION_OPTIONS`
        ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
        if version("jaxlib").startswith("0.10.")
        else []
    ),
]
INLINE = "module://matplotlib_inline.backend_inline"  # ipykernel sets it too late for an imported matplotlib
PATIENCE = 240  # seconds until a kernel runs


class PageKernel(jupyter_client.AsyncKernelManager):
    """A kernel that listens on sockets in a folder of its own: two that start at once may choose the same TCP port."""

    def _transport_default(self) -> str:
        return "ipc"

    def _ip_default(self) -> str:
        return str(Path(tempfile.mkdtemp(dir=os.environ["IPYTHONDIR"]), "kernel"))


class ForkedKernel:
    """A forked process with the methods of `subprocess.Popen` that jupyter_client calls."""

    stdin = stdout = stderr = None

    def __init__(self, process: Any):
        self.process, self.pid = process, process.pid

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def launch(command: list[str], env: dict[str, str], cwd: str = ".", **_: Any) -> ForkedKernel:
    """Fork a kernel with the options of its command, and wait until it has a session of its own."""
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(command[command.index("-f") :], os.path.abspath(cwd), env, sender))
    process.start()
    sender.close()
    if not receiver.poll(PATIENCE):
        process.kill()
        raise RuntimeError(f"the kernel of a page has not started within {PATIENCE} seconds")
    receiver.recv()
    return ForkedKernel(process)


def _run(options: list[str], cwd: str, env: dict[str, str], started: Connection) -> None:
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # jupyter_client ends the kernel's whole group of processes
    started.send(None)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    kernel = IPKernelApp.instance(parent_handle=os.getppid())
    kernel.initialize(options)
    gc.freeze()  # what is imported: a page's searches for garbage would go through it, 0.3 s of each page
    kernel.start()


def use() -> tempfile.TemporaryDirectory[str]:
    """Run all pages in such kernels, whose programs are compiled quickly; return their folder, which is to be held.

    They have no start-up files of the reader. myst-nb gives no class to choose, nor an environment.
    """
    folder = tempfile.TemporaryDirectory()
    profile = Path(folder.name, "profile_default")
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40")  # no warning of TCP
    os.environ |= {"IPYTHONDIR": folder.name, "MPLBACKEND": INLINE}
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # pages side by side: their threads wait for each other
        os.environ.setdefault(name, "1")
    os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))
    forkserver.set_forkserver_preload([*IMPORTED])
    forkserver.ensure_running()
    forkserver._forkserver.ensure_running = lambda: None  # it is no child of Sphinx's workers, which all use it
    jupyter_client.AsyncKernelManager = PageKernel  # nbclient takes it from there
    local_provisioner.launch_kernel = launch
    return folder
