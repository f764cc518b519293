"""Export of results to files for other programs, and references to the papers behind a scenario.

Export: a table of means for spreadsheets, or a NetCDF file.

References: the papers behind a scenario's rules, learners, theory and figures, as BibTeX. **To cite a paper for a new
method** add an entry to `references.bib`, in the form of the others, and name it in `cites` of the class of the rule,
learner, classifier, loss or inputs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import ConfigError
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import ensure_tuple
from statmech.numerics.statistics import compute_run_standard_error
from statmech.results.results import Results, as_results
from statmech.runtime import files

BIBLIOGRAPHY_FILE = Path(__file__).with_name("references.bib")
# Entries with one field per line: we read only our own file, so a BibTeX library is not worth a dependency.
BIBTEX_ENTRY_PATTERN = re.compile(r"^@(\w+)\{(\w+),\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
BIBTEX_FIELD_PATTERN = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)
BIBTEX_ENTRIES = {
    entry[2]: entry[0] for entry in BIBTEX_ENTRY_PATTERN.finditer(BIBLIOGRAPHY_FILE.read_text(encoding="utf-8"))
}
BIBTEX_FIELDS_BY_KEY = {key: dict(BIBTEX_FIELD_PATTERN.findall(text)) for key, text in BIBTEX_ENTRIES.items()}

COMBINING_ACCENTS = {  # LaTeX commands and combining characters of Unicode
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
    "c": "\u0327",
    "k": "\u0328",
    "r": "\u030a",
    "u": "\u0306",
    "v": "\u030c",
    "H": "\u030b",
}
LATEX_LETTERS = {
    "ss": "ß",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "ae": "æ",
    "AE": "Æ",
    "aa": "å",
    "AA": "Å",
    "i": "ı",
}
LATEX_ACCENT_PATTERN = re.compile(r"\\(?:([^\w\s{}])|([ckruvH])(?=[\s{]))\s*\{?(\\?\w)\}?")
LATEX_LETTER_PATTERN = re.compile(r"\\(ss|ae|AE|aa|AA|[oOlLi])(?![a-zA-Z])\s*")
EXPORT_SUFFIXES = (".csv", ".nc")
# spreadsheets treat text that starts with one of these as a formula
SPREADSHEET_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def get_citation_keys(scenario: AbstractScenario) -> list[str]:
    """Return the keys of the papers that a scenario uses, without duplicates.

    Parameters
    ----------
    scenario
        A scenario of any kind.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from statmech import Scenario
    >>> get_citation_keys(Scenario(rule=["hebb", "adatron"], t=1))
    ['miyoshi2005', 'anlauf1989']
    """
    kinds = scenario.classes()
    cites = [scenario.CITES, *(getattr(kinds[name], "cites", ()) for name in scenario.list_chosen_class_names())]
    inputs = ensure_tuple(getattr(scenario, "inputs", ()))
    if any(distribution.has_unequal_variances for distribution in inputs):
        cites.append(scenario.UNEQUAL_VARIANCE_CITES)
    return list(dict.fromkeys(chain.from_iterable([*cites, *(distribution.cites for distribution in inputs)])))


def format_bibtex(keys: Iterable[str]) -> str:
    """Return the BibTeX entries of these papers.

    Parameters
    ----------
    keys
        Keys of papers, as `get_citation_keys` returns them.

    Returns
    -------
    str
        BibTeX.

    Examples
    --------
    >>> print(format_bibtex(["quinlan1993"]))
    @book{quinlan1993,
      author = {Quinlan, J. Ross},
      title = {C4.5: Programs for Machine Learning},
      publisher = {Morgan Kaufmann},
      year = {1993},
    }
    """
    return "\n\n".join(BIBTEX_ENTRIES[key] for key in keys)


def format_reference(key: str) -> str:
    """Return the reference to a paper as plain text.

    >>> format_reference("krauth1987")
    'Werner Krauth and Marc Mézard (1987). Learning algorithms with optimal stability in neural networks.
    Journal of Physics A 20, L745–L752.'
    """
    paper = BIBTEX_FIELDS_BY_KEY[key]
    publication = (
        paper.get("journal") or paper.get("booktitle") or paper.get("publisher") or paper.get("howpublished", "")
    )
    publication_details = ", ".join(
        part for part in (f"{publication} {paper.get('volume', '')}".strip(), paper.get("pages")) if part
    )
    authors, details = _format_authors(paper["author"]), publication_details or paper.get("note", "")
    return unicode_from_latex(f"{authors} ({paper['year']}). {paper['title']}. {details}.")


def unicode_from_latex(text: str) -> str:
    r"""Convert the LaTeX of a reference to Unicode: accents, letters and dashes are converted, braces removed.

    >>> names = r"M{\'e}zard, Erd{\H{o}}s, Fran{\c c}ois, \"Orjan, Stra{\ss}e, {\O}ystein, {\'\i}, {LaTeX}, 1--2"
    >>> unicode_from_latex(names)
    'Mézard, Erdős, François, Örjan, Straße, Øystein, í, LaTeX, 1–2'
    """
    text = LATEX_ACCENT_PATTERN.sub(
        lambda match: match[3].removeprefix("\\") + COMBINING_ACCENTS.get(match[1] or match[2], ""), text
    )
    text = LATEX_LETTER_PATTERN.sub(lambda match: LATEX_LETTERS[match[1]], text)
    return unicodedata.normalize("NFC", re.sub(r"[{}]", "", text)).replace("--", "–")


def _format_authors(authors: str) -> str:
    """Format BibTeX authors (last name first) as a list of names for a sentence."""
    *first_authors, last_author = [" ".join(reversed(name.split(", "))) for name in authors.split(" and ")]
    return f"{', '.join(first_authors)} and {last_author}" if first_authors else last_author


if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    ResultsOrDataset = xr.Dataset | Results | None


def write_export(simulation: ResultsOrDataset, theory: xr.Dataset | None, path: Path) -> None:
    """Write results atomically to a CSV or NetCDF file.

    The suffix of the file's name selects the format. Raises `ConfigError` for another suffix, `StoreError` if the file
    cannot be written.
    """
    if path.suffix not in EXPORT_SUFFIXES:
        raise ConfigError(f"{path}: the file's name must end with {' or '.join(EXPORT_SUFFIXES)}")
    files.write_atomically(
        path,
        make_csv(simulation, theory) if path.suffix == ".csv" else make_netcdf(simulation, theory),
        named_by_user=True,
    )


def make_csv(simulation: ResultsOrDataset, theory: xr.Dataset | None = None) -> bytes:
    """Return the table of means as the content of a CSV file.

    Texts that a spreadsheet would read as a formula are preceded by an apostrophe.
    """
    frame = make_export_table(simulation, theory)
    return bytes(frame.map(_escape_formula).to_csv(index=False).encode())


def _escape_formula(entry: Any) -> Any:
    return f"'{entry}" if isinstance(entry, str) and entry.startswith(SPREADSHEET_FORMULA_PREFIXES) else entry


def make_export_table(simulation: ResultsOrDataset, theory: xr.Dataset | None = None) -> pd.DataFrame:
    """Return the table for export, a row per variable and sweep point: mean over seeds, standard error, seeds, theory.

    Parameters
    ----------
    simulation, theory
        Two datasets, one possibly None; or the first argument alone, as `Results`.

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", N=100, t=[1, 2], seeds=4)
    >>> frame = make_export_table(simulate.run(scenario), theory.solve(scenario))
    >>> list(frame.columns)
    ['t', 'student', 'variable', 'simulation', 'standard_error', 'seeds', 'theory']
    >>> frame[frame.variable == "R"].theory.round(6).tolist()
    [0.491379, 0.677581]
    """
    import pandas as pd

    results = as_results(simulation, theory)
    either = results.either
    parts = [_make_variable_rows(str(name), results) for name in either.data_vars]
    combined = pd.concat([part for part in parts if not part.empty], ignore_index=True)
    final_columns = [
        name for name in ("variable", "simulation", "standard_error", "seeds", "theory") if name in combined
    ]
    order = list(either.sizes)
    sweep_columns = sorted(
        set(combined) - set(final_columns),
        key=lambda name: (order.index(either[name].dims[0]) if either[name].dims else -1, name),
    )
    return combined[[*sweep_columns, *final_columns]]


def _make_variable_rows(name: str, results: Results) -> pd.DataFrame:
    import xarray as xr

    columns = {}
    if results.simulation is not None and name in results.simulation:
        runs = results.simulation[name].astype(float)
        columns["simulation"], columns["seeds"] = runs.mean("seed"), runs.count("seed")
        columns["standard_error"] = compute_run_standard_error(runs)
    if results.theory is not None and name in results.theory:
        columns["theory"] = results.theory[name]
    points = xr.Dataset(columns)
    swept = {str(dim) for dim in points.dims}
    points = points.drop_vars(
        [coordinate for coordinate, array in points.coords.items() if not set(array.dims) & swept]
    )
    if not swept:
        points = points.expand_dims(results.scenario.CHOICE)
    frame = points.to_dataframe().reset_index().dropna(how="all", subset=[*{*columns} - {"seeds"}])
    return frame.astype({"student": "Int64"} if "student" in frame else {}).assign(variable=name)


def make_netcdf(simulation: ResultsOrDataset, theory: xr.Dataset | None = None) -> bytes:
    """Return the export of both datasets as one NetCDF file, where theory's variables have the suffix `_theory`."""
    import xarray as xr

    results = as_results(simulation, theory)
    parts = [] if results.simulation is None else [results.simulation]
    if results.theory is not None:
        parts.append(results.theory.rename({name: f"{name}_theory" for name in results.theory.data_vars}))
    merged = xr.merge(parts, combine_attrs="override", compat="override")
    return bytes(merged.to_netcdf(engine="scipy"))
