# ruff: noqa: E501, SIM905
"""Count the patterns in names and prose that CONTRIBUTING asks to replace.

    python tests/language_lint.py .                     list matching lines, then a table of counts
    python tests/language_lint.py . --count             print the table only
    python tests/language_lint.py . --rules N1,P2       list some patterns only
    python tests/language_lint.py . --base FILE         exit with 1 if a count exceeds the limit in FILE
    python tests/language_lint.py . --json FILE         write the counts as limits
    python tests/language_lint.py . --packages a,b      read these folders (default: the four packages)

A line that reads well although it matches ends with `# style: ok`.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("statmech", "simulate", "theory", "figures")
SKIPPED_FOLDERS = {"tests", "test", "docs", "build", "node_modules", "examples", "__pycache__"}

PARTICIPLE = (
    r"(?!SEED$|SPEED$|NEED$|FEED$|RED$|BED$|EMBED$|SHED$)[A-Z]{2,}ED|KEPT|MADE|SHOWN|DRAWN|GIVEN|KNOWN|UNKNOWN|FOUND"
    r"|LOST|GONE|DONE|SEEN|SPELT|LEARNT|PAID|CUT|WRITTEN|UNWRITTEN|HIDDEN|CHOSEN|FORGOTTEN|TAKEN|HELD|SAID|SOUGHT|TORN"
    r"|BROKEN|GROWN|UNSHOWN|BUILT|MEANT|SENT|SPLIT|LAID_OUT|PUT_OFF|FILLED_UP|LEFT_OUT|LOOKED_AT"
)
BARE_MODIFIER = (  # adjectives, adverbs, quantifiers: they qualify a noun that is missing
    "LEAST|MOST|FEW|FEWER|FEWEST|MANY|MORE|LESS|ENOUGH|LITTLE|MUCH|HUGE|TINY|NEAR|NEAREST|FAR|FARTHEST|FURTHEST|CLOSE"
    "|SMALL|SMALLEST|LARGE|LARGEST|LONG|LONGEST|SHORT|SHORTEST|WIDE|WIDEST|NARROW|NARROWEST|HIGH|HIGHEST|LOW|LOWEST|LOWER"
    "|TALLER|FINE|FINEST|ROUGH|SHARP|SOFTEST|STEEPER|STEEPEST|SLOWEST|STRONGEST|SLIGHT|EXACT|SAME|EQUAL|UNEQUAL|EVEN|ODD"
    "|RARE|CHEAP|QUICK|QUIET|FIRM|CERTAIN|BEST|LAST|FIRST|NEW|HOLLOW|FAINT|LIGHT|DENSE|SMOOTH|SOON|EARLY|LATE|STILL|ALIKE"
    "|ALONE|USUAL|SEVERAL|WHOLE|FULL|SINGLE|ALL|EACH|EVERY|NONE|ONE|TWO|OTHER|NOTHING|EVERYTHING|ALWAYS|WIDELY|APART"
    "|TOGETHER|HERE|ELSEWHERE|NOWHERE|AHEAD|ASIDE|OPPOSED|ORDINARY|PLAIN|CENTRAL|SINGULAR|DISCRETE|SYMMETRIC"
)
PREPOSITION = (
    "ABOUT|ALONG|AMONG|AROUND|AT|BEFORE|BELOW|BESIDE|BETWEEN|BEYOND|BY|IN|OVER|OUTSIDE|UNTIL|UP_TO|WITHIN|WITHOUT|AGAINST"
    "|UNDER|TOWARDS|INSIDE|ABOVE|THROUGH"
)
VERB = (
    "LOOK|LOOKS|WATCH|WISH|NEEDS|SHOWS|TOUCH|JOIN|TURN|TURNS|LIFT|LEAP|DROP|BURN|CALL|CALLS|FALL|NUDGE|REACH|STOPS|DRAW"
    "|DRAWS|REPLACE|COPY|PASSED|ATTEMPT|SEARCHING|LOADING|FILLING|FALLING|VANISHING|HALVING|STOPPING|SOLVING|TRACING"
)
FUNCTION_WORD = (
    "above|alike|alone|apart|around|at|below|beside|best|beyond|both|by|close|each|either|every|few|first|further|here"
    "|instead|is|it|largest|last|least|less|like|longest|lowest|many|more|most|nearest|nothing|nowhere|of|on|once|one|other"
    "|outside|over|own|same|single|smallest|soon|still|then|to|together|towards|two|under|until|whole|when|where|why|with"
    "|within|without|among|between|behind|against"
)
PRONOUNS = {
    *"it one own every each both other others those these many few most least some such none whole what who whose".split()
}
PREPOSITIONS = {*"at of on by here there among beyond around beside besides between within without like now so".split()}
PARTICIPLES = {
    *"found given known kept made said shown drawn sought taken wanted held stated solved settled followed moved done"
    " gone seen asked meant told lost written chosen filled reached named".split()
}
OPENERS = {  # first words of a docstring that are no verb
    *"the a an its his their all every each those these this that what why how where when whether which if true false of by"
    " in at on with without for from to about as one two some none no only also either both many more most other others"
    " such so than then there they it he she".split()
}

NAMES = {  # rule: (kinds, regex on the name, what it is, instead)
    "N1": ("const", r"_?OF_\w+|\w+_OF", "constant begins or ends with OF", "noun: PAIR_VARIABLES"),
    "N2": (
        "const",
        rf"_?({BARE_MODIFIER})",
        "constant is a bare adjective, adverb or quantifier",
        "MAX_x, MIN_x, x_TOLERANCE",
    ),
    "N3": (
        "const",
        r"_?(MOST|LEAST|LONGEST|SHORTEST|LARGEST|SMALLEST|FEWEST|WIDEST|NARROWEST|STEEPEST)_\w+",
        "constant with a superlative for a limit",
        "MAX_x, MIN_x",
    ),
    "N4": ("const", rf"_?({PARTICIPLE})", "constant is a bare participle", "the thing: x_KEYS, x_STYLE"),
    "N5": ("const", rf"_?({PREPOSITION})(_\w+)?", "constant is a prepositional phrase", "noun"),
    "N6": ("const", rf"_?({VERB})", "constant is a verb or gerund", "noun, with its unit: x_SECONDS"),
    "N8": ("def", r"\w*[a-z0-9]_of(_\w+)?", "function named thing_of", "verb: get_x, compute_x, x_from_y"),
    "N9": ("def", r"_?of(_\w+)?", "function begins with of", "constructor from_x, or the noun"),
    "N10": ("def", rf"_?(?i:{PARTICIPLE})", "function is a bare participle (no predicate)", "verb + object"),
    "N11": (
        "def",
        r"_?(in|at|by|within|without|along|around|among|between|beside|beyond|before|below|above|under|towards|against|over)_\w+",
        "function is a prepositional phrase",
        "verb + object",
    ),
    "N12": ("def", rf"_?({FUNCTION_WORD})", "function is a function word", "verb + object"),
    "N14": (
        "class",
        r"_?((Of|On|With|Within|As|In|By|At|Along|Near|Not)([A-Z]\w*)?|[A-Z][a-z]+ed|Known|Found|Learnt|Drawn|Best"
        r"|Common|Ordinary|Plain|Live|Near|Optimal)",
        "class is a participle, adjective or preposition",
        "noun: TableRowUpdate, StabilityLoss",
    ),
    "N16": (
        "const def class local param",
        r"(?i).*(wish|sought|wanted|\bsaid).*",
        "wish, sought, wanted, said",
        "request, target",
    ),
}
HOUSE_TERMS = {  # parts of identifiers, each with the field's term
    "place": "point, index", "places": "points", "most": "max", "least": "min", "reach": "cutoff", "settled": "converged",
    "look": "check, style, poll", "looks": "checks", "wish": "request, options", "wishes": "targets", "course": "schedule",
    "lane": "batch element", "lanes": "batch", "whole": "integer", "share": "fraction", "shares": "fractions",
    "law": "distribution", "laws": "distributions", "word": "key, token", "words": "text, keys", "stated": "declared",
    "said": "message", "sought": "searched", "strayed": "deviation", "along": "parallel, over", "across": "perpendicular",
    "beside": "next to", "beyond": "outside, above", "enough": "threshold", "held": "fixed",
}  # fmt: skip
LOCALS = {
    "L1": (PRONOUNS, "variable is a pronoun or determiner (it, one, own, every)", "the thing: axis, student, rows"),
    "L2": (PREPOSITIONS, "variable is a preposition or adverb (at, of, here, before)", "index, owner, previous"),
    "L3": (PARTICIPLES, "variable is a bare participle (found, given, kept, made)", "matches, value, cached"),
}
COMPUTED = {
    "G1": ("identifier with a house term (place, most, look, wish, law, ...)", "the field's term"),
    "N7": ("one constant name, different things in three modules or more", "name the thing"),
    "N15": ("one class name in two modules or more (Simulator aside)", "name the thing"),
    "P2": ("function docstring does not open with a verb", "Return, Compute, Draw, Check"),
    "P3": ("semicolon in the first line of a docstring", "two sentences"),
    "P28": ("docstring opens with a pronoun (its, those, it)", "name the thing"),
}
PROSE = {  # rule: (where, regex, what it is, instead); where: c comments, d docstrings, m messages, k docs pages
    "P1": (
        "c",
        r"^#\s*(of|which|whose|whom|those|that|them|its|their|and|than|too|else|by which|up to)\b",
        "comment continues the name (# of ..., # which ...)",
        "complete noun phrase or sentence",
    ),
    "P4": ("cdmk", r"(?<!^)(?<![.?!:|*] )\bwhat (?!if\b)", "what-clause", "noun"),
    "P5": ("cdmk", r"\b(that|those) (of|which|whose|with|from|at)\b", "that of, those which", "repeat the noun"),
    "P6": (
        "cdmk",
        r"\b(of|by|to|from|at|in|on|with|under|for|after|before|below|above|beyond|through|along|over|up to|until) (which|whose|whom)\b",
        "preposition + which or whose",
        "two sentences, or a participle",
    ),
    "P7": ("cdmk", r"\bbesides?\b", "beside, besides", "next to, in addition to"),
    "P8": ("cdmk", r"\bin (the )?places? of\b", "in place of", "instead of"),
    "P9": ("cdmk", r"\w, too\b", "..., too", "also"),
    "P10": ("cdmk", r"\bless (a|an|the|its|their|that|those)\b", "less, for minus", "minus"),
    "P11": (
        "cdmk",
        r"(?<!take )(?<!takes )(?<!in )(?<!in the )(?<!decimal )\bplaces?\b",
        "place",
        "point, position, index",
    ),
    "P12": (
        "cdmk",
        r"\b(is|are|be|not|been|as) stated\b|\bstates (the|its|their|what|how|a|an|which|no|that)\b|\bState (the|its|what|a)\b",
        "state, for define or give",
        "define, give, list",
    ),
    "P14": ("cdmk", r"\bwhole (numbers?|ones?|weights?|values?)\b|\b(is|are) whole\b", "whole number", "integer"),
    "P15": ("cdmk", r"\bfrom [\w$.,%=/ ]{1,28} on\b(?! the\b)", "from ... on", "from ... onwards, for x >= ..."),
    "P16": ("cdk", r"\bderivatives?\b[^.;,]{0,30}\bby\b", "derivative by", "derivative with respect to"),
    "P17": ("cdmk", r"\bof\b(?:\W+\w+){1,3}?\W+of\b(?:\W+\w+){1,3}?\W+of\b", "three of in a row", "compound noun"),
    "P18": (
        "cdmk",
        r"\b(is|are) (refused|asked for|meant|taken for|left out|seen)\b",
        "is refused, is asked for",
        "not supported, requested",
    ),
    "P19": ("cdmk", r"\b(of|by|with|in|for|from) (those|them)\b", "of those, of them", "repeat the noun"),
    "P21": ("cdmk", r"\bso (many|few)\b", "so many", "this number of"),
    "P22": ("cdm", r"\blanes?\b", "lane", "batch element (define once)"),
    "P23": (
        "cdmk",
        r"\b(dear|hitherto|wherein|thereof|alike|nowhere|likewise|beforehand|afresh|lest|thence|settled?|settles|strayed)\b",
        "archaic or figurative word",
        "expensive, equal, converged",
    ),
    "P24": ("cdmk", r"\b(has|have|is|are|there is) none\b|\bfor none\b|\bif any\b", "none as a predicate", "has no x"),
}
COMMITS = {
    "C1": (r"^.{73,}$", "subject longer than 72 characters"),
    "C2": (r";", "semicolon in the subject"),
    "C3": (r"^(State|Say|Tell)\b", "subject begins with State, Say, Tell"),
    "C4": (
        r"\b(what|those|that of|(of|by|to|in|on|with) (which|whose))\b|\bfrom \S+ on\b|\b(dear|places?|wishes)\b",
        "clause in the subject",
    ),
    "C5": (r"(?i)^(wip|merge (w/|branch))|^.{0,8}$", "no content"),
}
CONVENTION = {*"AXES EXAMPLES LABELS NAME SOURCE ATOL RTOL NODES MAX_STEPS TOLERANCE".split()}


class Hit(NamedTuple):
    """A line that matches a rule."""

    rule: str
    path: str
    line: int
    text: str


def python_files(root: Path, packages: list[str]) -> list[Path]:
    folders = [root / name for name in packages if (root / name).is_dir()] or [root]
    paths = {path for folder in folders for path in folder.rglob("*.py")}
    modules = [
        p
        for p in paths
        if not SKIPPED_FOLDERS & {*p.relative_to(root).parts[:-1]} and not p.name.startswith(("test_", "conftest"))
    ]
    return sorted(p for p in modules if not any(part.startswith(".") for part in p.relative_to(root).parts))


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command, or nothing if the folder is not the top of a repository."""
    if not (root / ".git").exists():
        return ""
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True).stdout


