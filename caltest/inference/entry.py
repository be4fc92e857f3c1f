"""The one way into every verb: data that may be tested, and a statistic of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.containers import of_dask
from caltest._base.copies import n_copies
from caltest._base.foreign import unknown
from caltest._base.written import name_of
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.lenses import Canonical, Lens, LensLike
from caltest.predictions import Facts, Predictions
from caltest.problem import TallyProblem
from caltest.statistics.base import Prepared, Statistic, StatisticLike, prepare
from caltest.tally import AnyTally, MicroCells, Tallies, Tally

#: Rows above which questions are answered from sums over micro-cells, where these say the same.
MANY = 100_000

_COPIES: WeakKeyDictionary[Predictions, int] = WeakKeyDictionary()


def admitted(
    verb: str,
    probs: Any,
    labels: Any,
    facts: Facts,
    takes: Collection[str] = (),
    *,
    stakes: bool = False,
) -> Predictions:
    """Return predictions that a verb may test, of the arguments of :meth:`Predictions.of`.

    Data that carry weights, clusters or subgroups are refused unless the verb ``takes`` them, and
    rows that were used to make the predictions. ``stakes``: weights are meant as they are, not only
    their ratios.
    """
    if isinstance(probs, AnyTally):
        raise StatisticError(f"{verb} needs the rows, and a tally has none: pass their predictions")
    strange = sorted(set(facts) - set(Facts.__annotations__))
    if strange:
        raise unknown(verb, strange[0], Facts.__annotations__)
    data = Predictions.of(probs, labels, **facts)
    data = data if stakes else data.in_ratios()
    if data.provenance:
        from caltest.recalibration import refuse_fitted_rows

        refuse_fitted_rows(data)
    carried = {"weights": data.weights, "clusters": data.n_clusters, "by": data.by}
    for name, values in carried.items():
        if values is not None and name not in takes:
            raise StatisticError(f"{verb} does not take {name} yet")
    looked = data.copies or data.induced or data.clusters is not None
    copies = 0 if looked else _copies_in(data)
    if not copies:
        return data
    note = (
        f"{copies} of {data.n} rows repeat another, probabilities and label, and hardly by chance: "
        "errors look more certain than they are. Keep one row of each"
        + (", or say by clusters= which rows belong together" if "clusters" in takes else "")
    )
    return replace(data, copies=copies, notes=(*data.notes, note))


def at_hand(
    verb: str,
    probs: Any,
    labels: Any,
    facts: Facts,
    lens: LensLike | None,
    statistics: Iterable[StatisticLike] = (),
    *,
    whole: bool = False,
) -> tuple[Any, Any, Facts]:
    """Return a Dask data frame as a tally, all else as it is.

    As in other tables, labels and weights are names of its columns, the others then probabilities;
    without labels columns are found by their names, as in files. ``whole``: without a lens all that
    an audit asks is tallied.
    """
    if not (of_dask(probs) and type(probs).__name__ == "DataFrame"):
        return probs, labels, facts
    from caltest.tally.dask import of_frame
    from caltest.tally.reading import Reading

    names = {"labels": labels, "weights": facts.get("weights")}
    for what, name in names.items():
        if not isinstance(name, (str, type(None))):
            raise InvalidPredictionsError(
                f"{verb}: of a Dask data frame {what} is the name of a column, not "
                f"{type(name).__name__}; ct.Tally.from_dask(frame, probs, label) names all columns"
            )
    options: Any = {name: value for name, value in facts.items() if name != "weights"}
    for name in sorted(set(options) - {"classes", "pos_label", "from_logits"}):
        raise StatisticError(f"{verb}: a Dask data frame is tallied, and a tally keeps no {name}")
    rest = [c for c in probs.columns if c not in names.values()] if labels is not None else None
    asked: Any = lens if lens is not None or whole else "usual"
    reading = Reading(rest, labels, asked, weights=names["weights"], options=options)
    return of_frame(probs, reading), None, {}


def rows_where_needed(
    probs: Any, pairs: Iterable[tuple[StatisticLike | None, LensLike | None]]
) -> Any:
    """Return the sampled rows of tallies whose sums leave a pair open, all else as it is."""
    if not isinstance(probs, Tallies) or probs.rows is None:
        return probs
    try:
        for statistic, lens in pairs:
            problem = probs.through(lens).problem()
            if statistic is not None:
                prepare(statistic, problem)
    except StatisticError:
        return probs.rows
    return probs


def _copies_in(data: Predictions) -> int:
    """Count repeated rows, once for the same predictions."""
    if data not in _COPIES:
        _COPIES[data] = n_copies(data.probs, data.labels)
    return _COPIES[data]


def admitted_tally(
    verb: str,
    tally: AnyTally,
    labels: Any,
    facts: Facts,
    lens: LensLike | None = None,
    *,
    whole: bool = False,
) -> Any:
    """Return a tally as the lens sees it, or all there is of it; labels and facts are refused."""
    for name in ["labels"] * (labels is not None) + sorted(facts):
        raise StatisticError(f"{verb}: a tally has its own labels and facts: leave out {name}")
    if whole:
        return tally
    return tally.through(lens)


def seen_through(
    data: Predictions, lens: Lens, statistics: Collection[StatisticLike], plain: bool = True
) -> Any:
    """Return what the lens shows: rows or, of very many, the sums that answer just as they do.

    Sums over micro-cells do so for two classes, rows that count alike, statistics whose estimate
    they know to rounding, and nulls that are ``plain``: computed, or labels redrawn.
    """
    induced = lens(data)
    alike = induced.weights is None and induced.n_clusters is None and induced.by is None
    if plain and alike and induced.n > MANY and induced.n_classes == 2:
        micro = MicroCells.of(Tally.of(induced, lens=Canonical()))
        if all(_summed_exactly(statistic, micro) for statistic in statistics):
            return micro
    return induced


def _summed_exactly(statistic: StatisticLike, micro: MicroCells) -> bool:
    """Whether sums over micro-cells have the value of the rows, to rounding."""
    if not isinstance(statistic, Statistic):
        return False
    problem = TallyProblem(micro)
    try:
        return statistic.prepare(problem).remarks == problem.remarks
    except StatisticError:  # the rows say why, or have an answer
        return False


def evaluated(
    statistic: StatisticLike, induced: Predictions | MicroCells
) -> tuple[Prepared, float]:
    """Return the statistic with its predictions fixed, and its value on the observed labels."""
    if not isinstance(statistic, Statistic):
        from caltest.presets import Preset

        if isinstance(statistic, Preset):
            raise StatisticError("a preset is a statistic with its lens: unpack it, **preset")
    try:
        prepared = prepare(statistic, induced)
        value = prepared.observed
    except (StatisticError, InvalidPredictionsError):
        raise
    except (TypeError, ValueError) as error:
        raise StatisticError(
            f"the statistic {name_of(statistic)} failed on probs of shape {induced.probs.shape} "
            f"and labels of shape {induced.labels.shape}: {error}"
        ) from error
    if not np.isfinite(value):
        raise StatisticError(
            f"the statistic {name_of(statistic)} is {value} on the observed data; it must be a "
            "finite number"
        )
    return prepared, value


def told(prepared: Prepared) -> tuple[str, ...]:
    """Return what a result says of a statistic that comes from a tally."""
    return prepared.remarks


def design(data: Predictions | AnyTally) -> dict[str, Any]:
    """Return what every result says of weights and clusters."""
    weighted = data.weights is not None
    return {
        "effective_n": data.effective_n if weighted else None,
        "n_clusters": data.n_clusters,
    }


def seed_of(rng: Any) -> int | None:
    """Return the seed, if the generator was given by one."""
    return int(rng) if isinstance(rng, (int, np.integer)) else None
