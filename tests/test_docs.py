"""The docs describe every public name, figure and config, in plain English, and their links lead to readable pages."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import tomllib
from functools import cache
from importlib import import_module
from inspect import getdoc, ismodule, isroutine, signature
from pathlib import Path

import pytest
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.main import JupyterCacheBase
from matplotlib.figure import Figure
from nbformat import v4
from ruamel.yaml import YAML

import figures
import simulate
import simulate.learners
import statmech
import theory
from docs import executed_pages
from figures.contrast import compute_contrast
from statmech.config.config_files import list_shipped_configs
from statmech.config.shipped_configs import read_shipped_config
from statmech.inputs.data_sets import DATA_FOLDER_ENV_VARIABLE
from statmech.keys.scenario import get_kinds

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benchmarks/README.md"]
PAGES += sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
MATHS = re.compile(r"\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)


def public(module):
    return [name for name, thing in vars(module).items() if not name.startswith("_") and not ismodule(thing)]


NAMES = [f"statmech.{name}" for name in statmech.__all__ if not ismodule(getattr(statmech, name))]
NAMES += [f"theory.{name}" for name in public(theory)] + [f"simulate.{name}" for name in public(simulate)]
NAMES += [f"simulate.learners.{name}" for name in simulate.learners.ESTIMATOR_MODULES]
NAMES += [f"figures.{name}" for name in ("draw", "choose_figure", "draw_with_fallback", "compose")]
GALLERY = {path.stem: path.read_text() for path in (DOCS / "gallery").glob("*.md")}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_stands_in_the_reference(name):
    reference = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    assert re.search(rf"(auto\w+:: |`){re.escape(name)}($|`|\s)", reference, re.MULTILINE)


SECTION = re.compile(r"^(\w+)\n-{4,}$", re.MULTILINE)
LISTED = re.compile(r"autofunction:: ([\w.]+)|autoclass:: ([\w.]+)\n +:members: (.*)")


def listed():
    """Every function and method of the reference by name."""
    for path in (DOCS / "api").glob("*.md"):
        for function, of, members in LISTED.findall(path.read_text()):
            names = [function] if function else [f"{of}.{member.strip()}" for member in members.split(",")]
            yield from (name for name in names if isroutine(found(name)))


def found(name):
    """The object that a dotted name leads to."""
    first, *parts = name.split(".")
    thing = import_module(first)
    for part in parts:
        thing = getattr(thing, part) if hasattr(thing, part) else import_module(f"{thing.__name__}.{part}")
    return thing


def missing_sections(function):
    """The sections that a docstring needs, by the function's signature and its own words, and does not have."""
    text, made = getdoc(function) or "", signature(function)
    known, given = set(SECTION.findall(text)), [name for name in made.parameters if name not in ("self", "cls")]
    needed = {
        "Parameters": bool(given),
        "Returns": made.return_annotation not in ("None", None) and "Yields" not in known,
        "Raises": bool(re.search(r"\bRaises? `", text)),
        "Examples": ">>>" in text and bool(known - {"Examples"}),
    }
    return [name for name, it in needed.items() if it and name not in known]


# comparison and estimators are being rewritten
ELSEWHERE = ("statmech.results.comparison", "simulate.classification.estimators")


@pytest.mark.parametrize(
    "name", sorted({name for name in listed() if not found(name).__module__.startswith(ELSEWHERE)})
)
def test_a_function_lists_what_it_takes_returns_and_raises(name):
    assert missing_sections(found(name)) == []


def test_a_docstring_without_its_sections_is_found():
    def half(a: int) -> int:
        """Half of it. Raises `ValueError` for an odd number."""
        return a // 2

    assert missing_sections(half) == ["Parameters", "Returns", "Raises"]


RUN = re.compile(r"statmech\.run\(\s*\"(\w+)\"")


def test_every_figure_but_the_overlays_has_a_page_of_the_gallery():
    published = {name for of in figures.list_figures_by_kind().values() for name in of} - {figures.OVERLAY}
    shown = {name for text in GALLERY.values() for name in RUN.findall(text)}
    assert published <= {read_shipped_config(name).figure.drawn_by_name or name for name in shown}
    assert f"`{figures.OVERLAY}`" in GALLERY["overlays"]


@pytest.mark.parametrize("name", list_shipped_configs())
def test_a_config_is_shown_and_run_in_its_page_of_the_gallery(name):
    assert f"```{{literalinclude}} ../../configs/{name}.yaml" in GALLERY[name]
    assert name in RUN.findall(GALLERY[name])
    assert "statmech.draw(results)" in GALLERY[name]


