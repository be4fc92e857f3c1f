"""What the commands share: options, recipes, reading the input, handing over the answer."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

import caltest as ct
from caltest._base import arrays as defaults
from caltest._base.written import Written, refuse_misfit
from caltest.cli.remedies import SMALL, Legible, Refusal, corrected
from caltest.data.labels import Request
from caltest.errors import InPlace, StatisticError
from caltest.read import FORMATS
from caltest.read.files import lent_labels, parts_of

if TYPE_CHECKING:
    from caltest.results import Result


#: What a command returns: what to print, and the exit code.
Outcome: TypeAlias = "tuple[Result | str, int]"


#: Bytes of a file from which on it is read in batches.
LARGE = 2**29


#: The share of rows that may lack a prediction or an outcome where nobody has said so.
FEW = 0.01


#: Values of a column that are as many subgroups.
LEVELS = 20


#: The options that name columns of facts.
FACTS = ("clusters", "weights", "by", "ids", "folds", "time", "event", "strata")


#: What options of ``ROWS`` are called that ``read_predictions`` takes as they are.
_READ = {field.name for field in fields(Request)} - {"probs", "label", "classes"}


def end_trial() -> None:
    """End a command that only tries to read."""
    if click.get_current_context().obj is Legible:
        raise Legible


def settings(verb: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a verb takes under the same names, but those of the input.

    All is read where a verb is asked: a command that only tries to read ends here.
    """
    end_trial()
    names = signature(verb).parameters.keys() & options.keys() - {"probs", "against"}
    return {name: options[name] for name in names}


def read(options: dict[str, Any], paired: bool = False) -> ct.Predictions | ct.Tally:
    """Read what the options name, or the embedded example; many files and large ones by batches.

    A few incomplete rows are left out with a note, unless rows are ``paired`` with others.
    """
    check_out(options)
    files = options["file"] if isinstance(options["file"], tuple) else (options["file"],)
    if files in ((), (None,)):
        for name in filter(options.get, ("probs", "label", *FACTS)):
            raise Refusal(f"--{name} names a column: give the FILE that has it", ("FILE",))
        example = "the embedded example, a small neural network on noisy handwritten digits"
        click.echo(f"No file given: this is {example}.\n", err=True)
        return ct.examples.digits("overfit")
    parts = parts_of(files)
    size = sum(part.stat().st_size for part in parts if part.is_file())
    if not options.get("resume") and size <= LARGE:
        choices = options if paired else leniency(options)
        return read_file(parts if len(parts) > 1 else parts[0], choices)
    facts = ("clusters", "folds", "time", "horizon", "by", "ids", "event", "features")
    rows = (*facts, "per_character", "format", "sheet", "rounded")
    for name in (name for name in rows if options.get(name)):
        option = f"--{name.replace('_', '-')}"
        raise Refusal(
            f"{option} needs rows in memory: files of up to {LARGE >> 20} MB together, without "
            "--resume",
            ("!--resume" if size <= LARGE else f"!{option}",),
        )
    return read_file(parts, {**options, **dict.fromkeys(rows)}, partial(_scanned, options))


def _scanned(
    options: dict[str, Any], files: Any, *columns: Any, **arguments: Any
) -> ct.Tally | ct.Tallies:
    if options.get("statistic") is not None:
        from caltest.statistics.statistic import prepare
        from caltest.tallies import problem_of_tally

        # What no tally can say is refused before hours of reading.
        few = ct.Tally.of([0.25, 0.5, 0.75, 0.5], [0, 1, 1, 0])
        prepare(options["statistic"], problem_of_tally(few))
    arguments["resume"] = options.get("resume")
    arguments["lens"] = options.get("lens") or (None if options.get("whole") else "usual")
    return ct.scan(files, *columns, **arguments)


def check_out(options: dict[str, Any]) -> None:
    """Refuse a folder that does not exist before any work is done."""
    for name in ("out", "resume"):
        if options.get(name) is not None and not options[name].parent.is_dir():
            raise FileNotFoundError(f"--{name}: there is no folder {options[name].parent}")


