"""The docs say of every public name, figure and config what it is, and their links lead somewhere."""

from __future__ import annotations

import re
from inspect import ismodule
from pathlib import Path

import pytest

import figures
import simulate
import simulate.learners
import statmech
import theory
from statmech.config import shipped
from statmech.scenarios.registry import KINDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")]
PAGES += sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
MATHS = re.compile(r"\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)


def public(module):
    return [name for name, thing in vars(module).items() if not name.startswith("_") and not ismodule(thing)]


NAMES = [f"statmech.{name}" for name in statmech.__all__]
NAMES += [f"theory.{name}" for name in public(theory)] + [f"simulate.{name}" for name in public(simulate)]
NAMES += [f"simulate.learners.{name}" for name in simulate.learners.ESTIMATORS]
NAMES += [f"figures.{name}" for name in ("draw", "named", "fitting")]
GALLERY = {path.stem: path.read_text() for path in (DOCS / "gallery").glob("*.md")}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_stands_in_the_reference(name):
    reference = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    assert re.search(rf"(auto\w+:: |`){re.escape(name)}($|`|\s)", reference, re.MULTILINE)


def test_every_figure_but_the_overlays_has_a_page_of_the_gallery():
    published = {name for of in figures.FIGURES.values() for name in of} - set(figures.OVERLAYS)
    drawn = {name for text in GALLERY.values() for name in re.findall(r'figures\.draw\("(\w+)"', text)}
    assert published <= drawn
    assert set(figures.OVERLAYS) <= set(re.findall(r"`(\w*overlay)`", GALLERY["overlays"]))


@pytest.mark.parametrize("name", shipped())
def test_a_config_is_shown_and_played_in_its_page_of_the_gallery(name):
    assert f"```{{literalinclude}} ../../configs/{name}.yaml" in GALLERY[name]
    assert f'statmech.load("{name}"' in GALLERY[name].replace("\n    ", "")


@pytest.mark.parametrize("name", sorted(set(GALLERY) - {"index"}))
def test_the_gallery_shows_a_thumbnail_of_every_page(name):
    assert f"../images/thumbnails/{name}.png" in GALLERY["index"]
    assert (DOCS / f"images/thumbnails/{name}.png").stat().st_size < 50_000


def test_the_tables_of_keys_are_of_every_kind_of_scenario():
    page = (DOCS / "api/config.md").read_text()
    assert all(f"tables.keys(statmech.{kind.__name__})" in page for kind in KINDS.values())


def links(page):
    """The targets of a page's links, without what stands in code and formulas."""
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
