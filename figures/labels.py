"""Labels of axes, curves and values, and texts on the keys of a scenario in captions and titles.

Labels use mathtext in figures and plain letters in browsers. In captions and titles a key appears as its symbol or in
words.
"""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from statmech.keys.figure_key import find_drawable_variables
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import drop_duplicates
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import collect_parameters, get_parameters
from statmech.parameters.schedules_and_controls import control_from_config

LATEX_FONT_COMMANDS = ("left", "right", "mathrm", "mathbf", "text", "rm", "bf")  # dropped: they change no letter
LATEX_SIGNS = {
    "infty": "∞",
    "le": "≤",
    "ge": "≥",
    "leq": "≤",
    "geq": "≥",
    "pm": "±",
    "cdot": "·",
    "times": "×",
    "langle": "⟨",
    "rangle": "⟩",
    "to": "→",
    "propto": "∝",
    "ell": "ℓ",
}
CONTROL_STEP_PATTERN = re.compile(r", from t = (\S+) on (\S+)")  # matches a step of a piecewise constant control
GREEK_NAME_SPELLINGS = {"lambda": "LAMDA"}


def get_symbol(scenario: AbstractScenario, name: str) -> str:
    """Return the symbol of a key or coordinate in mathtext, or its name if it has no symbol."""
    return str(scenario.describe(name).label)


def get_usual_abscissa_key(scenario: AbstractScenario) -> str | None:
    """Return the usual key of the x axis for this kind of scenario, or None."""
    return scenario.USUAL_X_KEY or None


def axis_label(scenario: AbstractScenario, names: list[str]) -> str:
    """Return the label of an axis: the symbols of its keys, and the unit of a single key.

    >>> from statmech import Scenario
    >>> axis_label(Scenario(rule="hebb", t=1), ["t"]), axis_label(Scenario(rule="hebb", t=1), ["eta", "N"])
    ('$t$ (steps / $N$)', '$\\\\eta$, $N$')
    """
    unit = re.sub(r"\b[NP]\b", r"$\g<0>$", scenario.describe(names[0]).unit) if len(names) == 1 else "1"
    return ", ".join(get_symbol(scenario, name) for name in names) + ("" if unit == "1" else f" ({unit})")


def describe_size_and_runs(dataset: Any) -> str:
    """Describe the input dimension (if single) and the number of runs of a dataset.

    >>> from statmech import Scenario, run
    >>> describe_size_and_runs(run(Scenario(rule="hebb", N=1000, t=1, seeds=2)).simulation)
    '$N$ = 1,000, 2 seeds'
    """
    N, seeds = dataset.coords.get("N"), dataset.sizes.get("seed")
    size = [f"$N$ = {N.item():,}"] if N is not None and N.size == 1 else []
    folds = dataset.sizes.get("fold")
    size += [f"{folds} folds"] if folds else []
    noun = "shuffle" if folds else "seed"
    return ", ".join([*size, *([f"{seeds:,} {noun}{'s' if seeds > 1 else ''}"] if seeds else [])])


def format_key_name(name: str) -> str:
    """Replace the underscores in the name of a key by spaces."""
    return name.replace("_", " ")


def key_label(name: str, latex: str) -> str:
    r"""Return a key's symbol in plain letters, its name, or both if the name does not spell the symbol.

    >>> key_label("beta1", r"$\beta_1$"), key_label("error_rate", r"$\epsilon_d$"), key_label("K", "$K$")
    ('β₁', 'error rate', 'K')
    >>> key_label("margin", "$c$").split(), key_label("generations", "generation $g$"), key_label("teacher_eta", "")
    (['margin', 'c'], 'generation g', 'teacher η')
    """
    letters, command = unicode_from_latex(latex), latex.strip("$\\")
    if not letters or letters == name:
        return " ".join(_get_greek_letter(word) or word for word in name.split("_"))
    if not latex.startswith("$"):
        return letters
    return (
        letters
        if command.replace("_", "").startswith(name.replace("_", ""))
        else f"{format_key_name(name)}\u00a0{letters}"
    )


