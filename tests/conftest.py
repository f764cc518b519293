"""Shared by all tests: theory and simulation run with every NaN an error, and one tolerance for statistics."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import gzip
import io
import json
import multiprocessing
import os
import sys
import traceback
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from unittest import mock

# also where JAX finds a GPU, on which the few programs of weight vectors would have other bits
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest
import typer
import xarray as xr
from hypothesis import HealthCheck, settings

import simulate
from statmech import RULES
from statmech.cli.command_group import GARBAGE_COLLECTION_THRESHOLD
from statmech.inputs.input_distributions import INPUTS, Gaussian
from statmech.results import comparison
from statmech.stores import zarr_store

# the compiler's dearest parts: without them programs compile in half the time, and run up to ten times as long
FEW_OPTIMISATIONS = [
    "--xla_backend_optimization_level=0",
    *(  # gone in 0.12
        ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
        if version("jaxlib").startswith("0.10.")
        else []
    ),
]


def pytest_addoption(parser):
    parser.addoption(
        "--costs", action="store_true", help="print the CPU seconds of every file and its most expensive test"
    )
    parser.addoption("--quick", action="store_true", help="compile with few optimisations, for tests of small programs")


def quick_environment():
    """The environment of a process whose programs are compiled with few optimisations."""
    return {"XLA_FLAGS": " ".join(FEW_OPTIMISATIONS), **os.environ}


@contextlib.contextmanager
def quick_children():
    """Compile the programs of processes that start meanwhile with few optimisations, and not those of this process."""
    import jax

    jax.devices()  # XLA has read the flags of this process
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", quick_environment()["XLA_FLAGS"])
        yield


class Costs:
    """The last report of a test, a page's examples or a docstring contains its CPU seconds, also from workers."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        item.begun = _seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        try:
            return (yield)
        finally:
            item.user_properties.append(("seconds", _seconds() - item.begun))


class Quick:
    """Programs of a test marked `quick`, of its fixtures, and of examples are compiled with few optimisations."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        marked = item.get_closest_marker("quick") is not None or isinstance(item, pytest.DoctestItem)
        if not marked or item.config.getoption("--quick"):
            return (yield)
        with few_optimisations():
            return (yield)


DEAR_EXAMPLES = {  # pages and docstrings
    "figures.compose",
    "figures.overlay.describe_figure",
    "figures.panels.draw_panel",
    "own_data.md",
    "python.md",
    "statmech.api.draw",
    "statmech.numerics.random_numbers.draw_normals_and_uniforms",
    "statmech.results.comparison.iterate_deviation_rows",
    "statmech.results.comparison.find_resolved_std_mask",
    "statmech.results.comparison.find_unresolved_std_mask",
    "sweeps.md",
    "theory.online.ensemble_fluctuations.solve_pair_fluctuations",
    "theory.networks.plateaus_and_critical_rate.escape",
    "theory.networks.plateaus_and_critical_rate.critical_rate",
    "theory.networks.plateaus_and_critical_rate.plateau",
    "theory.online.stationary_states.stationary",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in DEAR_EXAMPLES:
            item.add_marker(pytest.mark.slow)


def pytest_configure(config):
    gc.set_threshold(GARBAGE_COLLECTION_THRESHOLD)
    if config.getoption("--quick"):  # XLA reads them when it starts
        os.environ |= quick_environment()
    for hooks in (Costs(), Quick()):  # a conftest's own see this folder's tests only
        config.pluginmanager.register(hooks)


@contextlib.contextmanager
def few_optimisations():
    """What `--quick` does, for programs called meanwhile, which no later test calls unless it is marked, too."""
    import jax
    from jax._src import compiler

    plain = compiler.get_compile_options
    pairs = (flag.removeprefix("--").split("=") for flag in FEW_OPTIMISATIONS)
    options = {name: json.loads(value) for name, value in pairs}

    def quick(*given, env_options_overrides=None, **named):
        return plain(*given, env_options_overrides=(env_options_overrides or {}) | options, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "get_compile_options", quick)
        jax.config.update("jax_disable_most_optimizations", True)
        try:
            yield
        finally:
            jax.config.update("jax_disable_most_optimizations", False)


MOST_MAPS = 15_000  # of 65,530 that Linux allows a process: about 60 compiled programs, and 1 GB


@pytest.fixture(autouse=True, scope="module")
def _few_programs():
    """Forget compiled programs after a file that has left many: thousands exceed the memory maps of a process."""
    yield
    if _memory_maps() < MOST_MAPS:
        return
    import jax

    from statmech.runtime.compiled_programs import CachedProgram
    from statmech.runtime.user_code_and_provenance import TRACED_PACKAGES

    ours = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] in TRACED_PACKAGES]
    for program in {it for module in ours for it in vars(module).values() if isinstance(it, CachedProgram)}:
        program.clear_cache()
    jax.clear_caches()


def _memory_maps():
    """Memory maps of this process; where they cannot be counted, more than any."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return MOST_MAPS


