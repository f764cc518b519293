"""Pictures of all figures: `python docs/thumbnails.py [--results DIR] [NAME ...]`, of all pages or of those named.

Each figure is written twice: one panel without numbers for the card of its page (docs/images/thumbnails), and whole for
the contact sheet (docs/images/sheet), where the picture of the full run in docs/images is used if there is one. It is
drawn from the results in DIR/NAME or, without them, by the code of the page up to its first figure. The pages of the
gallery and of the contact sheet are written, too. Pages that need data which are not available keep their pictures.
"""

from __future__ import annotations

import ast
import io
import re
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import NullFormatter
from PIL import Image

import statmech
from figures.labels import plain_from_latex
from figures.panels import get_panels
from figures.style import NO_LEGEND_GID, STYLE_SETTINGS
from statmech.config.shipped_configs import group_configs_by_question
from statmech.runtime import files

DOCS = Path(__file__).parent
PAGES = {path.stem: path for path in sorted((DOCS / "gallery").glob("*.md"))}
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
GROUPS = {**group_configs_by_question(), "And any other question?": ("overlays",)}  # of pages
# which panel says most, where it is not the first
PANEL = {
    "amp_steps": 1,
    "codons": 1,
    "digits": 2,
    "stopping": 2,
    "fluctuations": 6,
    "optimal_protocol": 2,
    "minover_stops": 2,
    "minover_updates": 1,
    "noise_optimal": 1,
    "attention": 2,
    "batches": 2,
    "learning_curves": 1,
    "digits_theta": 1,
    "bagging": 2,
}
INCHES, DOTS = (2.2, 1.5), 200  # of a card, which shows it at half its dots
WIDTH = 560  # of a picture on the contact sheet
TYPE, THICK = 12, 1.6  # of a card: points of labels and lines
ROOM = {"x": 215, "y": 140}  # along an axis: letters of a label times its points
LONGEST = {"x": 30, "y": 19}  # letters of a label with a symbol
LINE = 16  # letters of a line of other labels
COLOURS = 256  # chosen for maximal coverage, which keeps the colours of thin curves


def main(names: list[str], results: Path | None) -> None:
    """Write the pictures of these pages, and the pages that show them."""
    for name in names or pages():
        stored = results is not None and (results / name).is_dir()
        figure = of_results(results / name) if results and stored else drawn(PAGES[name].read_text())
        if figure is None:
            print(f"{name}: no figure without its data; its pictures stay")
            continue
        full = DOCS / f"images/{name}.png"
        write(f"sheet/{name}.png", full.read_bytes() if full.is_file() else png(figure, 300), WIDTH)
        write(f"thumbnails/{name}.png", png(card(figure, PANEL.get(name, 0)), DOTS))
        print(name)
    files.write_atomically(PAGES["index"], gallery().encode())
    files.write_atomically(PAGES["index"].parent / "contact_sheet.md", sheet().encode())


def pages() -> list[str]:
    """The pages with a figure, in the order of the gallery."""
    return [name for names in GROUPS.values() for name in sort_pages(names)]


def sort_pages(names: Iterable[str]) -> list[str]:
    """Return the pages of a group, numbered figures first and in their order."""
    return sorted(names, key=lambda name: title(name) if title(name).startswith("Figure ") else "Others")


def gallery() -> str:
    """The page of the gallery: below each question, and what the page says to it, the cards of its pages."""
    head, *parts = PAGES["index"].read_text().rpartition("```{toctree}")[0].split("\n## ")
    said = dict(part.partition("\n")[::2] for part in parts)
    text = head
    for question, names in GROUPS.items():
        cards = "\n".join(CARD.format(name=name, title=title(name)) for name in sort_pages(names))
        text += f"\n## {question}\n" + said.get(question, "\n").partition("::::{grid}")[0] + GRID + cards + "\n::::\n"
    return text + "\n```{toctree}\n:hidden:\n\n" + "\n".join([*pages(), "contact_sheet"]) + "\n```\n"


def of_results(folder: Path) -> Figure:
    """The figure of stored results, drawn as its shipped config says now."""
    shown: Figure = statmech.draw(statmech.load_results(folder), figure=folder.name)
    return shown


def drawn(page: str) -> Figure | None:
    """The first figure that the code of a page draws or displays."""
    shown: list[Any] = []
    names: dict[str, Any] = {"display": shown.append}
    for cell in CELL.findall(page):
        tree = ast.parse("\n".join(line for line in cell.splitlines() if not line.startswith(("%", "!", ":"))))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "page", "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), "page", "eval"), names))
        for it in shown:
            if isinstance(it, Figure):
                return it
    return None


