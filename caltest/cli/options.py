"""Options of commands: their help, values written as in Python, and those that commands share.

:class:`Verb` is a command whose options stand in the groups input, design, test and output:
``--help`` shows the common ones, ``--help-all`` all of them. :class:`Recipe` reads a value such as
``"ECE(QuantileBins(10))"`` with Python's own parser, allows names of a :class:`Vocabulary` only,
and evaluates nothing else. Commands list groups of shared options; :func:`options_of` combines
them.
"""

from __future__ import annotations

import ast
import inspect
import re
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import caltest as ct
from caltest._base import arrays as defaults
from caltest._base.written import Written, refuse_misfit
from caltest.cli.remedies import MisspeltError, Refusal
from caltest.errors import Reading
from caltest.read import FORMATS

#: Groups of options, in the order of the help.
OPTION_GROUPS = ("Input", "Design", "Test", "Output")


class Option(click.Option):
    """Option of a command that belongs to a group of the help page.

    ``words`` and ``more`` are arguments of ``click.Option``, ``group`` is "Input", "Design", "Test"
    or "Output". A ``rare`` option is listed by ``--help-all`` only.
    """

    def __init__(self, *words: Any, group: str = "Test", rare: bool = False, **more: Any) -> None:
        super().__init__(*words, **more)
        self.group, self.rare = group, rare


option: Callable[..., Callable[..., Any]] = partial(click.option, cls=Option, show_default=True)


class ColumnExpression(click.ParamType):  # type: ignore[type-arg]
    """Click type of options that name columns: names with commas, or SQL expressions.

    The value is the text as it was given; an empty one is refused as a bad parameter.
    """

    name = "expr"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | None:
        if value is not None and not str(value).strip():
            self.fail("it is empty: name a column, or leave the option out", param, ctx)
        return None if value is None else str(value)


def column(
    name: str, *more: str, help: str, group: str = "Input", **extra: Any
) -> Callable[..., Any]:
    """Return the decorator of an option that takes a column or an expression.

    ``name`` and ``more`` are its spellings, ``help`` its text in ``--help``, ``group`` its group on
    the help page, and ``extra`` further arguments of ``click.option``.
    """
    extra.setdefault("metavar", "EXPR")
    return option(name, *more, type=ColumnExpression(), help=help, group=group, **extra)


class Verb(click.Command):
    """Click command whose help lists options in groups; an option may be given only once."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of this command, with ``--help`` and ``--help-all``.

        ``ctx`` is the context of click.
        """
        more = Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, group="Output",
            callback=_help_all, help="Show all options and exit.",
        )  # fmt: skip
        return [*super().get_params(ctx), more]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line; return those that are left, as click does.

        ``ctx``, the context of click, takes the values. Refusal, an error of the command line, for
        an option that takes one value and is given twice.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for one in order:
            single = isinstance(one, Option) and not (one.multiple or one.is_flag)
            if single and order.count(one) > 1:
                name = one.opts[0]
                list_of = isinstance(one.type, ColumnExpression) and one.name in (
                    "probs",
                    "by",
                    "clusters",
                )
                advice = f"once, with commas: {name} A,B" if list_of else "once"
                raise Refusal(f"{name} is given {order.count(one)} times: give it {advice}")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of this command by groups: the common options, or all with --help-all.

        ``formatter`` of click takes the lines, ``ctx`` is its context.
        """
        everything = bool(ctx.meta.get("caltest.all"))
        for group in OPTION_GROUPS:
            rows = []
            for one in self.get_params(ctx):
                rare = isinstance(one, Option) and one.rare and not everything
                own = one.group if isinstance(one, Option) else OPTION_GROUPS[-1]
                listed = isinstance(one, click.Option) and own == group and not rare
                record = one.get_help_record(ctx) if listed else None
                rows += [record] if record else []
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows, col_max=26)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the last part of the help page: the epilog of this command.

        With --help-all, the names of columns that are read without an option come first.
        ``formatter`` of click takes the lines, ``ctx`` is its context.
        """
        if ctx.meta.get("caltest.all") and any(one.name == "probs" for one in self.params):
            from caltest.read.contract import CONTRACT

            with formatter.section("Names that are read without an option"):
                formatter.write_dl([(what, ", ".join(names)) for what, names, _ in CONTRACT])
        super().format_epilog(ctx, formatter)


def _help_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["caltest.all"] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def elsewhere(name: str, **options: object) -> Reading:
    """Return the suggestion to use another command, ``name``, with these options.

    Options are keywords by their Python names; None leaves one out. The result is a
    :class:`Reading`, which the command line prints as a command.
    """
    return Reading(options, verb=name)


# ------------------------------------------------------------------------------
# Values that are written as in Python: lenses, statistics, nulls, binnings.


