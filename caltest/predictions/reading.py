"""How arguments become predictions: arrays, tables, and predictions that get other facts."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

from caltest._base import reading
from caltest._base.checks import one_of
from caltest._base.containers import names_of
from caltest._base.copies import doubts
from caltest._base.facts import NO_VALUE, READERS, as_columns, as_series, without_group
from caltest._base.naming import in_a_file
from caltest._base.rows import as_rows, relabelled
from caltest._base.written import Fields, refuse_form, several
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError
from caltest.followup import Followup
from caltest.predictions.rounding import without_rounded
from caltest.tables.frames import arranged
from caltest.tables.meaning import Understood, doubt_labels
from caltest.tables.source import Request

if TYPE_CHECKING:
    from caltest.predictions.data import Predictions


class RowFacts(TypedDict, total=False):
    """What every verb accepts besides arrays; see :meth:`Predictions.of` for the meanings."""

    classes: Sequence[object] | None
    weights: object
    clusters: object
    by: object
    ids: object
    folds: object
    from_logits: bool
    ordered: bool
    pos_label: object
    predicted_label: str | None
    renormalise: bool
    drop_missing: bool
    drop_labels: Sequence[str]


class Facts(RowFacts, total=False):
    """The same with what monitors and searches have as parameters of their own."""

    features: object
    time: object
    horizon: int | None


def read(
    cls: type[Predictions], probs: object, arguments: dict[str, object], request: Request
) -> Predictions:
    """Check what :meth:`Predictions.of` takes; ``arguments`` are labels and facts by name."""
    if isinstance(probs, Followup):
        raise InvalidPredictionsError("follow-up stands for labels: pass the risks before it")
    labels = arguments["labels"]
    followup = labels if isinstance(labels, Followup) else None
    if followup is not None:
        arguments = arguments | {"labels": followup.labels}
    one_of("drop_missing", request.drop_missing, (True, False))
    table = arranged(probs, arguments, request)
    if isinstance(table, Understood):
        data = of_table(cls, table, request)
    else:
        data = _with_facts(_of_arrays(cls, table, arguments, request), arguments, request)
    if followup is None and data.followup is None:
        return data
    for name in ("weights", "clusters", "crossed", "folds", "horizon"):
        if vars(data)[name] is not None:
            raise InvalidPredictionsError(f"follow-up does not take {name} yet: leave them out")
    if followup is not None:
        if data.n_classes != 2:
            raise InvalidPredictionsError(
                f"follow-up is of one event, but probs has {data.n_classes} classes: pass the risk "
                "of the event"
            )
        if followup.n != data.n:
            rows = f"there are {data.n} predictions, but follow-up of {followup.n} rows"
            raise InvalidPredictionsError(rows)
        data = replace(data, followup=followup, notes=(*data.notes, *followup.notes))
        followup.warn(data.risks)
    return data


def of_table(cls: type[Predictions], table: Understood, request: Request) -> Predictions:
    """Return the predictions of a table whose columns are understood."""
    event = None if isinstance(table.labels, Followup) else request.pos_label
    with table.naming:
        data = cls.of(
            *(table.probs, table.labels, table.classes),
            from_logits=table.from_logits, pos_label=event, ordered=request.ordered,
            renormalise=request.renormalise, horizon=request.ahead, **table.facts,
        )  # fmt: skip
    doubt_labels(table.chosen, data.labels, data.probs)
    notes = (*table.notes, *data.notes)
    data = replace(data, notes=notes, unused=table.unused, places=table.rows)
    return without_rounded(data, request.rounded)


def _of_arrays(
    cls: type[Predictions], probs: object, arguments: Mapping[str, object], request: Request
) -> Predictions:
    """Return the predictions of arrays, or of predictions with labels and classes if given."""
    labels, classes = arguments["labels"], request.classes
    from_logits, pos_label = request.from_logits, request.pos_label
    if request.predicted_label is not None:
        raise InvalidPredictionsError("predicted_label names a column of a table with labels")
    for name, values in {"probs": probs, "classes": classes, **arguments}.items():
        refuse_form(values, name)
    one_of("from_logits", from_logits, (True, False))
    one_of("renormalise", request.renormalise, (True, False))
    if isinstance(probs, cls):
        if from_logits or request.renormalise or pos_label is not None:
            raise InvalidPredictionsError(
                "Predictions hold probabilities and numbered labels: from_logits and pos_label "
                "are for arrays, and so is renormalise"
            )
        if labels is None and classes is None:
            return probs
        names, codes = relabelled(probs.classes, probs.n_classes, probs.n, labels, classes)
        named = replace(probs, classes=names)
        return named if codes is None else replace(named, labels=codes, followup=None)
    if labels is None:
        reading.as_array(probs, "probs")  # which may say better what is wrong
        raise InvalidPredictionsError("labels are missing: pass probs and labels")
    columns = list(map(str, names_of(probs) or ()))
    with in_a_file(range(sys.maxsize), columns) if columns else nullcontext():
        rows, notes = as_rows(probs, labels, classes, from_logits, pos_label, request.renormalise)
    data = cls(*rows, notes=notes)
    for doubt in doubts(
        data.probs, data.labels, probs, from_logits, arguments["folds"] is not None
    ):
        warnings.warn(doubt, DoubtfulInputWarning, stacklevel=4)
    return data


def _with_facts(
    data: Predictions, arguments: Mapping[str, object], request: Request
) -> Predictions:
    """Return the same with the other facts, each read by its reader."""
    clusters, horizon = arguments["clusters"], request.horizon
    pair = None if clusters is None else as_columns(clusters, data.n)
    facts: Fields = {
        name: read_fact(arguments[name], data.n)
        for name, read_fact in READERS.items()
        if arguments[name] is not None and (name != "clusters" or pair is None)
    }
    if pair is not None:
        facts |= {"clusters": pair.first, "crossed": pair.second}
        facts |= {"cluster_names": pair.names, "notes": (*data.notes, *pair.notes)}
    if arguments["by"] is not None and (lacking := without_group(facts["by"])):
        note = f"the subgroup {NO_VALUE} is of {several(lacking, 'row')} without a value of by"
        facts["notes"] = (*facts.get("notes", data.notes), note)
    one_of("ordered", request.ordered, (True, False))
    if request.ordered and data.n_classes == 2:
        raise InvalidPredictionsError("two classes have no order: ordered=True is for more")
    if request.ordered:
        facts["ordered"] = True
    if data.multilabel and facts.keys() & {"by", "clusters", "folds", "horizon"}:
        raise InvalidPredictionsError(
            "of several labels a row each is a subgroup, and the row a cluster: they take no "
            "other by=, clusters= or folds="
        )
    if horizon is not None or arguments["time"] is not None:
        facts |= as_series(arguments, horizon, data)
    return replace(data, **facts) if facts else data