def variable_label(variable: Variable) -> str:
    r"""Return the symbol of a variable in plain letters, or the start of its long name if the symbol has indices.

    >>> variable_label(Variable((), "training error", r"$\epsilon_t$")), variable_label(Variable((), "cosine", "$R$"))
    ('training error', 'R')
    """
    text = plain_from_latex(variable.symbol)
    return re.split("[,:]", variable.long_name)[0] if "_" in text else text


def format_config_value(value: Any) -> str:
    """Format a value of a config without braces.

    A section with one number, such as {t0: 5}, is formatted as this number.

    >>> format_config_value({"t0": 5.0}), format_config_value({"spectrum": {"eigenvalues": [0.2, 1.8]}})
    ('5', 'spectrum [0.2, 1.8]')
    >>> format_config_value({"power_law": {"decay": 1.5, "teacher_decay": 2.0}})
    'power law (decay 1.5, teacher decay 2)'
    >>> format_config_value({"at": [0, 5], "is": [1, 2]})
    '1 → 2 at t = 5'
    """
    if isinstance(value, dict) and {*value} == {"at", "is"}:
        return format_control_with_arrows(str(control_from_config(value)))
    if isinstance(value, dict):
        entries = [
            (name.replace("_", " "), format_config_value(part)) for name, part in value.items() if part is not None
        ]
        is_labelled = len(entries) > 1 or any(isinstance(part, dict) for part in value.values())
        joined = ", ".join(f"{name} {text}" if is_labelled else text for name, text in entries)
        return f"({joined})" if len(entries) > 1 else joined
    if isinstance(value, list):
        return f"[{', '.join(map(format_config_value, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def round_to_distinct(values: list[Any]) -> list[Any]:
    """Round fractions to four significant digits, unless different values would become equal.

    >>> round_to_distinct([0.0, 1 / 7, "best"]), round_to_distinct([0.12345, 0.12346])
    ([0.0, 0.1429, 'best'], [0.12345, 0.12346])
    """
    rounded = [
        float(f"{value:.4g}") if isinstance(value, float) and not value.is_integer() else value for value in values
    ]
    return rounded if len({*map(repr, rounded)}) == len({*map(repr, values)}) else values


def format_control_with_arrows(control_name: str) -> str:
    """Return the name of a function of time for a browser, with arrows for its steps.

    >>> format_control_with_arrows("0.2, from t = 10 on 0"), format_control_with_arrows("optimal")
    ('0.2 → 0 at t = 10', 'optimal')
    """
    return CONTROL_STEP_PATTERN.sub(r" → \2 at t = \1", control_name)


def make_value_labeller(scenario: AbstractScenario, in_browser: bool = False) -> Callable[[str, Any], str]:
    """Make a function that labels values in figures.

    A number is shown with the symbol or the name of its key, a rule, a loss, ... with its own label. In browsers a
    symbol has Unicode letters, or is replaced by the name of its key.

    >>> from statmech import Scenario, StoredExamples
    >>> label = make_value_labeller(Scenario(rule="hebb", t=1))
    >>> label("rule", "hebb"), label("eta", 0.5), label("eta", "optimal")
    ('Hebbian', '$\\\\eta$ = 0.5', 'optimal $\\\\eta$')
    >>> (
    ...     label("flip", "0.2, from t = 10 on 0"),
    ...     make_value_labeller(StoredExamples(learner="minover", alpha=1))("epochs", 20)
    ... )
    ('$p_f$ = 0.2 $\\\\to$ 0 at $t$ = 10', '20 epochs')
    >>> label("inputs", "power_law 1.5 2.5")
    'power law 1.5 2.5'
    >>> label = make_value_labeller(Scenario(rule="hebb", t=1), in_browser=True)
    >>> label("rule", "hebb"), label("eta", 0.5), label("flip", 0.1)
    ('Hebbian', 'η = 0.5', 'flip = 0.1')
    """

    def label(name: str, value: Any) -> str:
        key = get_symbol(scenario, name)
        has_symbol = key.startswith("$")
        if has_symbol and in_browser:
            key = unicode_from_latex(key) or format_key_name(name)
        if not isinstance(value, str):
            number = re.sub("^-", "\N{MINUS SIGN}", format_power_of_ten(f"{value:,g}"))
            if not has_symbol and not _is_user_parameter(scenario, name):
                return f"{number} {key}" if key.endswith("s") else f"{key} {number}"
            return format_key_value(key, number)
        choices = scenario.choices().get(name, {})
        text = kind_label(choices, value) if value in choices else value.replace("_", " ")
        text = text.replace("$", r"\$")  # a dollar sign would begin mathematics
        return (
            format_key_value(key, CONTROL_STEP_PATTERN.sub(r" $\\to$ \2 at $t$ = \1", format_power_of_ten(text)))
            if has_symbol
            else text
        )

    return label


