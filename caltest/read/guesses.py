"""Guesses of what the columns of a table hold, from their names and first cells.

:class:`Head` guesses probabilities and outcomes, :func:`likely_grades` the columns of a table of
counts. A guess never chooses: :mod:`caltest.read.suggestions` makes readings of them, which are
printed for the user to judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.data.doubts import class_places, named_classes
from caltest.data.ends import UNITS, is_time, says_censored
from caltest.data.questions import LIKELIER, log_likelihood, order_of_events, rankdata
from caltest.data.spare_columns import SPLIT_FLAG, split_parts
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.contract import CONFIDENCES, LABELS, PROBABILITIES, Wanted
from caltest.read.expressions import (
    BASIS,
    FAMILY,
    OUT_OF,
    PERCENT,
    Term,
    american_odds,
    ends_in,
    ends_of,
    has_commas,
    in_order,
    is_american,
    key,
    literal,
    may_be_american,
    of_american,
    of_commas,
    of_parts,
    out_of,
    quoted,
    terms_of,
    words_of,
)
from caltest.read.tables import column_of_cells
from caltest.read.values import unknown_codes

if TYPE_CHECKING:
    import polars as pl


#: Words of an outcome from which on none of them is suggested, and those of answers.
CODES, MOST_WORDS = 10, 10_000


#: Numbers from which on a column called a label holds amounts, such as the coordinate y.
MOST_LABELS = 50


#: Standard errors by which outcomes must follow predictions, where other pairs do by the second.
TELLING, TELLS = 2.5, 3.5


#: Words in names of columns that hold decimal odds, which are 1 / probability, and what their
#: reciprocals sum to at most, by the margin of a bookmaker.
ODDS, MARGIN = frozenset("odds odd quote quoten cuota cuotas cote cotes quota".split()), 1.25  # noqa: SIM905


#: Words in names of columns that hold American odds.
AMERICAN = frozenset(("ml", "moneyline", "american"))


#: Words in names of columns that hold log-odds, and the size from which on a number is none.
LOG_ODDS = frozenset("logit logits raw margin decision logodds lp linpred score".split())  # noqa: SIM905
MOST_LOG_ODDS = 50.0


#: Numbered columns of predictions up to which each is offered as a model.
MEMBERS_LISTED = 6


#: How the name of a prediction says from which number on an outcome is the event.
THRESHOLD = re.compile(
    r"(?:^|_)(ge|geq|min|gt|above|over|exceeds?)_?(\d+(?:\.\d+)?)", re.IGNORECASE
)


#: Names of columns that say which model a row is of, which is no outcome.
NEVER_OUTCOMES = frozenset(
    ["model", "models", "model_name", "model_id", "modell", "modelo", "algorithm", "learner"]
)

#: Names of columns that say whether a model was trained on a row, which is no outcome.
TRAINED_ON = frozenset(
    (
        *("train", "training", "in_train", "in_training", "is_train", "is_training", "test"),
        *("is_test", "in_test", "holdout", "is_holdout", "validation", "split"),
    )
)

#: How names of columns say that they hold logarithms of probabilities.
LOG_NAME = re.compile(
    r"log_?(?:p|prob|probs|probability|likelihood)(?:_|$)|(?:^|_)(?:lp|ll)(?:_|$)"
)


#: Words in names of columns that hold probabilities in thousandths, from 0 to 1000.
PER_MILLE = frozenset("score risk prob probability permille promille pd p".split())  # noqa: SIM905


#: Further words in names of columns that hold predictions, in percent as well.
PREDICTED = PERCENT | PER_MILLE | BASIS | ODDS | LOG_ODDS
PREDICTED |= frozenset("predicted prediction pred phat forecast forecasts likelihood yhat".split())  # noqa: SIM905


#: Names of columns of p-values, which are no predictions.
P_VALUE = re.compile(r"(?:.*_)?p_?(?:val|vals|value|values)(?:_.*)?")


#: Words in names of predictions that another one replaced.
PRIOR = frozenset("prev previous prior last old former baseline".split())  # noqa: SIM905


#: What whole numbers without a telling name must exceed, and be below somewhere, to be percents.
LEAST_PERCENT, SOME_BELOW, RANKS = 50.0, 10.0, 20


#: Distance up to which a probability is that of log-odds, and by which rounding may bring
#: probabilities out of their order.
SAME_PROBABILITY, ROUNDED_ORDER = 0.01, 1e-3


#: Below it there are some probabilities in thousandths.
SOME_LOW = 20.0


#: Share of groups in which a column has to rank the rows, and columns that are looked at.
RANKED, RANKS_SOUGHT = 0.95, 20


#: Options of a reading by name.
Options = dict[str, Any]


@dataclass
class Head:
    """First rows of a table with the options given, and guesses of what their columns are.

    ``frame`` has the rows as a polars frame, ``wanted`` the options of
    :func:`caltest.read_predictions` that the user gave. Methods whose result is ``Options`` return
    keyword arguments of that function, such as ``{"probs": "risk / 100"}``, for columns by what
    their cells look like.
    """

    frame: pl.DataFrame
    wanted: Wanted

    def __post_init__(self) -> None:
        kinds = self.frame.schema
        self.frame = self.frame.select([n for n, kind in kinds.items() if not kind.is_nested()])
        given = {f.name: getattr(self.wanted, f.name) for f in fields(Wanted)}
        asked = self.wanted.columns
        self.given = {option: given[option] for option in asked}
        terms = [t for o, v in asked.items() if (o, v) != ("features", "*") for t in self.terms(v)]
        used = {root for term in terms for root in term.roots}
        self.free = [n for n in self.frame.columns if n not in used and not n.startswith("::")]
        words = {n: words_of(self.frame[n]) for n in self.free}
        self.words = {n: w.drop_nulls() for n, w in words.items() if w is not None}
        self.words = {n: w for n, w in self.words.items() if w.n_unique() > 1}
        self.two = [n for n, w in self.words.items() if w.n_unique() == 2]
        self.two = [n for n in self.two if self.may_be_codes(n)]
        columns = {n: column_of_cells(self.frame[n]) for n in self.free}
        self.times = [n for n, column in columns.items() if column and is_time(column)]
        found = {n: numbers_of(self.frame[n]) for n in self.free}
        self.numbers = {n: v for n, v in found.items() if v is not None and np.isfinite(v).any()}
        self.texts: dict[str, bool] = {}  # whether columns hold text, of those asked about

    def terms(self, value: Any) -> list[Term]:
        """Return the expressions that an option's value asks for.

        Each is a :class:`Term`, with its SQL and its polars form. ``value`` is a text or a list of
        texts. [] if it is None or cannot be read.
        """
        if value is None:
            return []
        try:
            return terms_of(value, self.frame.schema)
        except InvalidPredictionsError:
            return []

    def may_be_codes(self, name: str) -> bool:
        """Return whether the column ``name`` holds words, booleans, or numbers from −1 to 9."""
        cells = self.frame[name]
        return not cells.dtype.is_numeric() or bool(cells.is_between(-1, 9).fill_null(True).all())

    def roots(self, value: Any) -> list[str]:
        """Return the names of the columns that an option's value uses.

        ``value`` is a text or a list of texts, names or SQL; [] for None. Placeholders in it, such
        as NUMBER, are read as 0.
        """
        filled = re.sub(r"\b(NUMBER|CODE)\b", "0", value) if isinstance(value, str) else value
        return [root for term in self.terms(filled) for root in term.roots]

    def is_text(self, name: str) -> bool:
        """Return whether the column ``name`` of this table holds text.

        It is False for numbers that are written with percent signs, with decimal commas, as "8/10",
        or as American odds.
        """
        cells = self.frame[name]
        if str(cells.dtype) != "String":
            return False
        if name not in self.texts:
            written = has_commas(cells) or bool(out_of(cells)) or self.is_signed(name)
            written = written or (name in self.numbers and self.is_american_odds(name))
            self.texts[name] = not written
        return self.texts[name]

    # --- probabilities -------------------------------------------------------------------------

    def probabilities(self) -> list[Options]:
        """Return options that name the predictions, one dict for each guess; [] if there is none.

        They are keyword arguments of :func:`read_predictions`. Each sets ``probs`` to a column, or
        to a family of columns (one for each class), as SQL that converts percentages, odds and the
        like; ``from_logits`` is set as well where they are log-odds. If some columns are called as
        probabilities, such as ``p``, all others are ignored.
        """
        listed = [n for n in self.free if key(n) in PROBABILITIES | CONFIDENCES]
        values = [n for n in self.numbers if P_VALUE.fullmatch(key(n))]
        if listed:
            # Numbers below −100 under such a name are nothing else
            low = [n for n in listed if n in self.numbers and np.nanmax(self.numbers[n]) < 0.0
                   and may_be_american(self.numbers[n])]  # fmt: skip
            if len(low) == len(listed):
                return self.american(low)
            # One more column such as p_calibrated is as likely to be meant as p.
            others = [
                n
                for n in self.numbers
                if n not in [*listed, *values, *self.two] and FAMILY.fullmatch(n)
            ]
            if len(others) == 1 and self.is_within(others[0], 0.0, 1.0):
                listed += others
            scores = {
                n: {"probs": quoted(n), "from_logits": True} for n in listed if self.is_real(n)
            }
            fractions = [n for n in listed if n in self.numbers and self.is_within(n, 0.0, 1.0)]
            return [
                scores.get(n, self.scaled([n])) for n in listed
                if n not in scores or not self.has_other_form(scores[n], fractions)
            ]  # fmt: skip
        numbers = [n for n in self.numbers if n not in [*self.times, *values]]
        if odds := self.odds(numbers):
            return odds
        known = [n for n in numbers if FAMILY.fullmatch(n)]
        families = [f for f in self.families(numbers) if not {*f} & {*known}]
        if len(known) > 2 and not self.sum_to_one(known):
            known = self.with_labels(known)
        # Columns that do not sum to 1 are models of one event rather than its classes
        if len(known) > 1 and not self.sum_to_one(known) and self.are_models(known):
            mean = self.mean_of_members(known)
            return [{"probs": mean}] if mean else [self.scaled([n]) for n in known]
        families += [known] if len(known) > 1 else []
        if families:
            whole = [[f] if len(f) > 2 or self.name_classes(f) else [[n] for n in f]
                     for f in families]  # fmt: skip
            return [self.scaled(in_order(names)) for listed in whole for names in listed]
        if logits := self.logits(numbers):
            return [{"probs": ", ".join(map(quoted, logits)), "from_logits": True}]
        if logs := self.log_probabilities(numbers):
            return logs
        others = [n for n in numbers if n not in self.two]
        return self.lone(others) or self.less_likely(others)

    def lone(self, names: Sequence[str]) -> list[Options]:
        """Return options for columns that may each be the prediction of one event; [] for none.

        Each is a dict of arguments of :func:`read_predictions`. They hold fractions from 0 to 1, or
        are called probabilities, odds or the like and hold numbers of such a scale: percents,
        tenths, thousandths, basis points, decimal odds, log-odds, or logarithms. ``names`` are the
        columns, whose order is kept.
        """
        found = list[Options]()
        fractions = [n for n in names if self.is_within(n, 0.0, 1.0)]
        if mean := self.mean_of_members(fractions):
            found, fractions = [{"probs": mean}], []
        for name in names:
            words, cells = {*key(name).split("_")}, self.numbers[name]
            percents = self.is_within(name, 1.0, 100.0) and bool(words & PREDICTED)
            percents = percents or (self.percents(name) and bool(words & PERCENT))
            percents = percents or (bool(words & PREDICTED) and self.whole_percents(name))
            signs = self.is_signed(name) and not self.is_within(name, 0.0, 1.0)
            if name in fractions or words & BASIS or self.tenths(name) or signs:
                found.append(self.scaled([name]))
            elif self.is_decimal_odds(name):
                found.append({"probs": f"1 / {quoted(name)}"})
            elif percents:
                found.append(self.scaled([name]))
            elif LOG_NAME.search(key(name)) and np.nanmin(cells) < 0.0 >= np.nanmax(cells):
                found.append({"probs": f"exp({quoted(name)})"})
            elif self.is_log_odds(name):
                found.append({"probs": quoted(name), "from_logits": True})
            else:
                found += self.thousandths([name])
        found = [
            o for o in found if "from_logits" not in o or not self.has_other_form(o, fractions)
        ]
        if self.times:  # a linear predictor of survival is no log-odds
            found = [o for o in found if "from_logits" not in o] or found
        american = [n for n in names if self.is_american_odds(n)]
        return found + (self.american(american) if american else [])

    def has_other_form(self, options: Options, fractions: Sequence[str]) -> bool:
        """Return whether probabilities stand beside scores that are not the log-odds of them.

        They are in the same order as the scores, and differ from what these are as log-odds.
        ``options`` are guessed arguments of :func:`read_predictions`, of which ``probs`` names the
        column of scores; ``fractions`` are columns of numbers from 0 to 1.
        """
        (name,) = self.roots(options["probs"])
        for other in fractions:
            known = np.isfinite(self.numbers[name]) & np.isfinite(self.numbers[other])
            x, p = self.numbers[name][known], self.numbers[other][known]
            order = np.argsort(x, kind="stable")
            apart = np.abs(p - 1.0 / (1.0 + np.exp(-x))).max(initial=0.0) > SAME_PROBABILITY
            if apart and (np.diff(p[order]) >= -ROUNDED_ORDER).all():
                return True
        return False

    def less_likely(self, names: Sequence[str]) -> list[Options]:
        """Return options for columns of percents, or shares, whose names say nothing; [] for none.

        Each is a dict of arguments of :func:`read_predictions`. ``names`` are the columns. Percents
        are fractions up to 100, or multiples of 5; without them shares of an ensemble; without
        these other whole numbers up to 100, which count only if they rank the outcomes.
        """
        found = [n for n in names if self.is_within(n, 1.0, 100.0) or self.percents(n)]
        if not found and (shares := self.of_members(names)):
            return shares
        return [self.scaled([n]) for n in found or filter(self.whole_percents, names)]

    def whole_percents(self, name: str) -> bool:
        """Return whether the column ``name`` holds whole numbers that may be percents.

        They are from 0 to 100, some below 10 and some above 50, and more than 20 different ones.
        """
        cells = self.numbers[name]
        cells = cells[np.isfinite(cells)]
        if (cells % 1 != 0).any() or cells.min() < 0.0 or cells.max() > 100.0:
            return False
        spread = cells.min() < SOME_BELOW and cells.max() > LEAST_PERCENT
        return bool(spread and np.unique(cells).size > RANKS)

    def is_called(self, options: Mapping[str, Any]) -> bool:
        """Return whether all columns of guessed predictions are called predictions of some kind.

        ``options`` are arguments of :func:`read_predictions`, of which ``probs`` counts. Names of
        the contract, and words such as "risk" or "percent", tell.
        """
        names = self.roots(options.get("probs"))
        return bool(names) and all(
            {*key(n).split("_")} & PREDICTED
            or key(n) in PROBABILITIES | CONFIDENCES
            or LOG_NAME.search(key(n))
            or self.is_signed(n)
            for n in names
        )

    def is_prior(self, options: Mapping[str, Any]) -> bool:
        """Return whether the name of a guessed prediction says that another one replaced it.

        ``options`` are arguments of :func:`read_predictions`, of which ``probs`` counts.
        """
        return any({*key(n).split("_")} & PRIOR for n in self.roots(options.get("probs")))

    def as_prediction(self, options: Mapping[str, Any]) -> str:
        """Return the condition that a guessed prediction is one: "risk in percent is the …".

        ``options`` are arguments of :func:`read_predictions`, of which ``probs`` and
        ``from_logits`` count. Expressions of several columns are named by their SQL.
        """
        sql = str(options.get("probs"))
        names = [*dict.fromkeys(self.roots(sql))]
        name = names[0] if len(names) == 1 else ""
        kinds = {
            "{} / 10": "{} out of 10 is the prediction",
            "{} / 100": "{} in percent is the prediction",
            "{} / 1000": "{} in thousandths is the prediction",
            "{} / 10000": "{} in basis points is the prediction",
            "1 / {}": "{} in decimal odds is the prediction",
            "exp({})": "{} is the logarithm of the prediction",
        }
        said = {form.format(quoted(name)): kind.format(name) for form, kind in kinds.items()}
        if options.get("from_logits") and name:
            return f"{name} in log-odds is the prediction"
        if name in self.numbers and sql.startswith("CASE") and self.is_american_odds(name):
            return f"{name} in American odds is the prediction"
        return said.get(sql, f"{sql} is the prediction")

    def with_labels(self, names: Sequence[str]) -> list[str]:
        """Return those columns of a family that a column of words is called after, or all.

        ``names`` are the columns. The others are left out, such as ``p_value``, if all words of a
        column are ends of names, and the columns of these ends sum to 1 in every row.
        """
        ends = [key(end) for end in ends_of(names)]
        for words in (self.keys(n) for n in self.words):
            kept = [name for name, end in zip(names, ends, strict=True) if end in words]
            if len(words) == len(kept) > 1 and self.sum_to_one(kept):
                return kept
        return [*names]

    def are_models(self, names: Sequence[str]) -> bool:
        """Return whether columns of predictions that do not sum to 1 are each of one event.

        Two are. Three or more, ``names``, are if the given label, or else some column, has two
        values, and none has the ends of the names as its words, or as many words as there are
        columns or one more.
        """
        if len(names) == 2:
            return True
        label = self.one_column("label")
        given = None if label is None else words_of(self.frame[label])
        if given is not None:
            return given.drop_nulls().n_unique() == 2
        ends, most = {*map(key, ends_of(names))}, len(names) + 1
        sizes = {n: w.n_unique() for n, w in self.words.items()}
        classes = [n for n, k in sizes.items() if 2 < k <= most and self.keys(n) <= ends]
        of_k = [n for n, k in sizes.items() if most - 1 <= k <= most and self.is_code(n)]
        return bool(self.two and not classes and not of_k)

    def one_column(self, option: str) -> str | None:
        """Return the column that an option of the user names, or None.

        It is None without the option, and for an expression or several columns. ``option`` is the
        name of the option, such as "label".
        """
        listed = self.terms(self.given.get(option))
        return listed[0].column if len(listed) == 1 else None

    def mean_of_members(self, names: Sequence[str]) -> str:
        """Return the mean of probabilities as SQL if ``names`` are members of an ensemble, else "".

        They are more than six columns of this table that differ only in the number at the end of
        the name, with fractions from 0 to 1.
        """
        alike = len({re.sub(r"\d+$", "", n) for n in names}) == 1 and len(names) > MEMBERS_LISTED
        inside = alike and all(self.is_within(n, 0.0, 1.0) for n in names)
        return f"({' + '.join(map(quoted, names))}) / {len(names)}" if inside else ""

    def is_log_odds(self, name: str) -> bool:
        """Return whether the column ``name`` holds log-odds, by its name and numbers.

        It is called logit, margin, (raw) score or the like, and holds fractions, some of them below
        0 and none beyond ±50.
        """
        called = "logit" in key(name) or {*key(name).split("_")} & LOG_ODDS
        cells = self.numbers[name]
        low, top = np.nanmin(cells), np.nanmax(np.abs(cells))
        return bool(called and low < 0.0 and top <= MOST_LOG_ODDS and (cells % 1 != 0).any())

    def is_real(self, name: str) -> bool:
        """Return whether a column holds fractions of both signs, some beyond ±1, none beyond ±50.

        ``name`` is the column; False if it holds no numbers.
        """
        if name not in self.numbers or self.is_signed(name):
            return False
        cells = self.numbers[name]
        low, top = np.nanmin(cells), np.nanmax(cells)
        wide = 1.0 < max(-low, top) <= MOST_LOG_ODDS
        return bool(low < 0.0 < top and wide and -low <= MOST_LOG_ODDS and (cells % 1 != 0).any())

    def thousandths(self, numbers: Sequence[str]) -> list[Options]:
        """Return options for columns up to 1000 that are called scores or probabilities.

        Some of their numbers are below 20: points of a game and scores of credit are not.

        Each is a dict of arguments of :func:`read_predictions`, such as ``{"probs": "score /
        1000"}``; [] if there is none. ``numbers`` are the names of columns of numbers.
        """
        found = []
        for name in numbers:
            cells = self.numbers[name]
            called = {*key(name).split("_")} & PER_MILLE
            if called and 0.0 <= np.nanmin(cells) < SOME_LOW and 100.0 < np.nanmax(cells) <= 1000.0:
                found.append({"probs": f"{quoted(name)} / 1000"})
        return found

    def of_members(self, numbers: Sequence[str]) -> list[Options]:
        """Return options for counts out of another column of counts, whose names share a word.

        The list has one dict of arguments of :func:`read_predictions`, such as ``{"probs":
        "members_yes / members"}``, or is empty, also where several pairs fit. ``numbers`` are the
        names of columns that may be the count.
        """
        whole = [n for n, v in self.numbers.items() if n not in self.two and (v % 1 == 0).all()]
        found = []
        for count, of_all in ((a, b) for a in whole if a in numbers for b in whole if a != b):
            k, n = self.numbers[count], self.numbers[of_all]
            alike = {*key(count).split("_")} & {*key(of_all).split("_")} - UNITS.keys()
            if alike and k.min() >= 0.0 and (k <= n).all() and (k < n).any() and n.min() >= 2.0:
                found.append({"probs": f"{quoted(count)} / {quoted(of_all)}"})
        return found if len(found) == 1 else []

    def name_classes(self, names: Sequence[str]) -> bool:
        """Return whether the names of two columns of probabilities end in the names of two classes.

        The ends are 0 and 1, or the words that a column of two values, or the given label, holds.
        """
        ends = {key(end) for end in ends_of(names)}
        label = self.terms(self.given.get("label"))
        words = {n: self.keys(n) for n in self.two}
        for name in (t.column for t in label if t.column is not None):
            cells = words_of(self.frame[name])
            words[name] = {*map(key, [] if cells is None else cells.drop_nulls().unique())}
        return ends <= {"0", "1"} or any(found <= ends for found in words.values() if found)

    def scaled(self, names: Sequence[str]) -> Options:
        """Return the option ``probs`` for columns of probabilities.

        The result, such as ``{"probs": "a / 100"}``, is an argument of :func:`read_predictions`;
        ``names`` are the columns. They are divided by 100 if they exceed 10 and none is below 0, by
        10 or 1000 if rows sum to that or their name says so, by 10 000 if they are called basis
        points, else not.
        """
        top = max(np.nanmax(self.numbers[n]) if n in self.numbers else 0.0 for n in names)
        signs = any(self.is_signed(n) for n in names)
        low = min(np.nanmin(self.numbers[n]) if n in self.numbers else 0.0 for n in names)
        end = " / 100" if 10.0 < top <= 100.0 and low >= 0.0 and not signs else ""
        if len(names) > 1 and all(n in self.numbers for n in names) and not signs:
            end = next((f" / {k}" for k in (10, 1000) if self.sum_to(names, k)), end)
        end = " / 10" if all(self.tenths(n) for n in names) and len(names) == 1 else end
        end = " / 10000" if all({*key(n).split("_")} & BASIS for n in names) else end
        return {"probs": ", ".join(f"{self.number(n)}{end}" for n in names)}

    def odds(self, numbers: Sequence[str]) -> list[Options]:
        """Return options for columns of betting odds of one race, or American ones; [] for none.

        Each is a dict of arguments of :func:`read_predictions`, such as ``{"probs": "1 / odds"}``.
        Decimal odds are called odds and are above 1. If the reciprocals of several columns sum to 1
        to 1.25 in every row, they are odds of one race: the sum is divided out, and ``classes``, or
        ``label``, says what the columns are. American odds are whole numbers beyond ±100.
        ``numbers`` are the names of columns of numbers.
        """
        american = [n for n in numbers if self.is_american_odds(n)]
        if american and not any(self.is_within(n, 0.0, 1.0) for n in numbers):
            return self.american(american)
        if races := self.races(numbers):
            return races
        names = [n for n in numbers if self.is_decimal_odds(n)]
        each = [f"1 / {quoted(n)}" for n in names]
        if len(names) > 1:
            sums = np.sum([1.0 / self.numbers[n] for n in names], axis=0)
            sums = sums[np.isfinite(sums)]
            if sums.size and sums.min() >= 0.99 and sums.max() <= MARGIN:
                total = " + ".join(each)
                if label := self.won_by(names):
                    return [{"probs": f"{each[0]} / ({total})", "label": label}]
                ends = [*ends_of(names)]
                plain = any({*words.to_list()} == {*ends} for words in self.words.values())
                classes = ",".join(ends) if plain else class_places(len(ends))
                of_all = ", ".join(f"{p} / ({total})" for p in each)
                return [{"probs": of_all, "classes": classes}]
        return []

    def is_decimal_odds(self, name: str) -> bool:
        """Return whether the column ``name`` is called odds, and holds fractions above 1."""
        cells = self.numbers[name]
        called = {*key(name).split("_")} & ODDS
        return bool(called and np.nanmin(cells) > 1.0 and (cells % 1 != 0).any())

    def is_american_odds(self, name: str) -> bool:
        """Return whether a column holds American odds; those of one sign need a telling name.

        Numbers written with a plus sign tell as well: whole amounts of 100 and more are frequent.
        """
        if not may_be_american(self.numbers[name]) or {*key(name).split("_")} & BASIS:
            return False
        cells = self.frame[name]
        signs = str(cells.dtype) == "String" and bool(cells.str.contains(r"^\s*\+").any())
        telling = {*key(name).split("_")} & (ODDS | AMERICAN)
        return is_american(self.numbers[name]) or signs or bool(telling)

    def races(self, numbers: Sequence[str]) -> list[Options]:
        """Return options for decimal odds of three or more results that a column of words names.

        Each is a dict of arguments of :func:`read_predictions`, such as ``{"probs": "1 / B365H, …",
        "classes": "H,D,A", "renormalise": True, "label": "FTR"}``. Names of the columns of odds
        begin alike and end in the words, and their reciprocals sum to 1 to 1.25 in every row. [] if
        there are none. ``numbers`` are the names of columns of numbers.
        """
        found: list[Options] = []
        for label, cells in self.words.items():
            words = sorted({*cells.to_list()})
            if not (self.is_text(label) and 3 <= len(words) <= CODES):
                continue
            # In the order of the columns, for each beginning that all words follow
            for head in dict.fromkeys(n[: -len(w)] for n in numbers for w in words
                                      if n.endswith(w) and n != w):  # fmt: skip
                names = [n for n in numbers if n.startswith(head) and n[len(head) :] in words]
                cells_of = [self.numbers[n] for n in names]
                if len(names) != len(words) or min(map(np.nanmin, cells_of)) < 1.0:
                    continue
                sums = np.sum([1.0 / each for each in cells_of], axis=0)
                sums = sums[np.isfinite(sums)]
                if sums.size and sums.min() >= 0.99 and sums.max() <= MARGIN:
                    found.append({
                        "label": quoted(label),
                        "probs": ", ".join(f"1 / {quoted(n)}" for n in names),
                        "classes": ",".join(n[len(head) :] for n in names),
                        "renormalise": True,
                    })  # fmt: skip
        return found

    def won_by(self, names: Sequence[str]) -> str:
        """Return the label that the first of two sides won, as SQL such as ``winner = p1``, or "".

        ``names`` are two columns of odds, which have to end in the names of two columns of text,
        the sides; a third column of text equals exactly one of them in every row, and not always
        the same one.
        """
        text = [n for n in self.words if self.is_text(n)]
        sides = [next((t for t in text if ends_in(n, t)), "") for n in names]
        if len(sides) != 2 or not all(sides):
            return ""
        first, second = (self.frame[n] for n in sides)
        for name in (n for n in text if n not in sides):
            won = self.frame[name]
            one, other = (won == first).fill_null(False), (won == second).fill_null(False)
            if bool((one != other).all()) and 0 < int(one.sum()) < len(one):
                return f"{quoted(name)} = {quoted(sides[0])}"
        return ""

    def american(self, names: Sequence[str]) -> list[Options]:
        """Return options for columns of American odds; two of one race are divided by their sum.

        Each is a dict of arguments of :func:`read_predictions` with ``probs``, an SQL expression of
        the probability. ``names`` are the columns. For two of one race there is one dict for each
        side, or only that of the side that an outcome is called after.
        """
        each = [american_odds(quoted(n), str(self.frame[n].dtype) == "String") for n in names]
        if len(names) == 2:
            sums = np.sum([of_american(self.numbers[n]) for n in names], axis=0)
            sums = sums[np.isfinite(sums)]
            if sums.size and sums.min() >= 0.99 and sums.max() <= MARGIN:
                a, b = each
                # The side that an outcome is called after is the event
                outcomes = {w for n in self.two for w in key(n).split("_")}
                called = [bool({*key(n).split("_")} & outcomes) for n in names]
                both = [{"probs": f"{a} / ({a} + {b})"}, {"probs": f"{b} / ({a} + {b})"}]
                only = [p for p, said in zip(both, called, strict=True) if said]
                return only if len(only) == 1 else both
        return [{"probs": p} for p in each]

    def as_odds(self, options: Options) -> Options:
        """Return the options with decimal odds, ``1 / x``, in place of percents, ``x / 100``.

        ``options`` are guessed arguments of :func:`read_predictions` with ``probs`` and ``label``.
        They are returned unchanged unless the outcomes of these rows are 1000 times as likely with
        the odds.
        """
        probs = options.get("probs") or ""
        name = next((n for n in self.numbers if probs == f"{quoted(n)} / 100"), None)
        if name is None or np.nanmin(self.numbers[name]) < 1.0:
            return options
        rows = self.rows(options)
        if rows is None:
            return options
        p, y = rows[0], rows[1]
        if log_likelihood(0.01 / p, y) - log_likelihood(p, y) < LIKELIER:
            return options
        return options | {"probs": f"1 / {quoted(name)}"}

    def number(self, name: str) -> str:
        """Return the column ``name`` as an SQL expression of numbers.

        Text is converted where it has decimal commas or is written as "8/10"; other columns are
        their name.
        """
        cells = self.frame[name]
        if str(cells.dtype) == "String" and has_commas(cells):
            return of_commas(quoted(name), cells)
        if str(cells.dtype) == "String" and (whole := out_of(cells)):
            return of_parts(quoted(name), whole)
        return quoted(name)

    def tenths(self, name: str) -> bool:
        """Return whether a column holds probabilities in tenths.

        They are whole numbers from 0 to 10, of which 10 occurs, and ``name``, the column's name,
        says probability, percent or the like.
        """
        cells = self.numbers.get(name, np.zeros(0))
        cells = cells[np.isfinite(cells)]
        if not cells.size or (cells % 1 != 0).any() or cells.min() < 0.0 or cells.max() != 10.0:
            return False
        return bool({*key(name).split("_")} & PERCENT)

    def if_percents(self, options: Mapping[str, Any]) -> str:
        """Return the condition in words under which guessed options are right: "p is … in percent".

        ``options`` are arguments of :func:`read_predictions` with ``probs``, an expression such as
        ``p / 100``, ``exp(p)`` or ``1 / p``. It is "" if that is a plain column, or the name says
        so already.
        """
        listed = self.terms(options.get("probs"))
        if options.get("from_logits") and len(listed) == 1:
            return f"{listed[0].sql} holds log-odds"
        if options.get("from_logits") and len(listed) > 1 and LOG_NAME.search(key(listed[0].name)):
            named = f"{listed[0].name} to {listed[-1].name}"
            return f"{named} are log-probabilities of the classes, up to a constant"
        names = listed[0].roots if len(listed) == 1 and listed[0].column is None else []
        names = [*dict.fromkeys(names)]  # of text that is written as numbers there are several
        if len(names) == 2 and listed[0].sql == f"{quoted(names[0])} / {quoted(names[1])}":
            return f"{names[0]} of {names[1]} is the share of an ensemble that predicts the event"
        cases = bool(listed) and listed[0].sql.startswith("CASE WHEN")
        if cases and all(n in self.numbers and may_be_american(self.numbers[n]) for n in names):
            sides = [*dict.fromkeys(names)]
            return f"{' and '.join(sides)} {'holds' if len(sides) == 1 else 'hold'} American odds"
        if names and listed[0].sql == f"exp({quoted(names[0])})":
            return f"{names[0]} is the logarithm of a probability"
        if names and listed[0].sql == f"{quoted(names[0])} / 1000":
            return f"{names[0]} is a probability in thousandths"
        if names and listed[0].sql.startswith(f"1 / {quoted(names[0])}"):
            sides = [*dict.fromkeys(names)]
            return f"{' and '.join(sides)} {'holds' if len(sides) == 1 else 'hold'} decimal odds"
        if not names or self.is_signed(names[0]) or "%" in names[0]:
            return ""
        called = {*key(names[0]).split("_")} & (PERCENT | BASIS)
        called -= {"cents"}
        if listed[0].sql.startswith("CAST(SPLIT_PART(") or len(names) > 2:
            last = names[-1]
            members = f"{names[0]} to {last} are members of an ensemble, of which the mean is taken"
            return members if len(names) > 2 else ""
        return "" if called else f"{names[0]} is a probability in percent"

    def is_signed(self, name: str) -> bool:
        """Return whether some numbers of the column ``name`` are written with percent signs."""
        cells = self.frame[name]
        return str(cells.dtype) == "String" and bool(cells.str.contains("%", literal=True).any())

    def is_within(self, name: str, least: float, most: float) -> bool:
        """Return whether a column holds fractions ≥ 0 with their maximum in (``least``, ``most``].

        ``name`` is a column of numbers; percents with signs are divided by 100 first. False if all
        numbers are whole.
        """
        cells = self.numbers[name]
        cells = cells[np.isfinite(cells)] / (100.0 if self.is_signed(name) else 1.0)
        return bool((cells % 1 != 0).any() and cells.min() >= 0.0 and least < cells.max() <= most)

    def percents(self, name: str) -> bool:
        """Return whether the column ``name`` holds whole percentages.

        They are whole numbers ≥ 0 with a maximum above 10 and at most 100. Either the name says
        percent, probability or the like, or all are multiples of 5 and more than five of these
        occur.
        """
        cells = self.numbers[name]
        cells = cells[np.isfinite(cells)]
        if (cells % 1 != 0).any() or cells.min() < 0.0 or not 10.0 < cells.max() <= 100.0:
            return False
        called = bool({*key(name).split("_")} & PERCENT)
        return called or bool((cells % 5 == 0).all() and np.unique(cells).size > 5)

    def stems(self, numbers: Sequence[str]) -> list[tuple[str, ...]]:
        """Return groups (tuples) of column names that share a beginning, smallest first.

        ``numbers`` are the names of columns of numbers. The last group is all of them. A group has
        at least two names; groups may overlap.
        """
        stems: dict[str, list[str]] = {}
        for n in numbers:
            for stem in {re.sub(r"[A-Za-z0-9]+$", "", n), re.sub(r"\d+$", "", n), ""}:
                stems.setdefault(stem, []).append(n)
        return sorted({tuple(m) for m in stems.values() if len(m) > 1}, key=len)

    def families(self, numbers: Sequence[str]) -> list[list[str]]:
        """Return disjoint groups of columns of numbers ≥ 0 that sum to 1 in every row.

        ``numbers`` are the names of columns of numbers; a group is a list of such names.
        Percentages, which sum to 100, and whole numbers that sum to 10 count as well.
        """
        found: list[list[str]] = []
        fractions = tuple(n for n in numbers if self.is_within(n, 0.0, 1.0))
        for members in (*self.stems(numbers), *[fractions] * (len(fractions) > 1)):
            apart = not any({*family} & {*members} for family in found)
            if apart and self.sum_to_one(members):
                found.append([*members])
        return found

    def logits(self, numbers: Sequence[str]) -> list[str]:
        """Return a group of columns called logits with values outside [0, 1], as names, or [].

        ``numbers`` are the names of columns of numbers.
        """
        for members in self.stems(numbers):
            values = np.concatenate([self.numbers[n] for n in members])
            called = all("logit" in key(n) for n in members)
            if called and (np.nanmin(values) < 0.0 or np.nanmax(values) > 1.0):
                return in_order(members)
        return []

    def log_probabilities(self, numbers: Sequence[str]) -> list[Options]:
        """Return a list with options for columns ≤ 0 whose exponentials sum to 1 in every row.

        They are a dict of arguments of :func:`read_predictions`, such as ``{"probs": "exp(lp_a),
        exp(lp_b)"}``; [] if there is none. ``numbers`` are the names of columns of numbers.
        """
        cells = self.numbers
        logs = [n for n in numbers if np.nanmin(cells[n]) < 0.0 >= np.nanmax(cells[n])]
        for members in self.stems(logs):
            sums = np.sum([np.exp(cells[n]) for n in members], axis=0)
            sums = sums[np.isfinite(sums)]
            if sums.size and np.allclose(sums, 1.0, atol=0.02):
                return [{"probs": ", ".join(f"exp({quoted(n)})" for n in in_order(members))}]
        for members in self.stems([n for n in logs if LOG_NAME.search(key(n))])[::-1]:
            if self.are_of_classes(members):
                names = ", ".join(map(quoted, in_order(members)))
                return [{"probs": names, "from_logits": True}]
        return []

    def are_of_classes(self, names: Sequence[str]) -> bool:
        """Return whether columns of logarithms, ``names``, are those of classes, up to a constant.

        Their names end in whole numbers that count on, and rows have as many options of text or
        some column as many words; or they end in the words of a column.
        """
        ends = [key(end) for end in ends_of(in_order(names))]
        if any(len(self.keys(n)) >= 2 and self.keys(n) == {*ends} for n in self.words):
            return True
        if not all(map(str.isdecimal, ends)) or np.ptp(np.diff([*map(int, ends)])) != 0:
            return False
        words = (w.n_unique() for n, w in self.words.items() if self.is_text(n))
        return bool(self.options_of_rows(len(names))) or len(names) in words

    def options_of_rows(self, k: int) -> list[str]:
        """Return the names of ``k`` columns of text, numbered from 0, that hold options of a row.

        All are different in every row, as ``options_0`` to ``options_3`` are. [] if there is no
        such group of columns, or several.
        """
        import polars as pl

        schema, found = self.frame.schema, list[list[str]]()
        for stem in (n[:-2] for n in schema if n.endswith("_0")):
            names = [f"{stem}_{place}" for place in range(k)]
            if any(schema.get(n) != pl.String for n in names) or f"{stem}_{k}" in schema:
                continue
            different = self.frame.select(pl.concat_list(names).list.n_unique().min()).item()
            if different == k:
                found.append(names)
        return found[0] if len(found) == 1 else []

    def sum_to_one(self, names: Sequence[str]) -> bool:
        """Return whether columns of probabilities, none below 0, sum to 1, or 100, within 2 %.

        ``names`` are the columns, and rows count that have all of them. Columns of whole numbers
        have to sum to 10 or 100.
        """
        fractions = any((self.numbers[n] % 1 != 0).any() for n in names)
        scales = (1.0, 100.0) if fractions else (10.0, 100.0)
        positive = all(np.nanmin(self.numbers[n]) >= 0.0 for n in names)
        return any(self.sum_to(names, each) for each in scales) and positive

    def sum_to(self, names: Sequence[str], scale: float) -> bool:
        """Return whether columns of numbers sum to ``scale``, within 2 %, in every row.

        ``names`` are the columns, and rows count that have all of them. It is False without such
        rows.
        """
        sums = np.sum([self.numbers[n] for n in names], axis=0)
        sums = sums[np.isfinite(sums)]
        return bool(sums.size) and bool(np.allclose(sums, scale, atol=0.02 * scale))

    # --- outcomes ------------------------------------------------------------------------------

    def outcomes(self, probs: Sequence[Options]) -> list[tuple[Options, str]]:
        """Return (options, condition) for columns and expressions that may be the outcome.

        Options are a dict of arguments of :func:`read_predictions`, such as ``{"label": "status =
        2"}``; the condition is in words. ``probs`` are the guessed options for the predictions, []
        if these are given. Columns that name parts of a data set are left out, unless nothing else
        fits. [] if no column fits.
        """
        parts = {n for n in self.words if SPLIT_FLAG.fullmatch(key(n))
                 or (self.is_text(n) and split_parts({*self.words[n].to_list()}))}  # fmt: skip
        columns = self.words, self.two
        try:
            self.words = {n: w for n, w in self.words.items() if n not in parts}
            self.two = [n for n in self.two if n not in parts]
            found = self.of_columns(probs)
        finally:
            self.words, self.two = columns
        return found or (self.of_columns(probs) if parts else [])

    def of_columns(self, probs: Sequence[Options]) -> list[tuple[Options, str]]:
        """Return (options, condition) for columns and expressions that may be the outcome.

        Options are a dict of arguments of :func:`read_predictions`, such as ``{"label": "status =
        2"}``. The condition in words, such as "2 is the event", is "" where there is no doubt.
        ``probs`` are the guessed options for the predictions, [] if these are given. [] if no
        column fits.
        """
        listed = [n for n in self.free if key(n) in LABELS]
        wanted = probs or [{}]
        if "label" in wanted[0]:  # named by the columns of odds
            return [({}, "")]
        if "classes" in wanted[0]:  # odds of one race
            k = len(self.terms(wanted[0]["probs"]))
            of_race = [n for n in self.words if self.words[n].n_unique() == k]
            return [({"label": quoted(n)}, "") for n in of_race]
        alone = all(len(self.terms(p.get("probs") or self.given.get("probs"))) < 2 for p in wanted)
        if alone and self.two:  # a coordinate y beside a match is no outcome
            listed = [n for n in listed if not self.is_amount(n)]
        if listed:  # several words are no outcome of one probability
            many = [n for n in listed if alone and n in self.words and self.is_text(n)
                    and self.words[n].n_unique() > 2]  # fmt: skip
            plain = [({"label": self.as_label(n)}, "") for n in listed if n not in many]
            return plain + [pair for n in many for pair in self.told_codes(n, wanted)]
        families = [
            [t.column or t.roots[0] for t in found if t.column or len(t.roots) == 1]
            for found in (self.terms(p.get("probs") or self.given.get("probs")) for p in wanted)
        ]
        ends = {key(e) for names in families if len(names) > 1 for e in (*ends_of(names), *names)}
        family = any(len(names) > 1 for names in families)
        if flags := self.one_hot([names for names in families if len(names) > 1]):
            return [({"label": flags}, "")]
        many = [n for n in self.words if ends and self.keys(n) <= ends]
        if not many and (named := self.called_after(families)):
            return named
        found = [({"label": quoted(n)}, "") for n in many]
        no_outcomes = NEVER_OUTCOMES | TRAINED_ON
        for n in (n for n in self.two if n not in many and key(n) not in no_outcomes):
            if family or self.keys(n) in ({"0", "1"}, {"false", "true"}):
                found.append(({"label": quoted(n)}, ""))
            else:
                found += self.codes(n)
        found += self.blanks(wanted)
        if family:
            return found or [({"label": quoted(n)}, "") for n in self.words if self.is_code(n)]
        found += self.winners()
        bare = [outcome for outcome, when in found if not when]
        if any(max(self.ranks(o, wanted), -self.ranks(o, wanted, -1.0)) >= TELLS for o in bare):
            return found
        # Of two words such as m and f none need be an event, where a column of more has one
        coded = [n for n in self.words if self.is_code(n) and (not found or self.is_text(n))]
        coded = [n for n in coded if self.is_told(n, wanted)]
        events = [pair for n in coded for pair in self.told_codes(n, wanted)]
        events = [pair for pair in events if not found or pair[1]]
        if found or events:
            return [*events, *found]
        told = [n for n in self.numbers if n not in self.words and self.is_told(n, wanted)]
        used = {root for p in wanted for root in self.roots(p.get("probs"))}
        told = [n for n in told if n not in used] or told  # one prediction is no outcome of another
        return [self.threshold(n, wanted) for n in told]

    def called_after(self, families: Sequence[Sequence[str]]) -> list[tuple[Options, str]]:
        """Return (options, condition) for labels after which three or more columns are called.

        ``families`` are groups of columns of predictions, by name. Every column of one has its
        label, up to what all names share, as ``p_birads1`` has the label 1. At most two labels have
        no column, such as a code of what is not known. Options are a dict of arguments of
        :func:`read_predictions`, such as ``{"label": "birads", "classes": "1,2,3", "where": "birads
        <> 9"}``; the condition in words is "" without such a code. [] if there is no such column.
        """
        found = list[tuple[Options, str]]()
        whole = [names for names in families if len(names) > 2]
        for names in (n for n in whole if {*n} <= {*self.numbers} and self.sum_to_one(n)):
            for label, cells in self.words.items():
                words = cells.unique().to_list()
                if not len(names) <= len(words) <= len(names) + 2:
                    continue
                named = named_classes(ends_of(names), words)
                if named is None:
                    continue
                classes, further = named
                options = {"label": quoted(label)}
                if [*map(key, ends_of(names))] != [*map(key, classes)]:
                    options["classes"] = ",".join(classes)
                column = self.frame[label]
                rest = [f"{quoted(label)} <> {literal(word, column)}" for word in further]
                if rest and self.wanted.where is not None:
                    rest.insert(0, f"({self.wanted.where})")
                options |= {"where": " AND ".join(rest)} if rest else {}
                when = f"the class is not known where {label} is {' or '.join(further)}"
                found.append((options, when if further else ""))
        return found

    def as_label(self, name: str) -> str:
        """Return the column ``name``, called a label, as an SQL expression of the outcome.

        It is the name, or, if the column holds −1 and 1, ``name = 1``.
        """
        signs = name in self.numbers and name in self.words
        if signs and {*self.numbers[name][np.isfinite(self.numbers[name])]} == {-1.0, 1.0}:
            return f"{quoted(name)} = 1"
        return quoted(name)

    def told_codes(self, name: str, probs: Sequence[Options]) -> list[tuple[Options, str]]:
        """Return (options, condition) for each code of a column that may be the event.

        These are the one or two codes in whose rows predictions are clearly higher (rank test with
        z of at least 3.5); of two among several words the first dict has both. ``name`` is the
        column, and ``probs`` are the guessed options for the predictions. Options are a dict such
        as ``{"label": "status = 2"}``, with ``where`` if a code says that the outcome is not known;
        the condition says in words which code is the event. If there are no or more such codes,
        more than ten codes in all, or follow-up times in the table, the one dict has the
        placeholder CODE, and its condition is "".
        """
        place = [({"label": f"{quoted(name)} = {self.place(name)}"}, "")]
        counts = self.words[name].value_counts(sort=True)
        words = sorted(counts[counts.columns[0]].to_list())
        if len(words) > CODES or self.times:
            return place
        lost = unknown_codes(counts) if len(words) > 2 else []
        cells = self.frame[name]
        sql = {word: literal(word, cells) for word in words}
        where = " AND ".join(f"{quoted(name)} <> {sql[word]}" for word in lost)
        if self.wanted.where is not None:
            where = f"({self.wanted.where}) AND {where}"
        kept = {"where": where} if lost else {}
        unless = f" ({', '.join(lost)}: not known)" if lost else ""
        ranks = {w: self.ranks({"label": f"{quoted(name)} = {sql[w]}"}, probs)
                 for w in words if w not in lost}  # fmt: skip
        told = [str(word) for word, z in ranks.items() if z >= TELLS]
        if not 0 < len(told) <= 2:  # counts have many such codes
            return place
        found = [
            ({"label": f"{quoted(name)} = {sql[word]}"} | kept, f"{word} is the event{unless}")
            for word in told
        ]
        if len(told) == 2 and self.is_text(name) and len(ranks) > 3:
            either = f"{quoted(name)} IN ({', '.join(sql[word] for word in told)})"
            found.insert(0, ({"label": either} | kept, f"{' or '.join(told)} is the event{unless}"))
        return found

    def ranks(
        self, outcome: Mapping[str, Any], probs: Sequence[Options], sign: float = 1.0
    ) -> float:
        """Return the largest z of rank tests whether predictions are higher with an outcome.

        ``outcome`` has ``label``, an argument of :func:`read_predictions`, and ``probs`` are the
        guessed options for the predictions, one dict each. z is standard normal without
        association; with ``sign`` −1 the smallest z is returned. 0 if no rows can be read.
        """
        rows = [self.rows({**p, **outcome}) for p in probs]
        found = [sign * order_of_events(r[0], r[1])[1] for r in rows if r is not None]
        return sign * max(found, default=0.0)

    def winners(self) -> list[tuple[Options, str]]:
        """Return (options, condition) for columns that rank the rows of each group from 1 on.

        An example is the place at which a horse finished its race, of which 1 is the event: ``{
        "label": "finish = 1"}``, with the condition in words. Groups are rows of one value of
        another column, at least 95 % of which have the ranks 1 to their size, each once.
        """
        import polars as pl

        found = list[tuple[Options, str]]()
        n = self.frame.height
        names = [c for c in self.numbers if self.frame[c].dtype.is_integer() and c not in self.two]
        names = [c for c in names if not {*key(c).split("_")} & PREDICTED]
        for name in names[:RANKS_SOUGHT]:
            if not self.numbers[name].min() == 1.0 < self.numbers[name].max() < n / 2:
                continue
            for group in [c for c in self.free if c != name][:RANKS_SOUGHT]:
                size, rank = pl.len(), pl.col(name)
                each = (
                    self.frame.lazy()
                    .group_by(group)
                    .agg(size.alias("::n"), rank.n_unique().alias("::k"), rank.max().alias("::m"))
                )
                races = each.filter(pl.col("::n") > 1).collect()
                size_of = races["::n"]
                ranked = ((size_of == races["::k"]) & (size_of == races["::m"])).sum()
                if races.height > 1 and size_of.sum() > n / 2 and ranked >= RANKED * races.height:
                    said = f"{name} = 1, one row of each {group}, is the event"
                    found.append(({"label": f"{quoted(name)} = 1"}, said))
                    break
        return found

    def threshold(self, name: str, probs: Sequence[Options]) -> tuple[Options, str]:
        """Return (options, condition) for an outcome that is true from a threshold on.

        Options are a dict such as ``{"label": "x >= 10"}``, the condition is in words. The
        threshold is the number after ge, gt or above in the name of the one prediction, or the
        placeholder NUMBER; without one, numbers below it are the event where they have the higher
        predictions. ``name`` is the column of numbers, and ``probs`` are guessed options for
        the predictions.
        """
        said = [r for p in probs for r in self.roots(p.get("probs") or self.given.get("probs"))]
        match = THRESHOLD.search(said[0]) if len(said) == 1 else None
        if match is None:
            falls = [self.falls(name, p) for p in probs]
            return {"label": f"{quoted(name)} {'<' if all(falls) and falls else '>='} NUMBER"}, ""
        sign = ">=" if match[1].lower() in ("ge", "geq", "min") else ">"
        label = f"{quoted(name)} {sign} {match[2]}"
        return {"label": label}, f"the event is {name} {sign} {match[2]}"

    def falls(self, name: str, options: Mapping[str, Any]) -> bool:
        """Return whether the numbers of a column are lower in rows with higher predictions.

        ``name`` is the column, and ``options`` are guessed arguments of :func:`read_predictions`,
        of which ``probs`` counts. The correlation of their ranks has to be below 0.
        """
        listed = self.terms(options.get("probs") or self.given.get("probs"))
        p = numbers_of(self.frame.select(listed[0].expr).to_series()) if len(listed) == 1 else None
        if p is None:
            return False
        x = self.numbers[name]
        known = np.isfinite(p) & np.isfinite(x)
        ranks = rankdata(p[known]), rankdata(x[known])
        return bool(known.sum() > 2 and np.cov(*ranks)[0, 1] < 0.0)

    def is_amount(self, name: str) -> bool:
        """Return whether the column ``name`` holds more than 50 different numbers."""
        return name in self.numbers and np.unique(self.numbers[name]).size > MOST_LABELS

    def one_hot(self, families: Sequence[Sequence[str]]) -> str:
        """Return the label that one-hot columns of 0 and 1 stand for, as an SQL expression, or "".

        ``families`` are groups of columns of predictions, by name; the ends of the names of the
        one-hot columns have to be the ends of one group. The expression has the class of each row,
        by these ends.
        """
        flags = [n for n in self.two if n in self.numbers and self.keys(n) == {"0", "1"}]
        for names in self.stems(flags):
            ends = {key(end): name for end, name in zip(ends_of(names), names, strict=True)}
            for family in families:
                classes = {key(end): end for end in ends_of([*family])}
                sums = np.sum([self.numbers[n] for n in names], axis=0)
                if classes.keys() != ends.keys() or not (sums == 1.0).all():
                    continue
                numbers = all(end.isdecimal() for end in classes)
                cases = (
                    f"WHEN {quoted(ends[k])} = 1 THEN {end if numbers else text_literal(end)}"
                    for k, end in classes.items()
                )
                return f"CASE {' '.join(cases)} END"
        return ""

    def blanks(self, probs: Sequence[Options]) -> list[tuple[Options, str]]:
        """Return (options, condition) for columns whose blanks may mean "no event".

        Options are a dict such as ``{"label": "died IS NOT NULL"}``, with the condition in words.
        Such a column has a single value beside blanks, or the predictions are higher in rows with a
        value; ``probs`` are their guessed options.
        """
        found = []
        for name in self.free:
            cells = self.frame[name]
            if not cells.null_count() or name in self.two:
                continue
            label = f"{quoted(name)} IS NOT NULL"
            rows = [self.rows({**p, "label": label}) for p in probs]
            told = [order_of_events(r[0], r[1])[1] >= TELLS for r in rows if r is not None]
            if cells.drop_nulls().n_unique() == 1 or any(told):
                when = f"{name} is blank where the event did not occur"
                if answer := self.answer_to(name):
                    label = f"coalesce({quoted(name)} = {quoted(answer)}, FALSE)"
                    when = f"a blank {name} and another {answer} both count as no event"
                found.append(({"label": label}, when))
        return found

    def answer_to(self, name: str) -> str:
        """Return the name of another column of text that has all words of a column, or "".

        ``name`` is the column; the other one may hold the predicted class. Columns with fewer than
        two words have none.
        """
        if name not in self.words or not self.is_text(name):
            return ""
        words = self.keys(name)
        others = [n for n in self.words if n != name and self.is_text(n)]
        return next((n for n in others if len(words) >= 2 and words <= self.keys(n)), "")

    def keys(self, name: str) -> set[str]:
        """Return the distinct words of a column in lower case, with ``_`` in place of signs.

        ``name`` is a column of words.
        """
        return {*map(key, self.words[name].unique().to_list())}

    def codes(self, name: str) -> list[tuple[Options, str]]:
        """Return (options, condition) for each of the two values of a column as the event.

        ``name`` is the column; an example is ``({"label": "status = 2"}, "2 is the event")``.
        Values such as "censored" are left out if the table has follow-up times.
        """
        cells = self.frame[name]
        values = cells.drop_nulls().unique().sort().to_list()
        if str(cells.dtype) == "String":
            values = sorted(self.words[name].unique().to_list())
        values = [v for v in values if not (self.times and says_censored(v))] or values
        return [
            ({"label": f"{quoted(name)} = {literal(value, cells)}"}, f"{value} is the event")
            for value in values
        ]

    def is_code(self, name: str) -> bool:
        """Return whether a column holds codes: 3 to 10 distinct words, or whole numbers below 10.

        ``name`` is a column of words or whole numbers.
        """
        words = self.words[name]
        if not 3 <= words.n_unique() <= CODES:
            return False
        return self.is_text(name) or bool(0.0 <= np.nanmax(self.numbers[name]) < CODES)

    def place(self, name: str) -> str:
        """Return the placeholder for a code of a column: CODE, in single quotes for text.

        ``name`` is the column.
        """
        return "'CODE'" if self.is_text(name) else "CODE"

    def is_told(self, name: str, probs: Sequence[Options]) -> bool:
        """Return whether predictions are related to a column that may hold the outcome.

        ``name`` is the column. They are if one of its codes has clearly higher or lower predictions
        (rank test with |z| of at least 3.5), or if its numbers are rank correlated with them.
        ``probs`` are the guessed options for the predictions, one dict each.
        """
        for options in probs:
            listed = self.terms(options.get("probs") or self.given.get("probs"))
            if len(listed) != 1 or name in listed[0].roots:
                continue
            p = numbers_of(self.frame.select(listed[0].expr).to_series())
            if p is None:
                continue
            if name in self.words and self.is_code(name):
                words = words_of(self.frame[name])
                assert words is not None
                events = [(words == code).fill_null(False) for code in words.unique().drop_nulls()]
                known = np.isfinite(p)
                tests = (order_of_events(p[known], e.to_numpy()[known] * 1) for e in events)
                if max(abs(z) for _, z in tests) >= TELLS:
                    return True
                continue
            x = self.numbers[name]
            known = np.isfinite(p) & np.isfinite(x)
            if known.sum() > 2 and np.ptp(p[known]) > 0.0 and np.ptp(x[known]) > 0.0:
                rho = np.corrcoef(rankdata(p[known]), rankdata(x[known]))[0, 1]
                if abs(rho) * np.sqrt(known.sum()) >= TELLS:
                    return True
        return False

    def rows(self, options: Mapping[str, Any]) -> tuple[FloatArray, IntArray, pl.DataFrame] | None:
        """Return (predictions, outcomes, frame) of the rows that have both; m of them.

        ``options`` are guessed arguments of :func:`read_predictions`; ``probs`` and ``label`` are
        taken from the given ones if they lack. Predictions (m,) are numbers. Outcomes (m,) are 1 in
        rows with the label's largest value, compared as text, such as 1 or true, else 0. ``frame``
        has the columns of these rows. None if a column is missing or cannot be read, or if no row
        has both.
        """
        import polars as pl

        probs = self.terms(options.get("probs") or self.given.get("probs"))
        outcome = self.given.get("label") or self.given.get("event")
        label = self.terms(options.get("label") or outcome)
        if not probs or not label:
            return None
        try:
            both = self.frame.with_columns(probs[-1].expr.alias("::p"), label[0].expr.alias("::y"))
            p = numbers_of(both["::p"])
        except pl.exceptions.PolarsError:
            return None
        if p is None:
            return None
        both = both.with_columns(pl.Series("::p", p).fill_nan(None)).drop_nulls(["::p", "::y"])
        words = words_of(both["::y"])
        if words is None or not both.height:
            return None
        return both["::p"].to_numpy(), (words == words.max()).to_numpy().astype(np.int64), both


def text_literal(word: str) -> str:
    """Return a word as an SQL literal in single quotes."""
    return "'" + word.replace("'", "''") + "'"


def numbers_of(cells: pl.Series) -> FloatArray | None:
    """Return the numbers of a polars column (n,), NaN for missing cells; None for other columns.

    Text that is written as numbers counts; percent signs are removed without division by 100, and
    at most a tenth of its cells may be missing or no number.
    """
    import polars as pl

    if cells.dtype == pl.String:
        if whole := out_of(cells):
            return np.asarray(cells.str.extract(OUT_OF, 1).cast(pl.Float64).to_numpy()) / whole
        words = cells.str.strip_chars().str.strip_chars_end("% ")
        words = words.str.replace(",", ".", literal=True) if has_commas(words) else words
        found = words.cast(pl.Float64, strict=False)
        if found.null_count() > 0.1 * len(found) or found.null_count() == len(found):
            return None
        cells = found
    if not cells.dtype.is_numeric():
        return None
    return np.asarray(cells.cast(pl.Float64).fill_null(np.nan).to_numpy())


def order_gap(p: FloatArray, q: FloatArray, y: IntArray) -> float:
    """Return z for the difference of the areas under the ROC curve, above 0 if that of p is larger.

    ``p`` and ``q`` are two predictions, ``y`` outcomes (1 an event), (n,) each. z is standard
    normal if the areas are equal (DeLong, DeLong and Clarke-Pearson 1988, eq. 5); 0 if there are
    fewer than two events or other rows, or the two rank alike. O(n log n).
    """
    event = y == 1
    sizes = int(event.sum()), int((~event).sum())
    if min(sizes) < 2:
        return 0.0
    places = []
    for x in (p, q):
        inside = rankdata(x)
        won, lost = inside.copy(), inside.copy()
        won[event] = (inside[event] - rankdata(x[event])) / sizes[1]
        lost[~event] = 1.0 - (inside[~event] - rankdata(x[~event])) / sizes[0]
        places.append((won[event], lost[~event]))
    first, second = (a - b for a, b in zip(*places, strict=True))
    variance = first.var(ddof=1) / sizes[0] + second.var(ddof=1) / sizes[1]
    return float(first.mean() / np.sqrt(variance)) if variance > 0.0 else 0.0


# ------------------------------------------------------------------------------
# Tables of counts: columns of rows, of events, and of their probability.


#: Names that are read without an option, in lower case with ``_`` for signs.
GRADE_NAMES = {
    "n": frozenset("n count rows total obligors borrowers accounts customers loans".split()),  # noqa: SIM905
    "events": frozenset("events defaults defaulted bads".split()),  # noqa: SIM905
    "probability": frozenset("pd probability p prob predicted_probability risk".split()),  # noqa: SIM905
    "names": frozenset("grade rating bin bucket band name".split()),  # noqa: SIM905
}

#: Columns that a table of grades must have.
REQUIRED = ("n", "events", "probability")

#: Likely readings that are listed; of more, places are.
LISTED_READINGS = 6

#: A month, such as 01.2024, in text.
MONTH = r"^(?:0[1-9]|1[0-2])\.\d{4}$"

#: Distance within which a column of fractions is the observed frequency, rounded.
SAME_RATE = 0.0051


def likely_grades(
    frame: pl.DataFrame, found: Mapping[str, Term], missing: Sequence[str]
) -> list[Reading]:
    """Return readings of columns that may be the roles ``missing`` from a table of grades.

    Grades are groups of rows with a predicted probability. Each reading has options of
    :func:`caltest.grade_tests` that set the missing roles, among "n", "events" and "probability",
    to columns. Counts are whole numbers, events at most n, and probabilities fractions. ``frame``
    has the rows, and ``found`` maps the roles known already to their expressions. If nothing fits,
    or more than six readings do, the one reading has the placeholder COLUMN.
    """
    used = {root for term in found.values() for root in term.roots}
    numbers = {n: v for n in frame.columns if (v := _as_floats(frame[n])) is not None}
    free = [n for n in numbers if n not in used]
    whole = [n for n in free if (numbers[n] % 1 == 0).all() and not _counts_on(numbers[n])]
    whole = [n for n in whole if not {*key(n).split("_")} & BASIS]
    inside = [n for n in free if numbers[n].min() >= 0 and numbers[n].max() <= 100]
    basis = [n for n in free if {*key(n).split("_")} & BASIS and numbers[n].max() <= 1e4]
    fractions = basis or [n for n in inside if (numbers[n] % 1 != 0).any()]
    gaps = any(frame[n].null_count() for n in frame.columns if n not in used)
    options = {"n": whole, "events": whole, "probability": fractions}
    columns = [
        options[w] if w in missing else [(found[w].column or "")]
        for w in REQUIRED
    ]  # fmt: skip
    readings = []
    for n, events, p in product(*columns):
        fits = n != events and not ({n, events} - numbers.keys())
        if fits and (numbers[events] <= numbers[n]).all() and (numbers[n] > 0).any():
            rates = numbers[events] / np.maximum(numbers[n], 1.0)
            readings.append((n, events, p, _is_rate(numbers.get(p), rates)))
    if gaps or any(not rate for *_, rate in readings):
        # What was observed is not what was predicted, which may lack a value in a row of totals.
        readings = [r for r in readings if not r[3]]
    if (
        tuple(missing) == REQUIRED
    ):  # of several columns those that have about as many events as predicted
        near = [r for r in readings if _as_many(numbers, r[:3], 1e4 if r[2] in basis else 100.0)]
        readings = near or readings
    if not 0 < len(readings) <= LISTED_READINGS:
        return [Reading(dict.fromkeys(missing, "COLUMN"))]
    several_fit = len(readings) > 1
    made = []
    for n, events, p, _ in readings:
        name = dict(zip(REQUIRED, (n, events, p), strict=True))
        given = {w: quoted(name[w]) for w in missing}
        signed = str(frame[p].dtype) == "String"  # divided by 100 where it is read
        if "probability" in missing and signed and has_commas(frame[p]):
            given["probability"] = of_commas(quoted(p), frame[p])
        elif "probability" in missing and p in basis:
            given["probability"] += " / 10000"
        elif "probability" in missing and numbers[p].max() > 1.0 and not signed:
            given["probability"] += " / 100"
        what = " and ".join(f"{w} is {name[w]}" for w in missing)
        made.append(Reading(given, what if several_fit else ""))
    return made


def _as_many(numbers: Mapping[str, FloatArray], names: tuple[str, str, str], scale: float) -> bool:
    """Return whether Σ events is within a factor of two of Σ n p, the number predicted.

    The sums are over G grades. ``names`` are the columns n (rows of a grade), events and p
    (predicted probability), whose cells (G,) are in ``numbers`` by name; ``scale`` divides p if any
    is above 1.
    """
    n, events, p = (numbers[name] for name in names)
    expected = float(n @ p) / (scale if p.max() > 1.0 else 1.0)
    return 0.5 * expected <= float(events.sum()) <= 2.0 * expected


def _as_floats(cells: pl.Series) -> FloatArray | None:
    """Return a polars column as numbers (n,), percent signs removed.

    None for columns of other types, with missing cells, or of months such as 01.2024.
    """
    import polars as pl

    if cells.dtype == pl.String:
        words = cells.str.strip_chars().str.strip_chars_end("% ")
        if words.str.contains(MONTH).all():
            return None
        words = words.str.replace(",", ".", literal=True) if has_commas(words) else words
        cells = words.cast(pl.Float64, strict=False)
    if not cells.dtype.is_numeric() or cells.null_count() or not cells.len():
        return None
    values = np.asarray(cells.cast(pl.Float64).to_numpy())
    return values if np.isfinite(values).all() else None


def _counts_on(numbers: FloatArray) -> bool:
    """Return whether numbers look like row numbers or years, not like counts.

    ``numbers`` (n,) are like that if each is the one before plus 1, or all are from 1900 to 2100.
    """
    years = ((numbers >= 1900) & (numbers <= 2100)).all()
    return bool((numbers.size > 1 and (np.diff(numbers) == 1).all()) or years)


def _is_rate(values: FloatArray | None, rates: FloatArray) -> bool:
    """Return whether a column holds the observed event rates of G grades, up to rounding.

    ``values`` (G,) are the column, fractions or percentages, and ``rates`` (G,) the rates. False if
    ``values`` is None, a column without numbers.
    """
    if values is None:
        return False
    gaps = [np.abs(values - rates).max(), np.abs(values - 100.0 * rates).max()]
    return bool(gaps[0] <= SAME_RATE or gaps[1] <= 10.0 * SAME_RATE)
