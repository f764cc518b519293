"""Programs are kept between processes, and never another program than the source, the arguments and JAX determine."""

from __future__ import annotations

import importlib
import os
import stat
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from conftest import quick_environment

from simulate.learners import minover
from simulate.online import gram_engine
from statmech.runtime import compiled_programs, files, user_code_and_provenance
from statmech.runtime.compiled_programs import CachedProgram, get_cache_folder

SOURCE = """
from dataclasses import dataclass
from statmech.runtime.compiled_programs import cached_program

TRACED = []

@dataclass(frozen=True)
class Line:
    slope: float
    name: str = "line"

@cached_program
def scaled(line, x, y):
    TRACED.append(line)
    return x * line.slope + 1.25, y
"""
X, Y = np.arange(3.0), np.arange(2)


@pytest.fixture
def process(tmp_path, monkeypatch):
    """A function that imports a small package as a new process would, its source older than that process."""
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines/__init__.py").write_text(SOURCE)
    monkeypatch.setenv("STATMECH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(user_code_and_provenance, "REPOSITORY_FOLDER", tmp_path)
    monkeypatch.setattr(user_code_and_provenance, "TRACED_PACKAGES", ("lines",))
    monkeypatch.setattr(user_code_and_provenance, "MAX_SOURCE_TIME", np.inf)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def begin():
        sys.modules.pop("lines", None)
        user_code_and_provenance._digest_files.cache_clear()
        return importlib.import_module("lines")

    yield begin
    sys.modules.pop("lines", None)
    user_code_and_provenance._digest_files.cache_clear()


def kept_files(folder):
    return sorted((folder / "cache/programs").glob("*"))


def right(lines, slope=3.0):
    """Whether a call gives the right numbers, and how often it was traced."""
    first, second = lines.scaled(lines.Line(slope), X, Y)
    np.testing.assert_array_equal(first, np.asarray(X * slope + 1.25, np.asarray(first).dtype))
    np.testing.assert_array_equal(second, Y)
    return len(lines.TRACED)


def test_a_program_is_traced_in_the_first_process_alone(process, tmp_path):
    assert [right(process()), right(process())] == [1, 0]
    assert len(kept_files(tmp_path)) == 1


ANOTHER = {"xla_option_of_another_version": 1, "xla_backend_optimization_level": 0}


@pytest.mark.parametrize("another", [ANOTHER, {"xla_backend_optimization_level": "an unknown value"}])
def test_options_that_the_compiler_does_not_know_are_left_out_with_their_group(another):
    """XLA's options come and go with its versions; that of JAX 0.10 knows those that are used."""
    program = compiled_programs.CachedProgram(
        lambda slope, x: (x * slope,), options={2.0: [another, gram_engine.NO_YNNPACK_COMPILER_OPTIONS]}.get
    )
    assert (
        program.compiler_options(2.0)
        == compiled_programs.SINGLE_THREAD_OPTIONS | gram_engine.NO_YNNPACK_COMPILER_OPTIONS
    )
    np.testing.assert_array_equal(program(2.0, np.arange(3.0))[0], [0, 2, 4])
    of_all = (
        compiled_programs.SINGLE_THREAD_OPTIONS,
        compiled_programs.MULTI_THREAD_OPTIONS,
        compiled_programs.DETERMINISTIC_GPU_OPTIONS,
        compiled_programs.SEQUENTIAL_EXECUTION_OPTIONS,
        compiled_programs.WIDE_VECTOR_OPTIONS,
    )
    known = [
        compiled_programs._are_options_known(tuple(group.items()))
        for group in (*of_all, gram_engine.NO_YNNPACK_COMPILER_OPTIONS, gram_engine.FAST_COMPILE_OPTIONS)
    ]
    assert known == [True] * 6 + [jax.__version__.startswith("0.10.")]


def test_an_option_that_the_compiler_does_not_know_is_asked_for_once(monkeypatch):
    """A refused program cost as much as its translation, 0.15 s of every call."""
    asked, jit = [], jax.jit
    monkeypatch.setattr(jax, "jit", lambda function, **given: asked.append(given) or jit(function, **given))
    compiled_programs._are_options_known.cache_clear()
    program = compiled_programs.CachedProgram(lambda slope, x: (x * slope,), options=lambda slope: [ANOTHER])
    for slope in (2.0, 3.0):
        for x in (np.arange(3.0), np.arange(3.0), np.arange(4.0)):
            np.testing.assert_array_equal(program(slope, x)[0], x * slope)
    assert asked.count({"compiler_options": ANOTHER}) == 1
    assert asked.count({"compiler_options": compiled_programs.SINGLE_THREAD_OPTIONS}) == 1 + 4


@pytest.mark.skipif(os.cpu_count() == 1, reason="one thread")
def test_no_operation_of_a_simulation_is_divided_among_threads():
    """XLA would divide those of MinOver from few data sets on, which take three times as long then."""
    given = np.ones((8, 224, 224)), np.full(8, 224), np.full((8, 1), 10)
    with jax.enable_x64(True):
        compiled = [
            jax.jit(partial(minover.learn_minover_batch.function, "epochs"), compiler_options=options)
            .lower(*given)
            .compile()
            for options in (None, minover.learn_minover_batch.compiler_options("epochs"))
        ]
    divided = ["outer_dimension_partitions" in one.as_text() for one in compiled]
    assert divided == [True, False]


def test_programs_of_a_GPU_do_not_depend_on_what_the_compiler_times(monkeypatch):
    """Of 12 runs on an H100 all had the same bits in five processes; without the option four had them in two."""
    program = compiled_programs.CachedProgram(lambda slope, x: (x * slope,))
    assert program.compiler_options(2.0) == compiled_programs.SINGLE_THREAD_OPTIONS
    monkeypatch.setattr(compiled_programs, "_get_platform", lambda: ("gpu", "NVIDIA H100 80GB HBM3"))
    assert (
        program.compiler_options(2.0)
        == compiled_programs.SINGLE_THREAD_OPTIONS | compiled_programs.DETERMINISTIC_GPU_OPTIONS
    )


def test_what_the_user_states_in_XLA_FLAGS_prevails(monkeypatch):
    group = {"xla_backend_optimization_level": 1, "xla_cpu_parallel_codegen_split_count": 1}
    program = compiled_programs.CachedProgram(lambda slope, x: (x * slope,), options=lambda slope: [group])
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert program.compiler_options(2.0) == compiled_programs.SINGLE_THREAD_OPTIONS | {
        "xla_cpu_parallel_codegen_split_count": 1
    }
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=fusion")
    assert program.compiler_options(2.0) == group


def test_a_static_argument_a_shape_a_type_and_a_setting_are_other_programs(process, tmp_path):
    lines = process()
    right(lines), right(lines, 4.0)
    for x in (np.arange(4.0), np.arange(3), np.arange(3.0).reshape(1, 3)):
        np.testing.assert_array_equal(lines.scaled(lines.Line(3.0), x, Y)[0], x * 3 + 1.25)
    with jax.enable_x64(True):
        assert lines.scaled(lines.Line(3.0), X, Y)[0].dtype == np.float64
    with jax.default_matmul_precision("float32"):
        right(lines)
    jax.config.update("jax_disable_most_optimizations", True)  # of the process, and not of a thread for a while
    try:
        right(lines)
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    assert len(lines.TRACED) == len(kept_files(tmp_path)) == 8


def test_a_call_reads_the_settings_of_jax_once(process, tmp_path, monkeypatch):
    """Each reading makes a dict of all of them: one for every setting took a millisecond of each call."""
    lines, read = process(), []
    right(lines)
    all_of_them = type(jax.config).values.fget
    monkeypatch.setattr(type(jax.config), "values", property(lambda config: read.append(1) or all_of_them(config)))
    right(lines)
    assert len(read) == 1


def damaged(content):
    """A file's content with one bit changed, in each region; truncated; with more; and empty."""
    start = compiled_programs.CHECKSUM_BYTES
    for at in [0, start - 1, *range(start, len(content), 300), len(content) - 1]:
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        yield bytes(changed)
    yield from (content[:-1], content[: len(content) // 2], content[:10], content + b"\0", b"")


def load_unchecked(path):
    """The content of a file of the cache whatever its checksum."""
    return path.read_bytes()[compiled_programs.CHECKSUM_BYTES :] if path.exists() else None


@pytest.mark.slow
def test_a_damaged_program_is_traced_again_and_replaced(process, tmp_path):
    right(process())
    [path] = kept_files(tmp_path)
    content = path.read_bytes()
    for wrong in damaged(content):
        path.write_bytes(wrong)
        assert right(process()) == 1
        assert compiled_programs.load_checked(path) is not None


def test_without_its_checksum_a_damaged_program_would_give_wrong_numbers(process, tmp_path, monkeypatch):
    """The planted error of the test above: the constant 1.25 stands in the file."""
    right(process())
    [path] = kept_files(tmp_path)
    content = bytearray(path.read_bytes())
    at = content.index(np.float32(1.25).tobytes())
    content[at + 2] ^= 1
    path.write_bytes(bytes(content))
    monkeypatch.setattr(compiled_programs, "load_checked", load_unchecked)
    with pytest.raises(AssertionError):
        right(process())


def test_another_program_under_a_program_s_name_is_not_called(process, tmp_path):
    lines = process()
    right(lines)
    [three] = kept_files(tmp_path)
    right(lines, 4.0)
    [four] = set(kept_files(tmp_path)) - {three}
    three.write_bytes(four.read_bytes())
    assert right(process()) == 1


def changed(process, tmp_path):
    """The constant that a call adds after the source's has changed from 1.25 to 2.5, and how often it was traced."""
    right(process())
    (tmp_path / "lines/__init__.py").write_text(SOURCE.replace("+ 1.25", "+ 2.5"))
    lines = process()
    return float(lines.scaled(lines.Line(3.0), X, Y)[0][0]), len(lines.TRACED)


def test_a_change_of_the_source_gives_another_program(process, tmp_path):
    assert changed(process, tmp_path) == (2.5, 1)


def test_without_the_source_s_digest_the_old_program_would_be_called(process, tmp_path, monkeypatch):
    """The planted error of the test above."""
    monkeypatch.setattr(user_code_and_provenance, "digest_old_sources", lambda: "the same")
    assert changed(process, tmp_path) == (1.25, 0)


def test_nothing_is_kept_while_a_source_is_younger_than_the_process(process, tmp_path, monkeypatch):
    monkeypatch.setattr(user_code_and_provenance, "MAX_SOURCE_TIME", 0.0)
    assert [right(process()), right(process())] == [1, 1]
    assert kept_files(tmp_path) == []


@dataclass(frozen=True)
class Steep:
    """A line of a user's own."""

    slope: float = 3.0


class Number(float):
    """A number of a user's own."""


@pytest.mark.parametrize("line", [Steep(), "a number", "a class of the same name"])
def test_what_the_source_does_not_determine_is_traced_in_each_process(process, tmp_path, line):
    for _ in range(2):
        lines = process()
        if line == "a number":
            static = lines.Line(Number(3.0))
        elif line == "a class of the same name":
            static, lines.Line = lines.Line(3.0), Steep
        else:
            static = line
        np.testing.assert_array_equal(lines.scaled(static, X, Y)[0], X * 3 + 1.25)
        assert len(lines.TRACED) == 1
    assert kept_files(tmp_path) == []


@pytest.mark.parametrize("cache", ["off", "a file", "no folder"])
def test_without_a_folder_programs_are_traced_without_a_word(process, tmp_path, monkeypatch, capfd, cache):
    (tmp_path / "file").write_text("")
    setting = {"off": "off", "a file": str(tmp_path / "file"), "no folder": "/proc/none"}[cache]
    monkeypatch.setenv("STATMECH_CACHE", setting)
    assert [right(process()), right(process())] == [1, 1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("place", ["cache", "cache/programs"])
@pytest.mark.parametrize("harm", ["all may write", "a group may write", "another owner"])
def test_programs_of_a_folder_that_another_user_may_write_are_not_used(process, tmp_path, monkeypatch, place, harm):
    assert [right(process()), right(process())] == [1, 0]
    (tmp_path / place).chmod({"all may write": 0o777, "a group may write": 0o770}.get(harm, 0o700))
    if harm == "another owner":
        monkeypatch.setattr("statmech.runtime.compiled_programs.os.getuid", lambda: os.geteuid() + 1)
    before = kept_files(tmp_path)
    assert right(process()) == 1
    assert right(process(), 4.0) == 1
    assert kept_files(tmp_path) == before
    assert get_cache_folder() is None


def test_the_cache_is_made_for_its_user_alone(process, tmp_path, monkeypatch):
    old = os.umask(0o002)
    try:
        assert right(process()) == 1
    finally:
        os.umask(old)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("cache", "cache/programs")] == [0o700, 0o700]
    assert stat.S_IMODE(kept_files(tmp_path)[0].stat().st_mode) == 0o600
    assert get_cache_folder() == tmp_path / "cache"


def test_a_folder_that_cannot_be_written_is_read(process, tmp_path, monkeypatch):
    right(process())
    monkeypatch.setattr(files.os, "replace", _refuse)
    assert right(process()) == 0
    assert right(process(), 4.0) == 1
    assert len(kept_files(tmp_path)) == 1


@pytest.fixture
def binary(tmp_path, monkeypatch):
    """The file of a binary, and a function that runs it as a new process would: from the cache, else compiled again."""
    from jax._src import compilation_cache

    monkeypatch.setenv("STATMECH_CACHE", str(tmp_path))
    monkeypatch.setattr(compilation_cache, "_cache", None)
    compiled_programs.enable_jax_cache()

    def run():
        def scaled(x):
            return x * 3 + 1.25

        return np.asarray(jax.jit(scaled)(X.astype("f4")))

    expected = run()
    np.testing.assert_array_equal(expected, X.astype("f4") * 3 + np.float32(1.25))
    [path] = (path for path in tmp_path.iterdir() if "scaled" in path.name)
    return path, run


def with_a_flipped_bit(path):
    """The content of a binary's file whose compressed part is sound, as that of zstd without a checksum always is."""
    from jax._src import compilation_cache

    content = path.read_bytes()
    start = compiled_programs.CHECKSUM_BYTES
    plain = compilation_cache.decompress_executable(content[start:])
    right, wrong = (np.float32(number).tobytes() for number in (1.25, 1.375))  # they differ by one bit
    assert right in plain
    return content[:start] + compilation_cache.compress_executable(plain.replace(right, wrong))


@pytest.mark.parametrize("harm", ["flipped", "flipped outside", "cut", "empty", "longer", "another's"])
def test_a_damaged_binary_is_compiled_again_and_replaced(binary, harm):
    path, run = binary
    expected, content = run(), path.read_bytes()
    other = path.with_name("another")
    compiled_programs.save_checked_file(other, compiled_programs.load_checked(path))
    wrong = {
        "flipped": with_a_flipped_bit(path),
        "flipped outside": bytes([content[0] ^ 1]) + content[1:],
        "cut": content[: len(content) // 2],
        "empty": b"",
        "longer": content + b"\0",
        "another's": other.read_bytes(),
    }[harm]
    path.write_bytes(wrong)
    np.testing.assert_array_equal(run(), expected)
    assert path.read_bytes() != wrong
    assert compiled_programs.load_checked(path) is not None


def test_without_its_checksum_a_binary_with_a_flipped_bit_would_give_wrong_numbers(binary, monkeypatch):
    """The planted error of the test above: the constant 1.25 stands in the binary."""
    path, run = binary
    expected = run()
    path.write_bytes(with_a_flipped_bit(path))
    monkeypatch.setattr(compiled_programs, "load_checked", load_unchecked)
    assert (run() != expected).any()


@pytest.mark.parametrize(
    "kind", ["a pipe", "a device", "a folder", "all may write it", "a group may write it", "another owner"]
)
def test_a_file_that_this_user_alone_has_not_written_is_not_read(kind, tmp_path, monkeypatch):
    path = tmp_path / "program"
    compiled_programs.save_checked_file(path, b"content")
    assert compiled_programs.load_checked(path) == b"content"
    mode = {"all may write it": 0o606, "a group may write it": 0o660}.get(kind)
    if mode:
        path.chmod(mode)
    elif kind == "another owner":
        monkeypatch.setattr("statmech.runtime.operating_system.os.getuid", lambda: os.geteuid() + 1)
    else:
        path.unlink()
        {"a pipe": os.mkfifo, "a folder": os.mkdir}.get(kind, lambda path: path.symlink_to("/dev/zero"))(path)
    assert compiled_programs.load_checked(path) is None
    if mode:
        compiled_programs.save_checked_file(path, b"content")
        assert compiled_programs.load_checked(path) == b"content"


@pytest.mark.parametrize(
    ("outer", "inner", "exchangeable"),
    [
        (0o755, 0o777, True),
        (0o755, 0o775, True),
        (0o755, 0o1777, False),
        (0o755, 0o755, False),
        (0o700, 0o777, False),
        (0o710, 0o777, True),
    ],
)
def test_a_cache_below_a_folder_that_others_may_enter_and_write_is_not_used(outer, inner, exchangeable, monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as above:
        shared = Path(above) / "shared"
        shared.mkdir()
        shared.chmod(inner)
        Path(above).chmod(outer)
        monkeypatch.setenv("STATMECH_CACHE", str(shared / "cache"))
        assert get_cache_folder() == (None if exchangeable else shared / "cache")


@pytest.mark.skipif(os.getuid() != 0, reason="root alone gives folders to others")
def test_a_cache_below_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("STATMECH_CACHE", str(tmp_path / "shared/cache"))
    assert get_cache_folder() == tmp_path / "shared/cache"
    os.chown(tmp_path / "shared", 12345, 12345)
    assert get_cache_folder() is None


def test_the_folders_around_a_new_cache_are_made_for_its_user_alone(tmp_path):
    old = os.umask(0o002)
    try:
        compiled_programs.save_checked_file(tmp_path / "new/statmech/compiled/program", b"content")
    finally:
        os.umask(old)
    made = [tmp_path / "new", tmp_path / "new/statmech", tmp_path / "new/statmech/compiled"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3


def test_a_version_of_jax_with_another_cache_compiles_without_one(monkeypatch):
    from jax._src import compilation_cache

    monkeypatch.delattr(compilation_cache, "_cache")
    compiled_programs.enable_jax_cache()
    assert not hasattr(compilation_cache, "_cache")


def _refuse(*_):
    raise PermissionError(13, "Permission denied")


def test_threads_that_start_together_trace_once(process):
    lines = process()
    threads = [threading.Thread(target=right, args=(lines,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines.TRACED) == 1


def test_a_program_that_jax_cannot_keep_is_traced(process, tmp_path):
    (tmp_path / "lines/__init__.py").write_text(
        SOURCE.replace("return x", "import jax\n    jax.debug.callback(int, 1)\n    return x")
    )
    assert [right(process()), right(process())] == [1, 1]
    assert kept_files(tmp_path) == []


@pytest.mark.parametrize(
    "module",
    [
        "simulate.online.gram_engine",
        "simulate.online.weight_vector_engine",
        "theory.online.order_parameter_equations",
        "simulate.learners.minover",
    ],
)
def test_rules_and_kernels_of_the_packages_are_determined(module):
    from statmech.parameters.parameter_fields import get_real_parameter_family
    from statmech.students.learners import AdaTronLearner
    from statmech.students.rules import RULES

    program = importlib.import_module(module)
    function = next(thing for thing in vars(program).values() if isinstance(thing, CachedProgram))
    assert list(compiled_programs._describe_argument(function.function))
    for thing in (*map(get_real_parameter_family, (kind() for kind in RULES.values())), type(AdaTronLearner())):
        assert list(compiled_programs._describe_argument(thing))


COUNTED = """
import functools, os, sys
import simulate, theory
from statmech import Scenario, load
from simulate.online import gram_engine as gram
from simulate.learners import cyclic_learning as cyclic, minover
from theory.online import order_parameter_equations as combinations
traced = []

def counted(function):
    @functools.wraps(function)
    def count(*arguments):
        traced.append(function.__module__)
        return function(*arguments)
    return count

def answer():
    batches = cyclic.learn_cyclic_batch, minover.learn_minover_batch, combinations.solve_batch
    for program in (gram._simulate_all_seeds, *batches):
        program.function = counted(program.function)
    scenario = Scenario(rule="perceptron", K=2, N=50, t=[0.5, 1.0], seeds=2)
    values = [simulate.run(scenario), theory.solve(scenario)]
    for learner in ("minover", "adatron"):
        values.append(simulate.run(load("minover", [f"learner={learner}", "N=10", "alpha=1", "seeds=2", "epochs=5"])))
    print(*sorted(set(traced)))
    print("scipy.integrate" in sys.modules)
    numbers = [one[name].values for one in values for name in sorted(one.data_vars)]
    print(*(array.tobytes().hex() for array in numbers if array.dtype.kind == "f"), flush=True)

for os.environ["STATMECH_CACHE"] in sys.argv[1:]:
    if not os.fork():
        answer()
        os._exit(0)
    assert os.wait()[1] == 0
"""
MODULES = (
    "simulate.learners.cyclic_learning simulate.learners.minover simulate.online.gram_engine "
    "theory.online.order_parameter_equations"
)


@pytest.mark.slow
def test_a_second_process_traces_nothing_and_gives_the_same_bits(tmp_path):
    """Each begins as a fork of one that has imported everything and compiled nothing."""
    command = [sys.executable, "-c", COUNTED, str(tmp_path), str(tmp_path), "off"]
    done = subprocess.run(command, env=quick_environment(), capture_output=True, text=True, check=True)
    first, _, numbers, *second, without, _, bits = done.stdout.splitlines()
    assert first == without == MODULES
    assert second == ["", "False", numbers]
    assert numbers == bits


FIRST = {
    "simulate.run": "simulate.run(scenario)",
    "run_into": "to.run_into(pathlib.Path('here.zarr'), scenario)",
    "theory.solve": "theory.solve(scenario)",
    "statmech.run": "statmech.run(scenario)",
}
FORKED = """
import os, pathlib, simulate, statmech, sys, theory
from simulate.execution import store_simulation as to
assert "jax" not in sys.modules
scenario = statmech.Scenario(rule="hebb", N=20, t=1, seeds=2)
for name, call in {calls!r}.items():
    if not os.fork():
        os.environ["STATMECH_CACHE"] = os.path.abspath(name)
        eval(call)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@pytest.mark.slow
def test_the_first_call_in_a_process_uses_the_folder_of_compiled_programs(tmp_path):
    """Also where nothing has imported JAX before: otherwise every process would compile everything again."""
    environment = quick_environment()
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-c", FORKED.format(calls=FIRST)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    for name in FIRST:
        assert list((tmp_path / name).glob("jit_*"))
