"""Any config and any command line is answered, or refused with a sentence per problem, exit code 2 and nothing written.

Configs are drawn from the JSON Schema of each kind of scenario, command lines from valid ones with changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import stat
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from conftest import FIXED_EXAMPLES, ForkServer, get_deep_settings, statmech
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from statmech.errors import escape_text
from statmech.keys.scenario import get_kinds

LIMIT_SECONDS, LIMIT_BYTES = 10, 2 * 10**9  # CPU time, and memory beyond that of the imports
TEXTS = st.sampled_from(["", "hebb", "overlay", "gaussian", "best", "nan", "é", "a: b", "1e400", "\u202e", "x" * 300])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def draw_from_schema(schema, definitions):
    """Return the strategy of the values that a JSON Schema allows, mostly small ones."""
    if "$ref" in schema:
        return draw_from_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return st.one_of([draw_from_schema(choice, definitions) for choice in choices])
    least = schema.get("minimum", schema.get("exclusiveMinimum", schema.get("ge", -2)))
    largest = min(schema.get("maximum", schema.get("exclusiveMaximum", least + 20)), least + 20)
    match schema.get("type"):
        case "integer":
            return st.integers(least, largest)
        case "number":
            return st.floats(least, largest, exclude_min="exclusiveMinimum" in schema)
        case "boolean":
            return st.booleans()
        case "string":
            return TEXTS
        case "null":
            return st.none()
        case "array":
            items = draw_from_schema(schema.get("items", {"type": "number"}), definitions)
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 3))
        case "object" if "properties" in schema:
            values = {name: draw_from_schema(inner, definitions) for name, inner in schema["properties"].items()}
            required = {name: values.pop(name) for name in schema.get("required", [])}
            return st.fixed_dictionaries(required, optional=values)
    return ANYTHING


@st.composite
def draw_config(draw, kind):
    """Draw a config of a kind: its required keys and some others, of which one may have any name or value."""
    schema = get_kinds()[kind].make_schema()
    names = [part["anyOf"][0]["required"][0] for part in schema["allOf"]]
    names += draw(st.lists(st.sampled_from(list(schema["properties"])), max_size=4))
    values = {name: draw_from_schema(schema["properties"][name], schema.get("$defs", {})) for name in names}
    config = draw(st.fixed_dictionaries(values))
    if draw(st.booleans()):
        config[draw(st.sampled_from([*schema["properties"], "lambda", "ruel"]))] = draw(ANYTHING)
    return config


@pytest.fixture
def answer(in_scratch, data_folder, capsys):
    """The command's answer to a config, of which every property is checked."""

    def check(config):
        Path("drawn.yaml").write_text(json.dumps(config, indent=1))
        code = statmech("run", "drawn.yaml", "--dry-run")
        errors = capsys.readouterr().err
        assert os.listdir() == ["drawn.yaml"]
        assert code in (0, 2), errors
        if code == 2:
            assert statmech("run", "drawn.yaml") == 2
            assert capsys.readouterr().err == errors
            assert os.listdir() == ["drawn.yaml"]
            for line in errors.splitlines():
                assert re.fullmatch(r"(error: )?drawn\.yaml(:\d+)?: \S.+", line), errors
        return code

    return check


def check_configs(kind, answer, limits):
    codes = Counter()

    @limits
    @given(draw_config(kind))
    def check(config):
        codes[answer(config)] += 1

    check()
    return codes


@pytest.mark.quick
def test_configs_of_the_schema_are_answered_or_refused(answer):
    limits = settings(FIXED_EXAMPLES, max_examples=4)
    codes = sum((check_configs(kind, answer, limits) for kind in get_kinds()), Counter())
    assert {*codes} == {0, 2}


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", get_kinds())
def test_many_configs_of_the_schema_are_answered_or_refused(kind, answer):
    check_configs(kind, answer, get_deep_settings(60))


