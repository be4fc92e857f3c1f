"""Likely readings of a table that the contract does not read: from cells, and only suggested.

:func:`suggested` is the entry: a list of readings, most likely first. A suggestion never chooses:
it is printed for the user to judge.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.data.doubts import (
    bare_words,
    class_places,
    decides,
    orders_of_classes,
    predicted_class_readings,
    too_few_labels,
)
from caltest.data.ends import UNITS, is_time, like_time, likely_ends, named_horizon, says_censored
from caltest.data.questions import Column, Rows, constant_gain, order_of_events
from caltest.errors import Reading
from caltest.read.contract import CONFIDENCES, LABELS, Wanted, called_alike, shares_of
from caltest.read.expressions import (
    FAMILY,
    ends_of,
    in_order,
    key,
    literal,
    quoted,
    terms_of,
    words_of,
)
from caltest.read.formats import Table
from caltest.read.guesses import (
    CODES,
    GRADE_NAMES,
    MOST_LABELS,
    MOST_WORDS,
    REQUIRED,
    TELLING,
    TELLS,
    Head,
    Options,
    likely_grades,
    numbers_of,
    order_gap,
    text_literal,
)
from caltest.read.questioning import AROUND, label_words
from caltest.read.tables import column_of_cells, columns_of, is_date, spans_of
from caltest.read.values import EvaluatedCells

if TYPE_CHECKING:
    import polars as pl

#: Most readings that are offered; of more, places are.
READINGS_OFFERED = 6


#: Columns that a command lists by name; more are a pattern if there is one.
NAMED_IN_COMMAND = 20


#: Words up to which answers are compared without what all of them share.
PREFIXED = 50


#: Rows from which on it is seen that a class is a threshold of predictions.
TOLD = 20


#: Words in names of columns of credit grades: regulators ask whether their risk is underestimated.
CREDIT_WORDS = frozenset(
    "pd default defaults defaulted bads obligor obligors borrower borrowers loans accounts".split()  # noqa: SIM905
)

#: Area under the ROC curve from which on a column with any name follows from the outcome.
DECIDES = 0.99


#: Rows of a table of grades, at most, and columns of one with more rows.
GRADES, COLUMNS_OF_GRADES = 60, 40

#: Grades up to which 0 or 1 event in each may be counts.
FEW_GRADES = 20


#: Share of rows without a value from which on a suggestion leaves them out.
FEW = 0.01


#: Words in names of columns that hold the truth rather than an answer.
TRUTH = LABELS | {"gt", "true", "reference", "expected", "key", "answer_key", "right"}


#: Words in names of columns that hold shares of votes.
SHARE_WORDS = TRUTH | {"share", "shares", "vote", "votes", "observed"}


#: How a name says that it is the probability to survive so many months, such as OS24.
SURVIVAL = re.compile(r"(?:^|_)(?:os|pfs|dfs|efs|rfs)_?(\d{1,3})(?!\d)", re.IGNORECASE)


#: Ends of names, and words, of votes against and for an event.
NO_YES = (
    ("no", "yes"), ("false", "true"), ("neg", "pos"), ("negative", "positive"),
    ("absent", "present"), ("against", "for"), ("nein", "ja"), ("non", "oui"),
)  # fmt: skip


#: A place for the predictions, where several columns may hold them.
NO_PROBS: Options = {"probs": "COLUMN"}


def suggested(head: pl.DataFrame, wanted: Wanted, lacking: str) -> list[Reading]:
    """Return readings for columns whose first cells look like the role that is lacking.

    Each reading has the options of :func:`read_predictions` to add, and a condition in words.
    ``head`` are the first rows as a polars frame, ``wanted`` has the options that the user gave,
    and ``lacking`` is "label", "probs", "predicted_label", or "time" for an event without time or
    horizon. If nothing fits, the one reading has placeholders such as COLUMN.
    """
    guesses = _Readings(head, wanted)
    found = guesses.with_time() if lacking == "time" else guesses.readings(lacking)
    return [
        replace(r, options={o: _as_pattern(v, head.schema) for o, v in r.options.items()})
        for r in found
    ]


def _as_pattern(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a pattern such as ``p_*`` for a list of more than 20 columns, else the value itself.

    ``value`` is the value of an option, text with commas between columns. ``schema`` maps the names
    of all columns to their types; the pattern must stand for these columns in their order.
    """
    if not isinstance(value, str) or value.count(",") < NAMED_IN_COMMAND:
        return value
    names = [term.column for term in terms_of(value, schema)]
    head = commonprefix([name or "" for name in names])  # noqa: RUF071 (no paths)
    if not re.fullmatch(r"\w+", head):
        return value
    for pattern in (f"{head}*", f"{head}[0-9]*"):
        if [term.column for term in terms_of(pattern, schema)] == names:
            return pattern
    return value


def option_readings(cells: EvaluatedCells, table: Table) -> tuple[Reading, ...]:
    """Return the reading in which a text label names one of the options of its row.

    Options are columns ``name_0``, ``name_1``, … of text, as many as probabilities and in their
    order, all different in every row. If they are the same words in all rows, these are the
    classes; otherwise the classes are the positions of the options. The reading has options of
    :func:`read_predictions` to set. () if no columns fit, or several. ``cells`` are the evaluated
    cells (in a frame with columns such as ``label:0``) that were read from ``table``, the open
    table (rows as a lazy polars frame).
    """
    import polars as pl

    k = len(cells.of("probs"))
    if k < 2 or not cells.of("label") or not cells.is_plain("label:0") or not label_words(cells):
        return ()
    schema, label = table.schema, cells.sql("label:0")
    heads = [n[:-2] for n, kind in schema.items() if n.endswith("_0") and kind == pl.String]
    found = []
    for head in heads:
        names = [f"{head}_{place}" for place in range(k)]
        if any(schema.get(n) != pl.String for n in names) or f"{head}_{k}" in schema:
            continue
        answer = pl.col(cells.name("label:0"))
        frame = table.frame.select(
            pl.concat_list(names).list.n_unique().min().alias("different"),
            pl.any_horizontal([answer == pl.col(n) for n in names]).all().alias("among"),
            pl.concat_list(names).list.sort().n_unique().alias("sets"),
            *(pl.col(n).n_unique() for n in names),
        ).collect()
        if frame["different"][0] != k or not frame["among"][0]:
            continue
        if all(frame[n][0] == 1 for n in names):
            words = table.frame.select(names).head(1).collect().row(0)
            found.append(Reading({"classes": ",".join(words)}))
        elif frame["sets"][0] == 1:  # the same words in another order: each has its probability
            classes = sorted(table.frame.select(names).head(1).collect().row(0))
            probs = [cells.sql(column) for column in cells.of("probs")]
            both = [*zip(names, probs, strict=True)]
            each = [
                "CASE "
                + " ".join(f"WHEN {quoted(n)} = {text_literal(w)} THEN {p}" for n, p in both)
                + " END"
                for w in classes
            ]
            found.append(Reading({"probs": ", ".join(each), "classes": ",".join(classes)}))
        else:
            cases = " ".join(f"WHEN {label} = {quoted(n)} THEN {i}" for i, n in enumerate(names))
            found.append(Reading({"label": f"CASE {cases} END"}))
    return tuple(found) if len(found) == 1 else ()


def answer_readings(cells: EvaluatedCells, table: Table) -> tuple[Reading, ...]:
    """Return readings in which an unused text column is the predicted class; () if none fits.

    A reading has options of :func:`read_predictions` to set, and the condition under which it is
    right. ``cells`` are the evaluated cells (in a frame with columns such as ``label:0``) that were
    read from ``table``, the open table (rows as a lazy polars frame); they need one column of
    probabilities and a label of words.
    """
    import polars as pl

    if "predicted_label" in cells.chosen.terms or len(cells.of("probs")) > 1:
        return ()
    words = label_words(cells)
    if not words:
        return ()
    head = table.frame.head(2000).collect()
    text = [n for n in head.columns if head[n].dtype == pl.String and n not in cells.chosen.used]
    probs = cells.name(cells.of("probs")[0])
    p = numbers_of(head.select(cells.chosen.terms["probs"][0].expr).to_series())
    sure = [c for c in columns_of(head, text) if p is None or not _is_decided(p, c.coded)]
    return predicted_class_readings(words, sure, probs)


