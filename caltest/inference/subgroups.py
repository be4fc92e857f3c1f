"""The same test in every subgroup, one p-value for all of them, and whether they are alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from caltest._base.multiplicity import holm, max_t
from caltest._base.progress import progress
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference.analysis import Analysis
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.results import CalibrationTestResult, ComparisonResult, JointTestResult, Subgroups
from caltest.results.base import Result, go_on
from caltest.simulate import BLOCK, Batches, RedrawLabels, Run, simulate_by
from caltest.simulate.permuted import Permutations
from caltest.statistics.base import StatisticLike, prepare

#: The results that have subgroups beside all rows.
Whole = TypeVar("Whole", JointTestResult, ComparisonResult)
#: Rows of predictions that a subgroup shares with others, from which on they are compared.
COMPARABLE = 100
#: So many subgroups that are not compared are named.
NAMED = 12


def with_subgroups(ask: Callable[..., Whole], data: Predictions, *beside: Predictions) -> Whole:
    """Return the answer for all rows, with those for every subgroup."""
    whole = ask(*(replace(d, by=None) for d in (data, *beside)))
    go_on(whole.ended)
    return replace(whole, subgroups=each_subgroup(data, ask, *beside))


def each_subgroup(
    data: Predictions, test: Callable[..., Result], *beside: Predictions
) -> Subgroups:
    """Test every subgroup, of other models ``beside`` too, with Holm's p-values; or say why not."""
    groups = data.subgroups()
    # Notes are those of all rows: said once, and not again for every subgroup
    plain = [replace(d, by=None, notes=(), copies=0) for d in (data, *beside)]
    tests, notes = list[Result | None](), list[str]()
    with progress(len(groups), "subgroups") as advance:
        for name, rows in groups.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    tests.append(result := test(*(d.take(rows) for d in plain)))
                    go_on(result.ended)
                except StatisticError as error:
                    tests.append(None)
                    notes.append(f"subgroup {name} cannot be tested: {error}")
            for doubt in caught:
                if doubt.category is not DegenerateDataWarning:
                    warnings.warn(f"subgroup {name}: {doubt.message}", doubt.category, stacklevel=3)
            advance(1)
    if len(notes) == len(groups):
        raise StatisticError(f"no subgroup can be tested: {notes[0]}")
    counts = tuple(map(len, groups.values()))
    n = np.unique(np.concatenate(list(groups.values()))).size
    head = tuple(groups), counts, tuple(tests), (), 1.0
    parts = Subgroups(*head, "Holm", n=n, notes=tuple(notes))
    return _adjusted(parts, holm([test.pvalue for test in parts.tested]), "Holm")


def of_worst(parts: Subgroups, analysis: Analysis) -> CalibrationTestResult:
    """Return the test of the worst label with the p-value of all, where rows have several."""
    worst, p = parts.tests[parts.worst], min(1.0, parts.pvalue)
    assert isinstance(worst, CalibrationTestResult)
    note = f"numbers are those of the label {parts.names[parts.worst]}, p is that of all labels"
    return replace(
        worst,
        pvalue=p,
        pvalue_bracket=(p, p),
        pvalue_error=0.0,
        impossible=sum(test.impossible for test in parts.tested),
        subgroups=parts,
        **analysis.facts | {"notes": (*analysis.data.notes, note)},
    )


def _adjusted(parts: Subgroups, values: list[float], adjust: str) -> Subgroups:
    """Return the adjusted p-values of what was tested, in their places."""
    steps = iter(values)
    adjusted = tuple(None if test is None else next(steps) for test in parts.tests)
    return replace(parts, adjusted=adjusted, pvalue=min(values), adjust=adjust)


def on_shared_labels(
    parts: Subgroups, data: Predictions, induced: Predictions, statistic: StatisticLike, run: Run
) -> Subgroups:
    """Adjust by the joint law on the same redrawn labels where rows are in two subgroups.

    Clusters make the tests draw labels of their own, and a lens may pick rows: Holm's stand then.
    """
    groups = data.subgroups()
    apart = data.n_clusters is not None or data.followup is not None
    if sum(parts.counts) == parts.n or apart or induced.n != data.n:
        return parts
    tested = [
        (test, rows)
        for test, rows in zip(parts.tests, groups.values(), strict=True)
        if test is not None
    ]
    prepared = [(prepare(statistic, induced.take(rows)), rows) for _, rows in tested]

    def in_groups(labels: IntArray) -> FloatArray:
        return np.column_stack([each.batch(labels[:, rows]) for each, rows in prepared])

    # The same label vectors for all subgroups: max-T then knows how far they overlap
    batches = Batches.of(RedrawLabels(), induced, in_groups)
    values, ended = simulate_by(batches, **run, at_once=BLOCK)
    go_on(ended)
    both, centre = np.array([(test.two_sided, test.centre) for test, _ in tested]).T
    observed = np.array([test.estimate for test, _ in tested])
    sides = [np.where(both, np.abs(v - centre), v) for v in (observed, values)]
    return _adjusted(parts, max_t(sides[0], sides[1]), "max-T")


def alike(parts: Subgroups, induced: Predictions, run: Run) -> Subgroups:
    """Ask whether every subgroup is calibrated as the other rows are, calibrated or not.

    The residuals of a subgroup, less the mean of all rows of about the same prediction, are added
    up by increasing prediction; the range of this walk (Tygert 2021) is compared with those of
    residuals permuted among these rows, and adjusted by max-T. Exact where strata hold equal
    predictions only. Only rows whose stratum holds interleaving predictions of the subgroup and of
    others count; below 100 of them the subgroup is not compared.
    """
    groups = induced.subgroups()
    members = np.zeros((induced.n, len(parts.names)), dtype=bool)
    for name, rows in groups.items():
        members[rows, parts.names.index(name)] = True
    why = {
        "there is one subgroup, and no other row": bool(members.all()),
        "no test allows for clusters": induced.n_clusters is not None,
        "no test allows for weights": induced.weights is not None,
        "no test allows for follow-up": induced.followup is not None,
        "the lens leaves more than two classes": induced.n_classes > 2,
    }
    for reason, holds in why.items():
        if holds:
            note = f"whether subgroups are calibrated alike is not tested: {reason}"
            return replace(parts, notes=(*parts.notes, note))
    p, residuals = induced.probs[:, 0], induced.residuals[:, 0]
    # Groups that meet at a jump of the curve differ by their predictions, not by their calibration
    support = Permutations.of(p, residuals, members).support
    enough = support >= COMPARABLE
    if apart := [name for name, rows in zip(parts.names, enough, strict=True) if not rows]:
        more = f" and {len(apart) - NAMED} others" * (len(apart) > NAMED)
        most = support[~enough].max()
        note = (
            f"whether {'subgroups' if apart[1:] else 'subgroup'} {', '.join(apart[:NAMED])}{more} "
            f"{'are' if apart[1:] else 'is'} calibrated as others are is not tested: only "
            f"{f'up to {most}' if apart[1:] and most else most} rows have predictions that both "
            f"have (fewer than {COMPARABLE})"
        )
        parts = replace(parts, notes=(*parts.notes, note))
    if not enough.any():
        return parts
    # Again without the groups left out, whose walks would widen max-T for nothing
    walks = Permutations.of(p, residuals, members[:, enough])
    values, ended = simulate_by(walks, **run)
    go_on(ended)
    adjusted = iter(max_t(walks.observed(), values))
    return replace(parts, alike=tuple(next(adjusted) if tested else None for tested in enough))
