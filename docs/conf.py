"""The docs site: `make docs`. Pages are MyST Markdown and notebooks, executed as it is built; a warning is an error."""

import re
import sys
from pathlib import Path

import bokeh
from pydantic import BaseModel
from sphinx.ext import napoleon

import statmech
from figures.interactive.typeface import make_font_css
from statmech.keys.scenario import AbstractScenario

sys.path.insert(0, str(Path(__file__).parent))
import executed_pages
import kernels
from code_boxes import CodeBoxes
from formulas import Formulas

project = "statmech"
author = copyright = "The statmech developers"
release = version = statmech.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "paper"]  # the draft of an article, whose citations Pandoc resolves
suppress_warnings = ["toc.empty_glob"]

# a colon in the docstring of a property would divide it into a type and a description
process_docstring = napoleon._process_docstring
napoleon._process_docstring = lambda app, kind, *rest: process_docstring(
    app, "method" if kind == "property" else kind, *rest
)

html_theme = "furo"
html_title = "statmech"
html_favicon = "_static/logo.svg"
html_theme_options = {
    "light_logo": "logo.svg",
    "dark_logo": "logo.svg",
    # blue of theory and orange of simulation, as in the logo; both have a contrast of 4.5 with the page behind them
    "light_css_variables": {
        "color-brand-primary": "#00588f",
        "color-brand-content": "#00588f",
        "color-brand-visited": "#00588f",
        "color-simulation": "#b34b00",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cb9ec",
        "color-brand-content": "#6cb9ec",
        "color-brand-visited": "#6cb9ec",
        "color-simulation": "#ff9a52",
    },
}
html_show_copyright = False
html_static_path = ["_static", str(Path(bokeh.__file__).parent / "server/static/js/bokeh-mathjax.min.js")]
html_css_files = ["typeface.css", "style.css"]
html_search_scorer = str(Path(__file__).parent / "_static/search_scores.js")
mathjax_path = "math.js"

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = executed_pages.cache()
nb_execution_raise_on_error = True
nb_execution_timeout = 1800  # of a page that takes a minute: a busy machine may take many
nb_merge_streams = True
nb_render_markdown_format = "myst"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

KERNELS = kernels.use()

PAGES = {  # files of the repository that are also pages of the site
    "CONTRIBUTING.md": "/contributing.md",
    "CHANGELOG.md": "/changelog.md",
    "README.md": "/index.md",
    "benchmarks/README.md": "/benchmarks.md",
}
OUTSIDE = re.compile(rf"\]\((?:\.\./)+({'|'.join(map(re.escape, PAGES))})")


def _to_pages(*event):
    """Links to these files, which work in the repository, become links to their pages."""
    text = event[-1]
    text[0] = OUTSIDE.sub(lambda link: f"]({PAGES[link[1]]}", text[0])


def _short_signature(app, what, name, thing, options, signature, returns):
    """The signature of a scenario: its keys and their defaults, without the types that validate them."""
    if what == "class" and issubclass(thing, BaseModel):
        return _keys(thing), returns
    return (signature or "").replace("TypeAliasForwardRef('ArrayLike')", "ArrayLike") or None, returns


def _write_typeface(app):
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "typeface.css").write_text(make_font_css())


def _keys(kind):
    if kind is AbstractScenario:
        return "(**keys)"
    schema = kind.make_schema() if issubclass(kind, AbstractScenario) else kind.model_json_schema()
    parts = schema["properties"]
    needed = [name for name, part in parts.items() if "default" not in part and name != "zip"]
    others = {name: part.get("default") for name, part in parts.items() if name not in needed}
    return f"({', '.join([*needed, *(f'{name}={value!r}' for name, value in others.items())])})"


def setup(app):
    app.connect("builder-inited", _write_typeface)
    app.connect("source-read", _to_pages)
    app.connect("include-read", _to_pages)
    app.connect("autodoc-process-signature", _short_signature)
    app.add_transform(Formulas)
    app.add_transform(CodeBoxes)