DRAWN = sorted(set(GALLERY) - {"index", "contact_sheet"})


@pytest.mark.parametrize("name", DRAWN)
def test_the_gallery_shows_a_thumbnail_of_every_page(name):
    assert f"../images/thumbnails/{name}.png" in GALLERY["index"]
    assert (DOCS / f"images/thumbnails/{name}.png").stat().st_size < 50_000


@pytest.fixture
def helper(monkeypatch):
    """A module of the docs by name."""
    monkeypatch.syspath_prepend(DOCS)
    monkeypatch.syspath_prepend(DOCS / "theory")
    return import_module


def test_the_gallery_has_the_groups_of_the_listed_configs(helper):
    assert helper("thumbnails").gallery() == GALLERY["index"], "python docs/thumbnails.py writes it"


def test_the_contact_sheet_shows_the_figure_of_every_page_once(helper):
    thumbnails = helper("thumbnails")
    assert sorted(thumbnails.pages()) == DRAWN
    assert GALLERY["contact_sheet"] == thumbnails.sheet(), "python docs/thumbnails.py writes it"
    assert [name for name in DRAWN if not (DOCS / f"images/sheet/{name}.png").is_file()] == []


def test_a_card_shows_one_panel_in_its_size(helper):
    thumbnails = helper("thumbnails")
    page = """```{code-cell} ipython3
%matplotlib inline
from matplotlib.figure import Figure
figure = Figure(layout="constrained")
for ax in figure.subplots(1, 2):
    ax.plot([1, 2], label="curve")
    ax.legend()
display(figure)
```"""
    figure = thumbnails.card(thumbnails.drawn(page), 1)
    [ax] = figure.axes
    assert [label.get_text() for label in ax.get_xticklabels() if label.get_text()] == []
    assert ax.get_legend() is None
    assert thumbnails.png(figure, 100).startswith(b"\x89PNG")
    assert tuple(figure.get_size_inches()) == thumbnails.INCHES


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("mean squared error", "mean squared\nerror"),
        ("stages to zero\ntraining error", "stages to zero\ntraining error"),
        ("position of the second base", "position of the\nsecond base"),
        ("$\\epsilon_g$ after a very long time (%)", "$\\epsilon_g$"),
    ],
)
def test_the_label_of_a_card_is_neither_cut_nor_left_out(helper, label, shown):
    thumbnails = helper("thumbnails")
    figure = Figure(layout="constrained")
    first, second = figure.subplots(1, 2)
    first.set(ylabel=label)
    card = thumbnails.card(figure, 1)
    thumbnails.png(card, 100)
    assert second.get_ylabel() == shown  # of its row
    assert card.bbox.y0 <= second.yaxis.label.get_window_extent().y0
    assert second.yaxis.label.get_window_extent().y1 <= card.bbox.y1


WHOLE = {
    "ε_g = arccos(R)/π": r"\epsilon_g = \arccos(R)/\pi",
    "t = 1e6": "t = 10^{6}",
    "λ = 2.5e-07": r"\lambda = 2.5\cdot 10^{-7}",
    "N = 10⁶": "N = 10^6",
    "N = 10^12": "N = 10^{12}",
    "δ = 10⁻⁴": r"\delta = 10^{-4}",
    "y = ±1": r"y = \pm 1",
    "√N": r"\sqrt{N}",
    "1 − |R|": "1 - |R|",
    "γ ≥ 1/(2s)": r"\gamma \ge 1/(2s)",
    "q = (b − 1)/a": "q = (b - 1)/a",
    "2/(1+κ²)": r"2/(1+\kappa^2)",
    "(R/γ)²": r"(R/\gamma)^2",
    "|x|²": "|x|^2",
    "c₁₂": "c_{12}",
    "He₂": r"\mathrm{He}_2",
    "g′": "g'",
    "q̂": r"\hat{q}",
    "2·10⁻²¹": r"2\cdot 10^{-21}",
    "1e-5": "10^{-5}",
}


@pytest.mark.parametrize(
    "text",
    [*("κ(α) ≥ 1/2", "eps_g → 0", "P = αN", "arccos R", "N(0, 1/N)", "1 − 2λ", "s²", "1 - q", "t <= 0.1"), *WHOLE],
)
def test_a_formula_in_prose_is_set_whole(text, helper):
    assert [formula for formula, _ in helper("formulas").parts(text)] == [True]
    assert [formula for formula, _ in helper("formulas").parts(f"where {text}, as is known")] == [False, True, False]