def format_key_value(key: str, value_text: str) -> str:
    """Join a key and its value: "key = number", or "adjective key".

    >>> format_key_value("λ", "0.1"), format_key_value("λ", "best"), format_key_value("η", "optimal in 10 segments")
    ('λ = 0.1', 'best λ', 'optimal η in 10 segments')
    """
    first, _, rest = value_text.partition(" ")
    return f"{first} {key} {rest}".rstrip() if first.isalpha() else f"{key} = {value_text}"


def format_power_of_ten(number: str) -> str:
    r"""Rewrite a number with an exponent as a power of ten, and leave other text unchanged.

    >>> (
    ...     format_power_of_ten("0.1"), format_power_of_ten("1e-07"), format_power_of_ten("2.5e+09"),
    ...     format_power_of_ten("best")
    ... )
    ('0.1', '$10^{-7}$', '$2.5\\times 10^{9}$', 'best')
    """
    match = re.fullmatch(r"(-?[\d.]+)e([+-]\d+)", number)
    if match is None:
        return number
    factor = "" if match[1] == "1" else rf"{match[1]}\times "
    return f"${factor}10^{{{int(match[2])}}}$"


def kind_label(kinds: Mapping[str, Any], name: str) -> str:
    """Return the label of a rule, learner, ..., or its name if the label is missing or ambiguous."""
    other_labels = {
        text
        for other_name, kind in kinds.items()
        if other_name != name
        for text in (other_name, getattr(kind, "label", ""))
    }
    label = str(getattr(kinds.get(name), "label", ""))
    return label if label and label not in other_labels else name


def plain_from_latex(latex: str) -> str:
    r"""Convert a LaTeX symbol to letters that every browser shows.

    Greek letters are found by their Unicode names. An unknown command is replaced by its name. Code between backticks
    stays as it is.

    >>> (
    ...     plain_from_latex(r"$\epsilon_g$ (vote)"), plain_from_latex(r"$\min_i\gamma_i$"),
    ...     plain_from_latex(r"$\tau$"), plain_from_latex(r"$\Delta\lambda_{12}$"), plain_from_latex("$10^{-7}$")
    ... )
    ('ε_g (vote)', 'min_i γ_i', 'τ', 'Δλ_12', '10⁻⁷')
    """
    parts = re.split(r"(`[^`]*`)", latex)  # code stays as it is
    return "".join(part if index % 2 else _plain_text_from_latex(part) for index, part in enumerate(parts)).strip()


def _plain_text_from_latex(latex: str) -> str:
    latex = latex.replace(r"\$", "\0")  # a dollar sign of the text
    text = re.sub(r"\^\{?(-?\d+)\}?(?![\d.])", lambda exponent: exponent[1].translate(SUPERSCRIPT_DIGITS), latex)
    text = re.sub(r"\\sqrt\{(.*?)\}|\\sqrt ?(\w)", r"√\1\2", text)
    text = re.sub(r"\\hat (\w)", "\\1\N{COMBINING CIRCUMFLEX ACCENT}", text)
    text = re.sub(r"\\t?frac\{(.*?)\}\{(.*?)\}", r"\1/\2", text)
    text = re.sub(r"([^\W_]?)\\([A-Za-z]+)\s*(?=([^\W_]?))", _replace_command, text)
    return re.sub(r"\\[,;:! ]|~", " ", text).translate(str.maketrans("", "", "${}\\")).replace("\0", "$")


