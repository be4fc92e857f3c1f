"""The commands, but those of pictures and of rows to come."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import caltest as ct
from caltest.cli import EXIT_CODES
from caltest.cli import options as o
from caltest.cli.options import (
    LEVELS,
    Outcome,
    Recipe,
    check_out,
    end_trial,
    finish,
    leniency,
    read,
    read_file,
    read_models,
    settings,
    this_command,
    with_searchable,
)
from caltest.cli.remedies import Refusal
from caltest.data.predictions import refuse_unlike
from caltest.errors import InPlace
from caltest.inference.comparison import HYPOTHESES
from caltest.inference.interval import METHODS as METHODS_INTERVAL
from caltest.inference.interval import SIDES
from caltest.read.files import read_forecasters, shared_ids
from caltest.reports.findings import of_other_label
from caltest.results.decisions import FORMULAS

#: What a plan is like, if it is not a file.
MODEL = "LogisticNormal"


#: Why rows are not searched, and what can be asked instead.
UNSEARCHED = {
    "followup": "segments are not searched where rows were followed for a time: an audit asks "
    "subgroups, of a column that is named before its outcomes are seen",
    "folds": "segments are not searched in predictions of cross-validation: within a segment they "
    "mirror its outcomes, as models of other folds know these. An audit asks subgroups of a column "
    "with the levels of folds aligned, which allows for this in part; without --folds all rows are "
    "taken for those of one model, and nothing is allowed for",
}


NULLS = ("auto", "exact", "asymptotic", "betting")


PROFILES = ("ml", "clinical", "weather", "llm")


@click.command(epilog=EXIT_CODES)
@o.FILES
@o.FOLLOWUP
@o.alpha("Chance of a false alarm, over all rows.")
@o.TOLERANCE
@o.choice("--adjust", ("holm", "max-T"), "How p-values are adjusted.")
@o.FEATURES
@o.N_TOGETHER
@o.RUN
def audit(**options: Any) -> Outcome:
    """Ask everything at once: is the model behind FILE calibrated?

    Without FILE, an embedded example is used: a neural network on noisy handwritten digits. With
    --tolerance the verdict says whether the error matters, and --fail-on-miscalibration asks that.
    Several files, or a pattern such as 'part-*.parquet', are rows of one model; above 512 MB, or
    with --resume, they are read in batches and answered from their sums.
    """
    data = with_searchable(read(options | {"whole": True}), options)
    report = ct.audit(data, **settings(ct.audit, options))
    if report.unsearched and len(options["file"]) == 1:
        by = ("--by", report.unsearched[0])
        remedy = ("segments", "!--by") if report.folds is None else by
        report = replace(report, search_call=this_command(*remedy))
    return finish(report, report.verdict.exit_code, options)


@click.command(epilog=EXIT_CODES)
@o.FILES
@o.FOLLOWUP
@o.LENS
@o.statistic(FORMULAS)
@o.option("--null", type=Recipe("null", NULLS), default="auto",
          help=f"{', '.join(NULLS)}, or a scheme: WildSigns().")  # fmt: skip
@o.alpha("Level of the test, for the exit code.")
@o.N_RESAMPLES
@o.RUN
def test(alpha: float, **options: Any) -> Outcome:
    """Test one aspect of calibration.

    Lens, statistic and null are written as in Python, such as --lens 'OneVsRest(1)' and
    --statistic 'ECE(QuantileBins(10), distance="l2")'. With --by, --fail-on-miscalibration asks
    about all rows and about every subgroup, each at half of alpha.
    """
    data = read(options)
    if options["statistic"] == "slope":
        fit = ct.cox_recalibration(data, lens=options["lens"])
        return finish(fit, fit.lr_slope_pvalue <= alpha, options)
    words = {"O:E": ct.OERatio(), "intercept": ct.CalibrationInTheLarge()}
    options["statistic"] = words.get(options["statistic"], options["statistic"])
    result = ct.calibration_test(data, **settings(ct.calibration_test, options))
    if doubt := of_other_label(data).removesuffix("."):
        result = replace(result, notes=(doubt, *result.notes))
    pvalue = result.pvalue
    if result.subgroups is not None:
        pvalue = 2.0 * min(pvalue, result.subgroups.pvalue)
    return finish(result, pvalue <= alpha or result.impossible > 0, options)


@click.command(epilog=EXIT_CODES)
@o.FILES
@o.FOLLOWUP
@o.LENS
@o.statistic(FORMULAS)
@o.LEVEL
@o.choice("--method", METHODS_INTERVAL, "auto covers; see the docs.")
@o.choice("--side", SIDES, "Both bounds, or one.")
@o.N_RESAMPLES
@o.RUN
def interval(**options: Any) -> Outcome:
    """Say how large the calibration error may be.

    Lens and statistic are written as in Python, such as --lens 'OneVsRest(1)' and --statistic
    'ECE(QuantileBins(10))'. With --fail-on-miscalibration, miscalibrated means that the interval
    does not contain 0.
    """
    data = read(options)
    if options["statistic"] in FORMULAS:
        return _of_regression(data, options)
    result = ct.confidence_interval(data, **settings(ct.confidence_interval, options))
    return finish(result, not result.contains_zero, options)


def _of_regression(data: ct.Predictions | ct.Tally, options: dict[str, Any]) -> Outcome:
    """Give O:E, Cox's intercept or his slope with an interval."""
    from caltest.inference.reliability import View
    from caltest.reports.document import Measures

    name = {"intercept": "intercept given slope 1"}.get(options["statistic"], options["statistic"])
    takes = ("clusters", "weights", "folds", "tally", "followup")
    view = View.of("interval", data, None, {}, lens=options["lens"], takes=takes)
    result = Measures.of(view, options["level"], [name])
    for reason in result.omitted:
        raise ct.StatisticError(reason)
    return finish(result, bool(result.excluding), options)