def _seconds():
    """CPU time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("--costs"):
        return
    costs = collections.defaultdict(list)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                test, seconds = report.nodeid, dict(report.user_properties).get("seconds", 0.0)
                costs[test.split("::")[0]].append((seconds, "slow" in report.keywords, test))
    terminalreporter.section("CPU seconds: all, of those marked slow, and of the most expensive of the others")
    for file, tests in sorted(costs.items(), key=lambda pair: -sum(one[0] for one in pair[1])):
        slow = sum(seconds for seconds, marked, _ in tests if marked)
        largest, name = max(((seconds, test) for seconds, marked, test in tests if not marked), default=(0.0, ""))
        total = sum(seconds for seconds, *_ in tests)
        terminalreporter.line(f"{file:44}{total:8.1f}{slow:8.1f}{largest:8.1f}  {name.partition('::')[2][:80]}")
    every = [one for tests in costs.values() for one in tests]
    slow = sum(seconds for seconds, marked, _ in every if marked)
    terminalreporter.line(f"{'all':44}{sum(seconds for seconds, *_ in every):8.1f}{slow:8.1f}")


FIXED_EXAMPLES = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
settings.register_profile("deep", FIXED_EXAMPLES, derandomize=False, max_examples=1000)


def get_deep_settings(examples):
    """Return the settings of slow tests: this number of examples, or those of `--hypothesis-profile=deep`."""
    if settings.get_current_profile_name() == "deep":
        return settings.get_profile("deep")
    return settings(FIXED_EXAMPLES, max_examples=examples)


def brief(cases, count=1):
    """Cases of a test, of which `make test` runs so many, and `make test-all` every one."""
    rest = (case if isinstance(case, tuple) else (case,) for case in cases[count:])
    return [*cases[:count], *(pytest.param(*case, marks=pytest.mark.slow) for case in rest)]


def start_of(rule, given=None):
    """The start that a rule has by itself, or a given one, its lengths halved until the rule allows them."""
    kind = RULES[rule]
    if given is None:
        return kind.default_start()
    length = np.asarray(given.get("length", 1.0))
    while length.max() >= kind.longest_start:
        length = length / 2
    return {**given, "length": length.tolist()}


def disagreements(simulation: xr.Dataset, theory: xr.Dataset) -> list[str]:
    """The values that deviate from theory by more standard errors than those of a correct theory in 99 % of sweeps."""
    distance = comparison.distances(simulation, theory)
    bound = comparison.get_deviation_bound(distance)
    return [
        f"{row.cell} {name}: {z:+.1f} standard errors, bound {bound:.1f}"
        for row in comparison.iterate_deviation_rows(distance)
        for name, z in row.largest_deviations.items()
        if abs(z) > bound
    ]


def assert_same_bits(path, scenario, simulated=None):
    """Assert that a store has the variables, values and attributes of a simulation in memory."""
    stored, expected = zarr_store.load(path), simulate.run(scenario) if simulated is None else simulated
    assert set(stored.variables) == set(expected.variables)
    for name in expected.variables:
        np.testing.assert_array_equal(stored[name].values, expected[name].values, err_msg=str(name))
        assert stored[name].attrs == expected[name].attrs
    assert stored.attrs["config"] == expected.attrs["config"]


def statmech(*arguments):
    """The exit code of the command, whose options are read from our functions once; its environment ends with it."""
    from statmech.cli import main

    with mock.patch.dict(os.environ), pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", _command)
        patch.setattr("sys.argv", ["statmech", *map(str, arguments)])
        try:
            main()
        except SystemExit as ended:
            return ended.code or 0
    return 0


@functools.cache
def _command(app, plain=typer.main.get_command):
    return plain(app)


IMPORTED = (  # by the process that children are forked from: they start in milliseconds, and with no program compiled
    "jax",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "pytest",
    "xarray",
    "zarr",
    "figures.interactive.html_report",
    "simulate.execution.store_simulation",
    "statmech.cli.command_group",
)


def forkserver():
    """The context of processes that begin with `IMPORTED`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED])
    return context