@pytest.mark.parametrize(
    "text",
    ["C++", "g++ -O3", "|y − h| = |1 − yh|", "R = (0.1, 0.05)", "s^-0.97", "η(r) = tanh(r v)", "T > bN/2"],
)
def test_an_expression_that_is_not_understood_is_left_as_text(text, helper):
    sentence = f"where {text}, as is known"
    assert helper("formulas").parts(sentence) == [(False, sentence)]


@pytest.mark.parametrize("text", ["finite-«N» distribution", "the «k»-th update", "an «s»-sparse teacher"])
def test_a_symbol_joined_to_a_word_is_set(text, helper):
    pieces = helper("formulas").parts(text.replace("«", "").replace("»", ""))
    assert "".join(f"«{piece}»" if formula else piece for formula, piece in pieces) == text


@pytest.mark.parametrize(("text", "set_as"), WHOLE.items())
def test_powers_roots_sizes_and_functions_are_set_as_such(text, set_as, helper):
    assert helper("formulas").latex(text) == set_as


@pytest.mark.parametrize(
    "text",
    [
        *("a rule of 15 s", "5.9 CPU s of it", "one's own", "J. Phys. A", "e.g. t-test"),
        *("experiments A, B and C", "Experiments A to C", "Ctrl-C", "the command draws (c)", "panels (b) and (d)"),
    ],
)
def test_words_units_and_initials_are_no_formulas(text, helper):
    assert helper("formulas").parts(text) == [(False, text)]


def test_the_unit_in_the_head_of_a_column_is_no_formula_and_a_symbol_is_one(helper):
    parts = helper("formulas").parts
    assert parts("s", head=True) == [(False, "s")] != parts("s")
    assert parts("N = 10, s", head=True) == [(True, "N = 10"), (False, ", s")]
    assert parts("power of s", head=True) == [(False, "power of "), (True, "s")]