@click.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@o.option("--n", metavar="COLUMN", help="Rows of each grade, such as obligors.")
@o.option("--events", metavar="COLUMN", help="Events among them, such as defaults.")
@o.option("--probability", metavar="COLUMN", help="Such as the PD.")
@o.option("--names", metavar="COLUMN", help="What grades are called.")
@o.SHEET
@o.option("--percent/--no-percent", default=None, help="Whether probabilities are percents.")
@o.choice("--alternative", ("greater", "less", "two-sided"), "How the risk would differ.")
@o.choice("--method", ("exact", "jeffreys"), "Which p-values are adjusted and judged.")
@o.alpha("Chance of any wrong finding.")
@o.OUT
@o.FAIL
def grades(file: Path, **options: Any) -> Outcome:
    """Test the probability of every grade, from a table of counts.

    FILE has a row for each; columns are found by their names. By default one-sided: is the risk
    underestimated? With --fail-on-miscalibration a rejected grade, or portfolio, fails.
    """
    check_out(options)
    result = ct.grade_tests(file, **settings(ct.grade_tests, options))
    return finish(result, bool(result.rejected), options)


@click.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@o.ROWS
@o.FEATURES
@o.LENS
@o.option("--max-depth", type=click.IntRange(1, 2), help="Conditions of a segment.",
          show_default="2, and 1 of more than 60 columns")  # fmt: skip
@o.option("--min-rows", type=o.COUNT, default=30, help="Rows of a segment, and not in it.")
@o.alpha("Chance that a calibrated segment is listed.")
@o.option("--n-resamples", type=o.COUNT, default=999, help="Label vectors that are redrawn.")
@o.option("--event", metavar="COLUMN", hidden=True)
@o.option("--strata", metavar="COLUMN", hidden=True)
@o.RUN
def segments(file: Path, **options: Any) -> Outcome:
    """Say for whom: search segments of features for miscalibration.

    Without --features, all columns of FILE are searched that nothing else uses, but those that
    name, number or time the rows. A feature that the model has not used may fail although the model
    is calibrated on average: then it would improve the model.
    """
    check_out(options)
    if "," in (options["clusters"] or ""):
        first = options["clusters"].split(",")[0]
        raise Refusal("segments takes one column of clusters", ("--clusters", first))
    data = read_file(file, leniency(options) | {"features": options.pop("features") or "*"})
    end_trial()
    for reason in (why for fact, why in UNSEARCHED.items() if vars(data)[fact] is not None):
        few = [f.name for f in data.features.columns if 1 < len({*f.values}) <= LEVELS][:1]
        grouped = ("audit", "!--features", *(word for name in few for word in ("--by", name)))
        raise Refusal(reason, grouped, *[("!--folds",)] * (data.folds is not None))
    result = ct.segment_search(data, **settings(ct.segment_search, options))
    return finish(result, result.finding.rejects, options)