class ForkServer:
    """A process that has prepared everything and forks a process for each call, which starts at once."""

    def __init__(self, prepare):
        self.requests, other = forkserver().Pipe()
        self.process = forkserver().Process(target=_serve_forks, args=(other, prepare))
        self.process.start()
        other.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join(30)
        self.requests.close()

    def call(self, function, *given):
        """The exit code of a process that calls a function of a module, within a minute: minus a signal's number."""
        assert self.process.is_alive(), self.process.exitcode
        self.requests.send((function, given))
        assert self.requests.poll(60), given
        return self.requests.recv()


def _serve_forks(requests, prepare):
    prepare()
    while True:
        function, given = requests.recv()
        process, code = os.fork(), 1
        if not process:
            try:
                code = function(*given) or 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        requests.send(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


def in_child(function, *given):
    """The exit code, and the standard error, of another process that calls a function of a module.

    The code is None of one that does not end by itself; it is killed then, for pytest would wait for it.
    """
    context = forkserver()
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, function, given))
    child.start()
    sender.close()
    errors, code = "", None
    try:
        with contextlib.suppress(EOFError):  # the child was killed
            errors = receiver.recv() if receiver.poll(120) else ""
        child.join(10)
        code = child.exitcode
    finally:
        child.kill()
    return code, errors


def limit_files(size):
    """Let no file of this process grow beyond so many bytes: what is written then fails, as on a full disk."""
    import resource
    import signal

    sys.dont_write_bytecode = True  # Python would leave half the code of a module that it imports from now on
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _answer(sender, function, given):
    """Call a function, and send its standard error, which a limit on the size of files does not affect."""
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        code = function(*given)
    sender.send(errors.getvalue())
    sys.exit(code)


def write_data(folder):
    """A folder of small generated data sets in the form of the real ones, each with a rule to learn."""
    rng = np.random.default_rng(0)
    votes = np.where(rng.random((160, 16)) < 0.5, "y", "n").astype(object)
    party = np.where(votes[:, 0] == "y", "democrat", "republican")
    votes[rng.random(votes.shape) < 0.05] = "?"
    write(folder / "votes/house-votes-84.data", [[one, *row] for one, row in zip(party, votes, strict=True)])
    bases = rng.choice(list("acgt"), (60, 57))
    signs = np.where(bases[:, 10] == "a", "+", "-")
    write(folder / "promoters/promoters.data", [[s, "x", "".join(b)] for s, b in zip(signs, bases, strict=True)])
    windows = rng.choice(list("ACGT"), (120, 15))
    labels = np.where((windows[:, 3] == "A") | (windows[:, 4] == "C"), "coding", "noncoding")
    rows = [[i % 4, "g", 0, "".join(w), one] for i, (w, one) in enumerate(zip(windows, labels, strict=True))]
    write(folder / "coding/ecoli_coding15.csv", [["fold", "gene", "frame", "seq", "label"], *rows])
    digits = rng.integers(0, 256, (60, 784))
    digits[:, :200] += 200 * (np.arange(60) % 2)[:, None]
    rows = [[*row, "38"[i % 2] if i < 30 else "49"[i % 2]] for i, row in enumerate(digits)]
    write(folder / "digits/mnist_5k.csv.gz", rows, gzip.open)
    return folder


def write(path, rows, how=open):
    """A file of comma-separated rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with how(path, "wt") as lines:
        lines.writelines(",".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture(scope="session")
def made_data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def data_folder(made_data, monkeypatch):
    """The generated data, where studies look for theirs."""
    monkeypatch.setenv("STATMECH_DATA", str(made_data))
    return made_data


@pytest.fixture
def real_data():
    """The folder of the real data; the test is skipped where they are missing."""
    folder = os.environ.get("STATMECH_DATA", "")
    if not (Path(folder) / "votes").is_dir() or not folder:
        pytest.skip("needs real data: STATMECH_DATA does not name a folder of them")
    return Path(folder)


@pytest.fixture
def path(tmp_path):
    """The path of a new store."""
    return tmp_path / "simulation.zarr"


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of few parameter combinations, so that a small sweep has several."""
    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-3)


@pytest.fixture
def in_scratch(tmp_path, monkeypatch):
    """A temporary folder as the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Skewed(Gaussian):
    """Inputs that are not isotropic and state no modes."""

    isotropic = False


@pytest.fixture
def inputs_without_theory(monkeypatch):
    """The name of a distribution of inputs for which theory has no equations."""
    monkeypatch.setitem(INPUTS, "skewed", Skewed)
    return "skewed"