def html_from_latex(latex: str) -> str:
    r"""Convert a label to HTML, with italic mathematics, and tags for indices and exponents.

    >>> html_from_latex(r"$\epsilon_g$ (vote)"), html_from_latex(r"$\lambda$ = 0.1"), html_from_latex("a_b <")
    ('<i>ε</i><sub>g</sub> (vote)', '<i>λ</i> = 0.1', 'a_b &lt;')
    >>> html_from_latex(r"$\epsilon_\mathrm{Bayes}$"), html_from_latex(r"$\epsilon_{\lambda^*}$")
    ('<i>ε</i><sub>Bayes</sub>', '<i>ε</i><sub>λ<sup>*</sup></sub>')
    """
    parts = re.split(r"(?<!\\)\$", latex)
    return "".join(_html_from_math(part) if index % 2 else _html_from_text(part) for index, part in enumerate(parts))


def _html_from_text(latex: str) -> str:
    """Convert text outside mathematics to HTML, and keep the spaces around it."""
    stripped = latex.strip()
    before, _, after = latex.partition(stripped) if stripped else (latex, "", "")
    return before + html.escape(plain_from_latex(stripped)) + after


SUPERSCRIPT_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SUBSCRIPT_LETTERS = str.maketrans("0123456789+-aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")


def unicode_from_latex(latex: str) -> str:
    r"""Convert a symbol to Unicode letters and subscripts.

    Returns "" if an index has no Unicode subscript.

    >>> unicode_from_latex(r"$\eta_v$"), unicode_from_latex(r"$\pi_+$"), unicode_from_latex("$p_f$")
    ('ηᵥ', 'π₊', '')
    """
    base, _, index = plain_from_latex(latex).partition("_")
    subscripts = index.translate(SUBSCRIPT_LETTERS)
    return base + subscripts if all(ord(letter) > 127 for letter in subscripts) else ""


LATEX_INDEX_PATTERN = (
    r"([_^])(?!\x01)(\{(?:[^{}]|\{[^{}]*\})*\}|\\[A-Za-z]+(?:\{[^{}]*\})?|[^\s\x01])"  # an index or an exponent
)


def _html_from_math(latex: str) -> str:
    """Convert mathematics to HTML."""
    delimited, before = latex, ""
    while delimited != before:  # outer indices first
        delimited, before = re.sub(LATEX_INDEX_PATTERN, "\\1\x01\\2\x02", delimited), delimited
    text = html.escape(plain_from_latex(delimited.replace("_\x01", "\x03").replace("^\x01", "\x04")))
    text, before = re.sub(r"(?<![\w&\x03\x04])([^\W\d_])(?![\w;])", r"<i>\1</i>", text), ""
    while text != before:  # inner indices first
        before = text
        for opening, tag in (("\x03", "sub"), ("\x04", "sup")):
            text = re.sub(f"{opening}([^\x02\x03\x04]*)\x02", rf"<{tag}>\1</{tag}>", text)
    return text


def _replace_command(command: re.Match[str]) -> str:
    """Return the text for one LaTeX command, separated by spaces from adjacent letters."""
    before, name, after = command.groups()
    sign = LATEX_SIGNS.get(name) or _get_greek_letter(name) or ("" if name in LATEX_FONT_COMMANDS else name)
    return before + (" " if before and sign.isalpha() else "") + sign + (" " if after and sign.isalpha() else "")


def _get_greek_letter(name: str) -> str:
    size, letter = "CAPITAL" if name[0].isupper() else "SMALL", name.removeprefix("var")
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {GREEK_NAME_SPELLINGS.get(letter.lower(), letter.upper())}")
    except KeyError:
        return ""


