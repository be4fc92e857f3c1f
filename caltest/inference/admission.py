"""What a verb may look at: data are checked, and facts that it does not honour are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.copies import n_copies
from caltest._base.facts import by_appearance
from caltest._base.written import Doubt, unknown
from caltest.errors import StatisticError, UnsupportedFactError
from caltest.inference.sampling import as_sampled
from caltest.inference.series import AGREEING, in_time_order, neighbours
from caltest.lenses import LensLike
from caltest.predictions import Facts, Predictions, RowFacts
from caltest.problem import problem_of_tally
from caltest.results.designs import ASSOCIATED
from caltest.simulate.agreement import association
from caltest.statistics.base import StatisticLike, prepare
from caltest.tally import AnyTally, Source

T = TypeVar("T")
#: Facts of rows that verbs honour who look at them by an :class:`Analysis`.
ROWS = frozenset({"clusters", "weights", "folds", "horizon", "two columns of clusters"})
#: Why a verb takes no such rows.
WHY = {
    "by": ": calibration_test (caltest test), audit, compare and interval look at subgroups",
    "folds": ": leave folds= (--folds) out to take all rows for those of one model. That models of "
    "other folds know these labels, and differ in level, is then not allowed for",
    "followup": ": calibration_test, joint_test, audit, report and reliability_curve do, and "
    "cox_recalibration gives intervals of O:E, intercept and slope",
    "horizon": ": outcomes that overlap are no independent draws",
    "several labels a row": ": each is asked by itself, by calibration_test or audit",
}
#: What facts are called where their names are not words.
NAMES = {"by": "subgroups", "followup": "follow-up", "horizon": "overlapping outcomes"}
#: Verbs that take a tally which keeps clusters apart.
OF_CLUSTERS = ("calibration_test", "reliability_curve")

_COPIES: WeakKeyDictionary[Predictions, int] = WeakKeyDictionary()


def refuse_strange(verb: str, facts: RowFacts) -> None:
    """Refuse a keyword that is no fact, with the fact that is called nearly so."""
    for name in sorted(set(facts) - set(Facts.__annotations__)):
        raise unknown(verb, name, ["labels", *Facts.__annotations__])


def admitted(
    verb: str, probs: object, labels: object, facts: RowFacts, takes: Collection[str] = (), *,
    stakes: bool = False,
) -> Predictions:  # fmt: skip
    """Return predictions that a verb may test, of the arguments of :meth:`Predictions.of`.

    Facts that it does not ``take`` are refused, and rows that were used to make the predictions.
    Who takes ``"order"`` bets on one row after the other, which may depend on those before.
    ``stakes``: weights are meant as they are, not only their ratios.
    """
    if tallies_of(probs):
        raise StatisticError(f"{verb} needs the rows, and a tally has none: pass their predictions")
    refuse_strange(verb, facts)
    data = Predictions.of(probs, labels, **facts)
    # Tests look at ratios of weights; whole numbers among them have exact laws
    data = data if stakes else as_sampled(data.in_ratios())
    # A map that was fitted to these labels makes them look calibrated
    if data.provenance:
        from caltest.recalibration import refuse_fitted_rows

        refuse_fitted_rows(data)
    carried: dict[str, object] = {"weights": data.weights, "clusters": data.n_clusters}
    carried |= {"by": data.by, "folds": data.folds, "followup": data.followup}
    carried |= {"features": data.features, "horizon": data.horizon}
    carried["several labels a row"] = data.multilabel or None
    carried["two columns of clusters"] = data.crossed
    for name, values in carried.items():
        if values is not None and name not in takes:
            message = f"{verb} does not take {name} yet{WHY.get(name, '')}"
            remedies = [(f"!--{name}",)] * (name in Facts.__annotations__)
            raise UnsupportedFactError(message, remedies, NAMES.get(name, name))
    if data.clusters is not None and data.n_clusters == 1:
        raise StatisticError(
            "all rows are of one cluster, and could all depend on each other: name a column with "
            "several values, or leave clusters= (--clusters) out",
            [("!--clusters",)],
        )
    data, notes = data if data.horizon is None else in_time_order(data), []
    if data.weights is not None:
        event = 1 if data.n_classes == 2 else data.probs.argmax(axis=1)
        residuals = (data.labels == event) - data.probs[np.arange(data.n), event]
        units = None if data.clusters is None else by_appearance(data.clusters)
        if abs(z := association(data.weights, residuals, units)) > ASSOCIATED:
            notes.append(
                f"residuals change with the weight (z = {z:+.1f}): no test is valid if weights "
                "depend on outcomes"
            )
    excused = data.clusters is not None or data.followup is not None
    alone = not (data.induced or excused or data.folds is not None or "order" in takes)
    if alone and (z := neighbours(data)) > AGREEING:
        notes.append(
            f"neighbouring rows agree more than chance (z = {z:.1f}), and p-values take rows for "
            "independent: of a series forecast 3 steps ahead say horizon=3 (--horizon 3), of rows "
            "that belong together, as those of a patient, clusters= (--clusters COLUMN)"
        )
    copies = data.copies
    if not (copies or data.induced or excused):
        # Looked for once for the same object: every verb of an audit comes here
        if data not in _COPIES:
            _COPIES[data] = n_copies(data.probs, data.labels)
        if copies := _COPIES[data]:
            remedy = ", or say by clusters= which rows belong together" * ("clusters" in takes)
            notes.append(
                f"{copies} of {data.n} rows repeat another, probabilities and label, and hardly by "
                f"chance: errors look more certain than they are. Keep one row of each{remedy}"
            )
    if not notes:
        return data  # the same object: what is known of it is looked up by it
    return replace(
        data, copies=copies, notes=tuple(dict.fromkeys((*data.notes, *map(Doubt, notes))))
    )


def tallies_of(*models: object) -> list[AnyTally]:
    """Return those of the models that are tallies."""
    return [model for model in models if isinstance(model, AnyTally)]


def rows_where_needed(
    probs: T, pairs: Iterable[tuple[StatisticLike | None, LensLike | None]]
) -> T | Predictions:
    """Return the sampled rows of tallies whose sums leave a pair open, all else as it is."""
    tallies = tallies_of(probs)
    if not tallies or tallies[0].rows is None:
        return probs
    try:
        for statistic, lens in pairs:
            tally = tallies[0].through(lens)
            if statistic is not None:
                prepare(statistic, problem_of_tally(tally))
    except StatisticError:
        return tallies[0].rows
    return probs


def admitted_tally(
    verb: str, tally: AnyTally, labels: object, facts: RowFacts, lens: LensLike | None = None, *,
    whole: bool = False,
) -> AnyTally:  # fmt: skip
    """Return a tally as the lens sees it, or all there is of it; labels and facts are refused."""
    for name in ["labels"] * (labels is not None) + sorted(facts):
        raise StatisticError(f"{verb}: a tally has its own labels and facts: leave out {name}")
    if tally.n_clusters is not None and verb not in OF_CLUSTERS:
        raise StatisticError(
            f"{verb} takes no tally of clusters: {' and '.join(OF_CLUSTERS)} do, and it has "
            "mean_gap()"
        )
    return tally if whole else tally.through(lens)


def checked(
    verb: str, probs: object, labels: object, facts: Facts, takes: Collection[str],
    lens: LensLike | None, statistics: Collection[StatisticLike | None] = (None,),
) -> Source:  # fmt: skip
    """Return rows, or a tally as the lens sees it; its sampled rows where sums leave a gap."""
    probs = rows_where_needed(probs, [(statistic, lens) for statistic in statistics])
    for tally in tallies_of(probs):
        return admitted_tally(verb, tally, labels, facts, lens)
    return admitted(verb, probs, labels, facts, takes)
