"""How arguments become predictions: arrays, and tables in memory."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import bdtrc

from caltest._base.arrays import AnyArray, codes, is_whole, one_of
from caltest._base.containers import as_column, as_ndarray, can, column_of, names_of, opened
from caltest._base.features import as_features
from caltest._base.naming import in_a_file
from caltest._base.written import Fields, refuse_form, several
from caltest.data import numbers as reading
from caltest.data.facts import (
    NO_VALUE,
    READERS,
    as_clusters,
    as_columns,
    as_times,
    by_appearance,
    without_group,
)
from caltest.data.followup import Followup
from caltest.data.labels import Facts, Request, as_rows, column_classes, marks, relabelled
from caltest.data.numbers import doubts
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError
from caltest.read import source as cells
from caltest.read.columns import choose_labels, no_column, with_event
from caltest.read.meaning import Understood, chosen_of, doubt_labels, understood
from caltest.read.source import IDS, LABELS, Column, Source, words

if TYPE_CHECKING:
    from caltest.data.predictions import Predictions


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


# ------------------------------------------------------------------------------
# Tables in memory, read as files are: columns by their names, and arrays that lie beside them.


def arranged(probs: Any, facts: Mapping[str, Any], request: Request) -> Any | Understood:
    """Return probabilities at hand, or what was understood where they had to be read.

    That is so of a table whose labels or facts are named, or to be found, among its columns; and of
    arrays whose incomplete rows are to be left out. Queries are run, once.
    """
    rows = {what: values for what, values in facts.items() if values is not None}
    _refuse_misaligned(probs, rows)
    table = opened(probs, "probs")
    keys = names_of(table)
    features = rows.pop("features", None)
    listed = [features] if isinstance(features, str) else features
    if isinstance(listed, (list, tuple)) and all(isinstance(name, str) for name in listed):
        request = replace(request, features=listed)
    named = {what: name for what, name in rows.items() if isinstance(name, str)}
    by = rows.get("by")
    names = by if isinstance(by, (list, tuple)) and all(isinstance(b, str) for b in by) else ()
    several = bool(names) and {*names} <= {*(keys or ())}
    if several:
        rows["by"] = {name: column_of(table, name) for name in names}
    if keys is not None and (named or several or request.features or "labels" not in rows):
        columns: dict[str, Any] = {str(key): column_of(table, key) for key in keys}
        _refuse_absent(named, columns)
    elif "labels" in rows and (request.drop_missing or request.drop_labels):  # of arrays
        truth, classes = as_column(rows["labels"], "labels"), request.classes
        if classes is None and truth.ndim == 1:
            classes = column_classes(table, cells.labels(truth[~cells.missing(truth)]))
        keys, columns = ["probs"], {"probs": table}
        request = replace(request, probs="probs", classes=classes)
    else:
        return table
    groups = rows.get("by")
    groups = groups if names_of(groups) is not None else None
    for what, values in rows.items():
        if what not in named and values is not groups:
            columns[f"{what}="], named[what] = values, f"{what}="

    def read(wanted: Sequence[str]) -> list[Column]:
        return [as_column(columns[name], name) for name in wanted]

    question = replace(request, label=named.pop("labels", None))
    question = replace(question, **dict[str, Any](named))
    beside = [name for name in columns if name not in map(str, keys)]
    source = with_event(Source([*map(str, keys), *beside], read, frame=True), question.label)
    arguments = understood(source, question, chosen_of(source, question))
    if keys == ["probs"] and table is columns["probs"]:  # arrays: there were no columns to find
        arguments = replace(arguments, notes=arguments.notes[1:])
    if features is not None and request.features is None:
        n = len(source.read(source.names[:1])[0])
        arguments.facts["features"] = as_features(features, n)[arguments.rows]
    if groups is not None:
        arguments.facts["by"] = {
            key: as_ndarray(groups[key], f"by[{key!r}]")[arguments.rows]
            for key in names_of(groups) or ()
        }
    return arguments


def _refuse_absent(named: Mapping[str, str], columns: Collection[str]) -> None:
    for what, name in named.items():
        several = what in ("labels", "clusters") and re.search(r"[*?[,<>=]", name)
        if name not in columns and not several:
            raise InvalidPredictionsError(f"{what}: {no_column(name, columns)}")


def _refuse_misaligned(probs: Any, others: Mapping[str, Any]) -> None:
    index = _index(probs)
    for name, values in others.items():
        if can(probs, "fetchnumpy") and can(values, "fetchnumpy"):
            raise InvalidPredictionsError(
                f"probs and {name} are two relations, whose rows have no common order: pass one "
                f"relation with all columns, and {name} as the name of its column"
            )
        other = _index(values)
        if index is None or other is None or len(index) != len(other) or index.equals(other):
            continue
        pairs = enumerate(zip(index, other, strict=True))
        for row, (a, b) in ((row, pair) for row, pair in pairs if pair[0] != pair[1]):
            raise InvalidPredictionsError(
                f"probs and {name} have different indexes, first in row {row} ({a!r} and {b!r}): "
                f"align them first, for instance with {name}.loc[probs.index], or pass "
                f"{name}.to_numpy() if the rows are in the same order as they are"
            )


def _index(values: Any) -> Any:
    """Return the index of a pandas object; lists have an ``index``, too, but a method."""
    index = values.index if can(values, "index") else None
    return index if can(index, "equals") else None


# ------------------------------------------------------------------------------
# Probabilities of 0 and 1 that were rounded: outcomes that contradict them are no proof.


#: Steps to which people round probabilities, and the rows from which on values show one.
STEPS, ENOUGH = (0.25, 0.2, 0.1, 0.05, 0.02, 0.01), 50


#: How probable so many contradictions must be, if they are of values that were rounded.
EXPLAINED = 0.05


def without_rounded(data: Predictions, rounded: bool | Literal["auto"]) -> Predictions:
    """Leave out rows of two classes whose probability is 0 or 1, with a note.

    ``"auto"`` does so, and says it aloud, where outcomes occurred that have probability 0, all
    values are multiples of a step s, and an event of probability s/2 would occur as often: P(X ≥ k)
    > 0.05 of k contradictions in n rows of 0 or 1, X binomial (n, s/2); of clusters, those with one
    count, and their rows share the chance. O(n).
    """
    auto = rounded == "auto"
    if not rounded or (auto and (not data.impossible.size or data.n_classes > 2)):
        return data
    if data.n_classes > 2:
        raise InvalidPredictionsError(
            "rounded=True (--rounded) leaves out rows of probability 0 or 1: it is for two classes",
            [("!--rounded",)],
        )
    p = data.probs[:, 1]
    inner = (p > 0.0) & (p < 1.0)
    n_ends, n_against, step = int((~inner).sum()), data.impossible.size, step_of(p)
    units = np.arange(data.n) if data.clusters is None else by_appearance(data.clusters)
    # Rows of a cluster may all be otherwise together: clusters are counted, each with its chance
    n_units, rate = np.unique(units[~inner]).size, step / 2.0 * n_ends
    k = np.unique(units[data.impossible]).size
    explained = step > 0.0 and bdtrc(k - 1, n_units, min(rate / max(n_units, 1), 1.0)) > EXPLAINED
    if auto and not (explained and inner.any() and data.followup is None):
        return data
    if not inner.any():
        no_others = "rounded=True: every probability is 0 or 1"
        raise InvalidPredictionsError(no_others, [("!--rounded",)])
    share = f"{n_against} of {n_ends} outcomes predicted with probability 0 or 1 were otherwise"
    if auto:
        warnings.warn(
            f"{share}, which rounding to multiples of {step:g} explains: these rows are left out; "
            "if 0 was meant to be never, say so: --not-rounded",
            DoubtfulInputWarning,
            stacklevel=4,
        )
    note = f"left out {several(n_ends, 'row')} of probability 0 or 1, which may be rounded"
    return replace(data, notes=(*data.notes, f"{note}: {share}")).take(inner)


def step_of(p: np.ndarray) -> float:
    """Return the largest step of which all probabilities are multiples, 0 where none shows."""
    if p.size < ENOUGH:
        return 0.0
    values = np.unique(p)
    return next((s for s in STEPS if np.allclose(values, np.rint(values / s) * s, 0, 1e-9)), 0.0)


def shared_ids(tables: Sequence[Source]) -> str | None:
    """Return the column by which rows of all tables are named, as its name says.

    In one table at least it names each row once; rows of others that it names twice are refused.
    """
    for name in (n for n in tables[0].names if IDS & {*words(n)}):
        if all(name in table.names for table in tables):
            columns = [marks(table.read([name])[0]).astype(str) for table in tables]
            once = [c.ndim == 1 and np.unique(c).size == len(c) for c in columns]
            if any(once) and all(column.ndim == 1 for column in columns):
                return name
    return None


def with_ids(models: Sequence[object], labels: object, facts: Facts) -> Facts:
    """Return facts with the ids that tables share if nobody names any; ``labels`` are of all."""
    if "ids" in facts or not (labels is None or isinstance(labels, str)):
        return facts
    if any(names_of(model) is None for model in models):
        return facts
    tables = [source_in_memory(model) for model in models]
    name = shared_ids(tables)
    return facts if name is None else {**facts, "ids": name}


def has_labels(model: object, labels: object) -> bool:
    """Say whether a model is a table in memory with labels: called so, or found if none are given.

    ``labels`` are those that were given.
    """
    names = {str(name).lower() for name in names_of(model) or ()}
    if labels is None and names:
        with suppress(InvalidPredictionsError):
            return bool(choose_labels(source_in_memory(model), None).probs)
    return any(names & {*tier} for tier in LABELS)


def lent_labels(data: Predictions, model: object, ids: object) -> AnyArray:
    """Return labels for the rows of another model: of the same ids, if a column of both has them.

    Rows without such an id, or with one that occurs twice, are refused when they are matched.
    """
    if data.ids is None or not isinstance(ids, str) or names_of(model) is None:
        return data.labels
    place = {str(name): row for row, name in enumerate(data.ids)}
    (column,) = source_in_memory(model).read([ids])
    rows = [place.get(name, -1) for name in marks(column).astype(str).tolist()]
    return data.labels[rows]


def source_in_memory(table: object) -> Source:
    """Return a table in memory, whose columns are read by their names as texts."""
    columns = {str(name): name for name in names_of(table) or ()}

    def read(names: Sequence[str]) -> list[AnyArray]:
        return [as_ndarray(column_of(table, columns[name]), name) for name in names]

    return Source([*columns], read, frame=True)


def as_series(facts: Mapping[str, object], horizon: object, data: Predictions) -> dict[str, object]:
    """Return what is known of forecasts several steps ahead; one step needs nothing."""
    time = facts["time"]
    if not is_whole(horizon) or horizon < 1:
        raise InvalidPredictionsError(
            f"horizon must be a whole number ≥ 1, by how many times forecasts are ahead, not "
            f"{horizon!r}" + " (which time= needs)" * (horizon is None)
        )
    if facts["clusters"] is not None or data.clusters is not None:
        raise InvalidPredictionsError(
            "horizon takes no clusters: rows of one time may depend on each other, name it by time="
        )
    if facts["folds"] is not None or data.folds is not None:
        raise InvalidPredictionsError("horizon takes no folds: those of a series are not equal")
    places = np.arange(data.n)
    if time is not None:  # the place of every row among the distinct times
        places = codes(as_times(time, data.n))
    if horizon == 1:
        return {"clusters": None if time is None else as_clusters(places, data.n)}
    return {"times": places, "horizon": int(horizon)}