MAX_LISTED_VALUES = 8  # a longer list is shown as its range
UNDEFINED_KEYS = ("t",)  # the label of the axis names the unit
SHORT_DEFINITION_END_PATTERN = re.compile(r"[;:(]|, (?!as )")  # where the definition in a figure ends
DEFINITION_END_PATTERN = re.compile(r";|: |, increasing|, (with|until) ")  # where the definition of a key ends
CAPTION_OMITTED_KEYS = (
    *("key", "seeds", "dtype", "engine", "solver"),  # settings of the computation
    *("gram", "corrections", "strengths", "plane", "positions", "bayes"),  # requests for additional results
    *("figure", "zip"),
)
KIND_KEYS = ("rule", "network", "loss", "prior", "learner", "penalty", "teacher", "weights", "boundary", "classifier")
COUNT_KEYS = (
    *("epochs", "updates", "steps", "tasks", "passes", "stages", "sweeps", "neighbours", "examples", "heads", "folds"),
)
KEYS_SHOWN_BY_NAME = ("inputs", "start", "protocol", "sampling", "model", "data", "intercept")
KEY_PHRASES = {  # for keys without a symbol
    **{name: f"{{}} {name}" for name in (*KIND_KEYS, *COUNT_KEYS)},
    **{name: f"{name}: {{}}" for name in KEYS_SHOWN_BY_NAME},
    **dict.fromkeys(("clusters", "booster", "descent", "population"), "{}"),
    **dict.fromkeys(("attention", "level"), "{} boundary"),
    "annealing": "{} annealing",
    "mean": r"$m/\sigma$ = {}",
    "chunk": "features between looks: {}",
    "walks": "{} walks per seed",
    "probes": "fraction {} of probes",
    "memory": "memory of {} probes",
    "cap": "at most {} stages",
    "tests": "{} examples for tests",
    "stop": "stop rule: {}",
    "chosen": "order of features: {}",
    "order": "order of examples: {}",
    "budget": "budget of {} features",
    "share": "fraction {} of weights pruned at a time",
    "l1_ratio": "part {} of the l1 norm",
    "switch": "switch at $t$ = {}",
    "resample": "resampling: {}",
}
MAX_TITLE_VALUE_LETTERS = 45
# N and folds are given with the number of runs
TITLE_OMITTED_KEYS = ("N", "folds", "cap", "tests", "chunk", "within", "tolerance")
ZERO_VALUE_PHRASES = {"stages": "stages by cross-validation", "budget": "no budget of features"}


def get_caption_keys(scenario: AbstractScenario) -> dict[str, Any]:
    """Return all keys that determine the results, except the learner, rule, loss, ...

    >>> from statmech import Scenario
    >>> get_caption_keys(Scenario(rule="hebb", N=50, t=[1, 2], flip=0.1))
    {'K': 1, 'N': 50, 'inputs': 'gaussian', 'flip': 0.1, 't': [1.0, 2.0], 'start': 'drawn', 'eta': 1.0}
    """
    config = expand_config(scenario)
    used = {
        name for kinds in _get_configured_classes(scenario, config) for kind in kinds for name in get_parameters(kind)
    }
    unused = collect_parameters(scenario.classes()).keys() - used - type(scenario).model_fields.keys()
    return {
        name: value for name, value in config.items() if name not in {*CAPTION_OMITTED_KEYS, scenario.CHOICE, *unused}
    }


def define_symbols(scenario: AbstractScenario, defining_text: str = "") -> list[str]:
    """Define the symbols of keys in a caption, except those that a text in LaTeX contains.

    >>> from statmech import Scenario
    >>> define_symbols(Scenario(rule="hebb", t=1), "The error of $K$ students at rate $\\\\eta$.")
    ['$N$, input dimension', '$p_f$, probability that a label is flipped']
    """
    mathematics = " ".join(defining_text.split("$")[1::2])
    definitions = []
    for name in get_caption_keys(scenario):
        key = scenario.describe(name)
        symbol = key.label.strip("$")
        is_defined = re.search(rf"(?<![\w\\]){re.escape(symbol)}(?!\w)", mathematics)
        if key.label.startswith("$") and name not in UNDEFINED_KEYS and not is_defined:
            definitions.append(f"{key.label}, {DEFINITION_END_PATTERN.split(key.meaning)[0]}")
    return definitions


