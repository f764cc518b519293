"""The package runs where calls of Linux and of POSIX are missing, and makes them in one module only."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest
from conftest import quick_environment

from statmech.errors import StoreError
from statmech.runtime import files, jax_and_blas_settings, operating_system
from statmech.stores import locks

ROOT = Path(__file__).parents[1]
SEAM = Path("statmech/runtime/operating_system.py")
MODULES = {"fcntl", "resource", "ctypes", "pwd", "grp", "termios", "tty", "pty", "msvcrt", "winreg"}
CALLS = {  # of os and signal
    "sched_getaffinity", "process_cpu_count", "sysconf", "fchmod", "fchown", "chown", "set_blocking", "pread", "pwrite",
    "register_at_fork", "fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "getpgid", "setsid", "killpg",
    "getloadavg", "mkfifo", "mknod", "statvfs", "uname", "wait4", "sigwait", "pthread_sigmask", "alarm", "setitimer",
    "SIGKILL", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGQUIT",
    "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_ACCMODE", "O_DIRECTORY", "O_NOCTTY", "O_SYNC",
}  # fmt: skip

# Python itself is left with what it uses after it has started: the libraries import tempfile, subprocess and asyncio
# while these calls are there, and only then are they hidden from statmech
HIDDEN = """
    import ctypes, os, sys

    for name in {libraries}:
        __import__(name)

    class Library(ctypes.CDLL):
        def __getattr__(self, name):
            if name == "prctl":
                raise AttributeError(name)
            return super().__getattr__(name)

    ctypes.CDLL = Library
    for name in ("fcntl", "resource", "pwd", "grp"):
        sys.modules[name] = None
    for name in {calls}:
        vars(os).pop(name, None)
    os.process_cpu_count = os.cpu_count  # as Python 3.13 sets it where no process is bound to cores
    assert not any(name.partition(".")[0] in ("statmech", "simulate", "theory", "figures") for name in sys.modules)
    os.environ["STATMECH_HIDDEN"] = "yes"
"""
LIBRARIES = (
    "asyncio", "dask", "jax", "matplotlib.pyplot", "numba",
    "scipy.optimize", "sklearn.base", "tempfile", "xarray", "zarr",
)  # fmt: skip
USED_BY_PYTHON = {"O_CLOEXEC", "fork", "getuid", "process_cpu_count"}
if sys.version_info >= (3, 12):
    USED_BY_PYTHON.add("O_NONBLOCK")  # by `shutil.rmtree`
RUN = """
    import pkgutil
    from importlib import import_module

    import figures, simulate, statmech, theory

    for package in (statmech, simulate, theory, figures):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith("__main__"):
                import_module(module.name)

    from statmech.cli import main

    def command(*arguments):
        sys.argv = ["statmech", *arguments]
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, (arguments, ended.code)

    command("run", "ensemble", "N=20", "t=0,1", "K=2", "rule=hebb", "seeds=2", "--out", "ensemble")
    command("run", "ensemble", "N=20", "t=0,1", "K=2", "rule=hebb", "seeds=4", "--out", "ensemble", "--memory", "8GB")
    command("verify", "ensemble")
    command("simulate", "plateau", "N=20", "t=0,1", "seeds=2", "--out", "network")
    command("status", "network")
"""


def names_of(tree: ast.AST):
    """The modules that are imported, and the attributes and names that are read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(alias.name for alias in node.names))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("os", "signal"):
            yield node.attr


def bound_to_a_system(source: str) -> set[str]:
    return set(names_of(ast.parse(source))) & (MODULES | CALLS)


def hidden(*lines: str) -> str:
    names = sorted(name for name in CALLS - USED_BY_PYTHON if hasattr(os, name))
    head = textwrap.dedent(HIDDEN).format(libraries=LIBRARIES, calls=names)
    return head + "".join(map(textwrap.dedent, lines))


@pytest.mark.slow
def test_calls_that_some_systems_lack_are_made_in_one_module():
    files = [
        file for package in ("statmech", "simulate", "theory", "figures") for file in (ROOT / package).rglob("*.py")
    ]
    found = {file.relative_to(ROOT): bound_to_a_system(file.read_text()) for file in files}
    assert {file for file, names in found.items() if names} == {SEAM}


@pytest.mark.parametrize("planted", ["import fcntl", "from os import fork", "os.getuid()", "signal.SIGKILL"])
def test_such_a_call_elsewhere_is_found(planted):
    assert bound_to_a_system(planted)


@pytest.mark.slow
def test_everything_runs_where_they_are_missing(tmp_path):
    command, env = [sys.executable, "-c", hidden(RUN)], quick_environment()
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all sound" in done.stdout
    assert {file.name for file in (tmp_path / "ensemble").iterdir()} > {"simulation.zarr", "theory.zarr"}
    assert (tmp_path / "network/simulation.zarr/R").is_dir()