@click.command(epilog="Exit codes: 0 done; 2 bad input, or too many rows; 130 interrupted.")
@o.option("--like", required=True, metavar="FILE", help=f"Rows like these, or {MODEL}(rate, c).")
@o.ROWS
@o.LENS
@o.statistic(FORMULAS)
@o.option("--alternative", type=Recipe("alternative"), help="What is true, such as Slope(0.8).")
@o.second_model("A better model of the same rows.")
@o.option("--monitor", is_flag=True, help="The rows until the alarm of a monitor.")
@o.option("--width", type=click.FloatRange(0, min_open=True), help="The length of an interval.")
@o.TOLERANCE
@o.option("--power", type=o.SHARE, default=0.8, help="Share of data sets that shall find it.")
@o.alpha("Level of the test.")
@o.option("--n-datasets", type=click.IntRange(100), default=400, help="Data sets to simulate.")
@o.SEED
@o.OUT
def plan(like: str, against: Path | None, monitor: bool, **options: Any) -> Outcome:
    """Say how many rows are needed, and how many more than there are.

    For a test; with --width an interval; with --tolerance to show that an error is small; with
    --against to show that the other model is better; with --monitor until an alarm. What is wrong
    is the --alternative, or else what the labels of the file ask for.
    """
    check_out(options)
    if like.startswith(MODEL):
        rows = Recipe("like").convert(like, None, None)
    else:
        rows = read_file(Path(like), options)
    if monitor:
        options["statistic"] = ct.Monitor(alpha=options["alpha"])
    better = None if against is None else read_file(against, options)
    result = ct.plan(rows, against=better, **settings(ct.plan, options))
    return finish(result, False, options | {"gate": False})


@click.command(epilog=EXIT_CODES)
@o.FILES
@o.FOLLOWUP
@o.option("-o", "--out", type=o.TARGET, required=True, help="The page: .html, .md, .tex or .json.")
@o.choice("--profile", PROFILES, "Which parts, in which order and words.")
@o.option("--name", metavar="TEXT", help="What the report is about; by default the file.")
@o.LENS
@o.option("--recalibrated", type=click.Path(path_type=Path), help="The same rows, recalibrated.")
@o.FEATURES
@o.option("--also", type=Recipe("statistic"), multiple=True, help="One more test; may be repeated.")
@o.TOLERANCE
@o.alpha("Chance of a false alarm, over all questions.")
@o.N_TOGETHER
@o.SIMULATION
@o.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@o.FAIL
def report(recalibrated: Path | None, name: str | None, **options: Any) -> Outcome:
    """Write one page that a reviewer, a regulator or a meeting can read.

    It says what was found, how large and how sure that is, for which rows, and what was not
    examined. Pages in HTML need nothing else: pictures and style are within. Several files, or a
    pattern such as 'part-*.parquet', are rows of one model.
    """
    if options["out"].suffix.lower() not in ct.Report.endings:
        endings = ", ".join(ct.Report.endings)
        words = f"-o: a report ends in {endings}, not as {options['out']}"
        raise Refusal(words, ("-o", str(options["out"].with_suffix(".html"))))
    data = with_searchable(read(options, recalibrated is not None), options)
    after = None if recalibrated is None else read_file(recalibrated, options)
    files = options["file"]
    if isinstance(after, ct.Predictions) and isinstance(data, ct.Predictions) and recalibrated:
        before = files[0].name if files else "the example"
        refuse_unlike((before, recalibrated.name), data, after)
    called = files[0].name if files else "embedded example"
    called += f" and {len(files) - 1} more" if len(files) > 1 else ""
    arguments = settings(ct.report, options) | {"name": name or called, "recalibrated": after}
    page = ct.report(data, **arguments)
    page.save(options["out"])
    return finish(page, page.verdict.exit_code, options | {"out": None})