THEORY = sorted(path.stem for path in (DOCS / "theory").glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("name", THEORY)
def test_a_page_of_theory_has_a_figure(name, helper):
    """Which is drawn where the page is built."""
    assert f"pictures.{name}()" in (DOCS / f"theory/{name}.md").read_text()
    assert callable(getattr(helper("pictures"), name))


def test_the_tables_of_keys_are_of_every_kind_of_scenario():
    page = (DOCS / "api/config.md").read_text()
    assert all(f"tables.keys(statmech.{kind.__name__})" in page for kind in get_kinds().values())


def links(page):
    """The targets of a page's links, without those in code and formulas."""
    return LINK.findall(MATHS.sub("", FENCED.sub("", page.read_text())))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page):
    inner = [link.partition("#")[0] for link in links(page) if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in inner if link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_elsewhere_are_safe(page):
    assert [link for link in links(page) if "://" in link and not link.startswith("https://")] == []


def test_a_link_to_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](there.md) ![b](http://x.org)\n```\n[not](a_link.md)\n```\n$[x](y)$")
    assert links(page) == ["there.md", "http://x.org"]


def test_links_of_the_readme_lead_to_pages_that_are_readable_unbuilt():
    inner = {ROOT / link.partition("#")[0] for link in links(ROOT / "README.md") if "://" not in link}
    executed = [str(page) for page in inner if page.suffix == ".md" and "```{" in page.read_text()]
    assert executed == []


CITED = re.compile(r"`(?:tests/)?(test_\w+)(…?)(?:\.py)?`")
TESTS = {
    name
    for path in (ROOT / "tests").glob("test_*.py")
    for name in (path.stem, *re.findall(r"def (test_\w+)", path.read_text()))
}


def unknown_tests(text):
    """The tests that a text names in backticks and that do not exist; a name may be cut short by an ellipsis."""
    cited = CITED.findall(text)
    return [name for name, cut in cited if not any(it == name or (cut and it.startswith(name)) for it in TESTS)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_a_page_cites_exist(page):
    assert unknown_tests(page.read_text()) == []


def test_a_cited_test_that_does_not_exist_is_found():
    text = "`test_tests_that_a_page_…`, `tests/test_docs.py`, `test_gone`, `test_gone_…`, `tests/test_gone.py`"
    assert unknown_tests(text) == ["test_gone", "test_gone_", "test_gone"]


NAMED = re.compile(r"`((?:statmech|simulate|theory|figures|tests|docs|configs|benchmarks)/(?!_build)[\w./-]*)`")


def absent(text):
    """The files and folders of ours that a text names in backticks and that do not exist."""
    return [path for path in NAMED.findall(text) if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page):
    assert absent(page.read_text()) == []


def test_a_named_file_that_does_not_exist_is_found():
    text = "`statmech/students/rules.py`, `theory/`, `theory/online.py`, `docs/_build/html`, `configs/gone.yaml`"
    assert absent(text) == ["theory/online.py", "configs/gone.yaml"]


SENTENCE = "Define a learning model once, simulate it, solve it, and overlay the two."
CITATION = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text())


def test_the_description_is_the_same_everywhere():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"] == SENTENCE
    assert CITATION["abstract"] == SENTENCE
    assert SENTENCE[1:] in " ".join((DOCS / "index.md").read_text().split())


def test_the_bibtex_of_the_readme_states_the_facts_of_the_citation_file():
    [block] = re.findall(r"```bibtex\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    fields = dict(re.findall(r"(\w+)\s*= \{+(.*?)\}+,?$", block, re.MULTILINE))
    assert fields["author"] == " and ".join(author["name"] for author in CITATION["authors"])
    assert [fields[name] for name in ("title", "version", "license")] == [
        str(CITATION[name]) for name in ("title", "version", "license")
    ]
    assert CITATION["version"] == statmech.__version__


# words that make scientific English read as translated, each with plainer ones
PLAIN = {
    r"told|tells?|telling": "state, show, report, message",
    r"anew": "again, recompute",
    r"plays?|played|playing|player": "simulate, run",
    r"gone on|go on|goes on|going on": "resume, continue",
    r"by chance": "random, at random",
    r"whoever|whatever is|for ever|at hand": "anyone, any, forever, available",
    r"(?<!not )yet": "still, so far, nevertheless",
    r"(?<!there )(?:is|are) no (?!longer|more|less|better|worse|larger|smaller)\w+": "is not a",
    r"to be had": "available",
    r"of (?:one's|a user's|yours|mine) ?(?:own)?(?!\w)": "your own",
    r"on[ -]line": "online",
    r"evenly|even over": "uniformly, equally spaced",
    r"(?:a|one) (?:line|bar|seed|process|worker|colour|panel|row|column|stage|page|core|step|run|cell) an? \w+": "per",
    r"moments?": "time, recorded time",
    r"promis(?:e|es|ed|ing)": "nominal, target, guarantee, bound",
    r"apart(?! from)": "separate, deviation, difference",
    r"(?:a|the) shares?|shares? of (?:the|all|them|those|examples|features|errors)": "fraction",
    r"(?:exact|same|other|finite-N) laws?|laws? of (?:the|an?|inputs|sums)": "distribution",
    r"cells? of (?:a|the|every) (?:sweep|config)": "parameter combination",
    r"mend(?:s|ed)?": "fix, repair",
}
BANNED = re.compile("|".join(rf"(?<!\w)(?:{words})(?!\w)" for words in PLAIN), re.IGNORECASE)
ALLOWED: dict[str, str] = {  # the place of a word, and why it is right there
    "not yet": "a measurement that is planned",
    "second moments": "averages of squares, not times",
}


def plain_problems(text):
    """The words of a text to avoid, each with its surroundings; code in backticks and targets of links do not count."""
    text = " ".join(re.sub(r"`[^`\n]+`|\]\([^)\s]+\)|<\w+>", "`code`", text).split())
    places = [text[max(0, hit.start() - 25) : hit.end() + 25] for hit in BANNED.finditer(text)]
    return [place for place in places if not any(allowed in place for allowed in ALLOWED)]


def notebook_text(path):
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])


def comments(path):
    return "\n".join(re.findall(r"#(.*)", path.read_text()))


def help_texts():
    """Help of the command, its subcommands, arguments and options."""
    import typer

    from statmech.cli.command_group import app

    command = typer.main.get_command(app)
    yield "statmech", "\n".join([command.help or "", *(one.help or "" for one in command.params)])
    for name, sub in command.commands.items():
        options = [getattr(one, "help", None) or "" for one in sub.params]
        yield f"statmech {name}", "\n".join([sub.help or "", *options])


def descriptions(schema, place="schema"):
    """Every title and description of a JSON Schema."""
    for name, part in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if isinstance(part, str) and name in ("description", "title"):
            yield place, part
        elif isinstance(part, dict | list):
            yield from descriptions(part, f"{place}.{name}")