@pytest.mark.quick
def test_a_planted_crash_is_found(answer, monkeypatch):
    def crash(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("statmech.stores.sweep_cost.estimate_cost", crash)
    with pytest.raises(ZeroDivisionError):
        check_configs("rule", answer, settings(FIXED_EXAMPLES, max_examples=100))


SMALL_RUN = ["rule=hebb", "N=12", "K=1", "t=1", "seeds=2"]
COMMANDS = [
    ["run", "hebb_ensemble", *SMALL_RUN],
    ["run", "x.yaml", "--out", "new"],
    ["run", "mine", "--json"],
    ["run", "capacity", "N=10", "seeds=2", "alpha=1", "learner=hebb", "--dry-run"],
    ["run", "x.yaml", "inputs={rows: {path: x.csv}}", "N=3", "--dry-run"],
    ["simulate", "mine", "seeds=3", "--memory", "4GiB"],
    ["simulate", "x.yaml", "--set", "eta=2", "--dry-run"],
    ["status", "mine", "--json"],
    ["theory", "x.yaml", "--fresh", "--out", "new"],
    ["compare", "mine"],
    ["figure", "mine", "figure=overlay"],
    ["figure", "--list"],
    ["export", "mine", "--to", "a.csv"],
    ["report", "mine", "--out", "a.html"],
    ["explore", "x.yaml", "--port", "5009", "--no-browser"],
    ["cite", "mine"],
    ["info"],
    ["schema"],
    ["--load", "own.py", "run", "x.yaml", "rule=mine", "--dry-run"],
]
OPTIONS = (
    "--out --fresh --dry-run --set --data-dir --rerun-failed --again --memory --patience --json --list --to --port"
)
OPTIONS += " --browser --no-browser --load --help --version"
KEYS = (
    "rule learner boundary attention booster classifier N K t eta alpha flip key seeds start start.R inputs engine gram"
)
KEYS += " dtype figure zip epochs margin"
FAIR = [
    "1",
    "2",
    "0.5",
    "1,2",
    "[1, 2]",
    "hebb",
    "minover",
    "drawn",
    "sphere",
    "vectors",
    "float32",
    "true",
    "{R: 0.5}",
]
HOSTILE = [
    *("", " ", "-", "--", ".", "..", "/", "~", "*", "=", "a=", "%s%n", "$(id)", "|", "\n", "\t", "é", "\x7f"),
    *("\x1b]0;owned\x07", "\x1b[31m", "\u202e", "\xad", "\udcff", "\ufeff", "a" * 5000, "a/" * 200, "[red]x[/red]"),
    *(
        "nan",
        "-inf",
        "-1",
        "0",
        "1e400",
        "1e-400",
        "9" * 400,
        "0x10",
        "1_000",
        "null",
        "[]",
        "{}",
        "[" * 200,
        "{a: " * 50,
    ),
    *("[1, 1]", "[[1]]", "&a [*a]", "!!python/object:os.system x", "{linspace: [0, 1, 1e9]}", "{linspace: [0, 1, 3]}"),
    *("{rows: {path: /dev/zero}}", "{rows: {path: pipe}}", "/dev/zero", "/dev/full", "/proc/self/mem", "pipe", "mine"),
    *(
        "x.yaml",
        "x.csv",
        "own.py",
        "broken.py",
        "broken",
        "mine/simulation.zarr",
        "nowhere/at/all",
        "a.nc",
        "a.csv/b.csv",
    ),
    *("500MB", "1e99TB", "slurm"),
]
WORDS = st.sampled_from(OPTIONS.split()) | st.sampled_from(HOSTILE)
WORDS |= st.builds("{}={}".format, st.sampled_from([*KEYS.split(), *HOSTILE]), st.sampled_from([*FAIR, *HOSTILE]))
OWN_CODE = "import statmech\nclass Mine(statmech.RULES['hebb']):\n    label = 'mine'\nstatmech.RULES['mine'] = Mine\n"


@st.composite
def draw_command_line(draw):
    """Draw a valid line with up to three words inserted, replaced or removed."""
    line = list(draw(st.sampled_from(COMMANDS)))
    for _ in range(draw(st.integers(0, 3))):
        index = draw(st.integers(0, len(line)))
        line[index : index + draw(st.integers(0, 1))] = draw(st.lists(WORDS, max_size=1))
    if line[:1] in (["run"], ["simulate"]) and draw(st.booleans()):
        line.append("--dry-run")
    return line


def prepare_commands():
    """Import all that a command needs."""
    for name in (
        "theory",
        "matplotlib.font_manager",
        "matplotlib.backends.backend_agg",
        "figures.interactive.html_report",
    ):
        import_module(name)
    server = pytest.importorskip("figures.explorer.server")
    server.serve = lambda *_: None  # it would wait for visitors


def run_command(line, folder):
    """Run a command in a folder, with limits on its CPU time and memory, and keep its output next to the folder."""
    output = os.open(folder.with_suffix(".txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(descriptor, number)
    os.chdir(folder)
    os.environ |= {"COLUMNS": "120", "HOME": str(folder.parent), "STATMECH_CACHE": "off"}
    memory = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for limit, value in ((resource.RLIMIT_AS, memory + LIMIT_BYTES), (resource.RLIMIT_CPU, LIMIT_SECONDS)):
        resource.setrlimit(limit, (value, value))
    code = statmech(*line)
    return code if isinstance(code, int) else 1


def read_contents(folder):
    """Return the digest of each file of a folder, and the type of everything else."""
    types = {path: path.lstat().st_mode for path in folder.rglob("*")}
    return {
        path: hashlib.sha256(path.read_bytes()).digest() if stat.S_ISREG(mode) else stat.S_IFMT(mode)
        for path, mode in types.items()
    }


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_command_lines_are_answered_or_refused(tmp_path):
    template = tmp_path / "template"
    template.mkdir()
    (template / "x.yaml").write_text("rule: hebb\nN: 12\nt: [1, 2]\nseeds: 2\nfigure: overlay\n")
    (template / "x.csv").write_text("1,2,3\n4,5,7\n0,1,0\n")
    (template / "own.py").write_text(OWN_CODE)
    (template / "broken.py").write_text("def (:\n")
    (template / "broken/simulation.zarr").mkdir(parents=True)
    (template / "broken/simulation.zarr/zarr.json").write_text('{"attributes": {"config": "{\\"rule\\": 3}"}}')
    codes, folder = Counter(), tmp_path / "outside" / "here"

    with ForkServer(prepare_commands) as server:
        assert server.call(run_command, ["run", "x.yaml", "--out", "mine"], template) == 0

        @settings(get_deep_settings(60), phases=[Phase.generate])  # lines are short: shrinking them would take minutes
        @given(draw_command_line())
        def check(line):
            shutil.rmtree(folder.parent, ignore_errors=True)
            shutil.copytree(template, folder)
            os.mkfifo(folder / "pipe")
            before = read_contents(folder)
            code = server.call(run_command, [word.replace("\0", "") for word in line], folder)
            output = folder.with_suffix(".txt").read_bytes().decode(errors="replace")
            folder.with_suffix(".txt").unlink()
            codes[code] += 1
            assert code in (0, 1, 2), output
            assert "Traceback (most recent call last)" not in output
            assert escape_text(output) == output
            assert os.listdir(folder.parent) == ["here"]
            assert code != 2 or read_contents(folder) == before

        check()
    assert min(codes[0], codes[2]) > 0
