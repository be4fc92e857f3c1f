"""The verb that makes a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

from caltest._base.checks import fraction, one_of
from caltest._base.defaults import N_TOGETHER
from caltest.errors import StatisticError
from caltest.inference.admission import ROWS, admitted, admitted_tally
from caltest.inference.analysis import seed_of
from caltest.lenses import LensLike
from caltest.predictions import Facts, Predictions
from caltest.reliability.view import View
from caltest.reports.answers import WORDING
from caltest.reports.audit import audited
from caltest.reports.contents import Request, contents
from caltest.reports.document import Report
from caltest.reports.words import paragraph
from caltest.results import ending
from caltest.simulate import Workers
from caltest.statistics import StatisticLike
from caltest.tally import AnyTally

#: The facts of rows that a report honours, in the parts that can.
TAKES = ROWS | {"by", "followup", "features"}
Profile = Literal["ml", "clinical", "weather", "llm"]


def report(
    probs: Any,
    labels: Any = None,
    *,
    profile: Profile = "ml",
    name: str = "",
    lens: LensLike | None = None,
    recalibrated: Any = None,
    also: Sequence[StatisticLike] = (),
    tolerance: float | None = None,
    alpha: float = 0.05,
    n_resamples: int = N_TOGETHER,
    rng: Any = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> Report:
    """Write one page that a reviewer, a regulator or a release meeting can read.

    What was asked and of which data; the verdict, the size of the error and its interval; curves
    with simultaneous bars and with a band that holds at every sample size; all questions of
    :func:`audit`; classes and subgroups; the measures of the field; the effect of recalibration;
    what was not examined, and why; recipes, and a paragraph to paste.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`. A :class:`Tally`, such as :func:`scan` makes, answers what
        its sums can; the page says what needs the rows.
    profile : {"ml", "clinical", "weather", "llm"}, default "ml"
        Which parts, in which order and words. ``"clinical"`` names the items of TRIPOD+AI that a
        part answers, ``"weather"`` has the attributes diagram and Murphy's decomposition, ``"llm"``
        begins with subgroups, which are tasks, and stated confidences.
    name : str, optional
        What the report is about: of a model, a file, a study.
    lens : lens, optional
        What curves and measures are of, a lens that leaves two classes; by default as in
        :func:`calibration_test`. The audit asks through its own.
    recalibrated : array_like or Predictions, optional
        Predictions for the same rows after recalibration on *other* rows.
    also : sequence of statistics, optional
        More tests, such as ``[ct.HosmerLemeshow()]``, which no profile has by itself.
    tolerance : float, optional
        The largest error that can be lived with: the verdict then says whether the error matters.
    alpha : float, default 0.05
        As in :func:`audit`; intervals, bars and the band are of level 1 − ``alpha``. With a
        tolerance, which is decided by one bound, the interval of the error is of 1 − 2 ``alpha``.
    n_resamples : int, default 1999
        Replicates of what is simulated.
    rng, workers, **facts
        As in :func:`calibration_test`.

    Returns
    -------
    Report
        ``save("report.html")`` also writes .md, .tex and .json.

    Raises
    ------
    InvalidPredictionsError
        When probs and labels are not a forecast and its outcomes.
    StatisticError
        For another profile, and as :func:`audit`. A part that does not fit the data is left out of
        the report and named there with the reason, such as weights that it does not take.

    Notes
    -----
    The cost is that of :func:`audit` and up to as much again. Above 200 000 rows there are no
    smooth curves (:class:`ICI` and its like).

    References
    ----------
    Collins et al. (2024), "TRIPOD+AI statement: updated guidance for reporting clinical prediction
    models that use regression or machine learning methods", BMJ 385. Van Calster et al. (2025),
    "Evaluation of performance measures in predictive artificial intelligence models to support
    medical decisions", Lancet Digital Health 7. Murphy (1973), "A new vector partition of the
    probability score", Journal of Applied Meteorology 12.

    Examples
    --------
    >>> import caltest as ct
    >>> page = ct.report(ct.examples.digits(), name="digits", n_resamples=199, rng=0)
    >>> page.verdict, [section.key for section in page.sections][:3]
    ('miscalibrated', ['size', 'lenses', 'measures'])
    """
    one_of("profile", profile, WORDING["profiles"])
    fraction("alpha", alpha)
    data: Any
    if tally := isinstance(probs, AnyTally):
        data = admitted_tally("report", probs, labels, facts)
    else:
        data = admitted("report", probs, labels, facts, takes=TAKES)
    after = None
    if recalibrated is not None:
        if tally:
            raise StatisticError("recalibrated= needs the rows of both, and a tally has none")
        checked = isinstance(recalibrated, Predictions)
        after = Predictions.of(recalibrated, None if checked else data.labels)
        after = replace(after, by=None)
    run: dict[str, Any] = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    whole = data if tally else replace(data, by=None, features=None)
    view = View.of("report", whole, None, {}, lens=lens, takes={*TAKES, "tally"})
    view.needs_two_classes("a report")
    each = alpha / 2.0 if tolerance is None else alpha  # one level a page; a decision is one-sided
    request = Request(
        view=view,
        grouped=data if tally else replace(data, features=None),
        featured=None if tally or data.features is None else replace(data, by=None),
        audit=audited(data, None, {}, alpha, tolerance, "holm", each, run),
        recalibrated=after,
        also=tuple(also),
        level=1.0 - alpha,
        bound_alpha=each,
        run=run,
    )
    sections, unexamined = contents(request, profile)
    return Report(
        name=name or "a model",
        profile=profile,
        audit=request.audit,
        summary=request.audit.summary,
        sections=sections,
        unexamined=tuple(unexamined),
        paragraph=paragraph(profile, request.audit, sections),
        n=data.n,
        n_classes=data.n_classes,
        n_resamples=n_resamples,
        seed=seed_of(rng),
        ended=ending(*(result.ended for section in sections for result in section.results)),
        notes=request.audit.notes,
        copies=data.copies,
        followup=request.audit.followup,
    )