def schema_texts():
    from statmech.kinds.selection_and_vocabulary import make_config_schema

    return descriptions(make_config_schema())


def code_texts():
    """Every docstring and comment of the packages, per file."""
    for path in modules(*PACKAGES):
        text = path.read_text()
        parts = [docstring(node) for node in ast.walk(tree_of(text)) if isinstance(node, DOCUMENTED)]
        parts += [
            it.string for it in tokenize.generate_tokens(io.StringIO(text).readline) if it.type == tokenize.COMMENT
        ]
        yield str(path.relative_to(ROOT)), "\n\n".join(parts)


def docstring(node):
    """The docstring of a syntax node, without the headings that name its arguments, such as `apart : float`."""
    return re.sub(r"^\w+( : \w+)?$", "", ast.get_docstring(node) or "", flags=re.MULTILINE)


POOR = re.compile(r"(The same|What|Of|Those)\b")  # openings that are neither a verb nor a noun
MANY = 5  # parameters, from which on a function lists them


def poor_openings(text):
    """The first lines of a module's docstrings that do not say what a function does or what data are."""
    docstrings = (ast.get_docstring(node) for node in ast.walk(tree_of(text)) if isinstance(node, DOCUMENTED))
    return [words.partition("\n")[0] for words in docstrings if words and POOR.match(words)]


@pytest.mark.slow
def test_docstrings_begin_with_a_verb_or_a_noun():
    poor = {str(path.relative_to(ROOT)): poor_openings(path.read_text()) for path in modules(*PACKAGES)}
    assert {name: lines for name, lines in poor.items() if lines} == {}


@pytest.mark.parametrize("opening", ["The same of a lane.", "What it holds.", "Of labels, their mean.", "Those of K."])
def test_an_opening_without_a_noun_or_a_verb_is_found(opening):
    text = f'"""Whatever."""\n\nclass Good:\n    """Official data."""\n\n    def bad(self):\n        """{opening}"""\n'
    assert poor_openings(text) == [opening]


def functions(text):
    """The public functions of a module, and its public methods but those that override an abstract one."""
    tree = tree_of(text)
    for of in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
        own = (it for it in of.body if isinstance(it, ast.FunctionDef) and not it.name.startswith("_"))
        yield from (it for it in own if of is tree or it.name not in abstract() or is_abstract(it))


def is_abstract(function):
    return any(getattr(it, "id", "") == "abstractmethod" for it in function.decorator_list)


def unlisted(function):
    """The parameters that the docstring of a function of many leaves out."""
    parts = SECTION.split(ast.get_docstring(function) or "")
    section = dict(zip(parts[1::2], parts[2::2], strict=True)).get("Parameters", "")
    headings = [line.partition(" : ")[0] for line in section.splitlines() if line and not line[0].isspace()]
    given = function.args
    names = {it.arg for it in (*given.posonlyargs, *given.args, *given.kwonlyargs)} - {"self", "cls"}
    return names - set(re.findall(r"\w+", " ".join(headings))) if len(names) >= MANY else set()


@pytest.mark.slow
def test_functions_of_many_parameters_list_them():
    paths = [path for path in modules("statmech", "simulate", "theory") if path.parent.name != "cli"]  # that has help
    lacking = {f"{path.stem}.{it.name}": unlisted(it) for path in paths for it in functions(path.read_text())}
    assert {name: names for name, names in lacking.items() if names} == {}


def test_a_parameter_that_is_not_listed_is_found():
    docstring = '"""Add.\n\n    Parameters\n    ----------\n    a, b : int\n        Terms.\n    c\n        c.\n    """'
    few, many = functions(f"def few(a, b): ...\n\ndef many(a, b, c, d, *, e):\n    {docstring}\n")
    assert (unlisted(few), unlisted(many)) == (set(), {"d", "e"})


def modules(*packages):
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
PACKAGES = ("statmech", "simulate", "theory", "figures")
tree_of = cache(ast.parse)


@cache
def abstract():
    """The names of abstract methods of the packages."""
    nodes = (node for path in modules(*PACKAGES) for node in ast.walk(tree_of(path.read_text())))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and is_abstract(node)}


SOURCES = {
    "pages": lambda: ((str(path.relative_to(ROOT)), path.read_text()) for path in PAGES),
    "notebooks": lambda: ((path.name, notebook_text(path)) for path in sorted(DOCS.glob("notebooks/*.ipynb"))),
    "configs": lambda: ((path.name, comments(path)) for path in sorted((ROOT / "configs").glob("*.yaml"))),
    "help": help_texts,
    "schema": schema_texts,
    "docstrings": code_texts,
}