def define_drawn_symbols(scenario: AbstractScenario, texts: Iterable[str], axis_labels: Iterable[str]) -> list[str]:
    """Define the symbols of keys and variables that the texts of a figure contain.

    Parameters
    ----------
    scenario
        The scenario of the results.
    texts
        Titles, legend entries and labels of axes.
    axis_labels
        Labels of axes, which define a symbol after words, such as "overlap $m$", themselves.

    Returns
    -------
    list of str
        A text for each symbol.

    Examples
    --------
    >>> from statmech import Scenario
    >>> define_drawn_symbols(Scenario(rule="hebb", t=1), ["$K$ = 3, $t$ = 1"], ["$R$ / $N$", "flips $p_f$"])
    ['$K$: number of students', '$N$: input dimension', '$R$: teacher-student cosine']
    """
    mathematics = " ".join(part for text in (*texts, *axis_labels) for part in text.split("$")[1::2])
    keys = [scenario.describe(name) for name in get_caption_keys(scenario) if name not in UNDEFINED_KEYS]
    meanings = {key.label: key.meaning for key in keys}
    for variable in find_drawable_variables(scenario).values():
        meanings.setdefault(variable.symbol, variable.long_name)
    definitions = []
    for symbol, meaning in meanings.items():
        is_symbol = symbol.startswith("$") and symbol.endswith("$")
        is_drawn = re.search(rf"(?<![\w\\]){re.escape(symbol.strip('$'))}(?!\w)", mathematics)
        is_defined = any(re.search(rf"[a-z] {re.escape(symbol)}$|^{re.escape(symbol)}, ", text) for text in axis_labels)
        if is_symbol and is_drawn and not is_defined:
            definitions.append(f"{symbol}: {SHORT_DEFINITION_END_PATTERN.split(meaning)[0]}")
    return definitions


def describe_title_values(scenario: AbstractScenario) -> list[str]:
    """Return the parts of a title: the learner or rule, and every key with a single value, except N.

    A longer value, such as a list of variances, is left to the caption. A key at its default is only included if it has
    a symbol, is not 0 or one student, and applies to all learners or rules, or belongs to a class of the user.

    >>> from statmech import Scenario
    >>> describe_title_values(Scenario(rule="hebb", N=50, t=[1, 2], flip=0.1))
    ['Hebbian rule', '$p_f$ = 0.1', '$\\\\eta$ = 1']
    """
    config, fields = expand_config(scenario), type(scenario).model_fields.keys()
    defaults, kinds = _get_key_defaults(scenario, config), [*_get_configured_classes(scenario, config)]
    choice = [scenario.CHOICE] if isinstance(config[scenario.CHOICE], str) else []
    names = []
    for name, value in get_caption_keys(scenario).items():
        shared = name in fields or any(all(name in get_parameters(kind) for kind in group) for group in kinds)
        is_main = value and shared and (name, value) != ("K", 1) and get_symbol(scenario, name).startswith("$")
        is_single = not isinstance(value, list) and (name == "inputs" or not isinstance(value, dict))
        is_shown = name not in TITLE_OMITTED_KEYS and (is_main or value != defaults.get(name))
        if is_single and (is_shown or _is_user_parameter(scenario, name)):
            names.append(name)
    texts = [
        f"{'with' if config[name] else 'without'} {format_key_name(name)}"
        if isinstance(config[name], bool)
        else format_key_and_value(scenario, name, config[name])
        for name in (*choice, *names)
    ]
    return [text for text in texts if len(plain_from_latex(text)) <= MAX_TITLE_VALUE_LETTERS]