# ------------------------------------------------------------------------------
# ``caltest compare`` and ``gate``: which model is better calibrated, and may it be released?


FIRST_BETTER, SECOND_BETTER = ct.ComparisonVerdict.FIRST_BETTER, ct.ComparisonVerdict.SECOND_BETTER


METHODS = ("auto", *HYPOTHESES)


@click.command(
    epilog="Exit codes: 0 done; 1 the last model is worse calibrated than the first, with "
    "--fail-if-worse; 2 bad input; 130 interrupted."
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@o.ROWS
@o.option("--unpaired", is_flag=True, help="The two files hold different observations.")
@o.LENS
@o.statistic(default="DebiasedL2(15)")
@o.choice("--method", METHODS, "How the difference is tested; swap has another hypothesis.")
@o.LEVEL
@o.option("--margin", type=click.FloatRange(0, 1), default=0.02, help="Errors so close are tied.")
@o.N_RESAMPLES
@o.OUTPUT
@o.option("--fail-if-worse", "gate", is_flag=True, help="Exit with 1 if the last model is worse.")
def compare(files: tuple[Path, ...], unpaired: bool, **options: Any) -> Outcome:
    """Compare the calibration of several models.

    Each of FILES, two or more, holds the probabilities of one model and the labels. Rows are
    matched by --ids, or a column such as id that names them in all files, else by their order.
    Models in columns of one FILE are named by --probs A,B,…; with --drop-missing they are compared
    on the rows that all of them have.
    """
    check_out(options)
    if len(files) == 1 and options["probs"] is not None:
        data = read_file(files[0], options, read_forecasters)
        names = list(data)
    elif len(files) < 2:
        other = "or the models in columns of one: --probs A,B,…"
        raise Refusal(f"compare needs two files or more, {other}", _other(files[0], options))
    else:
        names = names_of(files)
        if unpaired and options["ids"]:
            raise Refusal("--unpaired rows have no ids to match", ("!--ids",), ("!--unpaired",))
        options["ids"] = options["ids"] or (None if unpaired else shared_ids(files))
        try:
            data = read_models(dict(zip(names, files, strict=True)), options)
        except ct.InvalidPredictionsError as error:
            raise _in_one_file(files, options) or error from None
    arguments = settings(ct.compare_models, options)
    first, last = names[0], names[-1]
    if len(names) == 2:
        arguments |= {"paired": not unpaired, "names": (first, last)}
        pair = ct.compare(data[first], data[last], **arguments)
        if pair.lens == "TopK(1)" and data[last].n_classes > 2 and len(files) == 2:
            calls = " and ".join(shlex.join(["caltest", "audit", str(file)]) for file in files)
            note = "compared was the confidence of the predicted class (TopK(1)); every class"
            pair = replace(pair, notes=(*pair.notes, f"{note}: {calls}"))
        return finish(pair, pair.verdict is FIRST_BETTER, options)
    if unpaired:
        raise Refusal("--unpaired compares two files", ("!--unpaired",))
    table = ct.compare_models(data, **arguments)
    verdicts = dict(zip((pair.names for pair in table.pairs), table.verdicts, strict=True))
    worse = verdicts.get((first, last)) is FIRST_BETTER
    return finish(table, worse or verdicts.get((last, first)) is SECOND_BETTER, options)


def _in_one_file(files: tuple[Path, ...], options: dict[str, Any]) -> Refusal | None:
    """Return the refusal of a column for each file, with the file that has all of them."""
    columns = (options["probs"] or "").split(",")
    if len(columns) != len(files):
        return None
    for file, others in ((file, [other for other in files if other != file]) for file in files):
        with suppress(ct.InvalidPredictionsError):
            read_file(file, options, read_forecasters)
            return Refusal(
                f"--probs names columns that every file has, not one for each; {file} has models "
                f"in {' and '.join(columns)}, which are compared if it is the only file",
                *[InPlace(str(others[0]), "")] * (len(others) == 1),
            )
    return None


def _other(path: Path, options: dict[str, Any]) -> tuple[str, ...]:
    """Return how to name the columns of one file that may be those of models, or another file."""
    try:
        read_file(path, options)
    except ct.InvalidPredictionsError as error:
        columns = [remedy[1] for remedy in error.remedies if remedy[0] == "--probs"]
        if len(columns) > 1:
            return "--probs", ",".join(columns)
    return ("OTHER_FILE",)


def names_of(files: tuple[Path, ...]) -> list[str]:
    """Return what to call the models of some files."""
    stems = [path.stem for path in files]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in files]
    if len(set(names)) < len(names):
        raise click.UsageError("one file was given twice: name those of two models")
    return names