def clean(text: str) -> str:
    """Blank out code, mathematics, doctests and section underlines, which are not prose."""
    text = re.sub(r"^\s*(>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\.\. math::.*?(?=\n\s*\n|\Z)", "", text, flags=re.DOTALL)
    return re.sub(r":math:`[^`]*`|``[^`]*``|`[^`]*`|\$[^$]*\$", "X", text)


def definitions(tree: ast.Module):
    """Yield (kind, name, node, is_predicate) of constants, functions, classes, parameters and variables."""
    for node in tree.body:
        for target in (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        ):
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]+", name.id):
                    yield "const", name.id, node, False
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = " ".join(ast.unparse(item) for item in node.decorator_list)
            returns = ast.unparse(node.returns) if node.returns else ""
            yield "def", node.name, node, "property" in decorators or returns == "bool" or "overload" in decorators
            for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                yield "param", arg.arg, arg, False
        elif isinstance(node, ast.ClassDef):
            yield "class", node.name, node, False
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield "local", node.id, node, False


def docstrings(tree: ast.Module):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node, clean=True)
            if text:
                yield node, node.body[0].lineno, text


def messages(tree: ast.Module):
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node if isinstance(node, ast.Call) else None
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        if isinstance(node, ast.Raise) or name in {
            "warn",
            "ScenarioError",
            "ConfigError",
            "StoreError",
            "echo",
            "print",
        }:
            for part in ast.walk(call):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value.strip():
                    yield part.lineno, part.value