def leniency(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of rows of which some may be left out, as no others are paired with them."""
    few = {} if options["drop_missing"] else {"drop_missing": FEW}
    return options | few | ({"rounded": "auto"} if options.get("rounded") is None else {})


def read_file(path: Any, options: dict[str, Any], reader: Callable[..., Any] | None = None) -> Any:
    """Read a file as the options say."""
    arguments = {name: value for name, value in options.items() if name in _READ}
    absent = (type(None), bool, tuple)  # 0 is a number, though equal to False
    arguments = {k: v for k, v in arguments.items() if v or not isinstance(v, absent)}
    if options["classes"] is not None:
        arguments["classes"] = classes_of(options["classes"])
    if reader is None:  # rows that are paired with others stay, as do rows that are to be kept
        arguments.setdefault("rounded", False)
    return (reader or ct.read_predictions)(path, options["probs"], options["label"], **arguments)


def read_models(
    files: dict[str, Any], options: dict[str, Any], reader: Callable[..., Any] = read_file
) -> dict[str, Any]:
    """Read the files of several models, each as probabilities or as logits, whichever it holds.

    What could be either is refused where others can only be logits. Labels that a file lacks are
    those of the same ids in another.
    """
    lent = lent_labels(files.values()) if options["ids"] and options["label"] is None else {}
    data: dict[str, Any] = {}
    logits: dict[str, ct.InvalidPredictionsError] = {}
    for name, path in files.items():
        try:
            data[name] = reader(path, options | lent.get(path, {}))
        except ct.InvalidPredictionsError as error:
            if error.remedies != (("--from-logits",),) or options["from_logits"]:
                raise
            logits[name] = error
    if logits and not data:
        raise next(iter(logits.values()))
    for name in logits:
        more = lent.get(files[name], {}) | {"from_logits": True}
        data[name] = reader(files[name], options | more)
    of_logits = {name for name, rows in data.items() if options["from_logits"] and _is_wide(rows)}
    for name in data.keys() - of_logits if of_logits else ():
        raise Refusal(
            f"{files[name]} holds no value outside [0, 1], unlike {' and '.join(of_logits)}: leave "
            "--from-logits out, each file is read as what it holds",
            ("!--from-logits",),
        )
    return {name: data[name] for name in files}


def _is_wide(rows: ct.Predictions | ct.Tally) -> bool:
    """Say whether probabilities are of logits outside [0, 1], or of more than two classes."""
    if not isinstance(rows, ct.Predictions) or rows.n_classes > 2:
        return True
    from scipy.special import logit

    z = logit(rows.probs[:, 1])
    return bool(((z < 0.0) | (z > 1.0)).any())


def classes_of(text: str) -> list[int] | list[str]:
    """Return label values as they are listed: whole numbers, of which "…" leaves some out."""
    names = [name.strip() for name in text.replace("...", "…").split(",")]
    if len(names) == 3 and names[1] == "…" and names[0].isdecimal() and names[2].isdecimal():
        return list(range(int(names[0]), int(names[2]) + 1))
    return list(map(int, names)) if all(name.isdecimal() for name in names) else names


def searchable_columns(file: Path | None, options: dict[str, Any]) -> dict[str, int] | None:
    """Return the columns that caltest segments searches, and how many values each of them has.

    Those of few values are first. None where that is not known: of what is no file, or would take
    long to read once more.
    """
    if file is None or not file.is_file() or file.stat().st_size > SMALL >> 2:
        return None
    with warnings.catch_warnings(action="ignore"), suppress(ct.InvalidPredictionsError):
        from caltest.inference.segments import searchable as searched

        rows = read_file(file, leniency(options | {"features": "*"}))
        columns = rows.features.named
        try:
            names = searched(replace(rows, folds=None, whole=None, followup=None))
        except ct.StatisticError:  # such as few rows
            names = tuple(columns)
        counts = {name: np.unique(columns[name].values).size for name in names}
        varying = {name: count for name, count in counts.items() if count > 1}
        return dict(sorted(varying.items(), key=lambda item: item[1] > LEVELS))
    return {}


def with_searchable(data: Any, options: dict[str, Any]) -> Any:
    """Return rows of one file that know which columns caltest segments would search."""
    files = options["file"]
    if len(files) != 1 or not isinstance(data, ct.Predictions) or not data.unused:
        return data
    columns = searchable_columns(files[0], options)
    return data if columns is None else replace(data, unused=(*columns,))


def this_command(*remedy: str) -> str:
    """Return the command that runs with a remedy, "" where no words of one are known."""
    context = click.get_current_context()
    if not context.obj or not context.parent or not isinstance(context.parent.command, click.Group):
        return ""
    return corrected(context.obj, remedy, context.parent.command)


def finish(result: Result, failed: int, options: dict[str, Any]) -> Outcome:
    """Write the report that was asked for and choose the exit code; ``main`` prints and exits."""
    end_trial()
    if options["out"] is not None:
        write = {".json": result.to_json, ".md": result.to_markdown, ".tex": result.to_latex}
        text = write.get(options["out"].suffix.lower(), result.__str__)()
        options["out"].write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    code = (
        130 if result.ended == "interrupted" else int(failed) if failed and options["gate"] else 0
    )
    return (result.to_json() if options["as_json"] else result), code


# ------------------------------------------------------------------------------
# Options written as in Python: lenses, statistics, nulls.


BINNINGS = ("UniformBins", "EdgeBins", "QuantileBins", "VarianceTree")


#: Characters of a recipe, of which the groups of a thousand classes take half; how many are shown.
LONGEST, SHOWN = 10_000, 100


class Vocabulary(Mapping[str, Callable[..., Any]]):
    """What may be written in an option: what a module has of a kind, and ``parts`` by their names.

    Only what is written is imported, and all of it for the list of what is known.
    """

    def __init__(self, module: str, *parts: str, head: str = "") -> None:
        self.module, self.parts, self.head = module, parts, head

    def __getitem__(self, name: str) -> Callable[..., Any]:
        module: Any = import_module(self.module)
        if name in self.parts:
            return vars(module).get(name) or getattr(ct, name)
        value: Any = getattr(module, name) if self.head and name in dir(module) else None
        if inspect.isclass(value):
            abstract = ABC in value.__bases__ or inspect.isabstract(value) or value is Written
            null = not issubclass(value, ct.Scheme) or value.calibrated
            if issubclass(value, Written) and not abstract and null:
                return value
        elif inspect.isfunction(value) and name[0].isupper():  # another name, such as SCE
            return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        names = dir(import_module(self.module)) if self.head else ()
        yield from (*(name for name in names if name in self), *self.parts)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def fits(self, kind: type) -> bool:
        """Whether a value of a type may be that of the option, not only a part of it."""
        return issubclass(kind, getattr(ct, self.head)) if self.head else kind in self.values()


#: What the options are made of.
VOCABULARY = {
    "lens": Vocabulary("caltest.data.lenses", head="Lens"),
    "statistic": Vocabulary("caltest.statistics", *BINNINGS, head="Statistic"),
    "null": Vocabulary("caltest.nulls", head="Scheme"),
    "bins": Vocabulary("caltest.inference", *BINNINGS, "SimplexGrid"),
    "alternative": Vocabulary("caltest.planning", "Slope", "Shift", "Bump"),
    "like": Vocabulary("caltest.planning", "LogisticNormal"),
}


def parse(
    text: str, vocabulary: Mapping[str, Callable[..., Any]], words: tuple[str, ...] = ()
) -> object:
    """Build a value from text such as ``ECE(UniformBins(15), distance="tv")``, or raise ValueError.

    Only the names of the vocabulary, numbers, strings and lists are understood; nothing is
    evaluated. ``words`` are named in errors beside the vocabulary.
    """

    def term(name: str, *values: object, **options: object) -> object:
        if name not in vocabulary:
            raise _unknown(name, (*words, *vocabulary))
        if any(isinstance(value, ct.Statistic) for value in (*values, *options.values())):
            raise ValueError(f"{name} is not made of statistics")
        refuse_misfit(name, inspect.signature(vocabulary[name]), values, options)
        return vocabulary[name](*values, **options)

    def build(node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            if node.id not in vocabulary and node is not tree.body:
                raise ValueError(f"there is no {node.id}; text goes in quotes: {node.id!r}")
            return term(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if any(k.arg is None for k in node.keywords):
                raise ValueError(f"{ast.unparse(node)!r} is not understood")
            options = {str(k.arg): build(k.value) for k in node.keywords}
            return term(node.func.id, *map(build, node.args), **options)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [build(element) for element in node.elts]
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            positive = build(node.operand)
            if isinstance(positive, (int, float)):
                return -positive
        raise ValueError(f"{ast.unparse(node)!r} is not understood")

    try:
        if len(text) > LONGEST:  # also so that the parser of Python cannot run out of its stack
            raise ValueError(f"it is longer than {LONGEST} characters")
        tree = ast.parse(text.strip(), mode="eval")
        return build(tree.body)
    except (SyntaxError, RecursionError, MemoryError, UnicodeError):
        raise ValueError("it is not written as in Python, such as TopK(1)") from None


def _unknown(name: str, choices: Sequence[str]) -> StatisticError:
    """Return the refusal of a name, with what may have been meant, or all that is known."""
    lower = {word.lower(): word for word in choices}
    close = get_close_matches(name.lower(), lower, 1, 0.7)
    close = close or [word for word in lower if word.startswith(name.lower())][:1]
    if not close:
        return StatisticError(f"there is no {name}; known: {', '.join(choices)}")
    meant = lower[close[0]]
    return StatisticError(f"there is no {name}: did you mean {meant}?", [InPlace(name, meant)])


class Recipe(click.ParamType):  # type: ignore[type-arg]
    """An option whose value is written as in Python."""

    name = "recipe"

    def __init__(self, kind: str, words: tuple[str, ...] = ()) -> None:
        self.vocabulary, self.words = VOCABULARY[kind], words
        self.numbers = ("a number",) * (kind == "bins")

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        if not isinstance(value, str) or value in self.words:
            return value
        shown = repr(value if len(value) <= SHOWN else value[:SHOWN] + "…")
        try:
            built = parse(value, self.vocabulary, (*self.numbers, *self.words))
        except (TypeError, ValueError) as error:
            self.fail(f"{shown}: {error}", param, ctx)
        if not (self.vocabulary.fits(type(built)) or (self.numbers and type(built) is int)):
            kinds = {name: kind for name, kind in self.vocabulary.items() if inspect.isclass(kind)}
            names = [name for name, kind in kinds.items() if self.vocabulary.fits(kind)]
            choices = ", ".join((*self.numbers, *names))
            self.fail(f"{shown} does not fit; choose one of {choices}", param, ctx)
        return built


# ------------------------------------------------------------------------------
# The options that commands share.


option = partial(click.option, show_default=True)


#: Endings of a report of one verb.
WRITTEN = (".txt", ".json", ".md", ".tex")


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Bundle options that several commands have."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def choice(name: str, words: Sequence[str], help: str) -> Callable[..., Any]:
    """Return an option that is one of some words, by default the first."""
    return option(name, type=click.Choice(words), default=words[0], help=help)


def _ending(context: click.Context, parameter: click.Parameter, out: Path | None) -> Path | None:
    if out is not None and out.suffix.lower() not in WRITTEN:
        words = f"--out: a report ends in {', '.join(WRITTEN)}, not as {out}"
        raise Refusal(words, ("--out", str(out.with_suffix(".txt"))))
    return out


def _joined(context: click.Context, parameter: click.Parameter, names: Sequence[str]) -> str | None:
    return ",".join(names) or None


def _horizon(text: str) -> float | str:
    if re.fullmatch(r"\s*\d.*[A-Za-z]\s*", text):
        return text.strip()  # with a unit
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number") from None


#: A file that is written.
TARGET = click.Path(path_type=Path, dir_okay=False)


SHEET = option("--sheet", metavar="NAME", help="Of an Excel file, the sheet to read.")


#: Where predictions and labels are, and the facts of the rows: every command that reads rows.
ROWS = options_of(
    option("--probs", metavar="COLUMNS", help="Probability columns: a pattern or names."),
    option("--label", metavar="COLUMN", help="Label column, outcome columns '*_outcome', or file."),
    option("--predicted-label", metavar="COLUMN", help="Predicted classes, beside confidences."),
    option("--classes", metavar="A,B,...", help="Label values in the order of the columns; of "
           "--event censored,event,competing, with | between words alike."),
    option("--pos-label", metavar="VALUE", help="The label whose probability one column is."),
    option("--from-logits", is_flag=True, help="The columns hold logits."),
    option("--per-character", is_flag=True, help="Of lm-eval: log-likelihoods for each character."),
    option("--renormalise", is_flag=True, help="Divide rows by their sum, and say how many."),
    option("--percent", is_flag=True, help="Probabilities are written in percent."),
    option("--drop-missing", is_flag=True, help="Leave out rows that lack a value, however many."),
    option("--one-model", is_flag=True, help="Rows are of one model, whatever names say."),
    option("--multilabel", is_flag=True, help="Rows have several labels: columns p_A, y_A, ..."),
    option("--ordered", is_flag=True, help="The classes are in their order, such as grades."),
    option("--drop-label", "drop_labels", metavar="WORD", multiple=True,
           help="Leave out rows with this label, such as pending."),
    option("--format", type=click.Choice(FORMATS), help="What the file is, whatever its name."),
    SHEET,
    option("--weights", metavar="COLUMN", help="How much each row counts, ≥ 0."),
    option("--clusters", metavar="COLUMN", multiple=True, callback=_joined,
           help="Rows alike here may depend; or two, A,B."),
    option("--folds", metavar="COLUMN", help="Which model predicted a row, of cross-validation."),
    option("--horizon", type=_horizon, metavar="N", help="How many steps forecasts are ahead; with "
           "--event, by when it occurs, in the unit of --time or with one: 5years."),
    option("--time", metavar="COLUMN", help="The times of the rows, which give their order."),
    option("--by", metavar="COLUMN",
           help="Subgroups, too: audit, test, compare, interval, plot, report."),
    option("--ids", "--id", "ids", metavar="COLUMN", help="Names of rows: match files by them."),
)  # fmt: skip


ROUNDED = option("--rounded/--not-rounded", default=None,
                 help="Leave out rows of 0 and 1, which may be rounded.")  # fmt: skip


FILE = options_of(
    click.argument("file", required=False, type=click.Path(path_type=Path)), ROWS, ROUNDED
)


#: Files of one model that are read as one, each in batches.
FILES = options_of(
    click.argument("file", nargs=-1, type=click.Path(path_type=Path)),
    option("--resume", type=TARGET, metavar="STATE", help="Keep what was counted of many files."),
    ROWS,
    ROUNDED,
)


#: Risks by a horizon of rows that were followed for a time.
FOLLOWUP = options_of(
    option("--event", metavar="COLUMN", help="With --time, how a row was followed for so long: 0 "
           "censored, 1 the event, 2, 3, ... competing; predicted is the event by --horizon."),
    option("--strata", metavar="COLUMN", help="What censoring depends on, if not the prediction."),
)  # fmt: skip


FEATURES = option("--features", metavar="A,B,...", help="Search segments of these columns.")


class Share(click.FloatRange):
    """Numbers strictly between 0 and 1, also in percent."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = str(value).removesuffix("%").strip()
        if number != str(value) and re.fullmatch(r"\d+(\.\d+)?", number):
            value = float(number) / 100.0
        return super().convert(value, param, ctx)


SHARE = Share(0, 1, min_open=True, max_open=True)


LENS = option("--lens", type=Recipe("lens"), help="Which aspect of calibration is asked about.",
              show_default="OneVsRest(1) for two classes, else TopK(1)")  # fmt: skip


def statistic(
    words: tuple[str, ...] = (), default: str = "ECE(UniformBins(15))"
) -> Callable[..., Any]:
    """Return the option for what is computed; words stand for what has no statistic."""
    help = "What is computed, as in Python, such as SKCE() or Kuiper()"
    listed = f"; or {', '.join(words)}" * bool(words)
    kind = Recipe("statistic", words)
    return option("--statistic", type=kind, default=default, help=f"{help}{listed}.")


ASKED = options_of(LENS, statistic())


LEVEL = option("--level", type=SHARE, default=defaults.LEVEL, help="Level of the intervals.")


TOLERANCE = option("--tolerance", type=SHARE, help="The largest error that can be lived with.")


COUNT = click.IntRange(1)


N_RESAMPLES, N_TOGETHER = (
    option("--n-resamples", type=COUNT, default=count, help="Replicates of what is simulated.")
    for count in (defaults.N_RESAMPLES, defaults.N_TOGETHER)
)


SEED = option("--seed", "rng", type=click.IntRange(0), default=0, help="Seed of what is simulated.")


SIMULATION = options_of(
    SEED, option("--workers", type=COUNT, help="Threads; by default one a core above a second.")
)


OUT = options_of(
    option("--json", "as_json", is_flag=True, help="Print JSON instead of the report."),
    option("--out", type=TARGET, callback=_ending, help=f"Also write it: {', '.join(WRITTEN)}."),
)


OUTPUT = options_of(SIMULATION, OUT)


FAIL = option(
    "--fail-on-miscalibration",
    "gate",
    is_flag=True,
    help="Exit with 1 on miscalibration, with 3 if it is in doubt.",
)


RUN = options_of(OUTPUT, FAIL)


def alpha(help: str) -> Callable[..., Any]:
    """Return the option for the chance of a wrong decision."""
    return option("--alpha", type=SHARE, default=0.05, help=help)


def second_model(help: str) -> Callable[..., Any]:
    """Return the option for the file of another model."""
    return option("--against", type=click.Path(path_type=Path), help=help)