BINNINGS = ("UniformBins", "EdgeBins", "QuantileBins", "VarianceTree")
UTILITIES = ("Costs", "TopKAccuracy", "ReciprocalRank")

#: Characters of a recipe, of which the groups of a thousand classes take half; how many are shown.
LONGEST, GROUPS_SHOWN = 10_000, 100


class Vocabulary(Mapping[str, Callable[..., Any]]):
    """Mapping of the names that an option may contain to classes and functions of caltest.

    Named are the public subclasses of ``head``, such as "Statistic", in ``module``, and the objects
    ``parts``, such as binnings, of which they are made. Without ``head`` only the parts are there.
    Only the names that occur are imported. KeyError for others.
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
        """Return whether a value of the class ``kind`` may be a whole option, not only a part.

        It may if ``kind`` derives from the base class of this vocabulary, such as Statistic;
        without one, if it is in the vocabulary.
        """
        return issubclass(kind, getattr(ct, self.head)) if self.head else kind in self.values()


#: What the options are made of.
VOCABULARY = {
    "lens": Vocabulary("caltest.data.lenses", head="Lens"),
    "statistic": Vocabulary("caltest.statistics", *BINNINGS, *UTILITIES, head="Statistic"),
    "null": Vocabulary("caltest.nulls", head="Scheme"),
    "bins": Vocabulary("caltest.inference", *BINNINGS, "SimplexGrid"),
    "alternative": Vocabulary("caltest.planning", "Slope", "Shift", "Bump"),
    "like": Vocabulary("caltest.planning", "LogisticNormal"),
}


def parse(
    text: str, vocabulary: Mapping[str, Callable[..., Any]], words: tuple[str, ...] = ()
) -> object:
    """Build a value from text such as ``ECE(UniformBins(15), distance="tv")``.

    ``vocabulary`` maps names to the classes and functions that they call. Only its names, numbers,
    strings and lists are understood; nothing is evaluated. ValueError for other text, TypeError for
    arguments that a class does not take. ``words`` are named in errors beside the vocabulary.
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


def _unknown(name: str, choices: Sequence[str]) -> ValueError:
    """Return the ValueError for an unknown name, with similar names of ``choices`` or all of them.

    It is a MisspeltError, which has the word that was probably meant, if one name is similar.
    """
    lower = {word.lower(): word for word in choices}
    close = get_close_matches(name.lower(), lower, 1, 0.7)
    close = close or [word for word in lower if word.startswith(name.lower())][:1]
    if not close:
        return ValueError(f"there is no {name}; known: {', '.join(choices)}")
    meant = lower[close[0]]
    return MisspeltError(f"there is no {name}: did you mean {meant}?", name, meant)


class Recipe(click.ParamType):  # type: ignore[type-arg]
    """Click type of options written as Python expressions, such as ``ECE(15)``.

    The value is the object that the expression builds. ``kind`` says which objects are understood:
    "lens", "statistic", "null", "bins", "alternative" or "like". ``words`` are values that are
    passed as text, such as "slope". Other text is refused as a bad parameter.
    """

    name = "recipe"

    def __init__(self, kind: str, words: tuple[str, ...] = ()) -> None:
        self.vocabulary, self.words = VOCABULARY[kind], words
        self.numbers = ("a number",) * (kind == "bins")

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        if not isinstance(value, str) or value in self.words:
            return value
        shown = repr(value if len(value) <= GROUPS_SHOWN else value[:GROUPS_SHOWN] + "…")
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
# The options that commands share, by which one name, type, default and text stands everywhere.


#: Endings of a report of one verb.
REPORT_ENDINGS = (".txt", ".json", ".md", ".tex")


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Return one decorator for several options, each itself a decorator, which commands share."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(options):
            command = each(command)
        return command

    return decorate


def choice(name: str, words: Sequence[str], help: str, **more: Any) -> Callable[..., Any]:
    """Return the decorator of an option whose value is one of ``words``; the first is the default.

    ``name`` is its spelling, ``help`` the text of the option in ``--help``, and ``more`` are
    further arguments of ``click.option``.
    """
    return option(name, type=click.Choice(words), default=words[0], help=help, **more)


def _ending(context: click.Context, parameter: click.Parameter, out: Path | None) -> Path | None:
    """Return the path of a report, or None without the option.

    A callback of click, with its arguments: the context, the option and its value. Refusal, an
    error of the command line, if the path does not end in .txt, .json, .md or .tex.
    """
    if out is not None and out.suffix.lower() not in REPORT_ENDINGS:
        words = f"--out: a report ends in {', '.join(REPORT_ENDINGS)}, not as {out}"
        raise Refusal(words, Reading({"out": str(out.with_suffix(".txt"))}))
    return out