def lint(root: Path, packages: list[str]) -> tuple[list[Hit], dict[str, int]]:
    hits: list[Hit] = []
    size: dict[str, int] = defaultdict(int)
    constants: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
    classes: dict[str, list[tuple[str, int, str]]] = defaultdict(list)

    def prose(where: str, path: str, line: int, text: str) -> None:
        if where != "c":
            text = clean(text)
        size["words"] += len(text.split())
        for rule, (kinds, regex, *_) in PROSE.items():
            if where in kinds:
                for match in re.finditer(regex, text, flags=re.MULTILINE if where != "k" else 0):
                    start = max(0, match.start() - 45)
                    excerpt = " ".join(text[start : match.end() + 45].split())
                    hits.append(Hit(rule, path, line + text.count("\n", 0, match.start()), excerpt))

    for path in python_files(root, packages):
        source, name = path.read_text(encoding="utf8"), str(path.relative_to(root))
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        lines = source.splitlines()
        exempt = {number for number, text in enumerate(lines, 1) if text.rstrip().endswith("# style: ok")}
        for kind, identifier, node, predicate in definitions(tree):
            line = node.lineno
            size[kind] += 1
            if line in exempt or identifier.startswith("__"):
                continue
            text = lines[line - 1].strip()[:150]
            if kind == "const":
                constants[identifier].append((name, line, text))
            if kind == "class":
                classes[identifier].append((name, line, text))
            for rule, (kinds, regex, *_) in NAMES.items():
                if kind in kinds.split() and re.fullmatch(regex, identifier) and not (rule == "N10" and predicate):
                    hits.append(Hit(rule, name, line, f"{identifier}: {text}" if kind in ("local", "param") else text))
            terms = {part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", identifier)} & {*HOUSE_TERMS}
            if terms:
                hits.append(Hit("G1", name, line, f"{identifier} ({', '.join(sorted(terms))}): {text}"))
            if kind in ("local", "param"):
                for rule, (words, *_) in LOCALS.items():
                    if identifier in words:
                        hits.append(Hit(rule, name, line, f"{identifier}: {text}"))
        for node, line, text in docstrings(tree):
            first, opener = text.partition("\n")[0], re.search(r"\w+", text)
            size["docstrings"] += 1
            decorators = " ".join(ast.unparse(item) for item in getattr(node, "decorator_list", []))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "property" not in decorators:
                size["function docstrings"] += 1
                if not opener or opener[0].lower() in OPENERS:
                    hits.append(Hit("P2", name, line, first[:150]))
            if ";" in clean(text.partition("\n\n")[0]):
                hits.append(Hit("P3", name, line, first[:150]))
            if opener and opener[0].lower() in {"its", "their", "those", "these", "it", "they", "that", "them"}:
                hits.append(Hit("P28", name, line, first[:150]))
            prose("d", name, line, text)
        for line, text in messages(tree):
            prose("m", name, line, text)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and not re.match(
                r"#\s*(noqa|type:|pragma|pyright|fmt|!|style:|-\*-)", token.string
            ):
                size["comments"] += 1
                inline = bool(token.line[: token.start[1]].strip())
                text = token.string if inline else "# ." + token.string[1:]  # P1 is about comments beside code
                prose("c", name, token.start[0], text)
    for rule, table, minimum in (("N7", constants, 3), ("N15", classes, 2)):
        for identifier, definitions_ in table.items():
            if len({spot[0] for spot in definitions_}) >= minimum and identifier not in CONVENTION | {"Simulator"}:
                hits += [Hit(rule, *spot) for spot in definitions_]
    for page in git(root, "ls-files", "*.md").split():
        text = re.sub(
            r"```.*?```|^( {4}|\t).*?$",
            lambda m: "\n" * m[0].count("\n"),
            (root / page).read_text("utf8"),
            flags=re.S | re.M,
        )
        prose("k", page, 1, re.sub(r"\]\([^)\s]+\)", "]", text))
    for entry in git(root, "log", "--format=%h %s").splitlines():
        commit, _, subject = entry.partition(" ")
        size["commits"] += 1
        hits += [Hit(rule, commit, 0, subject) for rule, (regex, _) in COMMITS.items() if re.search(regex, subject)]
    return hits, dict(size)


def descriptions() -> dict[str, tuple[str, str]]:
    return {
        **{rule: (what, instead) for rule, (_, _, what, instead) in NAMES.items()},
        **{rule: (what, instead) for rule, (_, what, instead) in LOCALS.items()},
        **COMPUTED,
        **{rule: (what, instead) for rule, (_, _, what, instead) in PROSE.items()},
        **{rule: (what, "") for rule, (_, what) in COMMITS.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--rules", default="")
    parser.add_argument("--max", type=int, default=10**9)
    parser.add_argument("--packages", default=",".join(PACKAGES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--base", type=Path)
    options = parser.parse_args()
    hits, size = lint(options.checkout.resolve(), options.packages.split(","))
    rules = {*options.rules.split(",")} - {""}
    description = descriptions()
    grouped: dict[str, list[Hit]] = {rule: [] for rule in description if not rules or rule in rules}
    for hit in hits:
        if hit.rule in grouped:
            grouped[hit.rule].append(hit)
    if not options.count:
        for rule, group in grouped.items():
            print(f"\n== {rule} {description[rule][0]}: {len(group)}")
            for hit in group[: options.max]:
                print(f"{hit.path}:{hit.line}: {hit.text}")
    print("\nrule  count  pattern  ->  instead")
    for rule, group in grouped.items():
        print(f"{rule:4} {len(group):6}  {description[rule][0]}  ->  {description[rule][1]}")
    print("size:", ", ".join(f"{count:,} {kind}" for kind, count in size.items()))
    counts = {rule: len(group) for rule, group in grouped.items()}
    if options.json:
        options.json.write_text(json.dumps({"counts": counts, "size": size}, indent=1))
    if options.base:
        baseline = json.loads(options.base.read_text())["counts"]
        increases = {
            rule: (baseline[rule], count)
            for rule, count in counts.items()
            if rule in baseline and count > baseline[rule]
        }
        print(*(f"{rule} rose from {old} to {new}" for rule, (old, new) in increases.items()), sep="\n")
        return bool(increases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
