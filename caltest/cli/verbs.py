"""The commands, except pictures (``plot.py``) and monitors (``streams.py``).

Each function reads its input through :mod:`caltest.cli.inputs`, calls the verb of the same name and
returns the result with its exit code; options are in :mod:`caltest.cli.options`.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

import caltest as ct
from caltest._base.written import DependenceDoubt, Doubt
from caltest.cli import EXIT_CODES
from caltest.cli import options as o
from caltest.cli.inputs import (
    Outcome,
    check_out,
    clusters_call,
    finish,
    ids_of_files,
    leniency,
    own_options,
    read,
    read_file,
    read_models,
    reader_of_ids,
    settings,
    this_command,
    utility_of,
)
from caltest.cli.options import Recipe, Verb, column, elsewhere, option
from caltest.cli.remedies import Refusal
from caltest.data.predictions import refuse_unlike
from caltest.errors import Reading
from caltest.inference.comparison import HYPOTHESES
from caltest.inference.interval import INTERVAL_METHODS, SIDES
from caltest.reports.findings import of_other_label
from caltest.results.base import CLUSTERS_CALL
from caltest.results.decisions import FORMULAS

command = partial(click.command, cls=Verb)

#: What a plan is like, if it is not a file.
MODEL = "LogisticNormal"

NULLS = ("auto", "exact", "asymptotic", "betting")

PROFILES = ("ml", "clinical", "weather", "llm")


@command(epilog=EXIT_CODES)
@o.FILES
@o.MULTILABEL
@o.BY
@o.DESIGN
@o.FOLLOWUP
@o.ORDERED_FLAG
@o.alpha("Chance of a false alarm, over all rows.")
@o.TOLERANCE_OPTION
@o.COSTS
@o.choice("--adjust", ("holm", "max-T"), "How p-values are adjusted.")
@o.FEATURES
@o.TOGETHER_OPTION
@o.RUN
def audit(**options: Any) -> Outcome:
    """Audit the calibration of the model behind FILE: all usual questions at once.

    Without FILE, an embedded example is used: a neural network on noisy handwritten digits. With
    --tolerance the verdict says whether the error matters, and --fail-on-miscalibration decides by
    that. Several files, or a pattern such as 'part-*.parquet', are rows of one model. Several files
    above 16 MB, one above 512 MB and those with --resume are read in batches, and only sums over
    fine bins are kept; options that need rows keep the rows of up to 512 MB.

    \f

    Click calls this function; ``options`` are the values of the command's options by Python name.
    It returns (report or text to print, exit code).
    """  # noqa: D301
    data = read(options | {"whole": True}, sums=True)
    options["costs"] = utility_of(options, data)
    report = ct.audit(data, **settings(ct.audit, options))
    report = _with_calls(report, data.notes, options)
    return finish(report, report.verdict.exit_code, options)


def _with_calls(
    report: ct.AuditReport, notes: Sequence[str], options: dict[str, Any]
) -> ct.AuditReport:
    """Return an audit with the commands that go on: with clusters of a doubt, and a search.

    ``notes`` are the notes of the data, ``options`` the values of the command's options by name.
    """
    call = clusters_call(notes)
    doubts = [n.clusters for n in notes if isinstance(n, DependenceDoubt)] if call else []
    clusters = {"clusters": doubts[0]} if doubts else {}
    report = replace(report, clusters_call=call)
    if not report.unsearched or len(options["file"]) != 1:
        return report
    others = {"verb": "segments", "by": None} if report.folds is None else None
    if others:
        report = replace(report, unsearched=_searchable(options | clusters))
    if report.unsearched:
        again = this_command(**(others or {"by": report.unsearched[0]}), **clusters)
        report = replace(report, search_call=again)
    return report


#: Cells by which it is decided which columns can be searched for segments, about at most, and rows.
CELLS_SEEN, ROWS_SEEN = 1_000_000, 2_000


def _searchable(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of columns that ``caltest segments`` would search in the file, in its order.

    ``options`` are the values of the command's options by Python name, of which ``file`` has the
    path. Of a large file an evenly spread part is looked at. () if there are none, or the file
    cannot be read so.
    """
    from caltest.inference.segments import searchable

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = leniency(options) | {"features": "*", "as_is": True}
            rows = read_file(options["file"][0], asked)
            few = max(ROWS_SEEN, CELLS_SEEN // max(1, len(rows.features.by_name)))
            if rows.n > few:
                rows = rows.take(np.linspace(0, rows.n - 1, few).astype(np.int64))
            return searchable(rows)
    except (ct.InvalidPredictionsError, ct.StatisticError):
        return ()


@command(epilog=EXIT_CODES)
@o.FILES
@o.MULTILABEL
@o.BY
@o.DESIGN
@o.FOLLOWUP
@o.LENS
@o.statistic(FORMULAS)
@option("--null", type=Recipe("null", NULLS), default="auto",
          help=f"{', '.join(NULLS)}, or a scheme: WildSigns().")  # fmt: skip
@o.alpha("Level of the test, for the exit code.")
@o.RESAMPLES_OPTION
@o.RUN
def test(alpha: float, **options: Any) -> Outcome:
    """Test one aspect of calibration.

    Lens, statistic and null distribution are written as in Python, such as --lens 'OneVsRest(1)'
    and --statistic 'ECE(QuantileBins(10), distance="l2")'. With --by, --fail-on-miscalibration
    tests all rows and every subgroup, each at half of alpha.

    \f

    Click calls this function; ``alpha`` is the level by which the exit code is decided, and
    ``options`` are the values of all other options by Python name. It returns (result or text to
    print, exit code).
    """  # noqa: D301
    data = read(options, sums=True)
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
    refuted = result.impossible > 0  # whatever rows depend on
    return finish(result, refuted or _unless_in_doubt(pvalue <= alpha, result), options)


@command(epilog=EXIT_CODES)
@o.FILES
@o.BY
@o.DESIGN
@o.FOLLOWUP
@o.LENS
@o.statistic(FORMULAS)
@o.LEVEL_OPTION
@o.choice("--method", INTERVAL_METHODS, "auto has the stated coverage.")
@o.choice("--side", SIDES, "Both bounds, or one.")
@o.RESAMPLES_OPTION
@o.RUN
def interval(**options: Any) -> Outcome:
    """Compute a confidence interval for the calibration error.

    Lens and statistic are written as in Python, such as --lens 'OneVsRest(1)' and --statistic
    'ECE(QuantileBins(10))'. With --fail-on-miscalibration the command fails if the interval
    excludes 0.

    \f

    Click calls this function; ``options`` are the values of the command's options by Python name.
    It returns (result or text to print, exit code).
    """  # noqa: D301
    data = read(options, sums=True)
    if options["statistic"] in FORMULAS:
        return _of_regression(data, options)
    result = ct.confidence_interval(data, **settings(ct.confidence_interval, options))
    return finish(result, _unless_in_doubt(not result.contains_zero, result), options)


def _unless_in_doubt(
    rejected: bool, result: ct.CalibrationTestResult | ct.ConfidenceIntervalResult
) -> int:
    """Return the exit code of a test, or interval, that asks whether calibration is ``rejected``.

    It is 0 if not, 3 if notes of the ``result`` put p-values in doubt, such as one on dependent
    rows, and 1 otherwise.
    """
    return rejected * (3 if any(isinstance(note, Doubt) for note in result.notes) else 1)


def _of_regression(data: ct.Predictions | ct.Tally, options: dict[str, Any]) -> Outcome:
    """Return O:E, calibration-in-the-large or the calibration slope, with its interval.

    ``data`` are predictions or a tally (sums over fine bins). ``options`` are the values of the
    command's options by Python name: ``statistic`` says which, "O:E", "intercept" or "slope". The
    result is (result or text to print, exit code). StatisticError where the data do not have it.
    """
    from caltest.inference.reliability import View
    from caltest.reports.measures import Measures

    name = {"intercept": "calibration-in-the-large"}.get(options["statistic"], options["statistic"])
    view = View.of("interval", data, None, {}, lens=options["lens"])
    result = Measures.of(view, options["level"], [name])
    for reason in result.omitted:
        raise ct.StatisticError(reason)
    return finish(result, bool(result.excluding), options)


@command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@column("--n", help="Observations of each grade, such as obligors.")
@column("--events", help="Events among them, such as defaults.")
@column("--probability", help="Predicted probability, such as the PD.")
@column("--names", help="Grade names column.")
@column("--where", help='Rows to keep, such as "year = 2025".')
@o.SHEET
@o.flag("--as-is", help="Do not check for total rows or percentages.")
@o.choice("--alternative", ("greater", "less", "two-sided"), "How the risk would differ.")
@o.choice("--method", ("exact", "jeffreys"), "Which p-values are adjusted and judged.")
@o.alpha("Family-wise error rate.")
@o.OUT
@o.FAIL
def grades(file: Path, **options: Any) -> Outcome:
    """Test the probability of every grade, from a table of counts.

    FILE has a row for each grade; columns are found by their names. The default test is one-sided:
    is the risk underestimated? With --fail-on-miscalibration the command fails if a grade, or the
    portfolio, is rejected.

    \f

    Click calls this function; ``options`` are the values of all other options by Python name. It
    returns (result or text to print, exit code).
    """  # noqa: D301
    check_out(options | {"file": file})
    result = ct.grade_tests(file, **settings(ct.grade_tests, options))
    return finish(result, bool(result.rejected), options)


@command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@o.ROW_OPTIONS
@o.CLUSTERS
@o.ITEMS
@o.WEIGHTS
@o.FEATURES
@o.LENS
@option("--max-depth", type=click.IntRange(1, 2), help="Conditions of a segment.",
          show_default="2, and 1 of more than 60 columns")  # fmt: skip
@option("--min-rows", type=o.COUNT, default=30, help="Rows of a segment, and not in it.")
@o.alpha("Chance that a calibrated segment is listed.")
@option("--n-resamples", type=o.COUNT, default=999, help="Label vectors that are redrawn.")
@o.RUN
def segments(file: Path, **options: Any) -> Outcome:
    """Find the segments in which the model is miscalibrated.

    Without --features, all unused columns of FILE are searched, except identifiers, row numbers and
    times. A feature that the model does not use may be found although the model is calibrated on
    average: it would then improve the model.

    \f

    Click calls this function; ``options`` are the values of all other options by Python name. It
    returns (result or text to print, exit code). Refusal, an error of the command line, for folds,
    follow-up and crossed clusters.
    """  # noqa: D301
    check_out(options | {"file": file})
    if "," in (options["clusters"] or ""):
        first = options["clusters"].split(",")[0]
        raise Refusal("segments takes one column of clusters", Reading({"clusters": first}))
    data = read_file(file, leniency(options) | {"features": options.pop("features") or "*"})
    if data.folds is not None or data.followup is not None:
        raise Refusal(
            "segments are searched where one model predicted all rows and all outcomes were seen: "
            "name a column of subgroups before their outcomes are seen",
            elsewhere("audit", features=None, by="COLUMN"),
        )
    result = ct.segment_search(data, **settings(ct.segment_search, options))
    return finish(result, result.finding.rejects, options)


@command(epilog="Exit codes: 0 done; 2 bad input, or too many rows; 130 interrupted.")
@option("--like", required=True, metavar="FILE", group="Input",
        help=f"Rows like these, or {MODEL}(rate, c).")  # fmt: skip
@o.ROW_OPTIONS
@o.second_model("A better model of the same rows.")
@o.OWN_COLUMNS
@o.IDS_OPTION
@o.CLUSTERS
@o.ITEMS
@o.LENS
@o.statistic(FORMULAS)
@option("--alternative", type=Recipe("alternative"), help="Assumed error, such as Slope(0.8).")
@option("--monitor", is_flag=True, help="The rows until the alarm of a monitor.")
@option("--width", type=click.FloatRange(0, min_open=True), help="The length of an interval.")
@o.TOLERANCE_OPTION
@option("--power", type=o.SHARE, default=0.8, help="Probability that the test rejects.")
@o.alpha("Level of the test.")
@option("--n-datasets", type=click.IntRange(100), default=400, help="Data sets to simulate.")
@o.SEED_OPTION
@o.OUT
def plan(like: str, against: Path | None, monitor: bool, **options: Any) -> Outcome:
    """Compute the sample size needed, and how many rows are missing.

    By default for a test; with --width for an interval; with --tolerance to show that an error is
    small; with --against to show that the other model is better; with --monitor until an alarm. The
    assumed miscalibration is --alternative, or else is estimated from the labels of the file.

    \f

    Click calls this function: ``like`` is a path or the text of a distribution such as
    "LogisticNormal(0.1, 0.8)", ``against`` a path or None, ``monitor`` a flag, and ``options`` are
    the values of all other options by Python name. It returns (result or text to print, exit code).
    """  # noqa: D301
    check_out(options | {"like": like, "against": against})
    if like.startswith(MODEL):
        rows = Recipe("like").convert(like, None, None)
        better = None if against is None else read_file(against, options)
    else:
        rows, *others = read_models(
            {str(path): path for path in (Path(like), against) if path is not None}, options
        ).values()
        better = others[0] if others else None
    if monitor:
        options["statistic"] = ct.Monitor(alpha=options["alpha"])
    result = ct.plan(rows, against=better, **settings(ct.plan, options))
    return finish(result, False, options | {"gate": False})


@command(epilog=EXIT_CODES)
@o.FILES
@option("--recalibrated", type=click.Path(path_type=Path), group="Input",
        help="The same rows, recalibrated.")  # fmt: skip
@o.BY
@o.DESIGN
@o.FOLLOWUP
@o.IDS_OPTION
@o.ORDERED_FLAG
@o.FEATURES
@option("-o", "--out", type=o.TARGET, required=True, group="Output",
        help="The page: .html, .md, .tex or .json.")  # fmt: skip
@o.choice("--profile", PROFILES, "Which parts, in which order and words.", group="Output")
@option("--name", metavar="TEXT", group="Output", help="Name of the model; by default the file.")
@option(
    "--model-version",
    metavar="TEXT",
    group="Output",
    rare=True,
    default="",
    help="Version of the model.",
)
@option(
    "--author", metavar="TEXT", group="Output", rare=True, default="", help="Author of the report."
)
@option("--called", metavar="TEXT", group="Output", rare=True, default="",
        help='Plural for observations, such as "patients".')  # fmt: skip
@o.LENS
@option("--also", type=Recipe("statistic"), multiple=True, rare=True,
        help="One more test; may be repeated.")  # fmt: skip
@o.TOLERANCE_OPTION
@o.COSTS
@o.alpha("Chance of a false alarm, over all questions.")
@o.TOGETHER_OPTION
@o.SIMULATION
@o.JSON
@o.FAIL
def report(recalibrated: Path | None, name: str | None, **options: Any) -> Outcome:
    """Write a report of one page for reviewers, regulators and meetings.

    It has the finding, its size and uncertainty, the data, and a list of unexamined questions. A
    page in HTML is self-contained. Several files, or a pattern such as 'part-*.parquet', are rows
    of one model.

    \f

    Click calls this function: ``recalibrated`` is the file of the recalibrated model or None,
    ``name`` the name of the model (None for that of the file), and ``options`` are the values of
    all other options by Python name, of which ``out`` is the page. It returns (report or text to
    print, exit code).
    """  # noqa: D301
    if options["out"].suffix.lower() not in ct.Report.endings:
        endings = ", ".join(ct.Report.endings)
        words = f"-o: a report ends in {endings}, not as {options['out']}"
        raise Refusal(words, Reading({"out": str(options["out"].with_suffix(".html"))}))
    check_out(options | {"recalibrated": recalibrated})
    data = read(options, recalibrated is not None)
    after = None if recalibrated is None else read_file(recalibrated, options)
    files = options["file"]
    if isinstance(after, ct.Predictions) and isinstance(data, ct.Predictions) and recalibrated:
        before = files[0].name if files else "the example"
        refuse_unlike((before, recalibrated.name), data, after)
    options["costs"] = utility_of(options, data)
    called = files[0].name if files else "embedded example"
    called += f" and {len(files) - 1} more" if len(files) > 1 else ""
    arguments = settings(ct.report, options) | {"name": name or called, "recalibrated": after}
    arguments |= words_of(options, data, called)
    page = ct.report(data, **arguments)
    before, audited = page.audit, _with_calls(page.audit, data.notes, options)
    sections = tuple(
        replace(part, results=tuple(audited if r is before else r for r in part.results))
        for part in page.sections
    )
    page = replace(page, audit=audited, sections=sections)
    if audited.clusters_call:  # behind the doubt, with which the summary begins
        call = CLUSTERS_CALL.format(audited.clusters_call)
        page = replace(page, summary=(*page.summary[:1], call, *page.summary[1:]))
    page.save(options["out"])
    return finish(page, page.verdict.exit_code, options | {"out": None})


#: Letters of the head of a file that are read for the names of its columns.
MOST_LETTERS = 10_000


def words_of(options: dict[str, Any], data: Any, called: str) -> dict[str, str]:
    """Return the user's words for a report, keyword arguments of :func:`caltest.report`.

    "event" is the name of the event and "called" the observations, such as "patients" for a column
    patient_id; "group" is the column of subgroups, and "source" a line on the data with the digest
    of the file. "event", "called" and "group" are "" if unknown. ``options`` are the values of the
    command's options by Python name, ``data`` the predictions or tally, and ``called`` is the name
    of the data in the line on the source.
    """
    files = options["file"]
    named = (options["ids"] or "").split(",")
    if len(files) == 1 and files[0].suffix.lower() in (".csv", ".tsv") and files[0].is_file():
        with files[0].open(encoding="utf-8", errors="replace") as text:
            named += re.split(r"[,;\t]", text.readline(MOST_LETTERS).strip())
    several = {*(options["clusters"] or "").split(","), options["items"]}  # rows of one value
    named = [name for name in named if name not in several]
    kinds = [name[:-3] for name in named if re.fullmatch(r"[A-Za-z]{3,}_id", name)]
    rows = options["called"] or (f"{kinds[0].lower()}s" if kinds else "")
    event = data.event_name if data.event_name == data.outcome else ""
    source = f"{called}: {data.n} {rows or 'observations'}"
    if len(files) == 1 and files[0].is_file():
        with files[0].open("rb") as stream:
            source += f", SHA-256 {hashlib.file_digest(stream, 'sha256').hexdigest()[:12]}…"
    by = options["by"] or ""
    group = by if re.fullmatch(r"[^\W\d]\w*", by) else ""
    return {
        "event": event if event.isalpha() and data.followup is None else "",
        "called": rows,
        "group": group.replace("_", " "),
        "source": source,
    }


# ------------------------------------------------------------------------------
# ``caltest compare`` and ``gate``: which model is better calibrated, and may it be released?


FIRST_BETTER, SECOND_BETTER = ct.ComparisonVerdict.FIRST_BETTER, ct.ComparisonVerdict.SECOND_BETTER

TEST_METHODS = ("auto", *HYPOTHESES)


@command(
    epilog="Exit codes: 0 done; 1 the last model is worse calibrated than the first, with "
    "--fail-if-worse; 2 bad input; 130 interrupted."
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@o.ROW_OPTIONS
@o.OWN_COLUMNS
@o.MODELS
@o.flag("--unpaired", help="The two files hold different observations.")
@o.IDS_OPTION
@o.BY
@o.DESIGN
@o.LENS
@o.statistic(default="DebiasedL2(15)")
@o.choice("--method", TEST_METHODS, "z: equal errors. swap: exchangeable models.")
@o.LEVEL_OPTION
@option("--margin", type=click.FloatRange(0, 1), help="Closer errors are a tie.",
        show_default="0.02, at most a fifth of the rarer outcome's frequency")  # fmt: skip
@o.RESAMPLES_OPTION
@o.OUTPUT
@o.flag("--fail-if-worse", "gate", group="Output", help="Exit with 1 if the last model is worse.")
def compare(files: tuple[Path, ...], unpaired: bool, **options: Any) -> Outcome:
    """Compare the calibration of several models.

    Each of FILES, two or more, holds the probabilities of one model and the labels. Rows are
    matched by --ids, or a column such as id that names them in all files, else by their order.
    Models in columns of one FILE are named by --probs A,B,…, with --label Y,Z,… where each has its
    own outcome; models in rows of one FILE by --models COLUMN. With --drop-missing models are
    compared on the rows that all of them have.

    \f

    Click calls this function: ``unpaired`` says that two files hold different observations, and
    ``options`` are the values of all other options by Python name. It returns (result or text to
    print, exit code). Refusal, an error of the command line, unless there are two models.
    """  # noqa: D301
    from caltest.read.model_rows import own_outcomes_in_rows

    check_out(options | {"files": files})
    in_rows = options["models"] is not None
    names, data = _models_of(files, unpaired, options)
    arguments = settings(ct.compare_models, options)
    first, last = names[0], names[-1]
    if in_rows:
        arguments["own_labels"] = own_outcomes_in_rows(data, options["as_is"])
    else:
        own = any(not np.array_equal(data[first].labels, data[name].labels) for name in names)
        arguments["own_labels"] = len(files) == 1 and own and "," in (options["label"] or "")
    if len(names) == 2:
        arguments |= {"paired": not unpaired, "names": (first, last)}
        arguments |= {"as_is": True} if unpaired else {}  # the files were asked about
        pair = ct.compare(data[first], data[last], **arguments)
        if pair.lens == "TopK(1)" and data[last].n_classes > 2 and len(files) == 2:
            calls = " and ".join(_audit_of(file, options) for file in files)
            note = "compared was the confidence of the predicted class (TopK(1)); every class"
            pair = replace(pair, notes=(*pair.notes, f"{note}: {calls}"))
        return finish(pair, pair.verdict is FIRST_BETTER, options)
    if unpaired:
        raise Refusal("--unpaired compares two files", Reading({"unpaired": None}))
    table = ct.compare_models(data, **arguments)
    verdicts = dict(zip((pair.names for pair in table.pairs), table.verdicts, strict=True))
    worse = verdicts.get((first, last)) is FIRST_BETTER
    return finish(table, worse or verdicts.get((last, first)) is SECOND_BETTER, options)


def _models_of(
    files: tuple[Path, ...], unpaired: bool, options: dict[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """Return (names, data) of the models to compare, in columns, in rows, or in files.

    ``names`` are the names of the models in order, ``data`` maps them to predictions. ``files`` are
    the paths; ``unpaired`` says that they hold different observations; ``options`` are the values
    of the command's options by Python name. Refusal, an error of the command line, unless there are
    two models.
    """
    from caltest.read.model_rows import read_each, read_forecasters, refuse_other_rows

    models = options.pop("models")
    if models is not None and (len(files) > 1 or unpaired):
        raise Refusal("--models is for one file, whose rows are of several models",
                      Reading({"models": None}))  # fmt: skip
    if models is not None:
        data = read_file(files[0], options, partial(_after_models, read_each, models))
        return [*data], data
    if len(files) == 1 and options["probs"] is not None:
        data = read_file(files[0], options, read_forecasters)
        if len(data) > 1:
            return [*data], data
    if len(files) < 2:
        words = "compare needs two models: two files, two columns (--probs A,B) or a column of "
        raise Refusal(f"{words}model names (--models COLUMN)", *_other(files[0], options))
    names = names_of(files)
    if unpaired and options["ids"]:
        raise Refusal(
            "--unpaired rows have no ids to match",
            Reading({"ids": None}, "the rows are of different observations"),
            Reading({"unpaired": None}, "the rows are of the same observations"),
        )
    read_with = reader_of_ids(options)
    if unpaired:
        _refuse_shared(files, options)
    else:
        options |= ids_of_files(files, options)
    data = read_models(dict(zip(names, files, strict=True)), options)
    if not unpaired and options["ids"] is None:
        refuse_other_rows(names, files, [*data.values()], read_with)
    return names, data


def _after_models(
    read_each: Callable[..., Any], models: str, path: Path, *columns: Any, **arguments: Any
) -> Any:
    """Return the result of ``read_each`` with ``models`` as its second argument.

    ``read_each`` is a reader with the arguments (path, models, …); ``models`` is the column that
    says whose prediction a row is. ``path``, ``columns`` and ``arguments`` are its other arguments.
    """
    return read_each(path, models, *columns, **arguments)


def _refuse_shared(files: Sequence[Path], options: dict[str, Any]) -> None:
    """Raise DoubtfulInputError for two files, said to hold other observations, that share some.

    ``options`` are the values of the command's options by Python name; with ``as_is`` nothing is
    asked.
    """
    from caltest.read.model_rows import refuse_shared

    if not options["as_is"]:
        refuse_shared(files, reader_of_ids(options))


def _audit_of(file: Path, options: dict[str, Any]) -> str:
    """Return the command line that audits one file of a comparison, read as it was there.

    ``options`` are the values of the options of the comparison by name. The text can be pasted into
    a shell.
    """
    options, words = own_options(file, options), ["caltest", "audit", str(file)]
    for name in ("probs", "label", "where", "predicted_label", "classes", "clusters", "weights"):
        if options[name]:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    return shlex.join(words + ["--from-logits"] * bool(options["from_logits"]))


def _other(path: Path, options: dict[str, Any]) -> list[Reading]:
    """Return the readings by which one file holds several models, or with another file.

    Each has the options to add: ``models``, a column that is called after models, or ``probs`` with
    several columns; otherwise the placeholder FILE. ``path`` is the file, and ``options`` are the
    values of the command's options by Python name.
    """
    from caltest.read.model_rows import column_of_models

    if column := column_of_models(path):
        return [Reading({"models": column})]
    try:
        read_file(path, options)
    except ct.InvalidPredictionsError as error:
        if told := [each for each in error.readings if each.verb == "compare"]:
            return told
        listed = [reading.options for reading in error.readings]
        if models := [str(each["by"]) for each in listed if "by" in each]:
            when = f"{models[0]} says whose prediction a row is"
            return [Reading({"models": models[0]}, when)]
        columns = [*dict.fromkeys(str(each["probs"]) for each in listed if "probs" in each)]
        labels = {str(each["label"]) for each in listed if "label" in each}
        if len(columns) > 1 and "COLUMN" not in columns and not any("," in c for c in columns):
            found: dict[str, object] = {"probs": ", ".join(columns)}
            if len(labels) == 1 and options["label"] is None:
                found["label"] = labels.pop()
            return [Reading(found, "each is the probability of one model")]
    return [Reading({"": "FILE"})]


def names_of(files: tuple[Path, ...]) -> list[str]:
    """Return the names of models from the names of their files, in order.

    They are names without folder and suffix, unless these repeat; then they are the paths.
    ``click.UsageError`` if a file was given twice.
    """
    stems = [path.stem for path in files]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in files]
    if len(set(names)) < len(names):
        raise click.UsageError("one file was given twice: name the files of two models")
    return names


@command(
    epilog="Exit codes: 0 passed; 1 failed; 2 bad input; 3 cannot tell: collect the number "
    "of rows that is printed, or allow more; 3 also for a failure in doubt; 130 interrupted."
)
@click.argument("file", nargs=-1, required=True, type=click.Path(path_type=Path))
@o.ROW_OPTIONS
@o.second_model("The model in use, on the same rows.")
@o.OWN_COLUMNS
@o.flag("--unpaired", help="The model in use was seen on other rows.")
@o.IDS_OPTION
@o.DESIGN
@o.FOLLOWUP
@o.TOLERANCE_OPTION
@option("--margin", type=o.SHARE, help="By how much the root mean squared error may be larger.")
@o.alpha("Chance of a wrong finding.")
@o.ASKED
@o.TOGETHER_OPTION
@o.OUTPUT
def gate(file: tuple[Path, ...], against: Path | None, unpaired: bool, **options: Any) -> Outcome:
    """Decide whether the model behind FILE may be released: passed, failed or cannot tell.

    It passes if its error is at most --tolerance, and exceeds the error of the model --against by
    at most --margin. It fails if a lower bound exceeds its limit. For two models in columns of one
    FILE, --probs NEW,OLD names the new one first. --out summary.md writes Markdown.

    \f

    Click calls this function: ``file`` has the files of the new model, ``against`` is the file of
    the model in use or None, ``unpaired`` says that it was seen on other rows, and ``options`` are
    the values of all other options by Python name. It returns (result or text to print, exit code):
    0 passed, 1 failed, 3 cannot tell.
    """  # noqa: D301
    from caltest.read.model_rows import refuse_other_rows

    check_out(options | {"file": file, "against": against})
    missing = _missing_limit(against, options)
    data: dict[str, Any]
    files = (file[0],) if against is None else (file[0], against)
    names = names_of(files)
    if against is None and options["margin"] is not None and len(file) == 1 and not unpaired:
        data = _of_columns(file[0], options)
        names = list(data)
    elif against is None or unpaired:
        if options["ids"]:
            words = "--ids match the rows of two files: there is nothing to match"
            raise Refusal(words, Reading({"ids": None}))
        if against is not None and len(file) == 1:
            _refuse_shared(files, options)
        parts = dict(zip(names, (file, (against,)), strict=False))
        data = read_models(
            parts,
            options,
            lambda part, choices: read({**choices, "file": part}, True, sums=True),
            missing,
        )
    elif len(file) > 1:
        words = "--against is compared row by row with one FILE, or say --unpaired"
        raise Refusal(words, Reading({"unpaired": True}, "the rows are of other observations"))
    else:
        options |= ids_of_files(files, options)
        data = read_models(dict(zip(names, files, strict=True)), options, missing=missing)
        if options["ids"] is None:
            refuse_other_rows(names, files, [*data.values()], reader_of_ids(options))
    sides = dict(zip(("probs", "against"), data.values(), strict=False))
    arguments: dict[str, Any] = {"paired": not unpaired, "names": (names[0], names[-1])}
    arguments |= {"as_is": True} if unpaired else {}  # the files were asked about
    result = ct.gate(**sides, **arguments, **settings(ct.gate, options))
    printed, code = finish(result, False, options | {"gate": False})
    return printed, code or result.verdict.exit_code


def _missing_limit(against: Path | None, options: dict[str, Any]) -> dict[str, str]:
    """Return the limit that a gate needs and lacks, as {option: clause that says so}, or {}.

    ``against`` is the file of the model in use, and ``options`` the values of the command's options
    by name.
    """
    if options["margin"] is None and against is not None:
        return {
            "margin": "say by how much its error may exceed that of the model in use, "
            "--margin NUMBER such as 0.01"
        }
    if options["margin"] is None and options["tolerance"] is None:
        return {"tolerance": "say the largest acceptable error, --tolerance NUMBER such as 0.05"}
    return {}


def _of_columns(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the new model and the one in use, columns of one file, as {name: predictions}.

    ``file`` is the path, and ``options`` are the values of the command's options by Python name, of
    which ``probs`` names both columns, the new model first. Refusal, an error of the command line,
    unless it names two columns of different models.
    """
    text = options["probs"] or _other(file, options)[0].options.get("probs", "")
    names = [name.strip() for name in str(text).split(",")]
    if len(names) == 2 and options["probs"]:
        from caltest.read.model_rows import read_forecasters

        data: dict[str, Any] = read_file(file, options, read_forecasters)
        new, old = data.values()
        if not np.allclose(new.probs, old.probs[:, ::-1]):  # two classes of one model
            return data
        names = []
    pairs = [names, names[::-1]] if len(names) == 2 else []
    ways = [Reading({"probs": ",".join(two)}, f"{two[0]} is the new model") for two in pairs]
    words = "--margin compares two models: give the old one with --against FILE, or both columns, "
    words += "--probs NEW,OLD"
    raise Refusal(words, *(ways or [Reading({"against": "FILE"})]))


# ------------------------------------------------------------------------------
# Commands in the user's units and before outcomes: ``decide`` and ``revisions``.


@command(epilog=EXIT_CODES)
@o.FILE_ARGUMENT
@o.COSTS
@o.flag("--curve", help="Net benefit at all thresholds from 0.01 to 0.99.", group="Test")
@o.WEIGHTS
@o.CLUSTERS
@o.LEVEL_OPTION
@o.alpha("Level of the test, for the exit code.")
@o.SEED_OPTION
@o.OUT
@option("--plot", "picture", type=o.TARGET, group="Output", help="Draw it: .pdf, .svg or .png.")
@o.FAIL
def decide(alpha: float, **options: Any) -> Outcome:
    """Compare the utility that acting on the probabilities promises with the utility gained.

    Give the costs of actions in a file with --costs, or a decision threshold with --threshold;
    --curve draws the net benefit. With --fail-on-miscalibration the command fails if the promise is
    not kept.

    \f

    Click calls this function; ``alpha`` is the level by which the exit code is decided, and
    ``options`` are the values of all other options by Python name. It returns (result or text to
    print, exit code). Refusal, an error of the command line, unless one of the three options is
    given.
    """  # noqa: D301
    asked = [name for name in ("costs", "threshold", "curve") if options[name]]
    if len(asked) != 1:
        raise Refusal("name one of --costs FILE, --threshold T and --curve")
    check_out(options)
    data = read(options)
    if not isinstance(data, ct.Predictions):
        raise Refusal("decide needs rows in memory, and these files are read in batches")
    utility = utility_of(options, data)
    if utility is None:
        curve = ct.decision_curve(data, level=options["level"], rng=options["rng"])
        return _drawn(curve, False, options)
    result = ct.promise(data, None, utility, level=options["level"], rng=options["rng"])
    return _drawn(result, result.pvalue <= alpha, options)


def _drawn(
    result: ct.PromiseResult | ct.DecisionCurve, failed: bool, options: dict[str, Any]
) -> Outcome:
    """Save the requested picture; return (result or text to print, exit code).

    ``result`` can be drawn. ``failed`` says that the code is 1 with --fail-on-miscalibration.
    ``options`` are the values of the command's options by Python name, of which ``picture`` is the
    file of the picture or None.
    """
    if options["picture"] is not None:
        result.plot().save(options["picture"])
    return finish(result, failed, options)


@command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path))
@column("--ids", "--id", "ids", required=True, help="Question that a row forecasts.")
@column("--time", required=True, help="When it was forecast: numbers or dates.")
@column("--probs", help="Probability of the event.")
@column("--label", help="Outcome 0 or 1 of the question, empty while it is open.")
@column("--groups", group="Design", help="Questions with the same value may be dependent.")
@o.flag("--dependent", group="Design", help="All questions may be dependent.")
@o.flag("--as-is", help="Do not ask whether times count down.")
@column("--where", help='Rows to keep, such as "year = 2026".')
@option("--least", type=click.FloatRange(0, 1), help="Smallest move that counts.",
        show_default="three steps of the grid of percents")  # fmt: skip
@option("--step", type=click.FloatRange(0, 1, max_open=True), rare=True,
        show_default="0.6 steps of that grid, 0 with --least",
        help="What rounding may gain a bet.")  # fmt: skip
@o.alpha("Probability of ever raising a false alarm.")
@o.LEVEL_OPTION
@o.SHEET
@o.OUT
@option("--plot", "picture", type=o.TARGET, group="Output", help="Draw the evidence over time.")
@o.FAIL
def revisions(file: Path, **options: Any) -> Outcome:
    """Test whether forecast revisions are unpredictable, before any outcome is known.

    FILE has one row for each forecast: its question (--ids), its time and its probability. The next
    revision of a calibrated forecaster cannot be predicted. With --fail-on-miscalibration an alarm
    fails.

    \f

    Click calls this function; ``options`` are the values of all other options by Python name. It
    returns (result or text to print, exit code). A note on the reading goes to standard error.
    """  # noqa: D301
    import polars as pl

    from caltest.read.grade_tables import read_forecasts

    check_out(options | {"file": file})
    names = ("ids", "time", "probs", "label", "groups", "where", "sheet", "decimal", "as_is")
    rows = read_forecasts(file, **{name: options[name] for name in names})
    click.echo(f"{rows.note}\n", err=True)
    known = None if rows.outcomes is None else np.asarray(rows.outcomes)
    times: Any = rows.times
    if rows.times.dtype.kind in "iuf":  # questions about numbers name their column
        times = pl.Series(options["time"], rows.times)
    data = ct.Revisions(
        rows.ids,
        times,
        rows.probs,
        known,
        groups=rows.groups,
        dependent=options["dependent"],
        least="auto" if options["least"] is None else options["least"],
        step="auto" if options["step"] is None else options["step"],
        as_is=options["as_is"],
    )
    result = data.test(alpha=options["alpha"], level=options["level"])
    if options["picture"] is not None:
        result.plot().save(options["picture"])
    return finish(result, result.alarm, options)