@pytest.mark.parametrize(("platform", "unit"), [("linux", 1024), ("darwin", 1)])
def test_the_largest_memory_held_is_in_bytes_whatever_unit_the_system_has(platform, unit, monkeypatch):
    usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _: SimpleNamespace(ru_maxrss=3000))
    monkeypatch.setattr(operating_system, "resource", usage)
    monkeypatch.setattr(operating_system, "sys", SimpleNamespace(platform=platform))
    monkeypatch.setattr(operating_system, "STATUS_FILE", "nowhere")
    assert operating_system.get_peak_memory() == 3000 * unit


def test_what_a_system_does_not_say_refuses_nothing(monkeypatch):
    monkeypatch.setattr(operating_system, "resource", None)
    monkeypatch.setattr(operating_system, "STATUS_FILE", "nowhere")
    for name in ("sysconf", "sched_getaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    assert (
        operating_system.get_total_memory(),
        operating_system.get_peak_memory(),
        operating_system.count_cores(),
    ) == (
        float("inf"),
        0.0,
        os.cpu_count(),
    )


def test_a_link_is_refused_also_where_no_flag_does(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    monkeypatch.setattr(operating_system, "NO_FOLLOW_FLAG", 0)
    with pytest.raises(StoreError, match="is a symbolic link"):
        files.open_regular_text_file(tmp_path / "link", os.O_RDWR | os.O_CREAT)
    assert not (tmp_path / "target").exists()


def test_one_process_writes_where_files_cannot_be_locked(path, monkeypatch):
    monkeypatch.setattr(operating_system, "fcntl", None)
    with locks.lock_store(path):
        assert locks.find_writing_process(path) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal that only asks whether a process runs")
@pytest.mark.parametrize("missing", ["", "system._c_library = lambda: None"])
def test_a_process_ends_when_its_parent_is_killed(missing):
    imports = "from statmech.runtime import operating_system as system"
    child = f"{imports}; {missing}; system.die_with_parent(); print(flush=True); input()"
    parent = f"""import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as running:
        pid = int(running.stdout.readline())
        os.kill(pid, 0)
        running.kill()
    deadline = time.monotonic() + 30
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def alive(pid: int) -> bool:
    """True if a process runs; one that has ended, but that nobody has waited for, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_on_a_machine_with_a_gpu_only_weight_vectors_leave_the_cpu(monkeypatch):
    cpus, gpu = jax.local_devices(backend="cpu"), object()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", lambda backend=None: cpus if backend == "cpu" else [gpu])
    with jax_and_blas_settings.use_cpu_double_precision():
        assert jax.config.jax_default_device == cpus[0]
        assert jax.config.jax_enable_x64
    with jax_and_blas_settings.use_next_device(gpu=False):
        assert jax.config.jax_default_device == cpus[0]
    with jax_and_blas_settings.use_next_device(gpu=True):
        assert jax.config.jax_default_device is None  # that of JAX, the GPU


LOADED_LATER = """
from threadpoolctl import threadpool_info
from statmech.runtime.jax_and_blas_settings import use_one_blas_thread

with use_one_blas_thread():
    before = [library["user_api"] for library in threadpool_info()]
import scipy.linalg
with use_one_blas_thread():
    after = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
print("blas" in before, {*after})
"""


def test_a_blas_library_that_is_loaded_later_computes_on_one_thread_too():
    given = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    printed = subprocess.run(
        [sys.executable, "-c", LOADED_LATER], env=given, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "False {1}\n"


STRICT = {
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_transfer_guard": "disallow",
    "jax_legacy_prng_key": "error",
}
COMPUTED = """
import hashlib, sys
import jax
import simulate, theory
from statmech import Descent, Network, Scenario, StoredExamples
from statmech.config import user_class_checks

for setting in sys.argv[1:]:
    jax.config.update(*setting.split("="))
rule = Scenario(rule="perceptron", N=20, t=1, seeds=2)
network = Network(network="erf", M=2, K=2, N=20, start={"Q": 0.5, "R": 0.1}, t=1, seeds=2)
learner = StoredExamples(learner="minover", N=10, alpha=1, epochs=2, seeds=2)
descent = Descent(descent="gradient", loss="hinge", N=12, alpha=1, epochs=2, seeds=2)
user_class_checks.check_plugin_rule("perceptron")
results = [*map(simulate.run, (rule, network, learner, descent)), *map(theory.solve, (rule, network))]
values = [array.values.tobytes() for result in results for array in result.data_vars.values()]
print(hashlib.sha256(b"".join(values)).hexdigest())
"""


@pytest.mark.slow
def test_strict_settings_of_jax_neither_break_results_nor_change_them():
    settings = [f"{name}={value}" for name, value in STRICT.items()]
    given = [((), {}), (settings, {}), ((), {name.upper(): value for name, value in STRICT.items()})]
    digests = set()
    for arguments, environment in given:
        command = [sys.executable, "-c", COMPUTED, *arguments]
        environment = {**quick_environment(), "STATMECH_CACHE": "off", **environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1