@click.command(
    epilog="Exit codes: 0 passed; 1 failed; 2 bad input; 3 cannot tell: collect the number "
    "of rows that is printed, or allow more; 130 interrupted."
)
@click.argument("file", nargs=-1, required=True, type=click.Path(path_type=Path))
@o.ROWS
@o.second_model("The model in use, on the same rows.")
@o.option("--unpaired", is_flag=True, help="The model in use was seen on other rows.")
@o.TOLERANCE
@o.option("--margin", type=o.SHARE, help="By how much the root mean squared error may be larger.")
@o.alpha("Chance of a wrong finding.")
@o.ASKED
@o.N_TOGETHER
@o.OUTPUT
def gate(file: tuple[Path, ...], against: Path | None, unpaired: bool, **options: Any) -> Outcome:
    """Say whether the model behind FILE, or behind many, may be released.

    It passes if its error is at most --tolerance, and at most --margin larger than that of the
    model --against; it fails if a lower bound is beyond that. Of two models in columns of one FILE,
    --probs NEW,OLD names first the new one. --out summary.md writes Markdown.
    """
    check_out(options)
    data: dict[str, Any]
    files = (file[0],) if against is None else (file[0], against)
    names = names_of(files)
    if against is None and options["margin"] is not None and len(file) == 1 and not unpaired:
        data = _of_columns(file[0], options)
        names = list(data)
    elif against is None or unpaired:
        if options["ids"]:
            words = "--ids match the rows of two files: there is nothing to match"
            raise Refusal(words, ("!--ids",))
        parts = dict(zip(names, (file, (against,)), strict=False))
        data = read_models(
            parts, options, lambda part, choices: read({**choices, "file": part}, True)
        )
    elif len(file) > 1:
        words = "--against is compared row by row with one FILE, or say --unpaired"
        raise Refusal(words, ("--unpaired",))
    else:
        options["ids"] = options["ids"] or shared_ids(files)
        data = read_models(dict(zip(names, files, strict=True)), options)
    sides = dict(zip(("probs", "against"), data.values(), strict=False))
    arguments: dict[str, Any] = {"paired": not unpaired, "names": (names[0], names[-1])}
    result = ct.gate(**sides, **arguments, **settings(ct.gate, options))
    printed, code = finish(result, False, options | {"gate": False})
    return printed, code or result.verdict.exit_code


def _of_columns(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the new model and the one in use, which are columns of one file."""
    names = (options["probs"] or _other(file, options)[-1]).split(",")
    if len(names) == 2 and options["probs"]:
        data: dict[str, Any] = read_file(file, options, read_forecasters)
        new, old = data.values()
        if not np.allclose(new.probs, old.probs[:, ::-1]):  # two classes of one model
            return data
        names = []
    ways = [("--probs", ",".join(two)) for two in (names, names[::-1]) if len(two) == 2]
    words = "--margin is to another model: name its file with --against, or of two columns of one "
    words += "file the new model and then the one in use, with --probs NEW,OLD"
    raise Refusal(words, *ways, *[("--against", "OTHER_FILE")] * (not ways))
