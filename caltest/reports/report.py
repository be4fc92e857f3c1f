"""Reports: :func:`report`, and the computation of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Unpack

import numpy as np

from caltest._base.arrays import N_TOGETHER, RNG, fraction, one_of
from caltest._base.written import explained, name_of
from caltest.data import Facts, Predictions
from caltest.data.binning import Binning, QuantileBins
from caltest.data.facts import RIGHT
from caltest.data.lenses import LensLike
from caltest.data.utilities import Threshold, UtilityLike
from caltest.errors import StatisticError, UnsupportedFactError
from caltest.inference import (
    brier_decomposition,
    calibration_test,
    compare,
    confidence_interval,
    corp_decomposition,
    decision_curve,
    joint_test,
    meta_analysis,
    promise,
    reliability_curve,
    reliability_fit,
    segment_search,
)
from caltest.inference._input import rows_where_needed, seed_of, take_rows_or_tally
from caltest.inference.reliability import View
from caltest.nulls import Run, Workers
from caltest.reports.audit import audited
from caltest.reports.document import Report, Section, paragraph
from caltest.reports.findings import whole_rows
from caltest.reports.first_screen import Findings, ScreenTerms, first_screen, within_sites
from caltest.reports.measures import (
    WORDING,
    ClassTable,
    DataSummary,
    FollowedSites,
    Measures,
    cox_line,
    lowess,
)
from caltest.results import AuditReport, Result, ending
from caltest.results.sketches import axes_of
from caltest.statistics import ECE, RowProblem, StatisticLike
from caltest.tallies import RowsOrTally

#: The facts of rows that a report honours, in the parts that can.


#: The bins of a report, and the rows that each must hold on average.
N_BINS, IN_A_BIN = 15, 20


#: Bins of equal numbers.
MOST_QUANTILES = 10


Profile = Literal["ml", "clinical", "weather", "llm"]


@explained
def report(
    probs: object,
    labels: object = None,
    *,
    profile: Profile = "ml",
    name: str = "",
    model_version: str = "",
    author: str = "",
    source: str = "",
    event: str = "",
    called: str = "",
    group: str = "",
    lens: LensLike | None = None,
    recalibrated: object = None,
    also: Sequence[StatisticLike] = (),
    tolerance: float | None = None,
    costs: UtilityLike | None = None,
    alpha: float = 0.05,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> Report:
    """Write one page that a reviewer, a regulator or a release meeting can read.

    The question and the data; the verdict, the size of the error and its interval; curves with
    simultaneous bars and with a band that holds at every sample size; all questions of
    :func:`audit`; classes and subgroups; the measures of the field; the effect of recalibration;
    what was not examined, and why; recipes, and a paragraph to paste.

    Parameters
    ----------
    probs, labels, n_resamples, rng, workers, **facts
        As in :func:`audit`. A :class:`Tally` answers what its sums can.
    profile : {"ml", "clinical", "weather", "llm"}, default "ml"
        Which parts, in which order and words. ``"clinical"`` names the items of TRIPOD+AI that a
        part answers, ``"weather"`` has the attributes diagram and Murphy's decomposition, ``"llm"``
        begins with subgroups, which are tasks, and stated confidences.
    name : str, optional
        Title of the report: the name of a model, a file, a study.
    model_version, author, source : str, optional
        Version of the model, author of the report, and where the data come from; they stand in the
        line of provenance.
    event : str, optional
        What happened to the observed, as a participle that follows a rate: "died". By default
        "observed", and "right" for confidences.
    called : str, optional
        What observations are called, in the plural: "patients".
    group : str, optional
        What a subgroup is called: "hospital".
    lens : lens, optional
        Lens of curves and measures, which leaves two classes; by default as in
        :func:`calibration_test`. The audit asks through its own.
    recalibrated : array_like or Predictions, optional
        Predictions for the same rows after recalibration on *other* rows.
    also : sequence of statistics, optional
        More tests, such as ``[ct.HosmerLemeshow()]``, which no profile has by itself.
    tolerance : float, optional
        The largest acceptable error: the verdict then says whether the error matters.
    costs : Utility or callable, optional
        Costs of actions, as in :func:`audit`: the utility promised and gained, and for two classes
        the decision curve with simultaneous limits, stand on the first screen.
    alpha : float, default 0.05
        As in :func:`audit`; intervals, bars and the band are of level 1 − ``alpha``. With a
        tolerance, which is decided by one bound, the interval of the error is of 1 − 2 ``alpha``.

    Returns
    -------
    Report
        ``save("report.html")`` also writes .md, .tex and .json.

    Raises
    ------
    StatisticError
        For another profile, and as :func:`audit`. A part that does not fit the data is left out and
        named with the reason, such as weights that it does not take.

    Notes
    -----
    The cost is the cost of :func:`audit` and up to as much again. Above 200 000 rows there are no
    smooth curves (:class:`ICI` and its like).

    References
    ----------
    Collins et al. (2024), "TRIPOD+AI statement", BMJ 385. Van Calster et al. (2025), "Evaluation of
    performance measures in predictive artificial intelligence models to support medical decisions",
    Lancet Digital Health 7. Murphy (1973), "A new vector partition of the probability score",
    Journal of Applied Meteorology 12.

    Examples
    --------
    >>> import caltest as ct
    >>> page = ct.report(ct.examples.digits(), name="digits", n_resamples=199, rng=0)
    >>> page.verdict, [section.key for section in page.sections][:3]
    ('miscalibrated', ['size', 'lenses', 'measures'])
    """
    one_of("profile", profile, WORDING["profiles"])
    fraction("alpha", alpha)
    data = take_rows_or_tally("report", probs, labels, facts)
    rows, whole = data.rows, whole_rows(data)
    grouped = None if rows is None or rows.by is None else replace(rows, features=None)
    featured = None if rows is None or rows.features is None else replace(rows, by=None)
    after = None if recalibrated is None else _recalibrated_rows(recalibrated, data)
    draws = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    view = View.through(lens, rows_where_needed(whole, [(None, lens)]))
    view.needs_two_classes("a report")
    each = alpha / 2.0 if tolerance is None else alpha  # one level a page; a decision is one-sided
    verdict = audited(data, None, {}, alpha, tolerance, "holm", each, draws, costs)
    words = ScreenTerms(event, called, group, source, model_version, author)
    request = ReportRequest(
        view, grouped, featured, verdict, after, tuple(also), 1.0 - alpha, 1.0 - 2.0 * each, draws,
        costs,
    )  # fmt: skip
    sections, unexamined = contents(request, profile)
    found = Findings(view, grouped, verdict, sections, 1.0 - alpha, words, draws)
    apart: list[str] = []
    if not verdict.rejects:  # intervals may leave out what is not rejected
        results = [r for section in sections if section.key == "measures" for r in section.results]
        apart = [words for r in results if isinstance(r, Measures) for words in r.excluding]
    if apart:
        told = WORDING["apart"]
        why = told["clusters"] * (data.n_clusters is not None)
        apart = [told["words"].format(", that of ".join(apart), 100 * alpha, why)]
    in_units = [row.detail for row in verdict.rows if row.promise is not None]
    return Report(
        name=name or "a model",
        profile=profile,
        audit=verdict,
        summary=(*verdict.summary, *in_units, *apart),
        sections=sections,
        unexamined=tuple(unexamined),
        paragraph=paragraph(profile, verdict, sections),
        screen=first_screen(found),
        vocabulary=(*axis_titles(view, words), found.event, found.rows, words.groups),
        n=data.n,
        n_classes=data.n_classes,
        event_name=data.event_name,
        n_resamples=n_resamples,
        seed=seed_of(rng),
        ended=ending(*(result.ended for section in sections for result in section.results)),
        notes=verdict.notes,
        copies=data.copies,
        followup=verdict.followup,
    )


def _recalibrated_rows(recalibrated: object, data: RowsOrTally) -> Predictions:
    """Return the recalibrated predictions as rows.

    ``recalibrated`` are predictions of the rows of ``data``, as Predictions or an array (n,) or (n,
    K); an array takes labels, weights and clusters from them. StatisticError for a tally, which has
    no rows.
    """
    if (rows := data.rows) is None:
        raise StatisticError("recalibrated= needs the rows of both, and a tally has none")
    if isinstance(recalibrated, Predictions):
        return replace(recalibrated, by=None)
    design = {name: vars(rows)[name] for name in ("weights", "clusters", "crossed")}
    return replace(Predictions.of(recalibrated, rows.labels, rounded=False, as_is=None), **design)


@dataclass(frozen=True)
class ReportRequest:
    """Input of a report: data seen through a lens, subgroups, features, audit, and settings.

    ``view`` holds the data behind the lens, and ``audit`` the report of the audit. ``grouped`` are
    the rows with their subgroups, ``featured`` the rows with the features to search, and
    ``recalibrated`` the predictions to compare with; each is None where it was not given. ``also``
    lists further statistics to test, ``level`` is the level of intervals, ``level_of_size`` the
    level of the interval of the error, ``costs`` the utility of decisions, and ``draws`` holds
    n_resamples, rng and workers.
    """

    view: View
    grouped: Predictions | None
    featured: Predictions | None
    audit: AuditReport
    recalibrated: Predictions | None
    also: tuple[StatisticLike, ...]
    level: float
    level_of_size: float
    draws: Run
    costs: UtilityLike | None = None


class Absent(Exception):
    """Raised by a section that does not apply to these data; its message, if any, says why."""


def _absent(what: str) -> Absent:
    return Absent(WORDING["unexamined"][what])


def axis_titles(view: View, words: ScreenTerms) -> tuple[str, str]:
    """Return (x, y), the axis titles of the reliability diagram, in the user's words.

    ``view`` holds the data behind the lens, ``words`` are the user's words.
    """
    top = view.lens.subject == "top" or view.data.classes == RIGHT
    return axes_of("top" if top else "event", words.event or view.event_name)


def bins_of(view: View) -> Binning | int:
    """Return the bins of the reliability diagram: a binning, or a number of bins of equal width.

    ``view`` holds the data behind the lens. Bins have equal numbers of rows where one would hold
    more than half of the rows otherwise. With follow-up they have equal numbers of rows, and there
    is one bin for every ten observed events, 2 to 10 in all.
    """
    n_bins = int(np.clip(view.data.n // IN_A_BIN, 3, N_BINS))
    if view.followup is not None:
        return QuantileBins(int(np.clip(view.followup.events // 10, 2, MOST_QUANTILES)))
    counts, _ = np.histogram(
        view.problem.probs[:, 0], np.linspace(0.0, 1.0, N_BINS + 1), weights=view.problem.count
    )
    if counts.max() > 0.5 * counts.sum() and not view.from_sums:
        return QuantileBins(min(n_bins, MOST_QUANTILES))
    return n_bins


def _curve_part(request: ReportRequest) -> list[Result]:
    bins = bins_of(request.view)
    view, level = request.view, request.level
    return [
        reliability_curve(
            *(view.data, None), bins=bins, lens=view.lens, simultaneous=True, level=level,
            **request.draws,
        )
    ]  # fmt: skip


def _size(request: ReportRequest) -> list[Result]:
    if request.view.data.n < IN_A_BIN * N_BINS:
        raise Absent(WORDING["unexamined"]["size"].format(request.view.data.n))
    data, lens, level = request.view.data, request.view.lens, request.level_of_size
    error = ECE(bins_of(request.view))
    return [confidence_interval(data, None, error, lens=lens, level=level, **request.draws)]


def _sites(request: ReportRequest) -> list[Result]:
    if (data := request.grouped) is None:
        raise _absent("sites")
    if data.followup is not None:
        return [FollowedSites.of(data, request.view.lens, request.level)]
    return [meta_analysis(within_sites(data), lens=request.view.lens, level=request.level)]


def _band(request: ReportRequest) -> list[Result]:
    data, lens = request.view.data, request.view.lens
    fit = reliability_fit(data, None, lens=lens, fit="band", level=request.level)
    low, high = request.view.problem.quantiles((0.05, 0.95))
    # The audit judges the tolerance: one verdict a page
    return [fit.band_test(0.0, between=(low, high)), fit]


def _classes(request: ReportRequest) -> list[Result]:
    if request.view.data.n_classes == 2:
        raise Absent
    return [ClassTable.of(request.view)]


def _subgroup_part(request: ReportRequest) -> list[Result]:
    if request.grouped is None or not request.grouped.subgroups():
        raise _absent("groups")
    test = calibration_test(request.grouped, lens=request.view.lens, **request.draws)
    assert test.subgroups is not None
    return [replace(test, subgroups=test.subgroups.worst_first())]


def _where(request: ReportRequest) -> list[Result]:
    if request.featured is None:
        raise _absent("where")
    lens, alpha = request.view.lens, 1.0 - request.level
    searches = [row.search for row in request.audit.rows if row.search is not None]
    same = [search for search in searches if search.lens == name_of(lens)]
    return list(same or [segment_search(request.featured, lens=lens, alpha=alpha, **request.draws)])


def _also(request: ReportRequest) -> list[Result]:
    if not request.also:
        raise Absent
    pairs = [(statistic, request.view.lens) for statistic in request.also]
    return [joint_test(request.view.data, pairs=pairs, **request.draws)]


def _costs(request: ReportRequest) -> list[Result]:
    if request.costs is None:
        raise _absent("costs")
    return _results_of_costs(request.view.data, request.costs, request.level, request.draws)


def _results_of_costs(
    data: RowsOrTally, utility: UtilityLike, level: float, draws: Run
) -> list[Result]:
    """Return the results in the user's units that stand in a report with ``costs=``.

    The utility promised and gained comes first. For two classes the net benefit at all thresholds
    follows, with simultaneous limits and the lines of acting always and never, which is the picture
    of the part.

    Parameters
    ----------
    data : Predictions or tally
        The rows, or their sums.
    utility : Utility or callable
        The gain in each row for each class that may occur.
    level : float
        Level of intervals and limits, in (0, 1).
    draws : Run
        Holds n_resamples, rng and workers.

    Raises
    ------
    UnsupportedFactError
        For rows with folds, follow-up or another design that is not taken, named in the message.
    """
    gained = promise(
        data.rows, None, utility, level=level, n_resamples=draws["n_resamples"], rng=draws["rng"]
    )
    if data.n_classes > 2:
        return [gained]
    thresholds = None if not isinstance(utility, Threshold) else _thresholds_around(utility.t)
    return [gained, decision_curve(data.rows, None, thresholds, level=level, rng=0)]


def _thresholds_around(t: float) -> list[float]:
    """Return the thresholds of a decision curve: 0.01, …, 0.99 and the decision threshold t."""
    return sorted({*(k / 100.0 for k in range(1, 100)), t})


def _recalibration(request: ReportRequest) -> list[Result]:
    if (after := request.recalibrated) is None:
        raise _absent("recalibration")
    names, lens = ("as it is", "recalibrated"), request.view.lens
    pair = compare(request.view.data, after, lens=lens, names=names, **request.draws)
    return [Measures.of(View(after, lens, RowProblem(lens(after))), request.level), pair]


#: What computes each part.
REPORT_PARTS: dict[str, Callable[[ReportRequest], list[Result]]] = {
    "data": lambda r: [DataSummary.of(r.view, len(r.grouped.subgroups()) if r.grouped else 0)],
    "size": _size,
    "smooth": lambda r: [lowess(r.view, r.level)],
    "sites": _sites,
    "measures": lambda r: [Measures.of(r.view, r.level)],
    "curve": _curve_part,
    "attributes": _curve_part,
    "band": _band,
    "cox": lambda r: [cox_line(r.view, r.level)],
    "lenses": lambda r: [r.audit],
    "classes": _classes,
    "groups": _subgroup_part,
    "decomposition": lambda r: [corp_decomposition(r.view.data, lens=r.view.lens)],
    "murphy": lambda r: [brier_decomposition(r.view.data, lens=r.view.lens)],
    "where": _where,
    "also": _also,
    "costs": _costs,
    "recalibration": _recalibration,
}


def contents(request: ReportRequest, profile: str) -> tuple[tuple[Section, ...], list[str]]:
    """Return (sections, unexamined) of a profile such as "clinical".

    ``request`` holds the data, the audit and the settings. A Section has key, title, meaning and
    results; they are in the order of the profile. ``unexamined`` lists questions that could not be
    examined, sentences with the reason.
    """
    sections, left_out = list[Section](), list[str]()
    order, words, data = WORDING["profiles"][profile], WORDING["unexamined"], request.view.data
    for key in order["parts"]:
        part = WORDING["parts"][key]
        title = order.get("titles", {}).get(key, part["title"])
        try:
            results = REPORT_PARTS[key](request)
        except Absent as absent:
            left_out += map(str, absent.args)
            continue
        except UnsupportedFactError as error:
            left_out.append(f"{title}: not known how to allow for {error.fact}")
            continue
        except StatisticError as error:
            left_out.append(f"{title}: {error}")
            continue
        followed = data.followup is not None and "followed" in part
        meaning = part["followed" if followed else "meaning"] + part.get("clustered", "") * (
            data.n_clusters is not None
        )
        meaning += part.get("grouped", "") * (request.grouped is not None)
        sections.append(Section(key, title, meaning, tuple(results)))
        left_out += [o for r in results if isinstance(r, Measures) for o in r.omitted]
    left_out += [words["dependence"]] * (data.n_clusters is None)
    left_out += [words["classes"]] * (data.n_classes > 2 or data.classes == RIGHT)
    return tuple(sections), [*left_out, *words["always"]]
