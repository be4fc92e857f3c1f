"""From the cells of chosen expressions to predictions: numbers, outcomes, classes, and gaps.

:class:`EvaluatedCells` is the table of evaluated expressions; its methods check numbers, recognise
outcomes and classes, and name the first cell that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from caltest._base.features import as_features
from caltest._base.written import several
from caltest.data import Predictions
from caltest.data.doubts import (
    bare_words,
    class_places,
    cumulative,
    named_classes,
    orders_of_classes,
    too_few_labels,
)
from caltest.data.ends import without_accents
from caltest.data.facts import NO_VALUE, RIGHT
from caltest.data.followup import Followup
from caltest.data.labels import rows_of_votes
from caltest.data.numbers import as_probabilities, sum_tolerance
from caltest.errors import DoubtfulInputError, InvalidPredictionsError, Reading, in_a_file
from caltest.read.contract import (
    CONFIDENCES,
    PROBABILITIES,
    Chosen,
    Wanted,
    as_number,
    called_alike,
    shares_of,
    steps,
)
from caltest.read.expressions import (
    BASIS,
    PERCENT,
    american_odds,
    as_decimals,
    ends_in,
    ends_of,
    halved_limits,
    has_commas,
    is_american,
    key,
    kind_of,
    literal,
    may_be_american,
    of_commas,
    of_parts,
    out_of,
    quoted,
    range_of,
    words_of,
)

if TYPE_CHECKING:
    import polars as pl

#: Name of the column of an array of labels beside a table.
LABELS_BESIDE = "labels="


#: Options whose cells may be missing: a row without a group is one of its own, features have gaps.
MAY_LACK = frozenset({"by", "features"})


#: How far beyond 0 and 1 rounding may bring a probability.
BEYOND = 1e-6


#: How far from 1 rows sum whose columns are no classes of one label, and rows that show it.
NOT_ONE, ROWS_OF_SUMS = 0.02, 20


#: What stands for a blank among answers, in SQL.
BLANK = "'<none>'"


#: Values of an outcome that a refusal lists, and readings that it offers.
LISTED_VALUES, OFFERED = 8, 4


#: Above it numbers without a telling name are percents, rather than ranks or odds.
MOSTLY_PERCENT = 50.0


#: Rows that share a number which stands for a missing value, at least, and how it is written.
FEWEST_MARKS, NINES = 3, re.compile(r"-?9+(\.9+)?")


#: Words, without accents and signs, that say that something is not known.
UNKNOWN_WORDS = frozenset(
    (
        *("", "unknown", "unk", "unclear", "undetermined", "indeterminate", "uncertain", "missing"),
        *("na", "n_a", "nd", "k_a", "ka", "not_available", "not_known", "not_done", "pending"),
        *("not_assessed", "not_reported", "none", "null", "unbekannt", "unklar", "offen", "fehlt"),
        *("desconocido", "no_consta", "inconnu", "sconosciuto", "onbekend", "desconhecido"),
    )
)


@dataclass(frozen=True)
class EvaluatedCells:
    """Evaluated cells of the rows of a table that the user's ``where`` keeps.

    ``chosen`` has the expressions by role, such as "label", and ``wanted`` the options of
    :func:`read_predictions`. ``frame`` has the columns ``role:k``, such as ``probs:0``, with one
    cell for each of n rows; ``rows`` (n,) are the rows' places in the table, from 0; ``first`` is
    the number of its first row in messages; ``parts`` are (name, number of rows) of the files, if
    several; ``part`` says that other rows are read separately.
    """

    chosen: Chosen
    wanted: Wanted
    frame: pl.DataFrame
    rows: IntArray
    first: int = 1
    parts: tuple[tuple[str, int], ...] = ()
    part: bool = False

    def of(self, option: str) -> list[str]:
        """Return the names of the columns that hold an option, such as ["probs:0", "probs:1"].

        ``option`` is the role, such as "probs". The list is empty if it was not read.
        """
        return [name for name in self.frame.columns if name.startswith(f"{option}:")]

    def sql(self, column: str) -> str:
        """Return the expression of a column such as "probs:0" as SQL.

        It is a value that the option takes on the command line.
        """
        option, _, place = column.partition(":")
        return self.chosen.terms[option][int(place)].sql

    def name(self, column: str) -> str:
        """Return the expression of a column such as "probs:0", as messages name it.

        It is the name of the table's column, or the SQL of an expression.
        """
        option, _, place = column.partition(":")
        return self.chosen.terms[option][int(place)].name

    def is_plain(self, column: str) -> bool:
        """Return whether a role was read from a plain column of the table, not from an expression.

        ``column`` is its name in the frame, such as "probs:0".
        """
        option, _, place = column.partition(":")
        return self.chosen.terms[option][int(place)].column is not None

    def nth(self, place: int) -> str:
        """Return the name of the row at index ``place``, such as "row 17 of scores.csv".

        ``place`` counts the rows that were kept; the name has the row's number in the table or, if
        several files are read as one, in its file.
        """
        row = int(self.rows[place]) + self.first
        for name, length in self.parts:
            if row < length + self.first:
                return f"row {row} of {name}"
            row -= length
        return f"row {row}"

    # --- rows without a value ------------------------------------------------------------------

    def complete(self) -> Complete:
        """Return the rows without missing values, as :class:`Complete`.

        It also has the number of missing cells by column, and of rows left out. Missing cells of
        subgroups and features do not count. InvalidPredictionsError for missing values, unless the
        option ``drop_missing`` leaves out such rows, and if every row lacks a value.
        """
        import polars as pl

        core = [c for c in self.frame.columns if c.partition(":")[0] not in MAY_LACK]
        if self.wanted.multilabel:
            core = self.of("probs")
        gaps: dict[str, pl.Series] = {}
        for column in core:
            cells = self.frame[column]
            if not cells.null_count():
                if not cells.dtype.is_float():
                    continue
                values = cells.to_numpy()
                if not bool((values != values).any()):  # NaN, without a query of polars
                    continue
            lacking = cells.is_null()
            if cells.dtype.is_float():
                lacking = lacking | cells.is_nan().fill_null(False)
            gaps[column] = lacking
        if not gaps:
            return Complete(self, {}, 0)
        counts = {column: int(lacking.sum()) for column, lacking in gaps.items()}
        n, drop = self.frame.height, self.wanted.drop_missing
        out = pl.Series(np.any([lacking.to_numpy() for lacking in gaps.values()], axis=0))
        left = int(out.sum())
        share = 1.0 if drop is True else float(drop)
        if not drop or left > share * n:
            limit = "" if not drop else f", more than the share {share:g} that may be left out"
            readings = self._readings_of_gaps(gaps)
            advice = "choose how a blank is read" if len(readings) > 1 else "leave out such rows"
            rows = [
                f"{self.name(column)} has no value in {self.nth(int(lacking.arg_max() or 0))} "
                f"({several(counts[column], 'row')} of {n}{limit * (len(gaps) == 1)})"
                for column, lacking in gaps.items()
            ]
            both = f" ({several(left, 'row')} in all{limit})" if len(gaps) > 1 else ""
            raise InvalidPredictionsError(
                f"{' and '.join(rows)}{both}: complete it, or {advice}", readings
            )
        kept = self.frame.filter(~out)
        rows = self.rows[(~out).to_numpy()]
        if not kept.height and not self.part:
            listed = ", ".join(f"{self.name(c)} in {k}" for c, k in counts.items())
            raise InvalidPredictionsError(f"every row lacks a value: {listed}")
        return Complete(replace(self, frame=kept, rows=rows), counts, left)

    def _readings_of_gaps(self, gaps: Mapping[str, pl.Series]) -> list[Reading]:
        """Return readings for rows without a value: they are left out, or a blank has a meaning.

        A reading has options of :func:`read_predictions` to set, and the condition under which it
        is right. ``gaps`` maps columns such as "label:0" to marks (n,) of their missing cells. A
        blank may mean something if the row has a prediction, and the blank is in the outcome, in an
        expression, or in a column with a single other value.
        """
        drop = Reading({"drop_missing": True})
        known = ~np.any([gaps[c].to_numpy() for c in gaps if c.startswith("probs:")], axis=0)
        for column in ("label:0", "predicted_label:0", "event:0"):
            if column not in gaps or not (gaps[column].to_numpy() & known).any():
                continue
            name, sql = self.name(column), self.sql(column)
            option = column.partition(":")[0]
            cells = self.frame[column]
            values = cells.drop_nulls().unique()
            if self.of("predicted_label"):
                filled = f"coalesce({sql}, {-1 if cells.dtype.is_numeric() else BLANK})"
                when = f"the prediction is wrong where {name} is blank"
            elif not self.is_plain(column):
                filled, when = f"coalesce({sql}, FALSE)", f"{name} is false where it is unknown"
            elif len(values) == 1:
                filled = f"{sql} IS NOT NULL"
                when = f"{name} is {values[0]} or blank, and a blank is the other outcome"
            else:
                continue
            unknown = replace(drop, when=f"the outcome is not known where {name} is blank")
            return [Reading({option: filled}, when), unknown]
        return [drop]

    # --- numbers and outcomes ------------------------------------------------------------------

    def numbers(self, column: str) -> FloatArray:
        """Return the numbers of a column such as "probs:0", (n,), percent signs divided by 100.

        Missing cells are NaN. Numbers of 32 and 16 bits keep their type, by which it is known how
        they were rounded, unless other rows are read separately. InvalidPredictionsError for cells
        that are no numbers.
        """
        import polars as pl

        cells = self.frame[column]
        if cells.dtype in (pl.String, pl.Categorical, pl.Enum):
            return self._written(column, cells.cast(pl.String).str.strip_chars())
        if cells.dtype == pl.Null or not (cells.dtype.is_numeric() or cells.dtype == pl.Boolean):
            raise InvalidPredictionsError(
                f"{self.name(column)} holds {kind_of(cells.dtype)}, not numbers"
            )
        if cells.dtype.is_decimal() or cells.dtype in (pl.Int128, pl.UInt128, pl.Boolean):
            cells = cells.cast(pl.Float64)
        values = np.asarray(cells.to_numpy())
        return as_decimals(values) if self.part else values

    def _written(self, column: str, words: pl.Series) -> FloatArray:
        """Return the numbers (n,) that the cells ``words`` hold as text, NaN for missing ones.

        ``column``, "probs:0" or the like, names them in messages. Percents with signs are divided
        by 100. InvalidPredictionsError for other text, and for signs in some cells only.
        """
        import polars as pl

        signed = words.str.ends_with("%").fill_null(False)
        numbers = words.str.strip_chars_end("% ").cast(pl.Float64, strict=False)
        # polars reads "NAN" and "NaN%" as numbers.
        wrong = (numbers.is_null() | numbers.is_nan()) & words.is_not_null()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            word, hint = str(words[row]), ""
            if re.fullmatch(r"-?\d{1,3}([.,\s]\d{3})+([.,]\d+)?", word):
                hint = ": write numbers without separators of thousands"
            elif re.fullmatch(r"-?\d+,\d+ ?%?", word):
                hint = ": write decimal points, or separate columns by semicolons"
            elif re.search(r"\d", word) and not re.search("[0-9]", word):
                hint = ": write numbers with the digits 0 to 9"
            readings = []
            if column == "probability:0" and self.is_plain(column) and has_commas(words):
                changed = of_commas(self.sql(column), words)
                readings = [Reading({"probability": changed})]
            if column.startswith("probs:") and self.is_plain(column):
                if has_commas(words):
                    changed = of_commas(self.sql(column), words)
                    readings = [Reading(self._with(column, changed))]
                elif whole := out_of(words):
                    readings = [Reading(self._with(column, of_parts(self.sql(column), whole)))]
                else:
                    readings = self._without_words(column, words.filter(wrong))
            raise InvalidPredictionsError(
                f"{self.name(column)} is {word!r} in {self.nth(row)}, which is not a number{hint}",
                readings,
            )
        unsigned = ~signed & words.is_not_null()
        if signed.any() and unsigned.any():
            row = int(unsigned.arg_max() or 0)
            raise InvalidPredictionsError(
                f"{self.name(column)} has percent signs, but not in {self.nth(row)} "
                f"({words[row]}): use one notation"
            )
        return np.asarray(numbers.to_numpy()) / (100.0 if signed.any() else 1.0)

    def _with(self, column: str, sql: str) -> dict[str, str]:
        """Return options by which one column of probabilities is read as another expression.

        They are arguments of :func:`read_predictions`, such as ``{"probs": "a / 100, b"}``, with
        ``classes`` where the columns' names say them. ``column`` is "probs:0" or the like, ``sql``
        the expression; other columns stay as they are.
        """
        return self._of_each(sql if c == column else self.sql(c) for c in self.of("probs"))

    def _without_words(self, column: str, words: pl.Series) -> list[Reading]:
        """Return readings for words among numbers: they are missing values, or limits.

        A reading has options of :func:`read_predictions` to set, and the condition under which it
        is right. ``column`` is "probs:0" or the like, and ``words`` are its cells that are no
        numbers. Limits such as "<0.01" count as half of that number, or are missing; a single other
        word says that a value is missing. The list is empty for several other words, and for words
        with digits.
        """
        kinds = sorted(words.unique().to_list())
        if (halved := halved_limits(self.sql(column), kinds)) is not None:
            missing = f"TRY_CAST({self.sql(column)} AS DOUBLE)"
            these = " and ".join(map(repr, kinds))
            return [
                Reading(self._with(column, halved[0]), halved[1]),
                Reading(
                    {**self._with(column, missing), "drop_missing": True},
                    f"{these} {'is a missing value' if len(kinds) == 1 else 'are missing values'}",
                ),
            ]
        if len(kinds) != 1 or re.search(r"\d", kinds[0]):
            return []
        sql = f"NULLIF({self.sql(column)}, {literal(kinds[0], words)})"
        options = {**self._with(column, sql), "drop_missing": True}
        return [Reading(options, f"{kinds[0]!r} is a missing value")]

    def _swapped(self, label: str) -> list[Reading]:
        """Return the reading with prediction and label exchanged, if the one prediction is 0 or 1.

        ``label`` is the column of the label, "label:0". The reading has the options ``probs`` and
        ``label``; the list is empty if there are several predictions, or other numbers.
        """
        probs = self.of("probs")
        if len(probs) != 1 or not (cells := self.frame[probs[0]]).dtype.is_numeric():
            return []
        if not bool(((cells == 0) | (cells == 1)).all()):
            return []
        return [Reading({"probs": self.sql(label), "label": self.sql(probs[0])})]

    def binary(self, column: str, option: str) -> BoolArray:
        """Return an outcome as booleans (n,), from a column of booleans or of 0 and 1.

        Text such as "1" or "true" counts as well. ``column`` is "label:0" or the like, and
        ``option`` the option of :func:`read_predictions` that names it, such as "label".
        InvalidPredictionsError for other codes suggests an expression of ``option`` for each.
        """
        import polars as pl

        cells = self.frame[column]
        if cells.dtype == pl.Boolean:
            return np.asarray(cells.to_numpy())
        if cells.dtype.is_numeric():
            numbers = cells.to_numpy()
            one = numbers == 1
            if bool((one | (numbers == 0)).all()):
                return np.asarray(one)
        words = words_of(cells)
        sql, name = self.sql(column), self.name(column)
        if words is None:
            fraction = f"{sql} >= NUMBER"
            readings = [Reading({option: fraction})]
            if option == "label" and cells.dtype.is_float() and bool(cells.is_between(0, 1).all()):
                votes = f"round((1 - {sql}) * NUMBER), round({sql} * NUMBER)"
                when = f"{name} is a proportion of NUMBER votes"
                readings.append(Reading({"label": None, "votes": votes}, when))
                readings = self._swapped(column) or readings
            raise InvalidPredictionsError(
                f"{name} holds {kind_of(cells.dtype)} ({range_of(cells)}): an outcome is 0 or 1, "
                "or an expression that is true where the event occurred",
                readings,
            )
        lower = words.str.to_lowercase()
        seen = {*lower.unique().to_list()}
        if seen <= {"0", "1"} or seen <= {"false", "true"}:
            return np.asarray(lower.is_in(["1", "true"]).to_numpy())
        counts = words.value_counts(sort=True)
        listed = ", ".join(f"{value} ({n})" for value, n in counts.head(LISTED_VALUES).rows())
        more = ", …" if counts.height > LISTED_VALUES else ""
        raise InvalidPredictionsError(
            f"{name} is {listed}{more}: an outcome is 0 or 1, so say which is the event",
            self._codes(sql, option, cells, counts),
        )

    def _codes(
        self, sql: str, option: str, cells: pl.Series, counts: pl.DataFrame
    ) -> list[Reading]:
        """Return readings in which one code of a column is the event.

        A reading has options of :func:`read_predictions` to set, and the condition under which it
        is right. ``sql`` is the column, ``option`` the option to set ("label", "event" or
        "competing"), ``cells`` are the cells (n,), and ``counts`` has the codes and their numbers
        of rows, most frequent first. There is one reading for each of up to four codes; for more
        codes, one has the placeholder CODE.
        """
        codes = counts[counts.columns[0]].to_list()
        if option == "event" and len(codes) > 2:
            return [Reading({"event": f"{sql} = CODE", "competing": f"{sql} = CODE"})]
        if len(codes) > 2 * OFFERED:
            comparison = "CODE" if cells.dtype.is_numeric() else "'CODE'"
            return [Reading({option: f"{sql} = {comparison}"})]
        lost = unknown_codes(counts)
        known = [code for code in codes if code not in lost]
        if option != "label" or len(known) < 2:
            lost, known = [], codes
        if option == "label" and {as_number(str(code)) for code in known} == {-1.0, 0.0, 1.0}:
            away = self.where(f"{sql} <> -1")
            return [
                Reading({"where": away}, "-1 says that the outcome is not known"),
                Reading({"label": f"{sql} = 1"}, "1 is the event, and both -1 and 0 are none"),
            ]
        where = " AND ".join(f"{sql} <> {literal(code, cells)}" for code in lost)
        kept = {"where": self.where(where)} if lost else {}
        unless = f", and {' and '.join(map(str, lost))} says that it is not known" if lost else ""
        if lost and {*map(str, known)} == {"0", "1"}:
            return [Reading(kept, f"{' or '.join(map(str, lost))} is a missing value")]
        values = [(code, literal(code, cells)) for code in known[:OFFERED]]
        readings = [
            Reading({option: f"{sql} = {v}"} | kept, f"{c} is the event{unless}") for c, v in values
        ]
        if len(codes) > OFFERED:
            readings.append(Reading({option: f"{sql} = CODE"}))
        return readings

    def where(self, condition: str) -> str:
        """Return a condition, in SQL, joined by AND with the user's own ``where``.

        Without one the condition is returned unchanged.
        """
        said = self.wanted.where
        return condition if said is None else f"({said}) AND {condition}"

    # --- probabilities -------------------------------------------------------------------------

    def probabilities(self) -> AnyArray:
        """Return the probabilities, or logits, of the rows as they were read, (n,) or (n, K).

        K is the number of columns, one for each class; one column gives (n,).
        InvalidPredictionsError for other scales, such as percentages, with an expression that
        converts them, and for cumulative probabilities. Logits are not checked.
        """
        import polars as pl

        columns = self.of("probs")
        for column in columns:
            if self.frame[column].dtype == pl.Boolean:
                raise InvalidPredictionsError(
                    f"{self.name(column)} holds true and false, which are classes: probabilities "
                    "are numbers in [0, 1]"
                )
        if len(columns) > 2 and not (self.wanted.from_logits or self.wanted.multilabel):
            self._refuse_no_class()
        listed = [self.numbers(column) for column in columns]
        if not self.wanted.from_logits:
            for column, values in zip(columns, listed, strict=True):
                self._check_scale(column, values, len(columns) > 1)
        if len(listed) == 1:
            return listed[0]
        stacked = np.column_stack(listed)
        if not self.wanted.from_logits and not self.wanted.multilabel:
            self._refuse_cumulative(stacked)
        return stacked

    def _refuse_no_class(self) -> None:
        """Raise DoubtfulInputError for a column that is called like a class and holds none.

        Such as ``p_value`` beside ``p_cat`` and ``p_dog``: no row has its label, and rows sum to 1,
        or 100, without it and not with it. It may hold text. The error names the other columns, in
        one reading for each column that may be left out. Nothing is raised without labels, for
        fewer than 20 rows, and with the option ``as_is``.
        """
        words = words_of(self.frame["label:0"]) if self.of("label") else None
        if words is None or self.frame.height < ROWS_OF_SUMS or self.wanted.as_is:
            return
        columns = self.of("probs")
        probs = np.full((self.frame.height, len(columns)), np.nan)
        for j, column in enumerate(columns):
            with suppress(InvalidPredictionsError):
                probs[:, j] = self.numbers(column)
        seen = {key(word) for word in words.unique().drop_nulls().to_list()}
        names = [*map(str, self.wanted.classes or self.chosen.classes or ())]
        ends = [key(name) for name in names] if len(names) == len(columns) else []
        lacking = [j for j in range(len(columns)) if not (ends and {ends[j]} & seen)]
        told, off = seen <= {*ends}, _off_one(probs)
        scale = 100.0 if np.nanmax(probs, initial=0.0) > 1.0 + BEYOND else 1.0
        if off <= sum_tolerance(probs / scale)[0] or not (told or 3 <= len(seen) < len(columns)):
            return
        tried = [[j] for j in lacking] + [lacking] * (1 < len(lacking) < len(columns) - 1)
        rest = {tuple(left): _off_one(np.delete(probs, left, axis=1)) for left in tried}
        out = [left for left, gap in rest.items() if gap <= min(NOT_ONE, off / 4.0)]
        sql, readings = [self.sql(column) for column in columns], []
        for left in out:
            kept = [j for j in range(len(sql)) if j not in left]
            options: dict[str, Any] = {"probs": ", ".join(sql[j] for j in kept)}
            named = bool(self.wanted.classes)
            options |= {"classes": ",".join(names[j] for j in kept)} if named else {}
            options |= {"renormalise": None} if self.wanted.renormalise else {}
            when = f"{' and '.join(sql[j] for j in left)} is no class"
            readings.append(Reading(options, "" if told and len(out) == 1 else when))
        if readings:
            which = " or ".join(" and ".join(sql[j] for j in left) for left in out)
            raise DoubtfulInputError(
                f"rows of {self.chosen.name('probs')} sum to 1 without {which} only, which no row "
                f"of {self.name('label:0')} is called after: it is no class",
                readings,
            )

    def _check_scale(self, column: str, values: FloatArray, family: bool) -> None:
        """Raise InvalidPredictionsError for a column of probabilities with numbers outside [0, 1].

        ``column`` is "probs:0" or the like, and ``values`` (n,) are its numbers; ``family`` says
        that there is a column for each class. The error has ways to convert them.
        """
        if not values.size:
            return
        low, top = float(values.min()), float(values.max())
        sql, name = self.sql(column), self.name(column)
        self._refuse_infinite(column, values)
        self._refuse_marks(column, values)
        basis = bool({*key(name).split("_")} & (BASIS | {"basis"}))
        if is_american(values) or (may_be_american(values) and not family and not basis):
            text = not self.frame[column].dtype.is_numeric()
            changed = self._with(column, american_odds(sql, text))
            readings = [] if family else [Reading(changed, f"{name} holds American odds")]
            if low > 0.0 and self.is_plain(column):
                readings.append(Reading({"probs": f"{sql} / NUMBER"}, f"{name} is out of NUMBER"))
            raise InvalidPredictionsError(
                f"{name} is {values[0]:g} in {self.nth(0)}, and no number is between −100 and "
                "100, as in American odds: probabilities are in [0, 1]",
                readings,
            )
        if top > 1.0 + BEYOND:
            self._refuse_beyond(column, values, family)
        if low < -BEYOND:
            row = int(np.argmax(values < -BEYOND))
            readings = [self._as_logits(column)]
            if top <= 0.0 and not family:
                readings.insert(0, Reading({"probs": f"exp({sql})"}, "these are log-probabilities"))
            raise InvalidPredictionsError(
                f"{name} is {values[row]:g} in {self.nth(row)}: a probability is at least 0",
                readings,
            )

    def _refuse_infinite(self, column: str, values: FloatArray) -> None:
        """Raise InvalidPredictionsError for an infinite number among the numbers of a column.

        ``column`` is "probs:0" or the like, and ``values`` (n,) are its numbers. The error offers
        the range of all others as a condition on the rows. Nothing is raised if others are
        negative, as logarithms of zero are left to the checks of logits and log-probabilities.
        """
        infinite = np.isinf(values)
        if not infinite.any():
            return
        others = values[~infinite]
        if others.size and others.min() < -BEYOND:
            return
        row, sql = int(np.argmax(infinite)), self.sql(column)
        readings = []
        if others.size:
            top = 1.0
            while top < others.max():
                top *= 10.0
            low = f"{sql} >= 0" * bool(values.min() < 0.0)
            high = f"{sql} <= {top:.0f}" * bool(values.max() > top)
            condition = self.where(" AND ".join(filter(None, (low, high))))
            readings = [Reading({"where": condition}, "an infinite number is a missing value")]
        raise InvalidPredictionsError(
            f"{self.name(column)} is {values[row]:g} in {self.nth(row)} "
            f"({several(int(infinite.sum()), 'infinite number')} in {len(values)} rows): "
            "repair or leave out such rows",
            readings,
        )

    def _refuse_marks(self, column: str, values: FloatArray) -> None:
        """Raise InvalidPredictionsError for a number such as −999 or 99 among fractions.

        It may mark a missing value. ``column`` is "probs:0" or the like, and ``values`` (n,) are
        its numbers: a single one is outside [0, 1], written with nines, and occurs in at least
        three rows or has a size of at least 99. The error suggests to leave out such rows.
        """
        inside = (values >= -BEYOND) & (values <= 1.0 + BEYOND)
        marks = np.unique(values[~inside])
        count = int(np.count_nonzero(~inside))
        few = count >= FEWEST_MARKS or (count and abs(marks[0]) >= 99.0)
        if len(marks) != 1 or not few or count > len(values) / 2 or not self.is_plain(column):
            return
        mark = float(marks[0])
        if not NINES.fullmatch(f"{mark:g}") or not (values[inside] % 1.0 != 0.0).any():
            return
        sql, row = self.sql(column), int(np.argmin(inside))
        raise InvalidPredictionsError(
            f"{self.name(column)} is {mark:g} in {several(count, 'row')}, first in "
            f"{self.nth(row)}, and from 0 to 1 in all others: it may stand for a missing value",
            [Reading({"where": self.where(f"{sql} {'>= 0' if mark < 0.0 else '<= 1'}")},
                     f"{mark:g} is a missing value")],
        )  # fmt: skip

    def _refuse_beyond(self, column: str, values: FloatArray, family: bool) -> None:
        """Raise InvalidPredictionsError for a column of probabilities with numbers above 1.

        ``column`` is "probs:0" or the like, and ``values`` (n,) are its numbers, at least one of
        them above 1; ``family`` says that there is a column for each class. The error has ways to
        convert them.
        """
        sql, name = self.sql(column), self.name(column)
        top, row = float(values.max()), int(np.argmax(values > 1.0 + BEYOND))
        text = f"{name} is {values[row]:g} in {self.nth(row)}: a probability is at most 1"
        if values.min() < 0.0:
            raise InvalidPredictionsError(text, [self._as_logits(column)])
        if not self.is_plain(column):
            raise InvalidPredictionsError(text)
        if top > 100.0:
            unit = 10_000 if {*key(name).split("_")} & (BASIS | {"basis"}) else "NUMBER"
            every = self._of_each(f"{self.sql(c)} / {unit}" for c in self.of("probs"))
            raise InvalidPredictionsError(text, [Reading(every)])
        whole_row = self._sum_of_rows() if family else 100
        every = self._of_each(f"{self.sql(c)} / {whole_row}" for c in self.of("probs"))
        within = (values > 0.0) & (values < 1.0)
        whole = bool((values[~within] % 1.0 == 0.0).all())
        if not (whole and within.any()) or family:
            integers = bool((values % 1.0 == 0.0).all())
            sure = top > MOSTLY_PERCENT and (integers or values.min() < 1.0)
            called = bool({*key(name).split("_")} & PERCENT)
            called = called or key(name) in PROBABILITIES | CONFIDENCES
            sure = family or sure or (top > 10.0 and called)
            readings = [Reading(every, "" if sure else f"{name} is in percent")]
            if not sure and integers:
                most = "10" if top <= 10.0 else "NUMBER"
                out_of_most = Reading({"probs": f"{sql} / {most}"}, f"{name} is out of {most}")
                readings.insert(0 if top <= 10.0 else 1, out_of_most)
            if not sure and not integers and values.min() > 1.0:
                readings.append(Reading({"probs": f"1 / {sql}"}, f"{name} holds decimal odds"))
            raise InvalidPredictionsError(text, readings)
        k = int(np.argmax(within))
        odd = f"{values[k]:g}"
        raise InvalidPredictionsError(
            f"{text}, and {odd} in {self.nth(k)} stands among percents that are whole numbers",
            [Reading(every, f"{odd} is {odd} %"),
             Reading({"probs": f"CASE WHEN {sql} < 1 THEN {sql} ELSE {sql} / 100 END"},
                     f"{odd} is {100 * values[k]:g} %")],
        )  # fmt: skip

    def _as_logits(self, column: str) -> Reading:
        """Return the reading in which a column of probabilities holds logits.

        ``column`` is "probs:0" or the like. Logits are not divided by 100 or another number: the
        one column that such an expression uses is read instead.
        """
        term = self.chosen.terms["probs"][int(column.partition(":")[2])]
        divided = re.fullmatch(r".+ ?/ ?\d+", term.sql) and term.column is None
        if divided and len(term.roots) == 1 and len(self.of("probs")) == 1:
            root = term.roots[0]
            return Reading({"probs": quoted(root), "from_logits": True}, f"{root} holds logits")
        return Reading({"from_logits": True}, "these are logits")

    def _of_each(self, expressions: Iterable[str]) -> dict[str, str]:
        """Return the options that read each column of probabilities as an expression.

        They are arguments of :func:`read_predictions`; an example is ``{"probs": "a / 100, b /
        100", "classes": "a,b"}``. ``expressions`` are SQL, in the order of the columns. ``classes``
        are the names' ends of these columns, which the expressions no longer have; it is left out
        if there are none, they count from 0, or the user gave it.
        """
        named = list(self.chosen.classes or ())
        plain = self.wanted.classes or named == [str(j) for j in range(len(named))]
        classes = {} if plain or not named else {"classes": ",".join(named)}
        return {"probs": ", ".join(expressions)} | classes

    def _sum_of_rows(self) -> int:
        """Return 10, 100 or 1000 if the probabilities of every row sum to it within 2 %.

        Otherwise it is 100.
        """
        sums = np.sum([self.numbers(c) for c in self.of("probs")], axis=0)
        fits = (k for k in (10, 100, 1000) if np.allclose(sums, k, atol=0.02 * k))
        return next(fits, 100)

    def _refuse_cumulative(self, probs: FloatArray) -> None:
        """Raise InvalidPredictionsError for columns (n, K) that are cumulative probabilities.

        They rise along every row to 1. The error's readings take their differences. Nothing is
        raised for a single row, or if other rows are read separately.
        """
        if len(probs) < 2 or self.part:
            return
        sql = [self.sql(column) for column in self.of("probs")]
        if (question := cumulative(probs, sql)) is None:
            return
        if np.allclose(probs.sum(axis=1), 1.0, atol=1e-3):
            return
        ends = {} if self.wanted.classes or not self.chosen.classes else {"classes": self.ends()}
        readings = [Reading({**reading.options, **ends}) for reading in question.readings]
        raise InvalidPredictionsError(question.text, readings)

    def ends(self) -> str:
        """Return the classes, joined by commas, for the option ``classes`` of a suggestion.

        They are the label's values in order if these are as many whole numbers as there are columns
        of probabilities, else placeholders "CLASS1,CLASS2".
        """
        words = words_of(self.frame["label:0"]) if self.of("label") else None
        seen = [] if words is None else words.unique().drop_nulls().to_list()
        columns = len(self.of("probs"))
        numbers = len(seen) == columns and all(re.fullmatch(r"\d+", word) for word in seen)
        return ",".join(sorted(seen, key=int)) if numbers else class_places(columns)

    # --- labels --------------------------------------------------------------------------------

    def labels(self, probs: AnyArray) -> tuple[AnyArray, tuple[str, ...] | None]:
        """Return (labels, names): labels 0 … K − 1 of shape (n,), and class names or None.

        ``probs`` (n,) or (n, K) are the probabilities, whose K columns may name the classes; (n,)
        means two classes. Names are None if the classes are numbers. If a predicted class was read,
        label 1 is that it was right. InvalidPredictionsError for values that are no classes.
        """
        if self.of("predicted_label"):
            if probs.ndim > 1:
                raise InvalidPredictionsError(
                    "a predicted class needs one column, the probability that it is right, not "
                    f"with {probs.shape[1]}",
                    [Reading({"predicted_label": None})],
                )
            return self.answers().astype(np.int64), RIGHT
        if probs.ndim == 1:
            names = tuple(map(str, self.wanted.classes or ()))
            if len(names) == 2:
                return self._coded(names), names
            return self.binary("label:0", "label").astype(
                np.int64
            ), RIGHT if self.chosen.about_answers else None
        names = tuple(map(str, self.wanted.classes or self.chosen.classes or ()))
        if len(names) != probs.shape[1]:
            if names:
                raise InvalidPredictionsError(
                    f"there are {len(names)} classes and {probs.shape[1]} columns of probabilities"
                )
            names = tuple(map(str, range(probs.shape[1])))
        plain = names == tuple(map(str, range(len(names))))
        return self._coded(names), None if plain else names

    def _coded(self, names: Sequence[str]) -> IntArray:
        """Return the labels of the rows as indices into the class ``names``, (n,); case is ignored.

        A label may also be the name of a column of probabilities. InvalidPredictionsError for a
        label that is no class.
        """
        import polars as pl

        cells = self.frame["label:0"]
        numbers = list(names) == [str(k) for k in range(len(names))]
        beside = self.name("label:0") == LABELS_BESIDE and not self.wanted.classes
        if beside and not numbers and cells.dtype.is_integer():
            numbers = not {*map(str, cells.unique().to_list())} <= {*names}
        if numbers and cells.dtype.is_integer():
            values = cells.to_numpy()
            if values.min(initial=0) >= 0 and values.max(initial=0) < len(names):
                return values.astype(np.int64)
        words = words_of(cells)
        name = self.name("label:0")
        if words is None:
            raise InvalidPredictionsError(
                f"{name} holds {kind_of(cells.dtype)} ({range_of(cells)}), not classes"
            )
        seen = words.unique().to_list()
        ways = [tuple(names), tuple(t.column or "" for t in self.chosen.terms["probs"])]
        if len(names) == 2 and {word.lower() for word in seen} <= {"false", "true"}:
            ways.append(("false", "true"))
        exact = next((w for w in ways if {*seen} <= {*w}), None)
        place = {} if exact is None else {word: exact.index(word) for word in seen}
        for way in ways if exact is None else ():
            folded = [word.strip().lower() for word in way]
            if {word.lower() for word in seen} <= {*folded} and len({*folded}) == len(folded):
                place = {word: folded.index(word.lower()) for word in seen}
                break
        if not place and seen:
            raise self._of_other_classes(names, words)
        codes = words.replace_strict(list(place), list(place.values()), return_dtype=pl.Int64)
        return np.asarray(codes.to_numpy())

    def _of_other_classes(self, names: Sequence[str], words: pl.Series) -> InvalidPredictionsError:
        """Return the error for labels that no column of probabilities is called after.

        It is to be raised. ``names`` are the classes that the columns are called after, and
        ``words`` the labels (n,). Columns that do not sum to 1 may be predictions of one event by
        several models. The error has readings (options to set): other orders of the classes, or one
        of the models.
        """
        name, columns = self.name("label:0"), self.of("probs")
        seen = sorted(words.unique().to_list())
        shown = ", ".join(seen[:LISTED_VALUES]) + ", …" * (len(seen) > LISTED_VALUES)
        try:
            probs = self.probabilities()
        except InvalidPredictionsError:  # said beside this
            probs = np.ones((self.frame.height, len(names)))
        if self.wanted.from_logits:
            probs = np.exp(probs - probs.max(axis=1, keepdims=True))
            probs = probs / probs.sum(axis=1, keepdims=True)
        apart = np.abs(probs.sum(axis=1) - 1.0) > NOT_ONE
        if {*seen} <= {"0", "1"} and apart.any() and len(columns) <= OFFERED:
            each = sorted(map(self.sql, columns), key=lambda sql: -_n_common_words(sql, name))
            none: dict[str, Any] = {"classes": None} if self.wanted.classes else {}
            several_models = Reading({"probs": ", ".join(map(self.sql, columns)), **none},
                                     "they are of several models", verb="compare")  # fmt: skip
            return InvalidPredictionsError(
                f"{self.chosen.name('probs')} do not sum to 1 in {self.nth(int(apart.argmax()))}, "
                f"and {name} is 0 or 1: name the prediction of the event",
                [*(Reading({"probs": sql, **none}, f"{sql} is the prediction") for sql in each),
                 several_models],
            )  # fmt: skip
        named = named_classes(names, seen)
        if named is not None and not apart.any() and len(named[1]) <= OFFERED:
            return self._of_further_labels(*named)
        if len(seen) == len(columns) + 1:
            return self._of_one_class_more(seen, words, probs)
        orders = orders_of_classes(names, words.to_list(), probs)
        if not apart.any() and not orders and too_few_labels(probs, len(seen)):
            return InvalidPredictionsError(
                f"{name} has {several(len(seen), 'value')} ({shown}), and all {len(columns)} "
                f"classes of {self.chosen.name('probs')} are expected to occur: it is another "
                "outcome",
                [Reading({"label": "COLUMN"})],
            )
        place = Reading(
            {"classes": class_places(len(columns))},
            f"they are {shown}, in the order of the columns",
        )
        return InvalidPredictionsError(
            f"{name} is {shown}, but the classes of the probabilities are "
            f"{', '.join(names[:LISTED_VALUES])}{', …' * (len(names) > LISTED_VALUES)}: say "
            f"which label each of {self.chosen.name('probs')} is the probability of",
            [Reading({"classes": ",".join(order)}, when) for order, when in orders] or [place],
        )

    def _of_further_labels(
        self, classes: Sequence[str], further: Sequence[str]
    ) -> InvalidPredictionsError:
        """Return the error, to be raised, for labels of which all but some have their column.

        ``classes`` are the labels after which the columns are called, in their order, and
        ``further`` those of no column, such as a code that the class is not known, () if the labels
        are the ends of the columns' names. The error has a reading (options to set): these classes,
        without rows of other labels.
        """
        plain = [*map(str, self.wanted.classes or self.chosen.classes or ())] == [*classes]
        options: dict[str, Any] = {} if plain else {"classes": ",".join(classes)}
        cells, label, name = self.frame["label:0"], self.sql("label:0"), self.name("label:0")
        rest = " AND ".join(f"{label} <> {literal(word, cells)}" for word in further)
        options |= {"where": self.where(rest)} if further else {}
        shown = ", ".join(further)
        return InvalidPredictionsError(
            f"{self.chosen.name('probs')} are the classes {', '.join(classes)} of {name}"
            + f", which is {shown} in some rows: each class needs a column" * bool(further),
            [Reading(options, f"the class is not known where {name} is {shown}" * bool(further))],
        )

    def _of_one_class_more(
        self, seen: Sequence[str], words: pl.Series, probs: FloatArray
    ) -> InvalidPredictionsError:
        """Return the error, to be raised, for K + 1 classes beside K columns of probabilities.

        ``seen`` are the K + 1 distinct labels, ``words`` the labels of the rows (n,), and ``probs``
        the probabilities (n, K). If these fall along every row, they may be the probabilities of
        reaching each class; the error then has readings that take their differences.
        """
        each, readings = [self.sql(column) for column in self.of("probs")], list[Reading]()
        extra = [word for word in seen if word not in (self.chosen.classes or ())]
        if len(extra) == 1:
            value = literal(extra[0], self.frame["label:0"])
            where = self.where(f"{self.sql('label:0')} <> {value}")
            readings.append(Reading({"where": where}, f"{extra[0]} is no class, or not known"))
        if bool((np.diff(probs, axis=1) <= BEYOND).all()) and len(each) > 1:
            steps_down = -np.diff(np.column_stack([np.ones(len(probs)), probs, 0 * probs[:, :1]]))
            parts = [f"1 - {each[0]}", *(f"{a} - {b}" for a, b in pairwise(each)), each[-1]]
            for order, when in orders_of_classes(list(seen), words.to_list(), steps_down):
                options = {"probs": ", ".join(parts), "classes": ",".join(order)}
                said = f"{self.chosen.name('probs')} are probabilities of at least that class"
                readings.append(Reading(options, f"{said} and {when}"))
        return InvalidPredictionsError(
            f"{self.name('label:0')} has {len(seen)} classes ({', '.join(seen[:LISTED_VALUES])}), "
            f"and there are {len(each)} columns of probabilities: each class needs one",
            readings,
        )

    def answers(self) -> BoolArray:
        """Return whether the predicted class equals the label, booleans (n,).

        Case, and prefixes and suffixes common to all words, are ignored. InvalidPredictionsError if
        the two columns share no words, or one holds fractions or lists. Both were read: "label" and
        "predicted_label".
        """
        truth, answer = words_of(self.frame["label:0"]), words_of(self.frame["predicted_label:0"])
        label, guess = self.name("label:0"), self.name("predicted_label:0")
        if truth is None or answer is None:
            raise InvalidPredictionsError(
                f"{label} and {guess} are compared as classes, and one holds fractions or lists"
            )
        classes = [word.lower() for word in truth.unique().to_list()]
        shorter = bare_words(answer.unique().to_list(), classes)
        longer = bare_words(truth.unique().to_list(), list(shorter.values()))
        if not {*shorter.values()} & {*longer.values()}:
            some = ", ".join(answer.unique().to_list()[:OFFERED])
            others = ", ".join(truth.unique().to_list()[:OFFERED])
            sql = f"({self.sql('predicted_label:0')} = 'CODE') = ({self.sql('label:0')} = 'CODE')"
            raise InvalidPredictionsError(
                f"{guess} ({some}) equals {label} ({others}) in no row: write a label that is true "
                "where the prediction is right",
                [Reading({"predicted_label": None, "label": sql})],
            )
        right = truth.replace(longer) == answer.replace(shorter)
        return np.asarray(right.to_numpy())

    # --- other facts ---------------------------------------------------------------------------

    def fact(self, option: str) -> Any:
        """Return the values of a design argument that was named, such as "clusters", (n,).

        ``option`` is its name. For several columns the result is a dictionary of arrays by column
        name.
        """
        columns = self.of(option)
        values = {self.name(column): self._marks(column, option) for column in columns}
        return values if len(columns) > 1 else next(iter(values.values()))

    def _marks(self, column: str, option: str) -> AnyArray:
        """Return the values (n,) of one column of a design argument.

        ``column`` is "by:0" or the like, and ``option`` the argument, such as "by". Weights are
        numbers. For subgroups a condition becomes its text or its negation, and a missing value a
        subgroup of its own.
        """
        import polars as pl

        cells = self.frame[column]
        if option == "weights":
            return self.numbers(column)
        if cells.dtype == pl.Boolean and not self.is_plain(column) and option == "by":
            sql = self.sql(column)
            return np.where(cells.fill_null(False).to_numpy(), sql, f"NOT ({sql})")
        if cells.null_count() and option == "by":
            words = words_of(cells)
            cells = (cells.cast(pl.String) if words is None else words).fill_null(NO_VALUE)
        if cells.dtype in (pl.String, pl.Categorical, pl.Enum):
            words = cells.cast(pl.String)
            return words.to_numpy() if option == "time" else _as_text(words)
        return np.asarray(cells.to_numpy())

    def followup(self) -> Followup:
        """Return times and events of the rows as :class:`Followup`, in place of labels.

        The horizon is a column, or the number that the user gave. InvalidPredictionsError for a row
        with both the event and a competing one.
        """
        event = self.binary("event:0", "event")
        competing = self.binary("competing:0", "competing") if self.of("competing") else None
        if competing is not None and (both := event & competing).any():
            raise InvalidPredictionsError(
                f"{self.nth(int(np.argmax(both)))} has the event and a competing event: at most "
                "one of them ends the follow-up of a row"
            )
        number = as_number(self.wanted.horizon) or 0.0
        horizon = self.numbers("horizon:0") if self.of("horizon") else number
        time = self.numbers("time:0")
        strata = self.fact("strata") if self.of("strata") else None
        unit = 1.0 if self.wanted.unit is None else self.wanted.unit
        return Followup(
            time, event, horizon, competing=competing, strata=strata,
            unit=unit, recorded=self.wanted.recorded,
        )  # fmt: skip

    def obstacles(self) -> list[InvalidPredictionsError]:
        """Return all InvalidPredictionsErrors that prevent predictions, without raising them.

        They are about the probabilities and the outcome, at most one each.
        """
        found = []
        columns = len(self.of("probs"))
        shape = np.zeros((self.frame.height, columns) if columns > 1 else self.frame.height)
        outcome = self.followup if self.of("event") else partial(self.labels, shape)
        for check in (self.probabilities, *([outcome] * (not self.of("votes")))):
            try:
                check()
            except InvalidPredictionsError as error:
                found.append(error)
        return found

    @cached_property
    def naming(self) -> Any:
        """Context manager in which messages name these rows and columns as the table does.

        It yields nothing.
        """
        columns = [self.name(column) for column in self.of("probs")]
        label = self.name("label:0") if self.of("label") else ""
        first, last = (int(self.rows[k]) if self.rows.size else 0 for k in (0, -1))
        rows: IntArray | range = range(first + self.first, last + self.first + 1)
        if len(rows) != self.rows.size:  # some are left out
            rows = self.rows + self.first
        return in_a_file(rows, columns, self.parts, "" if label.endswith("=") else label)

    def predictions(self) -> Predictions:
        """Return the predictions of these rows, which have to be complete.

        They have the labels, votes or follow-up and all design information that was read.
        InvalidPredictionsError for values that are no predictions.
        """
        if self.wanted.multilabel:
            return self._multilabel()
        probs, wanted = self.probabilities(), self.wanted
        labels: Any
        notes: list[str] = []
        facts: dict[str, Any] = {
            option: self.fact(option)
            for option in ("by", "weights", "clusters", "ids", "folds", "items")
            if self.of(option)
        }
        if self.of("votes"):
            labels, classes = None, None
        elif self.of("event"):
            labels, classes = self.followup(), None
        else:
            labels, classes = self.labels(probs)
            if self.of("time"):
                facts["time"] = self.fact("time")
            if wanted.horizon is not None:
                facts["horizon"] = steps(wanted.horizon)
        if self.of("features"):
            features = {self.name(c): _feature(self.frame[c]) for c in self.of("features")}
            every = wanted.features in ("*", ["*"])
            facts["features"] = as_features(features, self.frame.height, leave_ids=every)
        if self.of("features"):
            searched = facts["features"].by_name
            if left := [name for name in features if name not in searched]:
                notes.append(
                    f"left out {', '.join(left)} (looks like an identifier or date): name them as "
                    "features to search them"
                )
        if self.of("votes"):
            return self._voted(probs, facts, tuple(notes))
        with self.naming:
            data = Predictions.of(
                probs, labels, from_logits=wanted.from_logits, renormalise=wanted.renormalise,
                ordered=wanted.ordered, rounded=False, **facts, as_is=None,
            )  # fmt: skip
        outcome = "event:0" if self.of("event") else "label:0"
        data = replace(data, notes=(*data.notes, *notes), outcome=self.name(outcome))
        return data if classes is None else replace(data, classes=classes)

    def _voted(self, probs: AnyArray, facts: dict[str, Any], notes: tuple[str, ...]) -> Predictions:
        """Return predictions with one row for each vote, from counts of votes by class.

        ``probs`` (I,) or (I, K) are the probabilities of I items, ``facts`` the design arguments by
        name, with one value an item, and ``notes`` the sentences about the reading. Items without a
        vote are left out with a note. InvalidPredictionsError for columns of votes that do not fit
        the classes.
        """
        if len(self.of("clusters")) > 1:
            raise InvalidPredictionsError(
                "votes take one column of clusters, in which whole items lie",
                [Reading({"clusters": self.sql("clusters:0")})],
            )
        names = tuple(map(str, self.wanted.classes or self.chosen.classes or ()))
        columns = self._votes_in_order(names, probs)
        counts = np.column_stack([self.numbers(c) for c in columns])
        self._refuse_several_labels(probs, counts)
        options: dict[str, Any] = {
            "from_logits": self.wanted.from_logits, "renormalise": self.wanted.renormalise,
        }  # fmt: skip
        with self.naming:
            shares = (
                "; shares are multiplied by the number of votes, such as round(share * 5), with "
                "an expression for each class"
            )
            times = [Reading({"votes": shares_of(map(self.sql, columns))})]
            item, label = rows_of_votes(counts, None, len(probs), shares, times)
            if probs.ndim == 2:  # before items become votes, so that messages count items
                probs, more = as_probabilities(probs, dtype=str(probs.dtype), **options)
                options, notes = {}, (*more, *notes)
        facts = {name: _at(values, item) for name, values in facts.items()}
        with replace(self, rows=self.rows[item]).naming:
            data = Predictions.of(
                probs[item], label, items=item, ordered=self.wanted.ordered, rounded=False,
                **options, **facts,
            )  # fmt: skip
        left = len(probs) - np.unique(item).size
        note = (f"left out {several(left, 'item')} without a vote",) * (left > 0)
        named = len(names) == data.n_classes and names != tuple(map(str, range(len(names))))
        classes = names if named else None
        return replace(data, classes=classes, places=item, notes=(*data.notes, *notes, *note))

    def _refuse_several_labels(self, probs: AnyArray, counts: FloatArray) -> None:
        """Raise InvalidPredictionsError for votes that are marks of several labels.

        These are 0 or 1, and the probabilities of most rows do not sum to 1. ``probs`` are (n,) or
        (n, K), ``counts`` (n, K) the votes. The error suggests the option ``multilabel`` if columns
        are called p_….
        """
        if probs.ndim == 1 or self.wanted.from_logits or self.wanted.renormalise:
            return
        flags = bool(((counts == 0) | (counts == 1)).all())
        if flags and (np.abs(probs.sum(axis=1) - 1.0) > NOT_ONE).mean() > 0.5:
            named = all(term.name.startswith("p_") for term in self.chosen.terms["probs"])
            label = ", ".join(self.sql(column) for column in self.of("votes"))
            several = {"votes": None, "label": label, "multilabel": True}
            probabilities, votes = self.chosen.name("probs"), self.chosen.name("votes")
            raise InvalidPredictionsError(
                f"{probabilities} do not sum to 1, and {votes} hold 0 and 1, as where a row may "
                "have several labels",
                [Reading(several)] if named else (),
            )

    def _votes_in_order(self, names: Sequence[str], probs: AnyArray) -> list[str]:
        """Return the columns of votes in the order of the classes, matched by the names' ends.

        ``names`` are the classes, () if they have none, and ``probs`` (n,) or (n, K) the
        probabilities. Columns are named "votes:0" and so on. If no name fits, the order of the user
        stays. InvalidPredictionsError unless there is one column for each class.
        """
        columns = self.of("votes")
        k = 2 if probs.ndim == 1 else probs.shape[1]
        if len(columns) != k:
            both = " (label 0 and label 1)" if probs.ndim == 1 else ""
            raise InvalidPredictionsError(
                f"votes are counted for each of the {k} classes{both}, but {len(columns)} "
                f"{'column is' if len(columns) == 1 else 'columns are'} named "
                f"({', '.join(map(self.name, columns))})",
                [Reading({"votes": ", ".join(["COLUMN"] * k)})],
            )
        if not all(map(self.is_plain, columns)):
            return columns
        called = {column: self.name(column) for column in columns}
        if probs.ndim == 1 and not names and not self.wanted.as_is:
            self._refuse_event_first(ends_of([*called.values()]))
        fits = [[c for c in columns if ends_in(called[c], name)] for name in names]
        if len(names) != k or not any(fits):
            return columns
        if len({*(fit[0] for fit in fits if len(fit) == 1)}) == k:
            return [fit[0] for fit in fits]
        raise InvalidPredictionsError(
            f"votes {', '.join(called.values())} do not fit the classes {', '.join(names)}: name a "
            "column of votes for each class",
            [Reading({"votes": ", ".join(["COLUMN"] * k)})],
        )

    def _refuse_event_first(self, ends: Sequence[str]) -> None:
        """Raise DoubtfulInputError if the first of two columns of votes is named like the event.

        ``ends`` are the distinctive ends of the two names, such as ("yes", "no").
        """
        events = {"yes", "true", "1", "positive", "pos", "agree"}
        first, second = (end.lower() for end in ends)
        if first in events and second not in events:
            swapped = ", ".join(self.sql(column) for column in reversed(self.of("votes")))
            raise DoubtfulInputError(
                f"votes are for label 0 and label 1 in this order, and {ends[0]} comes first",
                [Reading({"votes": swapped}, f"{self.name('probs:0')} is the probability of "
                         f"{ends[0]}")],
            )  # fmt: skip

    def _multilabel(self) -> Predictions:
        """Return the predictions of rows with several labels, a row for each label of each row.

        The columns read as ``probs`` and ``label`` have to be pairs p_A, y_A.
        InvalidPredictionsError if they are not, and for weights, clusters, folds, subgroups or an
        event.
        """
        probs, outcomes = self.of("probs"), self.of("label")
        ends = [self.chosen.terms["probs"][int(c.partition(":")[2])].name for c in probs]
        names = [name.partition("_")[2] or name for name in ends]
        others = [self.name(c) for c in outcomes]
        alike = [each.partition("_")[2] or each for each in others] == names
        whole = [[pairs.get(name) for name in ends] for pairs in called_alike(ends, others)]
        names = names if alike else others
        if not (alike or others in whole) or len(names) < 2:
            raise InvalidPredictionsError(
                "rows with several labels need pairs of columns p_A, y_A, but there are "
                f"{self.chosen.name('probs')} and {self.chosen.name('label')}"
            )
        if any(self.of(option) for option in ("by", "clusters", "folds", "weights", "event")):
            raise InvalidPredictionsError(
                "rows with several labels take no weights, clusters, folds or subgroups: leave "
                "them out"
            )
        values = np.column_stack([self.numbers(c) for c in probs])
        for column, number in zip(probs, values.T, strict=True):
            self._check_scale(column, number, family=True)
        truth = np.column_stack([self.numbers(c).astype(np.float64) for c in outcomes])
        with self.naming:
            data = Predictions.of_labels(values, truth, names)
        return data


@dataclass(frozen=True)
class Complete:
    """Cells without missing values, with the number of gaps by column and of rows left out.

    ``cells`` are the evaluated cells (in a frame with columns such as ``label:0``) of the remaining
    rows, ``gaps`` the numbers of missing values by column, such as ``{"label:0": 2}``, and
    ``left_out`` is the number of rows left out.
    """

    cells: EvaluatedCells
    gaps: dict[str, int]
    left_out: int

    @property
    def without_outcome(self) -> int:
        """Number of rows that lacked the label or the event, and were left out."""
        return max((n for c, n in self.gaps.items() if c in ("label:0", "event:0")), default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Note on the rows that were left out for missing values, a tuple of one sentence.

        It is () if none were.
        """
        if not self.left_out:
            return ()
        listed = ", ".join(f"{self.cells.name(column)} in {n}" for column, n in self.gaps.items())
        return (f"left out {several(self.left_out, 'row')} without a value: {listed}",)


def unknown_codes(counts: pl.DataFrame) -> list[Any]:
    """Return the values of an outcome that say that it is not known, in the order of ``counts``.

    ``counts`` is a frame of two columns, the distinct values and their numbers of rows. Such a
    value is a word such as "unknown", a mark such as 9, or the one word beside 0 and 1; [] if there
    is none.
    """
    codes = counts[counts.columns[0]].to_list()
    mark = mark_beside_numbers([*map(str, codes)])
    return [code for code in codes if str(code) == mark or _is_unknown(code, codes, counts)]


def mark_beside_numbers(values: Sequence[str]) -> str | None:
    """Return the one value beside 0 and 1 that is a word, such as "M" for missing, or None.

    ``values`` are the distinct values of an outcome as text. None unless they are 0, 1 and a third
    one without digits.
    """
    others = [value for value in values if value not in ("0", "1")]
    one = len(others) == 1 and len(values) == 3 and not re.search(r"\d", others[0])
    return others[0] if one else None


def _is_unknown(code: object, codes: Sequence[Any], counts: pl.DataFrame) -> bool:
    """Return whether a value of an outcome says that it is not known: a word, or a mark such as 9.

    ``code`` is the value, ``codes`` are all distinct values, and ``counts`` is a frame of two
    columns, values and their numbers of rows. A word is "unknown" or the like. A mark is written
    with nines, occurs in at least three rows, and is further from all other values than these are
    from each other, or is negative where they are not.
    """
    number = as_number(str(code))
    if number is None:
        return without_accents(str(code)) in UNKNOWN_WORDS
    others = [as_number(str(c)) for c in codes if c != code]
    numbers = [x for x in others if x is not None]
    rows = dict(counts.rows())[code]
    if len(numbers) < 2 or rows < FEWEST_MARKS or not NINES.fullmatch(f"{number:g}"):
        return False
    apart = min(abs(x - number) for x in numbers)
    return apart > max(numbers) - min(numbers) or number < 0.0 <= min(numbers)


def _n_common_words(sql: str, name: str) -> int:
    """Return the number of words that an expression and the ``name`` of a column have in common."""
    return len({*key(sql).split("_")} & {*key(name).split("_")})


def _off_one(probs: FloatArray) -> float:
    """Return the largest distance of the sum of a row of numbers (n, K) from 1, or 100 of 100.

    It is infinite for numbers below 0, missing ones, and one column.
    """
    if probs.shape[1] < 2 or not probs.min(initial=0.0) >= 0.0:
        return float("inf")
    sums = probs.sum(axis=1)
    return float(min(np.abs(sums / scale - 1.0).max() for scale in (1.0, 100.0)))


def _at(values: Any, places: IntArray) -> Any:
    """Return the values of a design argument at the rows ``places``, indices into the rows.

    ``values`` is an array, or a dictionary of arrays by column name, and so is the result.
    """
    if isinstance(values, dict):
        return {name: column[places] for name, column in values.items()}
    return values[places]


def _as_text(words: pl.Series) -> AnyArray:
    return words.to_numpy().astype(str) if not words.null_count() else words.to_numpy()


def _feature(cells: pl.Series) -> AnyArray:
    import polars as pl

    if cells.dtype == pl.Boolean and not cells.null_count():
        return np.asarray(cells.to_numpy())
    if cells.dtype in (pl.Categorical, pl.Enum):
        cells = cells.cast(pl.String)
    if cells.dtype == pl.String:
        texts = cells.unique(maintain_order=True)
        with suppress(pl.exceptions.PolarsError):  # no dates
            dates = texts.str.to_datetime(strict=False, time_unit="us").dt.replace_time_zone(None)
            if dates.null_count() == texts.null_count() < texts.len():
                return np.asarray(cells.replace_strict(texts, dates).to_numpy())
    return np.asarray(cells.to_numpy())