def _horizon(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> float | str | None:
    """Return a horizon as a number, or as text: an expression, or a number with its unit.

    A callback of click, with its arguments: the context, the option and its value. None without the
    option.
    """
    try:
        return text if text is None else int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        return text


#: A file that is written.
TARGET = click.Path(path_type=Path, dir_okay=False)


# ------------------------------------------------------------------------------
# Input: which file, which columns, which rows.


def flag(name: str, *more: str, help: str, **extra: Any) -> Callable[..., Any]:
    """Return the decorator of an option without a value, in the group of input options.

    ``name`` and ``more`` are its spellings, such as "--quiet" and "-q"; ``help`` is its text in
    ``--help``, and ``extra`` are further arguments of ``click.option``.
    """
    return option(name, *more, is_flag=True, help=help, **{"group": "Input"} | extra)


SHEET = options_of(
    option("--sheet", metavar="NAME", group="Input", rare=True, help="Excel sheet to read."),
    option("--decimal", type=click.Choice([".", ","]), group="Input", rare=True,
           help="Decimal mark of a text file; the other marks thousands.",
           show_default="found in the first rows"),
)  # fmt: skip

#: Where predictions and labels are: every command that reads rows.
ROW_OPTIONS = options_of(
    column("--probs", help="Probabilities: column, pattern, or expression."),
    column("--label", help="Outcome: a column of 0/1, or an expression."),
    column("--where", help="Rows to keep, such as \"split = 'test'\"."),
    column("--predicted-label", help="Predicted class, beside a confidence."),
    option("--classes", metavar="A,B,...", group="Input",
           help="Labels in the order of the columns."),
    flag("--drop-missing", help="Leave out rows that lack a value."),
    flag("--as-is", help="Read doubtful input as it was asked for."),
    flag("--from-logits", rare=True, help="The columns hold logits."),
    flag("--renormalise", rare=True, help="Divide rows by their sum, and say how many."),
    flag("--per-character", rare=True, help="lm-eval: log-likelihoods per character."),
    option("--format", type=click.Choice(FORMATS), group="Input", rare=True,
           help="Format of the file, whatever its name."),
    SHEET,
)  # fmt: skip

#: Columns that are called otherwise in one of several files.
OWN_COLUMNS = options_of(
    option("--probs-of", multiple=True, metavar="FILE=EXPR", group="Input",
           help="Probabilities of one file, if not as in the others."),
    option("--ids-of", multiple=True, metavar="FILE=EXPR", group="Design", rare=True,
           help="Names of the rows of one file, if not as in the others."),
    option("--label-of", multiple=True, metavar="FILE=EXPR", group="Input", rare=True,
           help="Outcome of one file, if not as in the others."),
)  # fmt: skip

MULTILABEL = flag("--multilabel", rare=True, help="Rows have several labels: columns p_A, y_A, ...")

ROUNDED = option("--rounded/--not-rounded", default=None, group="Input", rare=True,
                 help="Leave out rows of 0 and 1, which may be rounded.")  # fmt: skip

#: Files of one model that are read as one, each in batches.
FILES = options_of(
    click.argument("file", nargs=-1, type=click.Path(path_type=Path)),
    ROW_OPTIONS,
    option("--resume", type=TARGET, metavar="STATE", group="Input", rare=True,
           help="File that keeps the counts of files read so far."),
    flag("--verify", rare=True, help="Compare the content of all files that --resume has counted."),
    ROUNDED,
)  # fmt: skip

FILE_ARGUMENT = options_of(
    click.argument("file", required=False, type=click.Path(path_type=Path)), ROW_OPTIONS, ROUNDED
)


# ------------------------------------------------------------------------------
# Design: how rows depend on each other, count, and came to their outcomes.


WEIGHTS = column("--weights", group="Design", help="How much each row counts, ≥ 0.")

CLUSTERS = column("--clusters", group="Design", help="Rows of one value may be dependent; or A,B.")

ITEMS = options_of(
    column("--items", group="Design", help="Item of which a row is one vote or answer."),
    column("--votes", group="Design", metavar="A,B,...", rare=True,
           help="Rows are items: votes for each class, not a label."),
)  # fmt: skip

FOLDS_OPTION = column(
    "--folds", group="Design", rare=True, help="Which model of a cross-validation predicted a row."
)

BY = column("--by", group="Design", help="Subgroups; A,B are crossed.")

IDS_OPTION = column(
    "--ids", "--id", "ids", group="Design", help="Names of rows: match files by them."
)

MODELS = column(
    "--models", metavar="COLUMN", help="Column that says whose prediction a row of one file is."
)

ORDERED_FLAG = flag(
    "--ordered", group="Design", rare=True, help="Classes have an order, such as grades."
)

TIMES = options_of(
    column("--time", group="Design", help="Times of the rows, or how long they were followed."),
    option("--horizon", callback=_horizon, metavar="N", group="Design",
           help="Steps ahead of forecasts, or by when the event occurs."),
)  # fmt: skip

#: What every command honours that looks at rows by one analysis.
DESIGN = options_of(CLUSTERS, ITEMS, WEIGHTS, TIMES, FOLDS_OPTION)

#: Risks by a horizon of rows that were followed for a time.
FOLLOWUP = options_of(
    column("--event", group="Design", help="Where the event was seen: needs --time, --horizon."),
    column("--competing", group="Design", help="Where a competing event was seen."),
    column("--strata", group="Design", rare=True,
           help="What censoring depends on, if not the prediction."),
    option("--recorded", type=click.Choice(["exact", "floor", "ceil"]),
           show_default="exact", group="Design", rare=True,
           help="How follow-up was recorded: in completed units, or in units begun."),
    option("--unit", type=float, metavar="N", group="Design", rare=True,
           help="Unit of --time with --recorded.", show_default="1"),
)  # fmt: skip

FEATURES = column("--features", metavar="A,B,...", group="Design",
                  help="Columns whose segments are searched.")  # fmt: skip


# ------------------------------------------------------------------------------
# Test and output.


class Share(click.FloatRange):
    """Click type of numbers strictly between 0 and 1, also given in percent: "5%" is 0.05.

    Other numbers are refused as a bad parameter.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = str(value).removesuffix("%").strip()
        if number != str(value) and re.fullmatch(r"\d+(\.\d+)?", number):
            value = float(number) / 100.0
        return super().convert(value, param, ctx)


SHARE = Share(0, 1, min_open=True, max_open=True)

LENS = option("--lens", type=Recipe("lens"), help="Which probabilities are assessed.",
              show_default="OneVsRest(1) for two classes, else TopK(1)")  # fmt: skip


def statistic(
    words: tuple[str, ...] = (), default: str = "ECE(UniformBins(15))"
) -> Callable[..., Any]:
    """Return the decorator of the option --statistic, a Python expression such as "ECE(15)".

    ``default`` is the expression by default, and ``words`` are values that are no expressions, such
    as "slope", which are passed as text.
    """
    listed = f", or {', '.join(words)}" * bool(words)
    kind = Recipe("statistic", words)
    return option("--statistic", type=kind, default=default, help=f"As in Python{listed}.")


COSTS = options_of(
    option("--costs", type=click.Path(path_type=Path, dir_okay=False), metavar="CSV",
           help="File of costs: a row an action, a column a class."),
    option("--threshold", type=SHARE, metavar="T", help="Act where the probability is ≥ T."),
)  # fmt: skip

ASKED = options_of(LENS, statistic())

LEVEL_OPTION = option(
    "--level", type=SHARE, default=defaults.INTERVAL_LEVEL, help="Level of the intervals."
)

TOLERANCE_OPTION = option("--tolerance", type=SHARE, help="Largest acceptable error.")

COUNT = click.IntRange(1)

RESAMPLES_OPTION, TOGETHER_OPTION = (
    option("--n-resamples", type=COUNT, default=count, rare=True, help="Monte Carlo draws.")
    for count in (defaults.N_RESAMPLES, defaults.N_TOGETHER)
)

SEED_OPTION = option(
    "--seed", "rng", type=click.IntRange(0), default=0, rare=True, help="Seed of the simulation."
)

SIMULATION = options_of(
    SEED_OPTION,
    option(
        "--workers", type=COUNT, rare=True, help="Threads; by default one a core above a second."
    ),
)

JSON = flag("--json", "as_json", group="Output", help="Print JSON instead of the report.")

QUIET = flag("--quiet", group="Output", rare=True, help="Print the verdict and its numbers only.")

VERBOSE_OPTION = flag(
    "--verbose", group="Output", rare=True, help="Print all notes and all recipes."
)

OUT = options_of(
    JSON,
    QUIET,
    VERBOSE_OPTION,
    option("--out", type=TARGET, callback=_ending, group="Output",
           help=f"Also write it: {', '.join(REPORT_ENDINGS)}."),
)  # fmt: skip

OUTPUT = options_of(SIMULATION, OUT)

FAIL = flag(
    "--fail-on-miscalibration", "gate", group="Output", help="Exit with 1 on miscalibration."
)

RUN = options_of(OUTPUT, FAIL)


def alpha(help: str) -> Callable[..., Any]:
    """Return the decorator of the option --alpha, a number in (0, 1), 0.05 by default.

    ``help`` is its help text.
    """
    return option("--alpha", type=SHARE, default=0.05, help=help)


def second_model(help: str) -> Callable[..., Any]:
    """Return the decorator of the option --against, the path of the file of another model.

    ``help`` is its help text. Without the option the value is None.
    """
    return option("--against", type=click.Path(path_type=Path), group="Input", help=help)