def expand_config(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the config of a scenario, with unzipped axes and the defaults of its learner or rule."""
    config = scenario.config()
    for group in config.get("zip", []):
        config |= {name: drop_duplicates(values) for name, values in group.items()}
    return config | {
        name: default for name, default in _get_parameter_defaults(scenario, config).items() if name not in config
    }


def _get_configured_classes(scenario: AbstractScenario, config: dict[str, Any]) -> Iterator[list[type]]:
    """Yield the classes of the rules, the losses, ... that a config names."""
    for choice, kinds in scenario.choices().items():
        value = config.get(choice)
        names: list[Any] = value if isinstance(value, list) else [value]
        yield [kinds[name] for name in names if name in kinds]


def _get_parameter_defaults(scenario: AbstractScenario, config: dict[str, Any]) -> dict[str, Any]:
    """Return the default parameters of the named rules, losses, ..., as a list if they differ."""
    defaults: dict[str, dict[Any, None]] = {}
    for kind in itertools.chain.from_iterable(_get_configured_classes(scenario, config)):
        for name, key in get_parameters(kind).items():
            defaults.setdefault(name, {})[key.default] = None
    lists = {name: [value for value in values if value is not None] for name, values in defaults.items()}
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items() if values}


def _get_key_defaults(scenario: AbstractScenario, config: dict[str, Any]) -> dict[str, Any]:
    """Return the default of every key, in the form of a config."""
    fields = {name: field.default for name, field in type(scenario).model_fields.items()}
    sections = {
        name: default.model_dump(mode="json") for name, default in fields.items() if isinstance(default, BaseModel)
    }
    return {**fields, **sections, **_get_parameter_defaults(scenario, config), "inputs": "gaussian"}


def format_key_and_value(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Format a key and its value as text.

    >>> from statmech import Scenario
    >>> (
    ...     format_key_and_value(Scenario(rule="hebb", t=1), "flip", 0.1),
    ...     format_key_and_value(Scenario(rule="hebb", t=1), "rule", "hebb")
    ... )
    ('$p_f$ = 0.1', 'Hebbian rule')
    """
    key, text = get_symbol(scenario, name), format_values(scenario, name, value)
    if key.startswith("$"):
        return format_key_value(key, text)
    if name in ZERO_VALUE_PHRASES and value == 0:
        return ZERO_VALUE_PHRASES[name]
    if _is_user_parameter(scenario, name) and not isinstance(value, dict):
        return format_key_value(key, text)
    phrase = f"{name}: {{}}" if isinstance(value, dict) else KEY_PHRASES.get(name, f"{name} {{}}".replace("_", " "))
    return phrase.format(text)


def _is_user_parameter(scenario: AbstractScenario, name: str) -> bool:
    """Return True for a parameter that only classes outside the package have, such as a user's own rule."""
    owners = [owner for owner in scenario.classes().values() if name in get_parameters(owner)]
    return bool(owners) and not any(owner.__module__.startswith(("statmech.", "simulate.")) for owner in owners)


def format_values(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Format one value, a short list of values, or the range of a long list."""
    items = round_to_distinct(list(value) if isinstance(value, tuple | list) else [value])
    if len(items) > MAX_LISTED_VALUES and all(isinstance(item, int | float) for item in items):
        items = sorted(items)  # the values of parallel axes need not be ordered
    texts = [_format_single_value(scenario, name, item) for item in items]
    if len(items) > 1:
        texts = [text if text.endswith(")") or "= " not in text else f"({text})" for text in texts]
    return ", ".join(texts) if len(texts) <= MAX_LISTED_VALUES else f"{texts[0]} to {texts[-1]} ({len(texts)} values)"


def _format_single_value(scenario: AbstractScenario, name: str, value: Any) -> str:
    if isinstance(value, str):
        classes = scenario.choices().get(name) or scenario.LABELLED_CLASSES.get(name, {})
        return kind_label(classes, value).replace("_", " ")
    if isinstance(value, int):
        return f"{value:,}" if not isinstance(value, bool) else "yes" if value else "no"
    if isinstance(value, dict) and isinstance(value.get("name"), str):  # a section that the user has named
        return str(value["name"])
    text = format_power_of_ten(format_config_value(value))
    entries = [inner for inner in value.items() if inner[1] is not None] if isinstance(value, dict) else []
    if len(entries) == 1 and not isinstance(entries[0][1], dict) and not get_symbol(scenario, name).startswith("$"):
        return f"{entries[0][0]} {text}".replace("_", " ")
    return _format_section(dict(entries)) if len(entries) > 1 and {*value} != {"at", "is"} else text


def _format_section(entries: dict[str, Any]) -> str:
    r"""Format a section of a config, such as the start of a network, in words and without its matrices.

    >>> _format_section({"Q": [[1, 0], [0, 1]], "v": 1, "output": "sign"}), _format_section({"power": -0.5, "at_1": 2})
    ('$v$ = 1, output sign, matrix $Q$ of the config', '$2\\,N^{-0.5}$')
    """
    if {*entries} == {"power", "at_1"}:
        return rf"${entries['at_1']:g}\,N^{{{entries['power']:g}}}$"
    names = {name: f"${name}$" if len(name) == 1 else format_key_name(name) for name in entries}
    matrices = [
        names[name]
        for name, value in entries.items()
        if isinstance(value, list) and value and isinstance(value[0], list)
    ]
    texts = [
        f"{names[name]}{' ' if isinstance(value, str) else ' = '}{format_config_value(value)}"
        for name, value in entries.items()
        if names[name] not in matrices
    ]
    noun = "matrix" if len(matrices) == 1 else "matrices"
    return ", ".join([*texts, *([f"{noun} {', '.join(matrices)} of the config"] if matrices else [])])