def label_readings(cells: EvaluatedCells, table: Table) -> tuple[Reading, ...]:
    """Return readings with other columns as the label, where the one that was read holds amounts.

    Amounts are more than 50 different numbers, such as values of a coordinate y. A reading has
    options of :func:`read_predictions` to set, and the condition under which it is right. () if the
    label holds none. ``cells`` are the evaluated cells (in a frame with columns such as
    ``label:0``) that were read from ``table``, the open table (rows as a lazy polars frame).
    """
    if not cells.of("label") or not cells.is_plain("label:0"):
        return ()
    column = cells.frame["label:0"]
    if not column.dtype.is_numeric() or column.n_unique() <= MOST_LABELS:
        return ()
    wanted = replace(cells.wanted, label=None)
    found = suggested(table.frame.head(2000).collect(), wanted, "label")
    label = cells.sql("label:0")
    return tuple(
        r for r in found
        if r.complete and "label" in r.options and not str(r.options["label"]).startswith(label)
    )  # fmt: skip


def followup_readings(cells: EvaluatedCells, table: Table) -> tuple[Reading, ...]:
    """Return the reading in which a label of several codes is the end of a follow-up.

    It sets the options ``event``, ``competing``, ``time`` and ``horizon`` of
    :func:`read_predictions`. There has to be an unused column of times, and 3 to 10 codes; else ().
    ``cells`` are the evaluated cells (in a frame with columns such as ``label:0``) that were read
    from ``table``, the open table (rows as a lazy polars frame).
    """
    if not cells.of("label") or not cells.is_plain("label:0"):
        return ()
    head = table.frame.head(2000).collect()
    unused = [n for n in head.columns if n not in cells.chosen.used]
    times = [c for c in columns_of(head, unused) if is_time(c)]
    words = words_of(cells.frame["label:0"])
    codes = [] if words is None else sorted(words.drop_nulls().unique().to_list())
    if not times or not 3 <= len(codes) <= CODES:
        return ()
    name = cells.sql("label:0")
    plain = [code for code in codes if code != "0"] if codes[0] == "0" else ["CODE", "CODE"]
    if str(cells.frame["label:0"].dtype) == "String":
        plain = ["'CODE'", "'CODE'"]
    ends = {"event": f"{name} = {plain[0]}", "competing": f"{name} = {plain[1]}"}
    options = {"label": None, **ends, "time": times[0].sql, "horizon": "NUMBER"}
    return (Reading(options, f"rows were followed for {times[0].name}"),)


def _is_decided(p: FloatArray, coded: tuple[IntArray, tuple[str, ...]] | None) -> bool:
    """Return whether a column of two codes is a threshold of predictions p (n,).

    ``coded`` are (codes (n,), words): the words are the values that the codes number, and −1 is a
    missing cell; None for a column of fractions, which is no threshold. Rows without prediction or
    code are ignored; 20 others are needed.
    """
    if coded is None:
        return False
    known = np.isfinite(p) & (coded[0] >= 0)
    return bool(known.sum() >= TOLD and decides(p[known], coded[0][known]) is not None)