def card(figure: Figure, which: int) -> Figure:
    """One panel of the figure in the size of a card: curves in thick lines, named axes, and no numbers or words."""
    panels = get_panels(figure)
    shown = panels[which]
    specs = [ax.get_subplotspec() for ax in panels]
    rows, columns = (
        [spec and (spec.get_gridspec(), getattr(spec, span)) for spec in specs] for span in ("rowspan", "colspan")
    )
    of_row = next(ax.get_ylabel() for ax, row in zip(panels, rows, strict=True) if row == rows[which])
    of_column = [ax.get_xlabel() for ax, column in zip(panels, columns, strict=True) if column == columns[which]][-1]
    for ax in figure.axes:
        if ax is not shown:
            ax.remove()
    for legend in (*figure.legends, *filter(None, [shown.get_legend()])):
        legend.remove()
    for extra in (*shown.texts, *shown.child_axes):
        extra.remove()
    figure.suptitle("")
    figure.supxlabel("")
    shown.set(title="", anchor="C")
    shown.set_title("", loc="left")
    labels = {
        shown.xaxis: short(shown.get_xlabel() or of_column, LONGEST["x"]),
        shown.yaxis: short(shown.get_ylabel() or of_row, LONGEST["y"]),
    }
    size = min(TYPE, *(size_in_room(label, ROOM[axis.axis_name]) for axis, label in labels.items()))
    for axis, label in labels.items():
        axis.set_label_text(label, size=size)
        axis.set_major_formatter(NullFormatter())
        axis.set_minor_formatter(NullFormatter())
        axis.set_tick_params(which="both", length=0)
    for line in shown.lines:
        line.set_linewidth(
            max(THICK, line.get_linewidth()) if line.get_gid() != NO_LEGEND_GID else line.get_linewidth()
        )
    shown.set_subplotspec(GridSpec(1, 1, figure=figure)[0])
    figure.set_size_inches(INCHES)
    return figure


def size_in_room(label: str, room: float) -> float:
    """The size in points at which the longest line of a label fits an axis."""
    return room / max(map(len, plain_from_latex(label).splitlines()), default=1)


def short(label: str, longest: int) -> str:
    """The label of an axis without its unit, in two lines if need be; of a longer one the first symbol, or nothing.

    >>> short("$t$ (steps / $N$)", 19), short("number of students $K$", 19), short("$D/N$, at $D=30$", 19)
    ('$t$', '$K$', '$D/N$')
    >>> short("examples until overlap $R=0.5$", 19)
    'examples until\\noverlap $R=0.5$'
    >>> short("mean squared error", 19), short("search time / $N$", 19)
    ('mean squared\\nerror', 'search time / $N$')
    >>> short("stages to zero\\ntraining error", 19), short("certified distance from the largest stability", 19)
    ('stages to zero\\ntraining error', '')
    """
    label = label.partition(" (")[0].partition(", ")[0].replace("\n", " ")
    symbols = re.findall(r"\$[^$=]+\$", label)
    if len(plain_from_latex(label)) <= (longest if symbols else LINE):
        return label
    if symbols:
        return symbols[0] if len(plain_from_latex(symbols[0])) <= longest else ""
    lines = wrap(label, LINE)
    return "\n".join(lines) if len(lines) <= 2 else ""


def png(figure: Figure, dots: int) -> bytes:
    file = io.BytesIO()
    with mpl.rc_context(STYLE_SETTINGS):
        figure.savefig(file, format="png", dpi=dots)
    return file.getvalue()


def write(name: str, picture: bytes, width: int | None = None) -> None:
    """Write a picture with few colours, complete or not at all."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    if width is not None:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1).save(file, format="png", optimize=True)
    path = DOCS / "images" / name
    path.parent.mkdir(exist_ok=True)
    files.write_atomically(path, file.getvalue())


def sheet() -> str:
    """The page of the contact sheet: all figures, in the order of the gallery."""
    return HEAD + "\n".join(ITEM.format(name=name, title=title(name)) for name in pages()) + "::::\n"


def title(name: str) -> str:
    """The heading of a page."""
    return next(line[2:] for line in PAGES[name].read_text().splitlines() if line.startswith("# "))


HEAD = """# Contact sheet

This page shows all figures of the [gallery](index.md) completely. A picture shows the full run if its page does,
and otherwise a run that may be reduced. `docs/thumbnails.py` creates this page.

::::{grid} 1 1 2 2
:gutter: 3

"""
CARD = """:::{{grid-item-card}}
:link: {name}
:link-type: doc
:img-top: ../images/thumbnails/{name}.png
:img-alt: {title}
{title}
:::
"""
GRID = """::::{grid} 2 2 3 3
:gutter: 2

"""
ITEM = """:::{{grid-item}}
[![{title}](../images/sheet/{name}.png)]({name}.md)

[{title}]({name}.md)
:::
"""

if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--results", type=Path, metavar="DIR")
    given = parser.parse_args()
    main(given.names, given.results)
