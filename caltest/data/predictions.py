"""Predictions: validated probabilities and labels with the design of the data.

Every verb works on :class:`Predictions`; :meth:`Predictions.of` makes them from arrays.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from caltest._base.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    can,
    codes,
    dtype_of,
    is_table,
    is_whole,
    one_of,
)
from caltest._base.features import Features
from caltest._base.written import Fields, explained, first_of, refuse_form, several
from caltest.data.doubts import answered, cumulative, doubts_of_arrays, without_rounded
from caltest.data.facts import (
    IN_ORDER,
    NO_VALUE,
    READERS,
    SAME_CLASSES,
    as_clusters,
    as_columns,
    as_times,
    by_appearance,
    in_whole_numbers,
    without_group,
)
from caltest.data.followup import UNKNOWN, Censoring, Followup
from caltest.data.labels import (
    as_rows,
    listed_classes,
    numbered,
    refuse_unequal,
    relabelled,
    rows_of_votes,
    stacked,
)
from caltest.data.numbers import SUM_EXACT, as_array, as_probabilities, doubts, is_text, meant
from caltest.errors import (
    DoubtfulInputWarning,
    InvalidPredictionsError,
    Reading,
    StatisticError,
    UnsupportedFactError,
    nth,
)
from caltest.results.rendering import percent
from caltest.results.verdicts import Provenance

# ------------------------------------------------------------------------------
# Classes by number and by name.


#: Names of columns of outcomes, in lower case, that do not name an event.
NAMELESS = frozenset(
    {"", "y", "y_true", "ytrue", "y_test", "label", "labels", "target", "targets", "outcome"}
    | {"class", "event", "status", "correct", "is_correct", "truth", "answer", "0", "1"}
)


#: Names of class 1, in lower case, that only say that the event happened.
HAPPENED = frozenset({"1", "1.0", "yes", "y", "true", "t", "positive", "pos", "event"})


class NamedClasses:
    """Base class of predictions and tallies: K classes 0 … K−1, which may have names.

    A tally holds sums over rows in place of rows. ``n_classes`` is K, ``classes`` are the names,
    None without, and ``outcome`` is the name of the column of outcomes, "" where none is known.
    """

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def n_classes(self) -> int: ...

        @property
        def classes(self) -> tuple[str, ...] | None: ...

        @property
        def outcome(self) -> str: ...

    @property
    def event_name(self) -> str:
        """Name of the event of two classes: the name of class 1, or of the column of outcomes.

        The column names it where class 1 is called "yes", or nothing. "" where neither says more
        than "1", and for more than two classes.
        """
        if self.n_classes != 2:
            return ""
        said = self.classes[1] if self.classes else ""
        if said and said.lower() not in HAPPENED:
            return said
        return "" if self.outcome.lower() in NAMELESS else self.outcome

    def class_index(self, c: int | str) -> int:
        """Return the number of a class ``c``: its number, its name, or the name of the event.

        StatisticError if there is no class of this number or name.
        """
        names = self.classes or ()
        if c in names:
            return names.index(str(c))
        if c == self.event_name != "":
            return 1
        if isinstance(c, str):
            listed = ", ".join(names) or "no names are known"
            raise StatisticError(f"there is no class named {c!r} ({listed})")
        if not 0 <= c < self.n_classes:
            last = self.n_classes - 1
            raise StatisticError(f"there is no class {c}, classes run from 0 to {last}")
        return int(c)

    def class_name(self, index: int) -> str:
        """Return the name of class ``index``; its number as text if classes have no names.

        Class 1 of two without names is the event, if that has a name.
        """
        if self.classes:
            return self.classes[index]
        return self.event_name if index == 1 and self.event_name else str(index)

    def class_phrase(self, index: int) -> str:
        """Return "class " with the name or number of a class, or the event's name alone.

        ``index`` is the number of the class. The event's name, such as "died", is the phrase for
        class 1 of two classes, if it is known.
        """
        event = self.event_name if index == 1 else ""
        return event or f"class {self.class_name(index)}"


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(NamedClasses):
    """Probabilities of ``K`` classes for ``n`` observations, their labels, and the design.

    Make one with :meth:`Predictions.of`, which checks everything once; the constructor trusts its
    arguments. A lens returns ``dataclasses.replace(data, probs=…, labels=…)``, which keeps the
    design.

    Attributes
    ----------
    probs : ndarray of shape (n, K), float64
        Row ``i`` is the predicted distribution of label ``i``: not negative, summing to 1.
    labels : ndarray of shape (n,), int64
        The observed classes, 0 … K−1.
    classes, weights, clusters, by, ids, features
        As in :meth:`Predictions.of`, None where nothing is known: names of the columns, float64,
        int64, and (n,), or (n, J) for J ways to group; a subgroup "" is none.
    crossed, cluster_names : ndarray of shape (n,), int64, and tuple of str
        The second column of clusters, and the names of both.
    folds, whole : ndarray of shape (n,), int64, and Predictions
        Which model predicted each row, and all rows of the folds, from which levels are taken.
    times, horizon : ndarray of shape (n,), int64, and int
        The place of each row among the distinct times, and h > 1 of forecasts h steps ahead.
    induced : bool
        Whether a lens made these predictions; the first of two induced classes is the event.
    notes, provenance : tuple of str, tuple of Provenance
        How the input was read and changed, for people to read; the recalibrations since.
    copies : int
        Rows that repeat another more often than by chance; 0 until a function has looked.
    followup : Followup, optional
        Follow-up given in the place of labels, which are 0 in rows that are unknown.
    ordered, multilabel : bool
        Whether classes are in an order, such as grades; whether :meth:`of_labels` made these.
    items, items_in_clusters : ndarray of shape (n,), int64, and bool
        The item of each row, of which rows are several outcomes, and whether ``clusters`` are
        clusters of items rather than the items themselves.
    merged : int
        Number of classes before a lens merged some of them; 0 where none did.
    outcome : str
        Name of the column of outcomes, such as "died"; "" where it is not known.
    unused : tuple of str
        Columns of the table that were not used and could be features.
    places : ndarray of shape (n,), int64, optional
        Which rows of the table these are, counted from 0, where some were left out.
    """

    probs: FloatArray
    labels: IntArray
    classes: tuple[str, ...] | None = None
    weights: FloatArray | None = None
    clusters: IntArray | None = None
    crossed: IntArray | None = None
    cluster_names: tuple[str, ...] = ()
    by: AnyArray | None = None
    ids: AnyArray | None = None
    folds: IntArray | None = None
    times: IntArray | None = None
    horizon: int | None = None
    whole: Predictions | None = None
    features: Features | None = None
    induced: bool = False
    notes: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    copies: int = 0
    followup: Followup | None = None
    ordered: bool = False
    multilabel: bool = False
    unused: tuple[str, ...] = ()
    places: IntArray | None = None
    merged: int = 0
    items: IntArray | None = None
    items_in_clusters: bool = False
    outcome: str = ""

    #: Whether rows are known; a tally, which has what verbs ask of both, knows sums over rows.
    has_rows: ClassVar[bool] = True
    #: Whether one draw of outcomes serves all lenses that data have.
    drawn_together: ClassVar[bool] = True
    #: The lenses through which sums were kept; None where rows answer every lens.
    lenses: ClassVar[None] = None

    def __post_init__(self) -> None:
        # a statistic that writes into its arguments must fail
        for name, values in {"probs": self.probs, "labels": self.labels}.items():
            view = values.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    @explained
    def of(
        cls,
        probs: object,
        labels: object = None,
        classes: Sequence[object] | None = None,
        *,
        weights: object = None,
        clusters: object = None,
        items: object = None,
        by: object = None,
        ids: object = None,
        folds: object = None,
        features: object = None,
        time: object = None,
        horizon: int | None = None,
        from_logits: bool = False,
        pos_label: object = None,
        renormalise: bool = False,
        ordered: bool = False,
        rounded: bool | Literal["auto"] = "auto",
        as_is: bool | None = False,
    ) -> Predictions:
        """Check arrays of probabilities and labels, and bring them into one form.

        :func:`read_predictions` does so for tables and files, whose columns have names.

        Parameters
        ----------
        probs : array_like of shape (n,), (n, 1) or (n, K)
            One column is the probability of label 1, p, and becomes (1 − p, p). Arrays, lists,
            torch tensors, and single columns of pandas, polars or Arrow. Rows that sum to 1 within
            1e-3, or within
            what rounding explains, are divided by their sum; sums within 1e-12 are left alone.
            Values that are all the nearest of 32 or 16 bits to decimals (of 6 and 3 digits;
            bfloat16 2), or to shares of a whole number (up to 1000 and 100; 10), are read as these,
            so that equal decimals stay ties. Notes say so.
            :class:`Predictions` get the labels and the design given in place of their own.
        labels : array_like of shape (n,), (n, 1) or (n, K)
            Integers 0 … K−1, booleans, one-hot rows, or the names given in ``classes``. Or
            :class:`Followup`: of a risk by a horizon, for rows not all followed until then.
        classes : sequence or str, optional
            The label values (strings or integers) in the order of the columns of ``probs``; or one
            text such as ``"no,yes"`` or ``"0,…,9"``.
        weights : array_like of shape (n,), optional
            Importance of each row, ≥ 0; tests look at the ratios. A row of weight 3 is one
            observation that counts three times, not three observations. Weights must not depend on
            the outcome, as weights by inverse probability of censoring do (pass :class:`Followup`).
        clusters : array_like of shape (n,), mapping, data frame or (n, 2), optional
            The cluster of each row, such as the patient. Rows of a cluster may depend on each
            other, rows of two clusters may not, and the size of a cluster must not depend on
            outcomes. Or two columns by name, such as readers and patients: rows alike in either may
            depend.
        items : array_like of shape (n,), optional
            The item of each row, where several rows are outcomes of one prediction: votes of
            annotators, or repeated runs. They have the same probabilities. Items are clusters,
            unless ``clusters`` groups them; :class:`IndividualError` tests item by item.
        by : array_like of shape (n,), mapping or data frame, optional
            The subgroup of each row; or columns of features by name, of which booleans mark the
            members of one subgroup, numbers of many values are cut into quarters, and crossings of
            several with at least 50 rows are subgroups as well. Rows without a value are a subgroup
            of their own.
        ids : array_like of shape (n,), optional
            The name of each row, by which the rows of two models are matched.
        folds : array_like of shape (n,), optional
            Which cross-validation model predicted each row: it has not seen the row, but the rows
            of other folds. Each model's log-odds are moved by a constant, so that all folds have
            the mean prediction of all rows.
        features : data frame, mapping, or array_like of shape (n, d), optional
            Further columns, for :func:`segment_search`: numbers, dates, booleans, text; cells may
            be missing.
        horizon, time : int, and array_like of shape (n,), optional
            By how many times forecasts are ahead of their outcomes, and the time of each row,
            numbers or dates; without it each row is a time of its own. Rows of one time, and rows
            less than ``horizon`` times apart, may depend on each other.
        from_logits : bool, default False
            Apply the softmax (for one column: the logistic function) to ``probs`` first.
        pos_label : optional
            The label whose probability a single column is, where labels are not 0 and 1.
        renormalise : bool, default False
            Divide rows by their sum however far it is from 1. A note counts them.
        ordered : bool, default False
            Whether the classes, more than two, are in their order, such as grades: audits and
            reports then assess cumulative probabilities as well.
        rounded : bool or "auto", default "auto"
            Leave out rows of two classes whose probability is 0 or 1, as these may be rounded: an
            outcome of probability 0 is else one that cannot be. ``"auto"``: if there is such an
            outcome, all values are multiples of 0.01 or more, and half of that step explains it
            (P > 0.05); a warning and a note then count the rows. :class:`Predictions` are rounded
            only where they are asked to be.
        as_is : bool or None, default False
            Take values as they are, also where they say that they are meant otherwise; a note then
            says so. None raises no question: for values about which somebody else asks.

        Raises
        ------
        InvalidPredictionsError
            For rows that are no forecast with its outcome; names the first such row (from 0), and a
            remedy.
        DoubtfulInputError
            Without ``as_is``, where the values say that they are meant otherwise: 1 − p is 1000
            times as likely as p, labels follow from predictions, codes of censoring are swapped.
            False alarms are measured in docs/guards.md.

        Warns
        -----
        DoubtfulInputWarning
            For probabilities all 0 or 1, labels like predicted classes, unlikely logits,
            predictions that add up to exactly the number of events, and rows that ``rounded``
            leaves out.

        Notes
        -----
        O(n K) time; a float64 array that needs nothing done is used as it is.

        Examples
        --------
        >>> Predictions.of([0.8, 0.3], [1, 0])
        Predictions(n=2, K=2)
        >>> Predictions.of([0.8, 0.3, 0.5], [*"ynn"], pos_label="y", clusters=[7, 7, 9])
        Predictions(n=3, K=2, 2 clusters)
        """
        facts = {"labels": labels, "weights": weights, "clusters": clusters, "by": by}
        facts |= {"ids": ids, "folds": folds, "features": features, "time": time}
        facts["items"] = items
        one_of("rounded", rounded, (True, False, "auto"))
        classes = listed_classes(classes)
        options = (classes, horizon, pos_label, from_logits, renormalise, ordered)
        others = (*[*facts.values()][1:], *options)
        if all(other is None or other is False for other in others):
            data = of_plain_arrays(probs, labels)
            if data is not None:
                return questioned(without_rounded(data, rounded), as_is, probs, labels)
        followup = labels if isinstance(labels, Followup) else None
        if followup is not None:
            facts["labels"] = followup.labels
        _refuse_tables(probs, labels)
        refuse_misaligned(probs, facts)
        for name, values in {"probs": probs, "classes": classes, **facts}.items():
            refuse_form(values, name)
        for name, option in {"from_logits": from_logits, "renormalise": renormalise}.items():
            one_of(name, option, (True, False))
        if not isinstance(probs, Predictions):
            data = _of_arrays(probs, facts, classes, from_logits, pos_label, renormalise)
        elif from_logits or renormalise or pos_label is not None:
            raise InvalidPredictionsError(
                "Predictions hold probabilities and numbered labels: from_logits and pos_label "
                "are for arrays, and so is renormalise"
            )
        else:
            data = _with_labels(probs, facts["labels"], classes)
        data = _with_facts(data, facts, horizon, ordered)
        if followup is not None or data.followup is not None:
            data = _followed(data, followup)
        elif rounded != "auto" or not isinstance(probs, Predictions):
            data = without_rounded(data, rounded)
        if isinstance(outcome := getattr(labels, "name", None), str):  # a column of a data frame
            data = replace(data, outcome=outcome)
        known = isinstance(probs, Predictions) and labels is None
        return data if known else questioned(data, as_is, probs, labels, from_logits)

    @classmethod
    def of_labels(
        cls, probs: object, labels: object, names: Sequence[object] | None = None
    ) -> Predictions:
        """Stack the labels of rows that have several: findings of an image, topics of a text.

        The n · L pairs of a row and a label are two-class rows; ``by`` is the name of the label,
        and ``clusters`` the row. Labels of one row may depend on each other in any way, so that
        nothing is asked of all pairs together: :func:`calibration_test` and :func:`audit` ask each
        label by itself, and adjust p-values for their number by Holm's method.

        InvalidPredictionsError for other shapes, a single label, and outcomes other than 0, 1 and
        NaN.

        Parameters
        ----------
        probs : array_like of shape (n, L)
            The probability of every label; of a table, columns name the labels.
        labels : array_like of shape (n, L)
            1 where a row has the label, 0 where not, NaN where unknown: these pairs are left out.
        names : sequence of L, optional
            What the labels are called, by default the columns of ``probs``, or 0 … L−1.

        Examples
        --------
        >>> Predictions.of_labels([[0.8, 0.3], [0.4, 0.1]], [[1, 0], [1, np.nan]], ["a", "b"])
        Predictions(n=3, K=2, 2 clusters)
        """
        stack = stacked(probs, labels, names)
        data = cls.of(stack.probs, stack.labels, by=stack.names, clusters=stack.rows, as_is=None)
        notes = (*stack.notes, *data.notes)
        return replace(data, multilabel=True, places=stack.rows, notes=notes)

    @classmethod
    def of_votes(
        cls, probs: object, counts: object, n_votes: object = None, *, raters: object = None,
        weights: object = None, clusters: object = None, by: object = None,
        classes: Sequence[object] | None = None, as_is: bool | None = False,
    ) -> Predictions:  # fmt: skip
        """Take items with several outcomes each: votes of annotators, or answers of repeated runs.

        Every vote becomes a row, and its item is remembered. Tests on average take the votes of an
        item as a cluster; :class:`IndividualError`, :func:`individual_error` and a row of
        :func:`audit` ask whether the probabilities of every single item are right. Do not replace
        votes by their majority: that is another outcome, and a model that is right for every item
        is rejected on it (in 31 % of data sets with 5 votes and 3 classes).

        Parameters
        ----------
        probs : array_like of shape (I,), (I, 1) or (I, K)
            The predictions of the items, as in :meth:`of`.
        counts : array_like of shape (I, K)
            How many votes of every item are for each class; or shares, with ``n_votes``. Items
            without a vote are left out, and a note says how many.
        n_votes : int or array_like of shape (I,), optional
            The number of votes of every item, where ``counts`` are shares (soft labels).
        raters : optional
            Refused: if raters judge several items, votes of different items are dependent.
        weights, clusters, by, classes, as_is
            As in :meth:`of`, of items; whole items lie in a cluster.

        Raises
        ------
        InvalidPredictionsError
            For counts that are no whole numbers, with the item, and for ``raters``.

        Examples
        --------
        >>> Predictions.of_votes([[0.8, 0.2], [0.5, 0.5]], [[3, 1], [2, 2]])
        Predictions(n=8, K=2, 2 clusters)
        """
        if raters is not None:
            raise InvalidPredictionsError(
                "raters= is refused: a rater who judges several items makes their votes depend on "
                "each other, and models that are right item by item are rejected too often (19 % "
                "at a correlation of 0.5). Pass a row for each vote with clusters= of two columns, "
                "item and rater: then you can test whether probabilities are right on average"
            )
        given = probs if isinstance(probs, Predictions) else np.asarray(as_array(probs, "probs"))
        notes: tuple[str, ...] = ()
        if not isinstance(given, Predictions) and given.ndim == 2 and given.shape[1] > 1:
            # Sums of items are looked at before the items become votes: messages count items
            given, notes = as_probabilities(given, False, dtype_of(probs) or str(given.dtype))
        n = given.n if isinstance(given, Predictions) else len(given)
        item, label = rows_of_votes(counts, n_votes, n)
        facts: dict[str, Any] = {"weights": weights, "clusters": clusters, "by": by}
        facts = {
            name: None if fact is None else np.asarray(as_array(fact, name))[item]
            for name, fact in facts.items()
        }
        rows = given.take(item) if isinstance(given, Predictions) else given[item]
        data = cls.of(rows, label, classes, **facts, items=item, as_is=as_is)
        left = n - np.unique(item).size
        note = (f"left out {several(left, 'item')} without a vote",) * (left > 0)
        return replace(data, places=None, notes=(*notes, *data.notes, *note))

    @property
    def rows(self) -> Predictions:
        """The rows of the data: this object; for :class:`Tallies` it is their sample of rows."""
        return self

    @property
    def n(self) -> int:
        return self.probs.shape[0]

    @property
    def n_classes(self) -> int:
        return self.probs.shape[1]

    def in_ratios(self) -> Predictions:
        """Return the rows of positive weight, with weights as whole numbers if possible.

        It is for weights of up to six decimals; others are scaled by a power of 2. Tests depend on
        ratios of weights only. Equal weights become None; without weights the predictions are
        returned unchanged.
        """
        w = self.weights
        if w is None:
            return self
        if not w.all():
            note = f"left out {several(int((w == 0.0).sum()), 'row')} of weight 0"
            return replace(self.take(w > 0.0), notes=(*self.notes, note)).in_ratios()
        return replace(self, weights=None if w.min() == w.max() else in_whole_numbers(w))

    @property
    def effective_n(self) -> float:
        """Effective number of rows, (Σ w)² / Σ w²; the number of rows without weights."""
        w = self.weights
        return float(self.n) if w is None else float(w.sum() ** 2 / (w**2).sum())

    @property
    def residuals(self) -> FloatArray:
        """Weighted residuals w_i (onehot(y_i) − p_i), shape (n, K); w_i is 1 without weights.

        With follow-up w_i is the inverse probability of a known outcome.
        """
        residuals = (self.labels[:, None] == np.arange(self.n_classes)) - self.probs
        weights = self.weights if self.followup is None else self.censoring.weights
        return residuals if weights is None else residuals * weights[:, None]

    def labelled(self, verb: str) -> Predictions:
        """Return the data unchanged if all outcomes are known.

        UnsupportedFactError for follow-up, where some are not; ``verb`` is named in the message.
        """
        if self.followup is not None:
            raise UnsupportedFactError(
                f"{verb} does not take follow-up, as some outcomes are unknown: calibration_test, "
                "audit, reliability_curve and cox_recalibration do",
                fact="follow-up",
            )
        return self

    @property
    def risks(self) -> FloatArray:
        """The probability of the event of two classes, shape (n,).

        It is the probability of label 1, or of label 0 where a lens made these predictions.
        """
        return self.probs[:, 0 if self.induced else 1]

    @property
    def censoring(self) -> Censoring:
        """Censoring distribution of rows with follow-up, by stratum, and the weights it gives.

        Its ``weights`` (n,) are the inverse probabilities of known outcomes, 0 where they are
        unknown. Only for predictions with follow-up.
        """
        assert self.followup is not None
        return self.followup.censoring(self.risks)

    @property
    def impossible(self) -> IntArray:
        """Indices (m,) of rows whose label had probability exactly 0.

        One of them refutes calibration.
        """
        impossible = self.probs[np.arange(self.n), self.labels] == 0.0
        if self.followup is not None:
            impossible &= self.followup.status != UNKNOWN
        return np.flatnonzero(impossible)

    @cached_property
    def n_clusters(self) -> int | None:
        """Number of clusters; None without clusters, also where each row is one of its own."""
        if self.clusters is None:
            return None
        count = np.unique(self.clusters).size
        return None if count == self.n else count

    def subgroups(self) -> dict[str, IntArray]:
        """Return the indices of the rows of every subgroup, by its name; {} without ``by``."""
        columns = () if self.by is None else self.by.reshape(self.n, -1).T
        groups = ((name, column) for column in columns for name in np.unique(column))
        return {str(name): np.flatnonzero(column == name) for name, column in groups if str(name)}

    def take(self, rows: IntArray | BoolArray) -> Predictions:
        """Return the selected rows in the given order, with their design.

        ``rows`` are indices or booleans of shape (n,).
        """
        facts = {name: vars(self)[name] for name in READERS}
        facts |= {"times": self.times, "crossed": self.crossed}
        fields: Fields = {
            name: values[rows] for name, values in facts.items() if values is not None
        }
        if self.folds is not None:
            fields["whole"] = self.whole or self
        fields["provenance"] = tuple(replace(p, overlap=p.overlap[rows]) for p in self.provenance)
        fields["followup"] = None if self.followup is None else self.followup.take(rows)
        numbers = isinstance(rows, np.ndarray) and rows.dtype.kind in "iu"
        places = rows if numbers and self.places is None else np.arange(self.n)[rows]
        fields["places"] = places if self.places is None else self.places[places]
        return replace(self, probs=self.probs[rows], labels=self.labels[rows], **fields)

    def _repr_html_(self) -> str:
        """Return the notebook display of the predictions as HTML: size, outcome, and design."""
        from caltest.data.facts import display  # which knows predictions

        return display(self)

    def __repr__(self) -> str:
        words = [f"n={self.n}", f"K={self.n_classes}"] + ["weighted"] * (self.weights is not None)
        words += ["followed"] * (self.followup is not None)
        words += [f"{self.n_clusters} clusters"] if self.n_clusters else []
        words += [f"{np.unique(self.folds).size} folds"] if self.folds is not None else []
        words += [f"horizon {self.horizon}"] if self.horizon is not None else []
        return f"Predictions({', '.join(words)})"


# ------------------------------------------------------------------------------
# Arrays become predictions: values, then what is known of the rows, then follow-up.


def of_plain_arrays(probs: object, labels: object) -> Predictions | None:
    """Return predictions of float64 probabilities and integer labels, validated in one fast pass.

    ``probs`` is an array (n,) or (n, K), ``labels`` (n,). None wherever the general reader has
    something to do or to report: shapes that do not fit, values that are no probabilities or
    labels, rows that do not sum to 1, rounding that is undone.
    """
    if type(probs) is not np.ndarray or type(labels) is not np.ndarray:
        return None
    two = probs.ndim == 1
    fit = probs.dtype == np.float64 and labels.dtype.kind in "biu" and labels.ndim == 1
    fit = fit and probs.shape[:1] == labels.shape and labels.size > 0
    if not (fit and (two or (probs.ndim == 2 and probs.shape[1] > 1))):
        return None
    n_classes = 2 if two else probs.shape[1]
    within = probs.min() >= 0.0 and probs.max() <= 1.0  # which NaN is not
    if not (within and labels.min() >= 0 and labels.max() < n_classes):
        return None
    values, rounded = meant(probs, "float64")
    if rounded or not (two or (np.abs(values.sum(axis=1) - 1.0) <= SUM_EXACT).all()):
        return None
    rows = np.column_stack([1.0 - values, values]) if two else np.ascontiguousarray(values)
    data = Predictions(rows, labels.astype(np.int64))
    for doubt in doubts(data.probs, data.labels, probs, from_logits=False):
        warnings.warn(doubt, DoubtfulInputWarning, stacklevel=4)
    return data


def questioned(
    data: Predictions, as_is: bool | None, probs: object, labels: object, from_logits: bool = False
) -> Predictions:
    """Run the guards on predictions made from arrays; return them with notes on doubts.

    Guards ask whether the values mean something else, such as the probability of the other class.
    ``data`` are the predictions. ``probs`` and ``labels`` are the arrays as given, which messages
    name; ``from_logits`` says that they held logits. DoubtfulInputError if the values suggest
    another meaning, unless ``as_is`` is true: then a note says so. With ``as_is`` None nothing is
    asked, and ``data`` is returned unchanged.
    """
    if as_is is None:
        return data
    if not isinstance(as_is, bool):
        one_of("as_is", as_is, (True, False))
    outcomes = data.labels if data.followup is None else data.followup
    if not doubts_of_arrays(data.probs, outcomes, data.weights, data.clusters):
        return data
    one = not isinstance(probs, Predictions) and as_array(probs, "probs").size == data.n
    said = {"from_logits": "True"} if from_logits else {}
    if data.classes and not isinstance(labels, Followup) and is_text(as_array(labels, "labels")):
        said["pos_label" if one else "classes"] = data.classes[0]
    asked = doubts_of_arrays(
        data.risks if one else data.probs, outcomes, data.weights, data.clusters, said
    )
    notes = answered(asked, as_is, arrays=True)
    return replace(data, notes=(*notes, *data.notes))


def _refuse_tables(probs: object, labels: object) -> None:
    """Raise InvalidPredictionsError for a table, and for follow-up in place of probabilities.

    ``probs`` is the argument as it was given; arrays pass. ``labels`` is named in the message if it
    is the name of a column.
    """
    if isinstance(probs, Followup):
        raise InvalidPredictionsError("follow-up stands for labels: pass the risks before it")
    if is_table(probs):
        label = f"label={labels!r}" if isinstance(labels, str) else "label=…"
        raise InvalidPredictionsError(
            f"probs is a table ({type(probs).__name__}), and Predictions.of takes arrays: "
            f"read_predictions(table, {label}) reads its columns, and every test does"
        )


def refuse_misaligned(probs: object, others: Mapping[str, object]) -> None:
    """Raise InvalidPredictionsError for pandas objects whose indexes differ from that of ``probs``.

    ``others`` maps names of arguments to their values. Objects without an index pass.
    """
    index = index_of(probs)
    for name, values in others.items():
        other = index_of(values)
        if index is None or other is None or len(index) != len(other) or index.equals(other):
            continue
        pairs = enumerate(zip(index, other, strict=True))
        for row, (a, b) in ((row, pair) for row, pair in pairs if pair[0] != pair[1]):
            raise InvalidPredictionsError(
                f"probs and {name} have different indexes, first in row {row} ({a!r} and {b!r}): "
                f"align them first, for instance with {name}.loc[probs.index], or pass "
                f"{name}.to_numpy() if the rows are in the same order as they are"
            )


def index_of(values: object) -> Any:
    """Return the index of a pandas object; None for other objects."""
    index = values.index if can(values, "index") else None
    return index if can(index, "equals") else None


def _of_arrays(
    probs: object, facts: Mapping[str, object], classes: Sequence[object] | None,
    from_logits: bool, pos_label: object, renormalise: bool,
) -> Predictions:  # fmt: skip
    """Return the predictions of arrays of probabilities and labels.

    ``facts`` has ``labels`` and the design arguments by name, None where not given; other
    parameters and the errors are as in :meth:`Predictions.of`.
    """
    labels = facts["labels"]
    if labels is None:
        as_array(probs, "probs")  # which may say better what is wrong
        raise InvalidPredictionsError("labels are missing: pass probs and labels")
    try:
        rows, notes = as_rows(probs, labels, classes, from_logits, pos_label, renormalise)
    except InvalidPredictionsError:
        if not from_logits:
            _refuse_cumulative(probs)
        raise
    data = Predictions(*rows, notes=notes)
    folds = facts["folds"] is not None
    for doubt in doubts(data.probs, data.labels, probs, from_logits, folds):
        warnings.warn(doubt, DoubtfulInputWarning, stacklevel=4)
    return data


def _refuse_cumulative(probs: object) -> None:
    """Raise InvalidPredictionsError for cumulative probabilities, which rise along a row to 1.

    ``probs`` is the argument as it was given. The message suggests their differences.
    """
    values = as_array(probs, "probs")
    question = cumulative(values) if values.dtype.kind in "iuf" else None
    if question is not None:
        steps = question.readings[0].options["probs"]
        raise InvalidPredictionsError(f"{question.text}. Pass {steps}", question.readings)


def _with_labels(
    data: Predictions, labels: object, classes: Sequence[object] | None
) -> Predictions:
    """Return predictions with other labels and class names; None keeps the present ones.

    ``labels`` are (n,) or one-hot, ``classes`` the names of the K classes in the order of the
    columns. New labels replace follow-up. InvalidPredictionsError for labels of another length, and
    for values that are no class.
    """
    if labels is None and classes is None:
        return data
    names, codes = relabelled(data.classes, data.n_classes, data.n, labels, classes)
    named = replace(data, classes=names)
    return named if codes is None else replace(named, labels=codes, followup=None)


def _with_facts(
    data: Predictions, given: Mapping[str, object], horizon: int | None, ordered: bool
) -> Predictions:
    """Return predictions with the design arguments, each checked and brought into its kept form.

    ``given`` has a value or None for weights, clusters, items, by, ids, folds, features and time,
    as in :meth:`Predictions.of`; so are ``horizon`` and ``ordered``. InvalidPredictionsError for
    designs that contradict each other, such as ``horizon`` with clusters.
    """
    clusters = given["clusters"]
    pair = None if clusters is None else as_columns(clusters, data.n)
    facts: Fields = {
        name: read_fact(given[name], data.n)
        for name, read_fact in READERS.items()
        if given[name] is not None and (name != "clusters" or pair is None)
    }
    if pair is not None:
        facts |= {"clusters": pair.first, "crossed": pair.second}
        facts |= {"cluster_names": pair.names, "notes": (*data.notes, *pair.notes)}
    if given["by"] is not None and (lacking := without_group(facts["by"])):
        note = f"the subgroup {NO_VALUE} is of {several(lacking, 'row')} without a value of by"
        facts["notes"] = (*facts.get("notes", data.notes), note)
    one_of("ordered", ordered, (True, False))
    if ordered and data.n_classes == 2:
        raise InvalidPredictionsError("two classes have no order: ordered=True is for more")
    if ordered:
        facts["ordered"] = True
    if given["items"] is not None:
        facts |= _items_as_clusters(data, facts)
    if data.multilabel and facts.keys() & {"items", "by", "clusters", "folds", "horizon"}:
        raise InvalidPredictionsError(
            "of several labels a row each is a subgroup, and the row a cluster: they take no "
            "other by=, clusters= or folds="
        )
    if horizon is not None or given["time"] is not None:
        facts |= _as_series(given, horizon, data)
    return replace(data, **facts) if facts else data


def _items_as_clusters(data: Predictions, facts: Fields) -> Fields:
    """Return fields to replace: items as the clusters, or a mark that clusters hold whole items.

    ``facts`` are new design fields of ``data`` by name, with ``items`` (n,) among them. The result
    is ``{"clusters": items}`` without clusters, else ``{"items_in_clusters": True}``.
    InvalidPredictionsError if rows of an item differ in prediction or weight, if an item lies in
    two clusters, or if there are two crossed columns of clusters.
    """
    items, weights = facts["items"], facts.get("weights", data.weights)
    refuse_unequal(data.probs, weights, items)
    clusters = facts.get("clusters", data.clusters)
    if facts.get("crossed", data.crossed) is not None:
        raise InvalidPredictionsError(
            "items= takes one column of clusters, in which whole items lie: two columns that cross "
            "would make votes of different items depend on each other"
        )
    if clusters is None:
        return {"clusters": items}
    of_row, first = numbered(items)
    apart = np.flatnonzero(clusters != clusters[first[of_row]])
    if apart.size:
        row = int(apart[0])
        raise InvalidPredictionsError(
            f"{nth(int(first[of_row[row]]))} and {nth(row)} are outcomes of one item, but lie in "
            "different clusters: clusters= of items holds whole items. If it names raters who "
            "judge several items, votes depend on each other across items, and no test item by "
            "item is valid: leave items= out and pass both columns as clusters="
        )
    return {"items_in_clusters": True}


def _as_series(
    facts: Mapping[str, object], horizon: object, data: Predictions
) -> dict[str, object]:
    """Return the fields times (n,) and horizon of a forecast series, as a dict by name.

    For forecasts one step ahead it is the field ``clusters``: rows of one time, None without times.
    ``facts`` are the design arguments by name, of which ``time`` counts; ``horizon`` is the number
    of times between a forecast of ``data`` and its outcome. InvalidPredictionsError for a horizon
    that is no whole number ≥ 1, and beside clusters or folds.
    """
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
        raise InvalidPredictionsError("horizon takes no folds: folds of a series are not equal")
    places = np.arange(data.n)
    if time is not None:  # the place of every row among the distinct times
        places = codes(as_times(time, data.n))
    if horizon == 1:
        return {"clusters": None if time is None else as_clusters(places, data.n)}
    return {"times": places, "horizon": int(horizon)}


def _followed(data: Predictions, followup: Followup | None) -> Predictions:
    """Return predictions with follow-up in place of labels; unchanged where ``followup`` is None.

    ``followup`` holds the time, the event and the horizon of every row. InvalidPredictionsError for
    weights, clusters, folds or a horizon of series beside follow-up, for more than two classes, and
    for another number of rows. Rows whose own horizon lies beyond all times are left out with a
    note. Warns (ShortFollowupWarning) if follow-up is too short for valid tests.
    """
    for name in ("weights", "clusters", "crossed", "folds", "horizon"):
        if vars(data)[name] is not None:
            raise InvalidPredictionsError(f"follow-up does not take {name} yet: leave them out")
    if followup is None:
        return data
    if data.n_classes != 2:
        raise InvalidPredictionsError(
            f"follow-up is of one event, but probs has {data.n_classes} classes: pass the risk "
            "of the event"
        )
    if followup.n != data.n:
        rows = f"there are {data.n} predictions, but follow-up of {followup.n} rows"
        raise InvalidPredictionsError(rows)
    if (beyond := followup.beyond).any():
        followup, data = followup.within(), data.take(~beyond)
    notes = (*followup.notes, *followup.unit_notes(data.risks))
    followup = followup.placed(data.risks)
    followup.warn(data.risks)
    return replace(data, followup=followup, notes=(*data.notes, *notes))


# ------------------------------------------------------------------------------
# Rows that were sampled by their outcome, as weights that are functions of it say.


#: Rows of every label that show its weight.
ROWS_A_LABEL = 10


def as_sampled(data: Predictions) -> Predictions:
    """Return predictions adjusted to the sampling, where weights are a function of the label.

    If label k was sampled at a rate proportional to 1/w_k, predictions p that are calibrated in the
    population imply p'_k = (p_k / w_k) / Σ_j p_j / w_j for a sampled row (Elkan, The foundations of
    cost-sensitive learning, IJCAI 2001, theorem 2). A test of p' on unweighted rows is valid. A
    test of p on weighted rows is not, because their weights depend on outcomes. The result has p',
    no weights, and a note, which is also a DoubtfulInputWarning. ``data`` is returned unchanged if
    its weights are no such function, if a class has fewer than 10 rows, with follow-up, with
    several labels a row, and behind a lens. O(n K).
    """
    w = data.weights
    if w is None or data.followup is not None or data.multilabel or data.induced:
        return data
    counts = np.bincount(data.labels, minlength=data.n_classes)
    first = np.array([w[np.argmax(data.labels == k)] for k in range(data.n_classes)])
    if counts.min() < ROWS_A_LABEL or not np.array_equal(first[data.labels], w):
        return data
    odds = data.probs / first
    sampled = odds / odds.sum(axis=1, keepdims=True)
    names = [f"{w:g} of {data.class_name(k)}" for k, w in enumerate(first / first.min())]
    population = ""
    if data.n_classes == 2:
        predicted, observed = np.average(np.c_[data.probs[:, 1], data.labels == 1], 0, weights=w)
        population = f", where {percent(predicted, observed)} was predicted and "
        population += f"{percent(observed, predicted)} observed"
        population += f" (O:E {observed / predicted:.3g})" if predicted > 0.0 else ""
    note = (
        f"weights are functions of the label ({', '.join(names)}): rows were sampled by their "
        "outcome. As no test of weighted rows would be valid, they are tested as they were "
        "sampled, against the prediction for a sampled row. Means, O:E and errors then describe "
        f"the sample, intercept and slope also the population{population}"
    )
    warnings.warn(note, DoubtfulInputWarning, stacklevel=4)
    return replace(data, probs=sampled, weights=None, notes=(*data.notes, note))


# ------------------------------------------------------------------------------
# Predictions of several models for the same rows, brought into one order.


def match_rows(data: dict[str, Predictions], own_labels: bool = False) -> dict[str, Predictions]:
    """Return all predictions in the row order of the first, if all have ids.

    ``data`` has the predictions by name of the model; they are returned unchanged if one lacks ids.
    With ``own_labels`` outcomes of one id may differ between models. InvalidPredictionsError for
    ids that repeat or are not in all models, and for different outcomes of one id.
    """
    if any(d.ids is None for d in data.values()):
        return data
    ids = {name: np.asarray(d.ids).astype(str).tolist() for name, d in data.items()}
    (first, reference), *others = ids.items()
    for name, listed in ids.items():
        twice = [i for i, count in Counter(listed).items() if count > 1]
        _refuse(f"{name} has ids more than once", twice, "keep one row of each")
    matched, allowed, notes = {first: data[first]}, set(reference), list(data[first].notes)
    for name, listed in others:
        place = {i: row for row, i in enumerate(listed)}
        for a, b, less in (
            (name, first, [i for i in listed if i not in allowed]),
            (first, name, [i for i in reference if i not in place]),
        ):
            advice = f"a paired comparison needs the same rows of both: leave these out of {a}"
            _refuse(f"{b} lacks ids of {a}", less, advice, [Reading({"drop_missing": True})])
        rows = np.array([place[i] for i in reference])
        moved = listed != reference
        notes += [f"rows of {name} brought into the order of {first} by their ids"] * moved
        matched[name] = data[name].take(rows) if moved else data[name]
        (unlike,) = np.nonzero(matched[name].labels != data[first].labels)
        differ = [reference[i] for i in unlike]
        if not own_labels:
            labels = f"{name} and {first} have different labels of ids"
            _refuse(labels, differ, "one of them is wrong")
    return {**matched, first: replace(data[first], notes=tuple(notes))}


def _refuse(what: str, ids: list[str], advice: str, ways: Sequence[Reading] = ()) -> None:
    """Raise InvalidPredictionsError for ``ids`` that do not match; nothing if there are none.

    ``what`` and ``advice`` begin and end the message. ``ways`` are the alternative readings that
    the error carries, options such as ``drop_missing``.
    """
    if ids:
        listed = f"{first_of(ids)} ({len(ids)} in all)"
        raise InvalidPredictionsError(f"{what}: {listed}; {advice}", ways)


def refuse_unlike(
    names: tuple[str, str], a: Predictions, b: Predictions, remedy: str = "",
    own_labels: bool = False,
) -> None:  # fmt: skip
    """Raise InvalidPredictionsError if two models' predictions are not of the same rows.

    They are if shapes, classes, ids, design and labels of ``a`` and ``b`` agree. ``names`` are the
    models' names in messages, and ``remedy`` is advice for rows that are meant to differ, "" for
    none. With ``own_labels`` outcomes may differ.
    """
    first, name = names
    both, advice = f"{first} and {name}", IN_ORDER + f"; {remedy}" * bool(remedy)
    different = Reading({"unpaired": True}, "they hold different observations")
    ways = [Reading({"ids": "COLUMN"}), *[different] * bool(remedy)]
    if a.probs.shape != b.probs.shape:
        raise InvalidPredictionsError(
            f"{first} has {a.n} rows of {a.n_classes} classes, {name} has {b.n} of "
            f"{b.n_classes}: {advice if a.n_classes == b.n_classes else SAME_CLASSES}",
            ways * (a.n_classes == b.n_classes),
        )
    if a.classes != b.classes and a.classes and b.classes:
        listed = f"{', '.join(a.classes)} and {', '.join(b.classes)}"
        raise InvalidPredictionsError(
            f"{both} name their classes differently: {listed}; give both the same in one order "
            "with classes=[…] (--classes), or of one column the same event with pos_label="
        )
    if a.ids is not None and b.ids is not None and not np.array_equal(a.ids, b.ids):
        i = int(np.argmax(a.ids != b.ids))
        place = f"first in {nth(i)} ({a.ids[i]} and {b.ids[i]})"
        raise InvalidPredictionsError(f"{both} have different ids, {place}: {IN_ORDER}", ways[:1])
    groups = [None if d.clusters is None else by_appearance(d.clusters) for d in (a, b)]
    others = [None if d.crossed is None else by_appearance(d.crossed) for d in (a, b)]
    facts: dict[str, Sequence[object]] = {
        **{"weights": (a.weights, b.weights), "clusters": groups, "by": (a.by, b.by)},
        **{"folds": (a.folds, b.folds), "second clusters": others},
    }
    for fact, (one, other) in facts.items():
        if not np.array_equal(np.asarray(one), np.asarray(other)):
            raise InvalidPredictionsError(f"{both} have different {fact}: {advice}", ways)
    (unlike,) = np.nonzero(a.labels != b.labels)
    for i in unlike[: 0 if own_labels else 1]:
        if np.array_equal(np.bincount(a.labels), np.bincount(b.labels)):
            advice = "each label is as frequent in both, as in another order of the rows: "
            advice, ways = advice + IN_ORDER, ways[:1]
        pair = " and ".join(d.class_name(int(d.labels[i])) for d in (a, b))
        raise InvalidPredictionsError(
            f"{both} have different labels in {several(unlike.size, 'row')}, first in "
            f"{nth(int(i))} ({pair}): {advice}",
            ways,
        )