class _Readings(Head):
    """First rows of a table, with suggestions of how its columns could be read.

    A suggestion, a :class:`Reading`, has keyword arguments of :func:`read_predictions`, such as
    ``{"label": "died"}``, and the condition in words under which they are right; ``Options`` are
    such arguments alone.
    """

    def readings(self, lacking: str) -> list[Reading]:
        """Return suggestions of how to read this table, for the role that is lacking.

        ``lacking`` is "label", "probs" or "predicted_label". Each suggestion has arguments of
        :func:`read_predictions`, and the condition in words under which they are right. If there is
        none, or too many, a single one has placeholders such as COLUMN; [] if nothing is left to
        name.
        """
        if grades := self.of_grades():
            return grades
        if labels := self.several_labels():
            return labels
        probs: list[Options] = [{}] if "probs" in self.given else self.probabilities()
        named = any("label" in p for p in probs)  # by the columns of predictions
        answers = [] if named else self.of_answers(probs, lacking)
        if lacking == "predicted_label":
            return self.of_confidence(answers)
        if answers and (not any(r.when for r in answers) or self.constant_truths()):
            return answers
        outcomes = [({}, "")] if self.given.keys() & {"label", "event"} else self.outcomes(probs)
        pairs = [(self.as_odds(o), when) for o, when in self.pairs(outcomes, probs)]
        every = [p for p in pairs if not (answers and self.has_answers(p[0]))]
        pairs = self.likeliest_first(self.ending_alike(self.telling(every)))
        if answers:  # a code of an answer is no outcome
            pairs = [p for p in pairs if "'CODE'" not in str(p[0].get("label"))]
        if self.times and "event" not in self.given:
            return [self.with_horizon(r) for r in self.followed(pairs, probs)]
        # Fractions may be outcomes above a threshold, which is less likely than shares
        plain = [p for p, _ in pairs if "NUMBER" not in str(p.get("label"))]
        if (shares := self.shares()) and not (plain or answers):
            return shares
        if (votes := self.of_votes(pairs, probs)) and not answers:
            return votes
        tried = [pair for pair in every if pair[0] not in [o for o, _ in pairs]]
        pairs = self.by_plausibility(pairs, tried, READINGS_OFFERED - len(answers))
        if len(pairs) + len(answers) > READINGS_OFFERED or not (pairs or answers):
            return self.with_places(outcomes, probs)
        rivals = [self.rivals_of(options, pairs, every) for options, _ in pairs]
        alone = len(pairs) == 1 and not answers and not rivals[0]
        named_outcomes = {str(options.get("label")) for options, _ in pairs}
        known = len(named_outcomes) == 1 and key(named_outcomes.pop()) in LABELS
        found = []
        for (options, when), several in zip(pairs, rivals, strict=True):
            named = "label" in options and not (known and several)
            names = [f"{options['label']} is the outcome"] if named else []
            called = [self.as_prediction(options)] if "probs" in options else []
            names += called
            if several and when:
                when = " and ".join([when, *called])
            if alone:
                when = when or self.if_lone_class(options, lacking) or self.if_unclear(options)
                when = " and ".join(filter(None, (when, self.if_percents(options))))
                column = None if "event" in self.given else self.followed_for(options)
                if column is not None:
                    event = options.get("label") or self.given.get("label")
                    ends = {"label": None, "event": event, "time": column.sql, "horizon": "NUMBER"}
                    followed = (when, f"rows were followed for {column.name}")
                    found.append(Reading(options | ends, " and ".join(filter(None, followed))))
                    options = options | {"as_is": True}  # the guard would ask about it again
                    followed = (when, f"{column.name} is not how long rows were followed")
                    when = " and ".join(filter(None, followed))
            elif answers and len(pairs) == 1:
                p, y = (options.get(n) or self.given.get(n) for n in ("probs", "label"))
                when = when or f"{p} is the probability of {y}"
            if "classes" in options and when and not alone:
                when = " and ".join([*names, when])
            found.append(Reading(options, when if alone else when or " and ".join(names)))
        return [*found, *answers]

    def with_places(
        self, outcomes: Sequence[tuple[Options, str]], probs: Sequence[Options]
    ) -> list[Reading]:
        """Return suggestions with the placeholder COLUMN for the outcome, the prediction, or both.

        Each sets ``label`` and ``probs``, arguments of :func:`read_predictions`, that the user has
        not given. ``outcomes`` are (options, condition) of guessed outcomes, of which a single one
        without a condition is named. ``probs`` are the options of guessed predictions; of up to six
        each has a suggestion, with a condition in words if there are several. [] if both are given.
        """
        given = {"label": "label" in self.given, "probs": "probs" in self.given}
        need = {name: "COLUMN" for name, there in given.items() if not there}
        listed = [n for n in self.free if key(n) in LABELS]
        need |= {"label": quoted(listed[0])} if "label" in need and len(listed) == 1 else {}
        if len({str(o) for o, _ in outcomes}) == 1 and not outcomes[0][1]:
            need |= outcomes[0][0]
        known = [p for p in probs if given["probs"] or self.may_be_alone(p)]
        if not need or not 0 < len(known) <= READINGS_OFFERED:
            return [Reading(need)] if need else []
        if len(known) == 1:
            return [Reading({**need, **known[0]})]
        return [Reading({**need, **p}, self.as_prediction(p)) for p in known]

    def by_plausibility(
        self, pairs: list[tuple[Options, str]], tried: list[tuple[Options, str]], most: int
    ) -> list[tuple[Options, str]]:
        """Return pairs of outcome and prediction, most plausible first, with likely ones added.

        ``pairs`` are (options, condition): arguments ``label`` and ``probs`` of
        :func:`read_predictions`, and the condition in words. If all have one outcome, those come
        first whose columns are called predictions, and then those that rank the outcomes best; what
        is called the prediction of another time comes last. Percents with other names are added if
        no prediction is called so, and they rank the outcomes about as well. ``tried`` are the
        pairs that do not rank their outcomes; those with an outcome of ``pairs`` that are plausible
        by :meth:`is_rival` are added as well, unless there are more than ``most``. If there are
        more without them, only predictions that are called so are returned, if there are any.
        """
        if not pairs or "probs" in self.given or any("," in str(o.get("probs")) for o, _ in pairs):
            return pairs
        pairs = [
            pair
            for pair in pairs
            if self.may_be_alone(pair[0]) or self.rank_score(pair[0]) >= TELLS
        ]
        labels = [*dict.fromkeys(str(o.get("label")) for o, _ in pairs)]
        called = any(self.is_called(o) for o, _ in pairs)
        more = [] if called else self.rivals(pairs)
        more += [
            pair for pair in tried
            if str(pair[0].get("label")) in labels and self.is_rival(pair[0], pairs)
        ]  # fmt: skip
        pairs = pairs + more if len(pairs) + len(more) <= most else pairs
        if len(pairs) > most:
            pairs = [pair for pair in pairs if self.is_called(pair[0])] or pairs
        if len(labels) > 1:  # in their order
            return pairs

        def order(pair: tuple[Options, str]) -> tuple[bool, bool, float]:
            options = pair[0]
            return self.is_prior(options), not self.is_called(options), -self.rank_score(options)

        return sorted(pairs, key=order)

    def is_rival(self, options: Options, pairs: Sequence[tuple[Options, str]]) -> bool:
        """Return whether guessed predictions are plausible, though others rank the outcomes better.

        They are unless they stand in one of ``pairs``, (options, condition) that do, or only their
        names do not say that they hold predictions. ``options`` are arguments of
        :func:`read_predictions`.
        """
        called = any(self.is_called(o) for o, _ in pairs)
        other = options.get("probs") not in [o.get("probs") for o, _ in pairs]
        return other and (self.is_called(options) or (not called and self.may_be_alone(options)))

    def rivals_of(
        self,
        options: Options,
        pairs: Sequence[tuple[Options, str]],
        every: Sequence[tuple[Options, str]],
    ) -> bool:
        """Return whether other columns than those of a pair may predict its outcome.

        ``options`` are the arguments ``label`` and ``probs`` of :func:`read_predictions` of the
        pair. ``pairs`` are (options, condition) of all pairs that are offered, and ``every`` of
        those that were tried.
        """
        label, probs = options.get("label"), options.get("probs")
        beside = [o for o, _ in pairs if o.get("label") == label and o.get("probs") != probs]
        return bool(beside) or any(
            o.get("label") == label and self.is_rival(o, pairs) for o, _ in every
        )

    def rank_score(self, options: Mapping[str, Any]) -> float:
        """Return the size of z of a rank test of guessed predictions, rounded; 0 without rows.

        ``options`` are arguments of :func:`read_predictions` that name predictions and outcome, or
        the given ones do.
        """
        rows = self.rows(options)
        return 0.0 if rows is None else round(abs(order_of_events(rows[0], rows[1])[1]), 1)

    def may_be_alone(self, options: Mapping[str, Any]) -> bool:
        """Return whether guessed predictions are plausible if they do not rank the outcomes.

        Whole numbers up to 100 are not, unless a word in the name says what they are. ``options``
        are arguments of :func:`read_predictions`, of which ``probs`` counts.
        """
        names = [n for n in self.roots(options.get("probs")) if n in self.numbers]
        return self.is_called(options) or not any(
            self.whole_percents(n) and not self.percents(n) for n in names
        )

    def rivals(self, pairs: Sequence[tuple[Options, str]]) -> list[tuple[Options, str]]:
        """Return (options, condition) for percents with any name that rank outcomes about as well.

        Each replaces the prediction in a copy of one of ``pairs``, which are (options, condition)
        with arguments ``probs`` and ``label`` of :func:`read_predictions`. Their columns hold
        numbers up to 100, and rank the outcomes of that pair (z of at least 3.5). The area under
        the curve is not clearly below that of the pair's prediction, and below 0.99, from which on
        a column rather follows from the outcome.
        """
        used = {root for o, _ in pairs for root in self.roots(o.get("probs"))}
        used |= {root for o, _ in pairs for root in self.roots(o.get("label"))}
        found = list[tuple[Options, str]]()
        best = {str(o.get("label")): (o, when) for o, when in sorted(
            pairs, key=lambda pair: self.rank_score(pair[0]))}  # fmt: skip
        for options, when in best.values():
            rows = self.rows(options)
            for name in (n for n in self.numbers if n not in used and n not in self.times):
                within = self.is_within(name, 1.0, 100.0) or self.whole_percents(name)
                other = numbers_of(rows[2][name]) if rows is not None and within else None
                if rows is None or other is None:
                    continue
                known = np.isfinite(other)
                p, y, x = rows[0][known], rows[1][known], other[known]
                area, z = order_of_events(x, y)
                if z >= TELLS and area < DECIDES and order_gap(p, x, y) < TELLING:
                    found.append((options | self.scaled([name]), when))
        return found

    def if_lone_class(self, options: Options, lacking: str) -> str:
        """Return the condition that a column such as ``p_fraud`` is the probability of label 1.

        ``options`` are guessed arguments of :func:`read_predictions`. "" for other columns, and
        unless ``lacking``, the role that the user has not named, is "probs".
        """
        listed = self.terms(options.get("probs"))
        name = listed[0].column if len(listed) == 1 else None
        lone = name is not None and FAMILY.fullmatch(name) and ends_of([name]) != ["1"]
        return f"{name} is the probability of label 1" if lone and lacking == "probs" else ""

    def if_unclear(self, options: Options) -> str:
        """Return the condition that a column is the prediction if neither name nor order tells.

        ``options`` are guessed arguments of :func:`read_predictions`. "" for several columns, if
        its name says that it
        holds predictions, and if it ranks the outcomes and no other column of numbers ranks them
        better; if it does not, then only if no other column holds numbers but ids, and 0 and 1.
        """
        rows = self.rows(options)
        single = len(self.terms(options.get("probs"))) == 1
        if not single or self.is_called(options) or rows is None:
            return ""
        p, y, frame = rows
        used = {root for o in ("probs", "label") for root in self.roots(options.get(o))}
        others = [n for n in self.numbers if n not in used and n not in self.times]
        free = [n for n in others if n not in self.two]
        free = [n for n in free if np.unique(self.numbers[n]).size < self.frame.height
                or (np.nan_to_num(self.numbers[n]) % 1 != 0).any()]  # fmt: skip
        unclear = self.rank_score(options) < TELLS and bool(free)
        for name in others if not unclear else ():
            x = numbers_of(frame[name])
            if x is None:
                continue
            known = np.isfinite(x)
            area, z = order_of_events(x[known], y[known])
            better = order_gap(np.sign(z) * x[known], p[known], y[known])
            unclear |= max(area, 1.0 - area) < DECIDES and abs(z) >= TELLS and better > 0.0
        return self.as_prediction(options) if unclear else ""

    def has_answers(self, options: Options) -> bool:
        """Return whether one column of predictions stands beside a label of three or more words.

        The label then may hold the true answers. ``options`` are guessed arguments of
        :func:`read_predictions` that name both; arguments that the user gave are used where it
        lacks them.
        """
        listed = self.terms(options.get("probs") or self.given.get("probs"))
        label = self.terms(options.get("label") or self.given.get("label"))
        name = label[0].column if len(label) == 1 else None
        return len(listed) == 1 and name in self.words and self.words[name].n_unique() > 2

    def ending_alike(self, pairs: list[tuple[Options, str]]) -> list[tuple[Options, str]]:
        """Return pairs of outcome and prediction without pairs such as obs_A with pred_B.

        ``pairs`` are (options, condition): arguments ``label`` and ``probs`` of
        :func:`read_predictions`, and the condition in words under which they are right. A pair of
        plain columns is left out if its names end unlike, and either of them has another pair in
        which they end alike, such as obs_A with pred_A.
        """
        names = [(str(o.get("label", "")).strip('"'), str(o.get("probs", "")).strip('"'))
                 for o, _ in pairs]  # fmt: skip
        alike = [(y, p) for y, p in names if "_" in y and "_" in p
                 and y.partition("_")[2] == p.partition("_")[2]]  # fmt: skip
        paired = {name for two in alike for name in two}
        return [
            pair
            for pair, two in zip(pairs, names, strict=True)
            if two in alike or not paired & {*two}
        ]

    def likeliest_first(self, pairs: list[tuple[Options, str]]) -> list[tuple[Options, str]]:
        """Return pairs of outcome and prediction in order, those whose names share words first.

        Among these, the higher predictions come first with the more frequent outcome, where there
        are as many of both, and else predictions that are better than one number for all. ``pairs``
        are (options, condition): arguments ``label`` and ``probs`` of :func:`read_predictions`, and
        the condition in words under which they are right. Pairs of the same rank stay in their
        order, and so do pairs of which one cannot be read.
        """
        if not 1 < len(pairs) <= 2 * READINGS_OFFERED:
            return pairs
        said = [{**self.given, **options} for options, _ in pairs]
        names = [(str(each.get("label")), str(each.get("probs"))) for each in said]
        rows = [self.rows(o) if "NUMBER" not in y else None
                for (o, _), (y, _) in zip(pairs, names, strict=True)]  # fmt: skip
        read = [(r[0], r[1]) for r in rows if r is not None]
        if len(read) < len(pairs):
            return pairs
        rates = {y: float(r[1].mean()) for (y, _), r in zip(names, read, strict=True)}
        means = {p: float(r[0].mean()) for (_, p), r in zip(names, read, strict=True)}
        ranks = {y: k for k, y in enumerate(sorted(rates, key=rates.__getitem__))}
        ranks |= {p: k for k, p in enumerate(sorted(means, key=means.__getitem__))}

        def rank(place: int) -> tuple[int, int]:
            y, p = names[place]
            words = [{w for r in self.roots(n) for w in key(r).split("_")} for n in (y, p)]
            apart = abs(ranks[y] - ranks[p])
            if len(rates) != len(means):
                apart = int(constant_gain(*read[place]) > 0.0)
            return -len(words[0] & words[1]), apart

        return [pairs[place] for place in sorted(range(len(pairs)), key=rank)]

    def several_labels(self) -> list[Reading]:
        """Return suggestions for a table with pairs of columns such as p_A, y_A and p_B, y_B.

        The columns y of 0 and 1 are called after the columns p of probabilities but for their
        beginning or end, and may be called A and B. Each suggestion has options of
        :func:`read_predictions` and a condition in words: rows with several labels (command
        ``audit``), one of up to four pairs, or several models (command ``compare``). [] if there
        are no such pairs, or if probabilities sum to 1 as they do for one label.
        """
        if self.given.keys() - {"features"}:
            return []
        flags = [n for n in self.two if n in self.numbers and self.keys(n) == {"0", "1"}]
        probs = [n for n in self.numbers if n not in flags and self.is_within(n, 0.0, 1.0)]
        groups = [[n for n in probs if n.startswith(f"{word}_")]
                  for word in dict.fromkeys(n.partition("_")[0] for n in probs)]  # fmt: skip
        groups += [[n for n in probs if n.endswith(f"_{word}")]
                   for word in dict.fromkeys(n.rpartition("_")[2] for n in probs)]  # fmt: skip
        found = []
        for names in (names for names in groups if len(names) > 1):
            for pairs in called_alike(names, flags):
                if not self.sum_to_one([*pairs]) and pairs not in found:
                    found.append(pairs)
        if len(found) != 1:
            return []
        (pairs,) = found
        each = [(quoted(p), quoted(y)) for p, y in pairs.items()]
        named = {"probs": ", ".join(p for p, _ in each), "label": ", ".join(y for _, y in each)}
        short = all(p.startswith("p_") and y.startswith("y_") for p, y in pairs.items())
        labels_of_row = {} if short else named
        alone = [
            Reading({"probs": p, "label": y}, f"{y} is the only outcome, and {p} the prediction")
            for p, y in each
        ]
        return [
            Reading({**labels_of_row, "multilabel": True}, "a row can have several labels at once",
                    verb="audit"),
            *(alone if len(alone) < READINGS_OFFERED - 1 else []),
            Reading(named, "each is a model with outcomes of its own", verb="compare"),
        ]  # fmt: skip

    def shares(self) -> list[Reading]:
        """Return a list with the suggestion that columns of this table hold shares of votes, or [].

        Two groups of columns sum to 1 in every row: predictions and shares. They must end alike, as
        pred_A, pred_B and actual_A, actual_B do, and the name of one group must say that it holds
        shares. The suggestion sets ``probs`` and ``votes``, arguments of :func:`read_predictions`,
        with the placeholder NUMBER for the number of votes.
        """
        families = [in_order(names) for names in self.families([*self.numbers])]
        if self.given.keys() & {"probs", "label", "event"} or len(families) != 2:
            return []
        families.sort(key=lambda names: bool({*key(names[0]).split("_")} & SHARE_WORDS))
        probs, votes = families
        ends = [[*map(key, ends_of(names))] for names in families]
        if ends[0] != ends[1] or not {*key(votes[0]).split("_")} & SHARE_WORDS:
            return []
        options = {"probs": ", ".join(map(quoted, probs)), "votes": shares_of(map(quoted, votes))}
        return [Reading(options, f"{', '.join(votes)} are shares of a NUMBER of votes")]

    def of_votes(
        self, pairs: Sequence[tuple[Options, str]], probs: Sequence[Options]
    ) -> list[Reading]:
        """Return a list with the suggestion that columns of this table are votes, or [].

        It sets ``votes``, an argument of :func:`read_predictions`, and has the condition in words.
        It is made only if the likely outcomes use no other columns: ``pairs`` are (options,
        condition) of outcomes with predictions, and ``probs`` the guessed options for the
        predictions alone.
        """
        counts = self.votes(probs)
        columns = {root for r in counts for root in self.roots(r.options["votes"])}
        if counts and all({*self.roots(p.get("label"))} <= columns for p, _ in pairs):
            return counts
        return self.votes_of_raters(pairs, probs)

    def votes(self, probs: Sequence[Options]) -> list[Reading]:
        """Return a list with the suggestion that two columns of this table count votes, or [].

        They are whole numbers ≥ 0, called after no and yes, as votes_no and votes_yes. The
        suggestion sets ``votes``, an argument of :func:`read_predictions`, and has the condition in
        words. ``probs`` are the guessed options for the predictions. [] also if several pairs of
        columns fit, the user named an outcome, or ``probs`` does not have exactly one entry.
        """
        if self.given.keys() & {"label", "event", "votes"} or len(probs) != 1:
            return []
        found = []
        words = {word for pair in NO_YES for word in pair}
        names = [n for n in self.numbers if re.split(r"_|\W", n)[-1].lower() in words]
        for no, yes in ((a, b) for a in names for b in names):
            stems = [re.sub(r"[^_\W]+$", "", name) for name in (no, yes)]
            ends = tuple(name[len(stems[0]) :].lower() for name in (no, yes))
            counts = (self.numbers[name] for name in (no, yes))
            whole = all((c >= 0.0).all() and (c % 1 == 0).all() for c in counts)
            if stems[0] == stems[1] and ends in NO_YES and whole:
                options = {"votes": f"{quoted(no)}, {quoted(yes)}", **probs[0]}
                found.append(Reading(options, f"{no} and {yes} count the votes on each row"))
        return found if len(found) == 1 else []

    def votes_of_raters(
        self, pairs: Sequence[tuple[Options, str]], probs: Sequence[Options]
    ) -> list[Reading]:
        """Return a list with the suggestion that columns are votes of raters, one each, or [].

        They are three or more columns of this table with numbered names and the words no and yes.
        The suggestion sets ``votes``, an argument of :func:`read_predictions`, to sums over them.
        ``pairs`` are (options, condition) of likely outcomes with predictions, all of which have to
        use one of these columns; ``probs`` are the guessed options for the predictions, exactly
        one.
        """
        if "label" in self.given or len(probs) != 1:
            return []
        names = [*dict.fromkeys(r for p, _ in pairs for r in self.roots(p.get("label")))]
        stems = {re.sub(r"\d+$", "", name) for name in names}
        if len(names) < 3 or len(stems) != 1 or names[0] in stems or {*names} - {*self.two}:
            return []
        words = {word for name in names for word in self.words[name].to_list()}
        order = next((p for p in NO_YES if {w.lower() for w in words} == {*p}), None)
        if order is None or len(words) != 2 or not all(map(self.is_text, names)):
            return []
        each = []
        for word in sorted(words, key=lambda w: order.index(w.lower())):
            sums = (f"({quoted(name)} = {text_literal(word)})" for name in names)
            each.append(" + ".join(f"CAST({one[1:-1]} AS INTEGER)" for one in sums))
        said = f"{names[0]} to {names[-1]} are votes on each row"
        return [Reading({"votes": ", ".join(each), **probs[0]}, said)]

    def pairs(
        self, outcomes: Sequence[tuple[Options, str]], probs: Sequence[Options]
    ) -> Iterator[tuple[Options, str]]:
        """Yield (options, condition) for each outcome with each prediction, both in one dict.

        Options are arguments of :func:`read_predictions`. ``outcomes`` are (options, condition) of
        guessed outcomes, ``probs`` options of guessed predictions. Pairs that use one column for
        both, or whose label is the predicted class, are left out. The option ``drop_missing`` is
        set where rows lack a prediction, ``classes`` where names do not tell their order.
        """
        for found in outcomes:
            for p in probs:
                outcome, when = found
                columns = self.roots(outcome.get("label"))
                if columns and str(outcome["label"]).endswith((">= NUMBER", "< NUMBER")):
                    outcome, when = self.threshold(columns[0], [p])
                options = {**outcome, **p}
                used = [{*self.roots(each.get(name))} for each, name in
                        ((outcome, "label"), (p, "probs"))]  # fmt: skip
                if options and not used[0] & used[1] and not self.is_argmax(options):
                    gaps = self.without_gaps(options)
                    for classes, order in self.class_orders(options):
                        said = " and ".join(filter(None, (when, order)))
                        yield options | gaps | classes, said

    def family(self, options: Mapping[str, Any]) -> tuple[list[str], pl.Series] | None:
        """Return (ends, words): the name ends of several columns of probabilities, and label words.

        ``ends`` are in the order of the columns, in lower case; ``words`` is the label as a polars
        column of text. ``options`` are guessed arguments of :func:`read_predictions` that name the
        columns and the label, or else the given ones do. None if there is one column of
        probabilities only, or no label of words.
        """
        listed = self.terms(options.get("probs") or self.given.get("probs"))
        label = self.terms(options.get("label") or self.given.get("label"))
        if len(listed) < 2 or len(label) != 1 or label[0].column is None:
            return None
        names = [(term.roots or [term.name])[0] for term in listed]
        words = words_of(self.frame[label[0].column])
        return None if words is None else ([key(end) for end in ends_of(names)], words)

    def class_orders(self, options: Mapping[str, Any]) -> list[tuple[Options, str]]:
        """Return (options, condition) for each likely order of classes that names do not tell.

        ``options`` are guessed arguments of :func:`read_predictions` that name the columns of
        probabilities. Each dict returned is ``{"classes": "a,b,c"}``, with the condition in words;
        if no order is likely, it has placeholders ``CLASS1,CLASS2``; if names tell the classes, it
        is {}. [] if the label has too few values to be one of these classes.
        """
        found = self.family(options)
        if found is None or self.wanted.classes or {"classes", "where"} & options.keys():
            return [({}, "")]
        ends, words = found
        seen = {*map(key, words.drop_nulls().unique().to_list())}
        numbered = seen <= {str(k) for k in range(len(ends))} and all(map(str.isdecimal, ends))
        if numbered:
            return [({}, "")]
        if seen <= {*ends}:  # expressions have no names
            listed = self.terms(options.get("probs") or self.given.get("probs"))
            said = {key(word): word for word in words.drop_nulls().unique().to_list()}
            order = ",".join(said.get(end, end) for end in ends)
            named = all(term.column is not None for term in listed)
            return [({} if named else {"classes": order}, "")]
        if options.get("from_logits") and (listed_words := self.options_of_rows(len(ends))):
            each = [self.frame[name].unique() for name in listed_words]
            if all(len(one) == 1 for one in each):
                return [({"classes": ",".join(one[0] for one in each)}, "")]
            return [({}, "")]  # where the rows are read, they say it
        columns = self.family_numbers(options)
        known = words.is_not_null().to_numpy()
        if columns is not None:
            known &= np.isfinite(columns).all(axis=1)
            labels = words.filter(known).to_list()
            orders = orders_of_classes(ends, labels, columns[known])
            if orders:
                return [({"classes": ",".join(order)}, when) for order, when in orders]
            if np.allclose(columns[known].sum(axis=1), 1.0, atol=0.02) and too_few_labels(
                columns[known], len(seen)
            ):
                return []
        return [({"classes": class_places(len(ends))}, "")]

    def family_numbers(self, options: Mapping[str, Any]) -> FloatArray | None:
        """Return the numbers of several columns of probabilities, (n, K); None for other cells.

        The softmax of logits is taken.
        ``options`` are guessed arguments of :func:`read_predictions` that name the K columns, or
        else the given ones do.
        """
        listed = self.terms(options.get("probs") or self.given.get("probs"))
        found = (numbers_of(self.frame.select(term.expr).to_series()) for term in listed)
        columns = [column for column in found if column is not None]
        if len(columns) < len(listed):
            return None
        numbers = np.column_stack(columns)
        if options.get("from_logits") and len(listed) > 1:
            numbers = np.exp(numbers - numbers.max(axis=1, keepdims=True))
            numbers = numbers / numbers.sum(axis=1, keepdims=True)
        return numbers

    def is_argmax(self, options: Mapping[str, Any]) -> bool:
        """Return whether the label is the class of the largest probability in every row seen.

        ``options`` are guessed arguments of :func:`read_predictions` that name the columns of
        probabilities and the label. False for fewer than 20 rows.
        """
        found = self.family(options)
        if found is None:
            return False
        ends, words = found
        columns = self.family_numbers(options)
        if len(words) < TOLD or columns is None:
            return False
        top = np.argmax(columns, axis=1)
        said = [key(word or "") for word in words.to_list()]
        return said == [ends[k] for k in top] or said == [str(k) for k in top]

    def without_gaps(self, options: Mapping[str, Any]) -> Options:
        """Return ``{"drop_missing": True}`` if over 1 % of the rows lack a prediction, else {}.

        It is {} as well if other rows lack an outcome, or the option is given. ``options`` are
        guessed arguments of :func:`read_predictions` that name the columns of predictions and
        outcomes.
        """
        gaps: dict[str, Any] = {}
        for option in ("probs", "label", "predicted_label"):
            listed = self.terms(options.get(option) or self.given.get(option))
            names = sorted({root for term in listed for root in term.roots})
            gaps[option] = self.frame.select(names).to_numpy() if names else None
        lacking = {
            option: np.array([any(c is None or c != c for c in row) for row in cells])
            for option, cells in gaps.items()
            if cells is not None
        }
        out = lacking.get("probs")
        if self.wanted.drop_missing or out is None or out.mean() <= FEW:
            return {}
        others = [rows & ~out for option, rows in lacking.items() if option != "probs"]
        return {} if any(rows.any() for rows in others) else {"drop_missing": True}

    # --- answers -------------------------------------------------------------------------------

    def of_answers(self, probs: Sequence[Options], lacking: str) -> list[Reading]:
        """Return suggestions in which one text column is the model's answer and another the truth.

        Each has arguments of :func:`read_predictions`, and the condition in words under which they
        are right. Both columns hold the same words. Which is which makes no difference: the answer
        is right where they are equal. ``probs`` are the guessed options for the confidence, and
        ``lacking`` ("label", "probs" or "predicted_label") is the role that the user has not named.
        [] if no two columns fit.
        """
        if self.given.keys() & {"event"} or (
            "label" in self.given and lacking not in ("predicted_label", "probs")
        ):
            return []
        guess, truth = (self.one_column(name) for name in ("predicted_label", "label"))
        listed = [n for n in self.free if key(n) in LABELS]
        truths = [truth] if truth else listed or [n for n in self.words if self.is_text(n)]
        guesses = [guess] if guess else [n for n in self.words if n not in listed]
        truths += [] if truth or listed else self.constant_truths()
        roles = dict.fromkeys(self.in_roles(a, b) for a in guesses for b in truths if a != b)
        found = [
            (reading, f"{a} is the answer and {b} the truth")
            for a, b in roles
            if self.share_words(a, b) and self.are_often_equal(a, b)
            for reading in self.sure_of(a, b, probs, lacking)
        ]
        ranks = [self.ranks_answers(reading) for reading, _ in found]
        if max(ranks, default=0.0) >= TELLS:  # the second best answer has no confidence like this
            found = [each for each, z in zip(found, ranks, strict=True) if z >= TELLING]
        if len(found) == 1 or len({when for _, when in found}) == 1:
            return [reading for reading, _ in found]
        return [
            Reading(r.options, r.when or when)
            for r, when in found
            if len(found) <= READINGS_OFFERED
        ]

    def ranks_answers(self, reading: Reading) -> float:
        """Return z of a rank test whether right answers have higher confidences than wrong ones.

        z is standard normal without association, and positive if right answers have higher ones.
        ``reading`` is a suggestion whose options name the columns of confidence, answer and truth;
        0 if one of them cannot be read.
        """
        said = {**self.given, **reading.options}
        p = numbers_of(self.frame.select(self.terms(said["probs"])[0].expr).to_series())
        answer, truth = (
            words_of(self.frame.select(self.terms(said[name])[0].expr).to_series())
            for name in ("predicted_label", "label")
        )
        if p is None or answer is None or truth is None:
            return 0.0
        right = (answer.str.to_lowercase() == truth.str.to_lowercase()).fill_null(False).to_numpy()
        known = np.isfinite(p)
        return order_of_events(p[known], right[known] * 1)[1]

    def in_roles(self, a: str, b: str) -> tuple[str, str]:
        """Return two columns as (answer, truth), judged by their names ``a`` and ``b``.

        They stay in this order if the user named one; in alphabetical order if no name tells.
        """
        if self.one_column("predicted_label") or self.one_column("label"):
            return a, b
        second = {key(a), *key(a).split("_")} & TRUTH and not {key(b), *key(b).split("_")} & TRUTH
        return (
            (b, a) if second else (a, b) if {key(b), *key(b).split("_")} & TRUTH else min_max(a, b)
        )

    def constant_truths(self) -> list[str]:
        """Return the names of text columns of this table that hold the truth, and a single word.

        The name of such a column says so, as "truth" or "answer_key" do; all rows answer one
        question. Another column, of answers, has to hold the word among others.
        """
        named = [n for n in self.free if {*key(n).split("_")} & TRUTH
                 and (n not in self.words or not self.is_text(n))]  # fmt: skip
        if not named:
            return []
        words = [{*self.words[n].to_list()} for n in self.words if self.is_text(n)]
        found = []
        for name in named:
            cells = self.frame[name]
            one = {*cells.to_list()} if str(cells.dtype) == "String" else set[str]()
            if len(one) == 1 and any(one < others for others in words):
                found.append(name)
        return found

    def share_words(self, a: str, b: str) -> bool:
        """Return whether two columns hold the same words, ignoring case and common affixes.

        ``a`` and ``b`` are their names. At least half of the words of the column with fewer words
        have to be common, and at least two.
        """
        if b in self.constant_truths():
            return self.frame[b][0] in {*self.words[a].to_list()} if a in self.words else False
        listed = []
        for name in (a, b):
            words = words_of(self.frame[name])
            if words is None or not 2 <= words.drop_nulls().n_unique() <= MOST_WORDS:
                return False
            listed.append([word.strip() for word in words.drop_nulls().unique().to_list()])
        first, second = listed
        if not (self.is_text(a) or self.is_text(b)) and {*first} != {*second}:
            return False
        if max(len(first), len(second)) > PREFIXED:  # many words share their ends by chance
            return 2 * len({*map(str.lower, first)} & {*map(str.lower, second)}) >= len(second)
        shorter = {*bare_words(first, [w.lower() for w in second]).values()}
        shared = shorter & {w.lower() for w in second}
        return 2 * len(shared) >= min(len(shorter), len({w.lower() for w in second})) >= 2

    def are_often_equal(self, a: str, b: str) -> bool:
        """Return whether two columns hold the same word in more rows than chance would have it.

        Case, signs around words, and what all words of a column share are ignored. Chance is that
        of words at their frequencies in independent columns, and a standard error more. ``a`` and
        ``b`` are the names of the columns. Among fewer than 20 rows, and if ``b`` has a single
        word, one such row is enough. False for columns of dates.
        """
        cells = [self.frame[name] for name in (a, b)]
        if any(map(is_date, cells)):
            return False
        words = [words_of(each) for each in cells]
        if any(one is None for one in words):
            return False
        rows = [(x.strip(), y.strip()) for x, y in zip(*words, strict=True)
                if x is not None and y is not None]  # fmt: skip
        first, second = ({*each} for each in zip(*rows, strict=True)) if rows else (set(), set())
        if len(first) <= PREFIXED and len(second) <= PREFIXED:
            shorter = bare_words(sorted(first), [w.lower() for w in second])
            longer = bare_words(sorted(second), [*shorter.values()])
            rows = [(shorter[x], longer[y]) for x, y in rows]
        rows = [(x.lower().strip(AROUND), y.lower().strip(AROUND)) for x, y in rows]
        same = sum(x == y for x, y in rows)
        if len(rows) < TOLD or len(second) == 1:
            return same > 0
        counts = [Counter(each) for each in zip(*rows, strict=True)]
        expected = sum(k * counts[1][w] for w, k in counts[0].items()) / len(rows)
        return same > expected + expected**0.5

    def sure_of(self, a: str, b: str, probs: Sequence[Options], lacking: str) -> list[Reading]:
        """Return suggestions of columns that may be the confidence in a model's answer.

        Each has arguments of :func:`read_predictions`, and the condition in words under which they
        are right. ``a`` is the column of the answer and ``b`` the column of the true label.
        ``probs`` are the guessed options for predictions, of which each is tried, and ``lacking``
        ("label", "probs" or "predicted_label") is the role that the user has not named.
        """
        found = []
        for options in probs:
            listed = self.terms(options.get("probs") or self.given.get("probs"))
            if len(listed) != 1 or {a, b} & {*listed[0].roots}:
                continue
            p = numbers_of(self.frame.select(listed[0].expr).to_series())
            columns = [column_of_cells(self.frame[name]) for name in (a, b)]
            if p is None or any(c is None or _is_decided(p, c.coded) for c in columns):
                continue
            plain = not self.is_text(a) and lacking != "predicted_label"
            kinds = max(2, *(0 if c is None else c.n_values for c in columns))
            if plain and np.nanmin(p) < 1.0 / kinds - 0.005:  # of the likeliest of so many classes
                continue
            given = {"predicted_label": quoted(a), "label": quoted(b)}
            chosen = {o: v for o, v in given.items() if o not in self.given} | options
            chosen |= self.without_gaps(chosen)
            name = listed[0].roots[0] if listed[0].roots else ""
            called = key(name) in CONFIDENCES and len(probs) == 1
            sure = "predicted_label" in self.given or (called and not plain)
            when = "" if sure else f"{listed[0].sql} is the confidence in {a}"
            found.append(Reading(chosen, when))
        return found

    def of_confidence(self, answers: Sequence[Reading]) -> list[Reading]:
        """Return suggestions for a confidence: in which answer, or with which label.

        The label says whether an answer was right. Each suggestion has arguments of
        :func:`read_predictions`, and the condition in words under which they are right. ``answers``
        are the suggestions that name a column of answers. If there is none, the argument
        ``predicted_label`` is the placeholder COLUMN.
        """
        labels = [n for n in self.words if key(n) in LABELS]
        if len(labels) != 1 or not self.keys(labels[0]) <= {"0", "1", "false", "true"}:
            verdicts = [] if answers else self.verdicts()
            return [*answers, *verdicts] or [Reading({"predicted_label": "COLUMN"})]
        right = Reading(
            {"label": quoted(labels[0])}, f"{labels[0]} says whether the answer was right"
        )
        whens = (f"{r.options['predicted_label']} is the answer" for r in answers)
        others = [Reading(r.options, when) for r, when in zip(answers, whens, strict=True)]
        return [*(others or [Reading({"predicted_label": "COLUMN"})]), right]

    def verdicts(self) -> list[Reading]:
        """Return suggestions by which one word of a column says that an answer was right.

        Each sets ``label``, an argument of :func:`read_predictions`, to a comparison with the word,
        such as ``verdict = 'correct'``, and has the condition in words. The confidences have to be
        higher in the rows with that word. [] if there is none, or more than six.
        """
        found = []
        for options in self.probabilities():
            for name in (n for n in self.words if self.is_text(n) or n in self.two):
                words = sorted({*self.words[name].to_list()})
                for word in words if 2 <= len(words) <= CODES else ():
                    label = f"{quoted(name)} = {literal(word, self.frame[name])}"
                    rows = self.rows({**options, "label": label})
                    if rows is not None and order_of_events(rows[0], rows[1])[1] >= TELLS:
                        reading = {"label": label, **options}
                        reading |= self.without_gaps(reading)
                        found.append(Reading(reading, f"{word} says that an answer was right"))
        return found if len(found) <= READINGS_OFFERED else []

    # --- grades, follow-up, and which pairs are likely -----------------------------------------

    def of_grades(self) -> list[Reading]:
        """Return suggestions to read this table as counts of grades, or [].

        They are for the command ``grades``. Grades are groups of rows with a predicted probability,
        one row each. A suggestion has options of :func:`caltest.grade_tests`, and the condition in
        words; one is that columns count rows and events, unless their names say so. [] for outcomes
        of 0 and 1 in more than 20 rows, if the user named columns already, and for tables of many
        rows and columns.
        """
        long = self.frame.height > GRADES
        if self.given or (long and self.frame.width > COLUMNS_OF_GRADES):
            return []
        frame = self.frame.drop_nulls()
        readings = likely_grades(frame, {}, REQUIRED) if frame.height else []
        if not readings or not all(r.complete for r in readings):
            return []
        means = [self.numbers.get(str(r.options["n"]).strip('"'), np.ones(1)) for r in readings]
        if any(np.nanmean(n) < 5.0 for n in means):
            return []
        if self.frame.height > GRADES and (len(readings) > 1 or not self.are_counts(readings[0])):
            return []
        columns = [str(readings[0].options[what]).strip('"') for what in ("events", "n")]
        words = {word for name in columns for word in key(name).split("_")}
        called = bool(words & (GRADE_NAMES["n"] | GRADE_NAMES["events"]))
        single = columns[0] in self.two and self.keys(columns[0]) == {"0", "1"}
        if single and not called and self.frame.height > FEW_GRADES:
            return []  # outcomes of rows
        unsure = f"{columns[1]} counts the rows of a grade and {columns[0]} its events"
        whens = [r.when or (unsure if not called else "") for r in readings]
        sided = [{**r.options, **self.both_sides(r)} for r in readings]
        return [Reading(o, when, verb="grades") for o, when in zip(sided, whens, strict=True)]

    def both_sides(self, reading: Reading) -> Options:
        """Return the option of a two-sided test of grades, ``{"alternative": "two-sided"}``, or {}.

        It is {} for grades of credit, which are tested for a risk that is underestimated.
        ``reading`` is a suggestion that names the columns of counts; words in these names tell.
        """
        words = {word for what in REQUIRED for word in key(str(reading.options[what])).split("_")}
        return {} if words & CREDIT_WORDS else {"alternative": "two-sided"}

    def are_counts(self, reading: Reading) -> bool:
        """Return whether all events of this table are as many as predicted, within a factor of two.

        Rows with events also have to have higher predicted numbers of them. ``reading`` has options
        that name the columns of counts: of rows, of events, and of the probability.
        """
        listed = (self.terms(reading.options[what]) for what in REQUIRED)
        cells = (self.frame.select(t[0].expr).to_series() if t else None for t in listed)
        found = [None if c is None else numbers_of(c) for c in cells]
        if any(values is None for values in found):
            return False
        n, events, p = (np.nan_to_num(values) for values in found if values is not None)
        column = self.terms(reading.options["probability"])[0].column
        p = p / (100.0 if column is not None and self.is_signed(column) else 1.0)
        expected, total = float(n @ p), float(events.sum())
        near = 0.5 * expected <= total <= 2.0 * expected
        return bool(near and total >= 1 and order_of_events(n * p, (events > 0) * 1)[1] > TELLS)

    def followed(
        self, pairs: Sequence[tuple[Options, str]], probs: Sequence[Options]
    ) -> list[Reading]:
        """Return suggestions in which rows were followed for a time until an event or another end.

        Each sets ``event``, ``time`` and ``horizon``, arguments of :func:`read_predictions`, in
        place of the label, and has the condition in words. ``pairs`` are (options, condition) of
        guessed outcomes with predictions, ``probs`` the guessed options for predictions alone.
        """
        place = {"time": quoted(self.times[0]), "horizon": "NUMBER"}
        when = f"rows were followed for {self.times[0]}"
        if "label" not in self.given and (found := self.endings(probs, place, when)):
            return found
        ends = [
            {"event": f"{quoted(n)} = {codes[0]}", "competing": f"{quoted(n)} = {codes[1]}"}
            for n in self.words
            if (codes := self.ends(n))
        ]
        given = self.given.get("label")
        if ends and given is None and not self.two:
            p = probs[0] if len(probs) == 1 else {"probs": "COLUMN"}
            return [Reading({"label": None, **e, **place, **p}, when) for e in ends[:3]]
        if "label" not in self.given and (two := self.two_ends(probs)):
            p = probs[0] if len(probs) == 1 else {} if "probs" in self.given else NO_PROBS
            return [
                Reading({"label": None, **e, **place, **p}, f"{when}, and {which}")
                for e, which in two
            ]
        found = []
        for options, _ in [*pairs[:3]] or [({}, "")]:
            event = options.get("label") or given or "COLUMN"
            others = {name: v for name, v in options.items() if name != "label"}
            if "probs" not in {**self.given, **others}:
                others["probs"] = probs[0]["probs"] if len(probs) == 1 else "COLUMN"
            found.append(Reading({"label": None, "event": event, **place, **others}, when))
        return found

    def with_time(self) -> list[Reading]:
        """Return readings with the time and the horizon that a given event lacks.

        Where the event is a column of several ends, each reading has one of them as the event.
        """
        wanted = self.wanted
        plain = replace(
            wanted, event=None, competing=None, strata=None, time=None, horizon=None, unit=None,
            recorded="exact",
        )  # fmt: skip
        head = _Readings(self.frame, plain)
        said: Options = {"time": wanted.time, "horizon": wanted.horizon}
        said = {name: value for name, value in said.items() if value is not None}
        event = self.terms(wanted.event)
        name = event[0].column if len(event) == 1 else None
        coded = name in head.words and head.keys(str(name)) not in ({"0", "1"}, {"false", "true"})
        if coded and head.times and wanted.competing is None:
            column = quoted(str(name))
            ends = [r for r in head.readings("label") if column in str(r.options.get("event"))]
            if ends:
                kept = [{o: v for o, v in r.options.items() if o != "label"} | said for r in ends]
                return [replace(r, options=o) for r, o in zip(ends, kept, strict=True)]
        place = {"time": quoted(head.times[0]) if head.times else "COLUMN", "horizon": "NUMBER"}
        guessed = [] if "probs" in self.given else head.probabilities()
        reading = Reading(place | said | (guessed[0] if len(guessed) == 1 else {}))
        return [head.with_horizon(reading) if head.times and not said else reading]

    def with_horizon(self, reading: Reading) -> Reading:
        """Return a suggestion with the horizon that the name of its prediction says, if it does.

        ``reading`` is the suggestion, arguments of :func:`read_predictions` for follow-up; the
        placeholder NUMBER of its ``horizon`` is replaced, and its condition says so. A column such
        as OS24 is the probability to survive, of which the complement is read. Otherwise it is
        returned unchanged.
        """
        said = {**self.given, **reading.options}
        names = [root for term in self.terms(said.get("probs")) for root in term.roots]
        time = self.times[0]
        months = [w for w in key(time).split("_") if len(w) > 1 and UNITS.get(w) == UNITS["months"]]
        alive = SURVIVAL.search(names[0]) if months and len(names) == 1 else None
        if alive is not None and said.get("horizon") == "NUMBER":
            survived = f"{names[0]} is the probability of survival to time {alive[1]}"
            options = {**reading.options, "horizon": alive[1], "probs": f"1 - {quoted(names[0])}"}
            return replace(reading, options=options, when=f"{reading.when} and {survived}")
        found = named_horizon(names[0], time, self.numbers[time]) if len(names) == 1 else None
        if found is None or said.get("horizon") != "NUMBER":
            return reading
        horizon, when = found
        options = {**reading.options, "horizon": f"{horizon:g}"}
        return replace(reading, options=options, when=f"{reading.when} and {when}")

    def endings(self, probs: Sequence[Options], place: Options, followed: str) -> list[Reading]:
        """Return suggestions in which a value of a column is the event, and other ends compete.

        Each sets arguments of :func:`read_predictions`, and has the condition in words. ``probs``
        are the guessed options for predictions, ``place`` the options for time and horizon, and
        ``followed`` the condition that rows were followed. If there would be too many suggestions,
        the column of predictions stays the placeholder COLUMN. The list is empty if no column of
        codes is related to the predictions.
        """
        listed = [{}] if "probs" in self.given else probs
        first = self.terms(listed[0].get("probs") or self.given.get("probs")) if listed else []
        p = numbers_of(self.frame.select(first[-1].expr).to_series()) if first else None
        if p is None:
            return []
        used = {root for term in first for root in term.roots} | {*self.times}
        columns = columns_of(self.frame, [n for n in self.words if n not in used])
        found = list[tuple[Options, str]]()
        for event, others in likely_ends(columns, self.numbers[self.times[0]], p):
            when = f"{followed} and {event.name} is the event"
            found += [
                (
                    {"event": event.sql, "competing": other.sql},
                    f"{followed}, {event.name} is the event and {other.name} a competing one",
                )
                for other in others
            ] or [({"event": event.sql}, when)]
        if not 0 < len(found) <= READINGS_OFFERED:
            return []
        many = len(found) * len(listed) > READINGS_OFFERED
        readings = []
        for ends, when in found:
            for more in [NO_PROBS] if many else listed:
                options = {"label": None, **ends, **place, **more}
                which = f" and {more['probs']} is the prediction" * (len(listed) > 1 and not many)
                readings.append(Reading(options | self.without_gaps(more), when + which))
        return readings if len(readings) > 1 else [Reading(readings[0].options, followed)]

    def two_ends(self, probs: Sequence[Options]) -> list[tuple[Options, str]]:
        """Return (options, condition) for each of two ends beside "censored" in a column of text.

        Options are ``event`` and ``competing``, arguments of :func:`read_predictions` as SQL; the
        condition says in words which end is the event. An end whose word is in the name of the
        predictions, of which ``probs`` are the options, comes first. [] without such a column.
        """
        called = "_".join(key(r) for p in probs for r in self.roots(p.get("probs")))
        for name in (n for n in self.words if self.is_text(n)):
            words = sorted({*self.words[name].to_list()})
            ends = [word for word in words if not says_censored(word)]
            if len(ends) != 2 or len(words) < 3:
                continue
            ends.sort(key=lambda word: key(word) not in called)
            sql = [f"{quoted(name)} = {text_literal(word)}" for word in ends]
            return [
                ({"event": a, "competing": b}, f"{x} is the event and {y} a competing one")
                for a, b, x, y in ((*sql, *ends), (*sql[::-1], *ends[::-1]))
            ]
        return []

    def ends(self, name: str) -> list[str]:
        """Return the codes above 0, as text, of a column that holds 0, 1, 2 (and 3); [] for others.

        ``name`` is the column.
        """
        if name not in self.numbers or self.is_text(name) or name in self.times:
            return []
        codes = np.unique(self.numbers[name][np.isfinite(self.numbers[name])])
        plain = 3 <= codes.size <= 4 and bool((codes == np.arange(codes.size)).all())
        return [f"{code:.0f}" for code in codes[1:]] if plain else []

    def telling(self, pairs: list[tuple[Options, str]]) -> list[tuple[Options, str]]:
        """Return the pairs whose predictions clearly rank the outcomes; all of them if none does.

        ``pairs`` are (options, condition): arguments ``probs`` and ``label`` of
        :func:`read_predictions`, and the condition in words under which they are right. A rank test
        of the rows of this table decides. For a guessed event (a condition that is not ""), events
        have to have higher predictions. All pairs are returned as well if one cannot be read.
        """
        scores = []
        for options, when in pairs:
            rows = self.rows(options)
            if rows is None:
                return pairs
            area, z = order_of_events(rows[0], rows[1])
            certain = area in (0.0, 1.0) and len(rows[0]) > 50
            guessed = when and "classes" not in options
            scores.append(0.0 if certain else z if guessed else abs(z))
        best = max(scores, default=0.0)
        return [p for p, z in zip(pairs, scores, strict=True) if z >= TELLING or best < TELLS]

    def followed_for(self, options: Mapping[str, Any]) -> Column | None:
        """Return the first unused column that relates to outcomes as follow-up times do.

        It is a :class:`Column`, a name with values and the SQL of them, and may be the days between
        two columns of dates. ``options`` are the suggested arguments of :func:`read_predictions`.
        None if there is none, or if the options select no rows.
        """
        rows = self.rows(options)
        if rows is None:
            return None
        p, y, frame = rows
        used = {r for v in options.values() if isinstance(v, str) for t in self.terms(v)
                for r in t.roots}  # fmt: skip
        free = [n for n in self.free if n not in used]
        for column in (*columns_of(frame, free), *spans_of(frame, free)):
            if like_time(Rows(p, y), column):
                return column
        return None


def min_max(a: str, b: str) -> tuple[str, str]:
    """Return the names ``a`` and ``b`` in alphabetical order, so that a pair has one order."""
    return (a, b) if a <= b else (b, a)