@cache
def texts(source):
    return list(SOURCES[source]())


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_what_a_user_reads_is_plain_english(source):
    problems = {name: plain_problems(text) for name, text in texts(source)}
    assert {name: places for name, places in problems.items() if places} == {}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_of_text_has_texts(source):
    found = [text for _, text in texts(source)]
    assert len(found) > 3
    assert sum(map(len, found)) > 1000


@pytest.mark.parametrize(
    "text", ["as it was told", "the fields are\ncomputed anew", "one line a difference", "it is no rule"]
)
def test_words_to_avoid_are_found(text):
    assert plain_problems(text)


@pytest.mark.parametrize(
    "text", ["there is no theory", "not yet measured", "`told = 1`", "apart from that", "a playground"]
)
def test_plain_words_are_not(text):
    assert plain_problems(text) == []


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A small package with a page, whose cache may be made; jupyter_cache is itself again afterwards."""
    monkeypatch.delenv(DATA_FOLDER_ENV_VARIABLE, raising=False)
    monkeypatch.setattr(JupyterCacheBase, "truncate_caches", JupyterCacheBase.truncate_caches)
    for name in ("statmech/students/rules.py", "configs/ensemble.yaml", "docs/tutorial.md", *executed_pages.FILES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first")
    return tmp_path


@pytest.mark.slow
def test_pages_are_executed_again_if_the_package_a_config_or_the_data_changed_and_not_otherwise(checkout, monkeypatch):
    before = Path(executed_pages.cache(checkout))
    assert list(before.glob("*.db"))  # made before two workers may make it at once
    (checkout / "docs/tutorial.md").write_text("second")
    assert Path(executed_pages.cache(checkout)) == before
    assert before.exists()
    seen = {before}
    for name in ("statmech/students/rules.py", "configs/ensemble.yaml", *executed_pages.FILES):
        (checkout / name).write_text("second")
        seen.add(Path(executed_pages.cache(checkout)))
    monkeypatch.setenv(DATA_FOLDER_ENV_VARIABLE, str(checkout / "statmech"))
    seen.add(Path(executed_pages.cache(checkout)))
    assert len(seen) == 4 + len(executed_pages.FILES)
    assert not before.exists()


@pytest.mark.slow
def test_no_worker_removes_a_page_that_another_has_just_added(checkout):
    """To remove the oldest, jupyter_cache lists all pages twice: one added between the two was removed half stored."""

    def kept(folder: str) -> int:
        cache = get_cache(folder)
        cache.change_cache_limit(1)
        for code in ("1", "2"):
            page = v4.new_notebook(cells=[v4.new_code_cell(code)])
            cache.cache_notebook_bundle(CacheBundleIn(page, code), check_validity=False)
        return len(cache.list_cache_records())

    assert kept(str(checkout / "planted")) == 1
    assert kept(executed_pages.cache(checkout)) == 2


def test_the_colours_of_the_site_have_the_contrast_that_wcag_asks_of_text():
    light, dark = re.findall(r'_css_variables": \{(.*?)\}', (DOCS / "conf.py").read_text(), re.DOTALL)
    for text, behind in ((light, ("#ffffff", "#f8f9fb")), (dark, ("#131416", "#1a1c1e"))):  # of a page, and its sidebar
        colours = re.findall(r"#[0-9a-f]{6}", text)
        assert len(set(colours)) == 2
        assert min(compute_contrast(colour, page) for colour in colours for page in behind) > 4.5
    assert compute_contrast("#d55e00", "#ffffff") < 4.5  # the orange of figures is too light for text


@pytest.mark.parametrize("name", list_shipped_configs())
def test_a_config_whose_lines_fit_its_box_is_the_same_config(name, helper):
    boxes = helper("code_boxes")
    text = (ROOT / f"configs/{name}.yaml").read_text()
    shown = boxes.fit_yaml(text)
    assert max(map(len, shown.splitlines())) <= boxes.WIDTH
    assert YAML(typ="safe").load(shown) == YAML(typ="safe").load(text)
    assert sorted(shown.replace("#", " ").split()) == sorted(text.replace("#", " ").split())


def test_a_comment_without_room_stands_above_its_line(helper):
    assert helper("code_boxes").fit_yaml("a: 1234567890123456789012345678  # two words", 40) == (
        "# two words\na: 1234567890123456789012345678"
    )
