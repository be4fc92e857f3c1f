"""Likely readings of a table that the contract does not read: from cells, and only suggested."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.data.doubts import is_time, like_time, order_of_events, predicted_class_readings
from caltest.data.questions import Rows
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.contract import CONFIDENCES, LABELS, PROBABILITIES, Wanted
from caltest.read.expressions import FAMILY, Term, ends_of, in_order, key, quoted, terms
from caltest.read.formats import Table
from caltest.read.questioning import label_words
from caltest.read.tables import column_of_cells, columns_of
from caltest.read.values import Cells, words_of

if TYPE_CHECKING:
    import polars as pl

#: Most readings that are offered; of more, places are.
MOST = 6


#: Words of a label of text from which on an expression has a place for one.
CODES = 10


#: Standard errors by which outcomes must follow predictions, where other pairs do by the second.
TELLING, TELLS = 3.0, 5.0


def suggested(head: pl.DataFrame, wanted: Wanted, lacking: str) -> list[Reading]:
    """Return readings of the columns whose first cells look like what is sought."""
    return _Head(head, wanted).readings(lacking)


def answer_readings(cells: Cells, table: Table) -> tuple[Reading, ...]:
    """Return readings by which an unused column is the predicted class of a label of text."""
    import polars as pl

    if "predicted_label" in cells.chosen.terms or len(cells.of("probs")) > 1:
        return ()
    words = label_words(cells)
    if not words:
        return ()
    head = table.frame.head(2000).collect()
    text = [n for n in head.columns if head[n].dtype == pl.String and n not in cells.chosen.used]
    probs = cells.name(cells.of("probs")[0])
    return predicted_class_readings(words, columns_of(head, text), probs)


@dataclass
class _Head:
    """First rows of a table, and what was wanted of it."""

    frame: pl.DataFrame
    wanted: Wanted

    def __post_init__(self) -> None:
        kinds = self.frame.schema
        self.frame = self.frame.select([n for n, kind in kinds.items() if not kind.is_nested()])
        given = {f.name: getattr(self.wanted, f.name) for f in fields(Wanted)}
        asked = self.wanted.columns
        self.given = {option: given[option] for option in asked}
        used = {r for option, v in asked.items() for t in self.terms(v) for r in t.roots}
        self.free = [n for n in self.frame.columns if n not in used and not n.startswith("::")]
        words = {n: words_of(self.frame[n]) for n in self.free}
        self.words = {n: w.drop_nulls() for n, w in words.items() if w is not None}
        self.words = {n: w for n, w in self.words.items() if w.n_unique() > 1}
        self.two = [n for n, w in self.words.items() if w.n_unique() == 2]
        columns = {n: column_of_cells(self.frame[n]) for n in self.free}
        self.times = [n for n, column in columns.items() if column and is_time(column)]

    def terms(self, value: Any) -> list[Term]:
        """Return the terms of an option, none where it cannot be read."""
        if value is None:
            return []
        try:
            return terms(value, self.frame.schema)
        except InvalidPredictionsError:
            return []

    def readings(self, lacking: str) -> list[Reading]:
        probs: list[str | None] = [None] if "probs" in self.given else [*self.probabilities()]
        followed = "event" in self.given
        labels = [None] if followed or "label" in self.given else [*self.labels(probs)]
        pairs = [
            {name: v for name, v in (("label", y), ("probs", p)) if v is not None}
            for y in labels
            for p in probs
            if y is None or y != p
        ]
        pairs = self.telling([pair for pair in pairs if pair])
        if lacking == "predicted_label" or (len(pairs) <= 1 and self.of_confidence(probs)):
            pairs = self.with_answers(pairs, labels) or pairs
        texts = any(" = " in str(pair.get("label")) for pair in pairs)
        if self.times and not followed and not texts:
            return self.followed(pairs)
        if not pairs or len(pairs) > MOST:
            names = (("label", labels), ("probs", probs))
            need = {name: "COLUMN" for name, found in names if found != [None]}
            return [Reading(need)] if need else []
        if len(pairs) == 1 and (answers := self.answers(pairs[0], lacking)):
            p, y = (pairs[0].get(n) or self.given.get(n) for n in ("probs", "label"))
            return [
                Reading(dict(pairs[0]), f"{p} is the probability of {y}"),
                *(
                    Reading(pairs[0] | {"predicted_label": a}, f"{p} is the confidence in {a}")
                    for a in answers
                ),
            ]
        if len(pairs) == 1:
            return [Reading(dict(pairs[0]), self.unless_followed(pairs[0]))]
        what = {"label": "outcome", "probs": "prediction", "predicted_label": "predicted class"}
        return [
            Reading(dict(p), " and ".join(f"{v} is the {what[name]}" for name, v in p.items()))
            for p in pairs
        ]

    # --- what columns may be -------------------------------------------------------------------

    def probabilities(self) -> list[str]:
        """Return columns and families that may be probabilities, as SQL."""
        listed = [n for n in self.free if key(n) in PROBABILITIES | CONFIDENCES]
        numbers = [n for n in self.free if self.frame[n].dtype.is_numeric()]
        known = [n for n in numbers if FAMILY.fullmatch(n) and n not in listed]
        families = [f for f in self.families(numbers) if not {*f} & {*known}]
        # Two columns that do not sum to 1 are two models of one event, not its two classes
        two_models = len(known) == 2 and not self.sum_to_one(known)
        families += [known] if len(known) > 1 and not listed and not two_models else []
        found = [quoted(n) for n in (known if two_models and not listed else listed)]
        found += [", ".join(map(quoted, in_order(f))) for f in families]
        others = [n for n in numbers if n not in (*self.two, *self.times)]
        found = found or [quoted(n) for n in others if self.within(n, 0.0, 1.0)]
        return found or [quoted(n) for n in others if self.within(n, 1.0, 100.0)]

    def within(self, name: str, least: float, most: float) -> bool:
        """Return whether a column holds fractions ≥ 0 whose largest is in (least, most]."""
        cells = self.frame[name].drop_nulls()
        if not cells.len() or not cells.dtype.is_float() or not (cells % 1 != 0).any():
            return False
        numbers = cells.to_numpy()
        return bool(numbers.min() >= 0.0 and least < numbers.max() <= most)

    def families(self, numbers: Sequence[str]) -> list[list[str]]:
        """Return columns of fractions whose names are alike, or all, and whose rows sum to 1."""
        stems: dict[str, list[str]] = {}
        for n in (n for n in numbers if self.frame[n].dtype.is_float()):
            for stem in {re.sub(r"[A-Za-z0-9]+$", "", n), re.sub(r"\d+$", "", n), ""}:
                stems.setdefault(stem, []).append(n)
        found: list[list[str]] = []
        for members in sorted({tuple(m) for m in stems.values() if len(m) > 1}, key=len):
            apart = not any({*family} & {*members} for family in found)
            if apart and self.sum_to_one(members):
                found.append([*members])
        return found

    def sum_to_one(self, names: Sequence[str]) -> bool:
        """Return whether there are rows with all of these columns, and all of them sum to 1."""
        sums = self.frame.select(names).drop_nulls().sum_horizontal().to_numpy()
        return bool(sums.size and np.allclose(sums, 1.0, atol=0.02))

    def labels(self, probs: Sequence[str | None]) -> list[str]:
        """Return columns that may be labels, as SQL; of text the expressions with a place."""
        listed = [n for n in self.free if key(n) in LABELS]
        if listed:
            return [quoted(n) for n in listed]
        wanted = [p if p is not None else self.given["probs"] for p in probs]
        ends: set[str] = set()
        for listed_terms in (self.terms(p) for p in wanted):
            names = [t.column for t in listed_terms if t.column is not None]
            if len(names) > 1:
                ends |= {key(end) for end in (*ends_of(names), *names)}

        def classes(name: str) -> bool:
            return {*map(key, self.words[name].unique().to_list())} <= ends

        many = [n for n in self.words if ends and classes(n)]
        found = [quoted(n) for n in [*(n for n in self.two if n not in many), *many]]
        if found:
            return found
        text = [
            n
            for n, w in self.words.items()
            if str(self.frame[n].dtype) == "String" and w.n_unique() <= CODES
        ]
        return [f"{quoted(n)} = 'CODE'" for n in text]

    def of_confidence(self, probs: Sequence[str | None]) -> bool:
        """Return whether the only probability is called a confidence."""
        sql = probs[0] if probs and probs[0] is not None else self.given.get("probs")
        found = self.terms(sql) if sql is not None else []
        names = [term.column for term in found]
        return len(probs) == len(names) == 1 and key(names[0] or "") in CONFIDENCES

    def with_answers(
        self, pairs: list[dict[str, str]], labels: Sequence[str | None]
    ) -> list[dict[str, str]]:
        """Return pairs with each column of text that may be the predicted class."""
        taken = {pair.get("label") for pair in pairs} | {*labels}
        text = [
            n for n, w in self.words.items()
            if str(self.frame[n].dtype) == "String" and 2 <= w.n_unique() <= 50
            and key(n) not in LABELS and quoted(n) not in taken
        ]  # fmt: skip
        return [{**pair, "predicted_label": quoted(n)} for pair in pairs or [{}] for n in text]

    def answers(self, pair: Mapping[str, str], lacking: str) -> list[str]:
        """Return columns of the label's two values that may be the predicted class, as SQL.

        Only beside what is called a confidence, or is never below one half.
        """
        rows = None if "predicted_label" in pair else self.rows(pair)
        if rows is None or (rows[0].min() < 0.495 and lacking != "predicted_label"):
            return []
        words = words_of(rows[2]["::y"])
        label = set() if words is None else {w.lower() for w in words.unique()}
        used = {r for value in pair.values() for t in self.terms(value) for r in t.roots}
        two = [n for n in self.two if n not in used]
        return [quoted(n) for n in two if {w.lower() for w in self.words[n].unique()} == label]

    # --- which pairs are likely ----------------------------------------------------------------

    def rows(self, pair: Mapping[str, str]) -> tuple[FloatArray, IntArray, pl.DataFrame] | None:
        """Return predictions, outcomes and rows of a pair; None where it cannot be computed."""
        import polars as pl

        probs = self.terms(pair.get("probs") or self.given.get("probs"))
        outcome = self.given.get("label") or self.given.get("event")
        label = self.terms(pair.get("label") or outcome)
        if not probs or not label:
            return None
        try:
            both = self.frame.with_columns(
                probs[-1].expr.cast(pl.Float64).alias("::p"), label[0].expr.alias("::y")
            ).drop_nulls(["::p", "::y"])
        except pl.exceptions.PolarsError:
            return None
        words = words_of(both["::y"])
        if words is None or not both.height:
            return None
        return both["::p"].to_numpy(), (words == words.max()).to_numpy().astype(np.int64), both

    def telling(self, pairs: list[dict[str, str]]) -> list[dict[str, str]]:
        """Return pairs without those whose predictions tell no outcomes, where others do."""
        scores = []
        for pair in pairs:
            rows = self.rows(pair)
            if rows is None:
                return pairs
            area, z = order_of_events(rows[0], rows[1])
            scores.append(0.0 if area in (0.0, 1.0) and len(rows[0]) > 50 else abs(z))
        best = max(scores, default=0.0)
        return [p for p, z in zip(pairs, scores, strict=True) if z >= TELLING or best < TELLS]

    def followed(self, pairs: list[dict[str, str]]) -> list[Reading]:
        """Return readings by which rows were followed for a time."""
        time = quoted(self.times[0])
        found = []
        for pair in (pairs or [{}])[:3]:
            options: dict[str, object] = {"label": None}
            options["event"] = pair.get("label") or self.given.get("label") or "COLUMN"
            options |= {"time": time, "horizon": "NUMBER"}
            if "probs" not in self.given:
                options["probs"] = pair.get("probs", "COLUMN")
            found.append(Reading(options, f"rows were followed for {self.times[0]}"))
        return found

    def unless_followed(self, pair: Mapping[str, str]) -> str:
        """Return the condition of a reading beside numbers that may be times, "" for none."""
        rows = self.rows(pair)
        if rows is None:
            return ""
        p, y, frame = rows
        both = Rows(p, y)
        used = {r for v in pair.values() for t in self.terms(v) for r in t.roots}
        for name in (n for n in self.free if n not in used):
            column = column_of_cells(frame[name])
            if column is not None and like_time(both, column):
                return f"{name} is not how long rows were followed"
        return ""
