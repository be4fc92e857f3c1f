"""caltest in scikit-learn: scores, a display and a recalibrated classifier.

Needs the extra ``caltest[sklearn]``. Arguments have scikit-learn's order and names.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import RNG, AnyArray, as_ndarray, whole
from caltest._base.written import Doubt, Fields
from caltest.data import Predictions
from caltest.data.lenses import LensLike, OneVsRest, as_lens
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError, or_nan
from caltest.inference import calibration_test, reliability_curve
from caltest.inference._input import evaluated
from caltest.recalibration import Recalibration, VectorScaling
from caltest.results import ReliabilityCurve
from caltest.statistics import ECE, StatisticLike

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, cross_val_predict
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d
except ImportError as error:
    needed = "caltest.sklearn needs scikit-learn: pip install 'caltest[sklearn]'"
    raise ImportError(needed) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.utils import Tags


class Classifier(Protocol):
    """A classifier of scikit-learn, or one that has the same methods.

    They are ``fit(X, y)`` and ``predict_proba(X)``, which returns probabilities (n, K) in the order
    of ``classes_`` (K,); ``n_features_in_`` is the number of features.
    """

    classes_: ArrayLike
    n_features_in_: int

    def fit(self, X: object, y: ArrayLike, **facts: object) -> Self: ...
    def predict_proba(self, X: object) -> FloatArray: ...


def calibration_error(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None = None,
    pos_label: object = None, *, labels: ArrayLike | None = None, statistic: StatisticLike = ECE(),
    lens: LensLike | None = None,
) -> float:  # fmt: skip
    """Return a calibration error, a float, for ``make_scorer``; smaller is better.

    Parameters
    ----------
    y_true, y_prob : array_like of shape (n,), and (n,) or (n, K)
        Observed classes; the probability of ``pos_label``, or a column for each class in order.
    sample_weight : array_like of shape (n,), optional
        Weights that are all alike count as none. A statistic that takes no others raises
        StatisticError.
    pos_label : optional
        The event. With one column it is by default 1 where classes are 0 and 1 or −1 and 1, or the
        last of ``labels``; with a column for each class it is looked at against the rest.
    labels : array_like, optional
        The classes in their order, ``classes_``; by default the sorted values of ``y_true``.
    statistic, lens
        As in :func:`caltest.calibration_test`, and so are the errors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics import make_scorer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> scorer = make_scorer(calibration_error, response_method="predict_proba")
    >>> cross_val_score(GaussianNB(), *load_iris(return_X_y=True), scoring=scorer, cv=3).round(3)
    array([0.057, 0.05 , 0.049])
    """
    data, options = _problem(y_true, y_prob, sample_weight, pos_label, labels, lens)
    return evaluated(statistic, as_lens(options["lens"], data)(data))[1]


def calibration_pvalue(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None = None,
    pos_label: object = None, **options: Any,
) -> float:  # fmt: skip
    """Return the p-value of :func:`caltest.calibration_test`, a float.

    ``y_true``, ``y_prob``, ``sample_weight``, ``pos_label``, and ``labels`` and ``lens`` among the
    options, are as in :func:`calibration_error`; other ``options`` are keywords of
    :func:`caltest.calibration_test`, such as ``statistic`` and ``rng``. A large p-value does not
    show calibration: select models by an error or a proper score instead.
    """
    data, options = _problem(y_true, y_prob, sample_weight, pos_label, **options)
    return calibration_test(data, None, **options).pvalue


@dataclass(frozen=True)
class CalibrationScorer:
    """Scorer for searches and cross-validation: minus the calibration error, larger is better.

    Pass it as ``scoring=`` of ``GridSearchCV``, ``cross_validate`` and the like. It takes the
    classes from the fitted model, so that a fold may lack some of them. An error that cannot be
    measured is NaN, with an ``UnmeasuredWarning``, and the search goes on.

    A model that predicts the base rate for every row is calibrated: select by a proper score
    such as ``"neg_log_loss"``, and report this beside it.

    Parameters
    ----------
    statistic, lens
        As in :func:`calibration_error`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.naive_bayes import GaussianNB
    >>> scoring = {"loss": "neg_log_loss", "ece": CalibrationScorer()}
    >>> scores = cross_validate(GaussianNB(), *load_iris(return_X_y=True), scoring=scoring, cv=3)
    >>> scores["test_ece"].round(3)
    array([-0.057, -0.05 , -0.049])
    """

    statistic: StatisticLike = ECE()
    lens: LensLike | None = None

    def __call__(
        self, estimator: Classifier, X: object, y_true: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Return minus the calibration error of a fitted classifier, or NaN.

        ``X`` (n, d) are features, ``y_true`` (n,) observed classes and ``sample_weight`` (n,)
        weights of the rows, None for none. An error that cannot be measured is NaN, with an
        ``UnmeasuredWarning``.
        """
        probs = estimator.predict_proba(X)
        options: Fields = {
            "labels": estimator.classes_, "statistic": self.statistic, "lens": self.lens
        }  # fmt: skip
        return or_nan(
            lambda: -calibration_error(y_true, probs, sample_weight, **options),
            np.nan, "the calibration error",
        )  # fmt: skip


class CalibrationTestDisplay:
    """A reliability diagram with bars and the test, made as scikit-learn's displays are.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`, which draw it. ``curve`` is
    the :class:`caltest.ReliabilityCurve`; ``picture_`` is the last picture, ``ax_`` and ``figure_``
    its axes and figure.
    """

    def __init__(self, curve: ReliabilityCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(cls, estimator: Classifier, X: object, y: ArrayLike, **options: Any) -> Self:
        """Draw a reliability diagram of a fitted classifier; return the display.

        ``X`` (n, d) are features, ``y`` (n,) the observed classes. ``options`` are as for
        :meth:`from_predictions`.
        """
        probs = estimator.predict_proba(X)
        return cls.from_predictions(y, probs, labels=estimator.classes_, **options)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_prob: ArrayLike, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw predictions as a reliability diagram; return the display.

        ``y_true`` (n,) are observed classes, ``y_prob`` (n,) or (n, K) probabilities, and ``ax``
        the axes, new ones by default. ``options`` are keywords of :func:`calibration_error`, such
        as ``pos_label``, and of :func:`caltest.reliability_curve`, such as ``bins``.
        """
        data, options = _problem(y_true, y_prob, **options)
        return cls(reliability_curve(data, **options)).plot(ax)

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the curve on ``ax``, by default new axes; return the display.

        ``options`` are keywords of :func:`caltest.plots.panels`.
        """
        self.picture_ = self.curve.plot(ax, **options)
        self.ax_, self.figure_ = self.picture_.ax, self.picture_.figure
        return self


def out_of_fold(
    estimator: Classifier, X: object, y: ArrayLike, cv: int = 10, rng: RNG = None
) -> Predictions:
    """Predict every row by a model that was fitted on the others, and say which model it was.

    ``cv`` copies of a classifier with ``predict_proba`` are fitted, to features ``X`` (n, d) and
    classes ``y`` (n,); shuffled rows of every class are dealt to the folds, by ``rng`` as in
    :func:`numpy.random.default_rng`. The :class:`Predictions` have ``folds`` and ``classes``:
    functions such as :func:`caltest.calibration_test` then say how the *learner* is calibrated.
    InvalidPredictionsError for fewer than two classes, or one of fewer rows than there are folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> out_of_fold(GaussianNB(), *load_iris(return_X_y=True), cv=5, rng=1)
    Predictions(n=150, K=3, 5 folds)
    """
    whole("cv", cv, 2)
    truth: AnyArray = column_or_1d(y, warn=True)
    check_classification_targets(truth)
    classes, counts = np.unique(truth, return_counts=True)
    if classes.size < 2 or counts.min() < cv:
        raise InvalidPredictionsError(
            f"y: class {classes[counts.argmin()]} has {counts.min()} of {truth.size} rows, "
            f"fewer than cv={cv} folds: every model has to see two classes, each in every fold"
        )
    deal = np.random.default_rng(rng).permutation(truth.size)
    order = deal[np.argsort(truth[deal], kind="stable")]
    fold = np.empty(truth.size, dtype=np.int64)
    fold[order] = np.arange(truth.size) % cv
    split = PredefinedSplit(fold)
    probs = cross_val_predict(clone(estimator), X, truth, cv=split, method="predict_proba")
    return Predictions.of(
        probs, _numbered(classes, truth), [str(c) for c in classes], folds=fold, rounded=False,
        as_is=True,  # the order of the classes is known
    )  # fmt: skip


class RecalibratedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are recalibrated on rows it was not trained on.

    A fitted classifier, or one in :class:`sklearn.frozen.FrozenEstimator`, is left as it is: ``X``
    and ``y`` of ``fit`` are then a validation set. One that is not fitted is trained on them, and
    the recalibration is fitted on what copies of it predict for the folds that they did not see.
    ``estimator`` is the classifier, ``method`` a method of :mod:`caltest.recalibration`, by default
    ``VectorScaling()``, which fits any data; ``cv`` is a number of folds, less where a class has
    fewer rows, or a splitter, as in scikit-learn. After ``fit``, ``classes_``, ``estimator_`` and
    ``recalibrated_`` are the classes, the fitted estimator, and the fitted map, a
    :class:`caltest.recalibration.Recalibrated`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB().fit(X[::3], y[::3])).fit(X[1::3], y[1::3])
    >>> model.predict_proba(X[2::3]).shape
    (50, 3)
    """

    def __init__(
        self, estimator: Classifier, method: Recalibration | None = None, cv: object = 5
    ) -> None:
        self.estimator, self.method, self.cv = estimator, method, cv

    def fit(
        self, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: object = None
    ) -> Self:
        """Fit the recalibration, and the estimator unless it is fitted; return this object.

        ``X`` (n, d) are features, ``y`` (n,) classes, ``sample_weight`` (n,) weights, which go to
        both. Rows of one of the ``groups`` (n,), such as a patient, are kept in one fold.
        ValueError if nothing is fitted yet and ``y`` holds one class, or a class of one row.
        """
        truth: AnyArray = column_or_1d(y, warn=True)
        check_classification_targets(truth)
        try:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            probs = self.estimator.predict_proba(X)
        except NotFittedError:
            smallest = int(np.unique(truth, return_counts=True)[1].min())
            if np.unique(truth).size < 2 or smallest < 2:
                raise ValueError(
                    "y holds one class, or a class of one sample: nothing to fit"
                ) from None
            folds = self.cv
            if isinstance(folds, int):
                folds = min(folds, smallest)
                folds = folds if groups is None else StratifiedGroupKFold(folds)
            model = clone(self.estimator)
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            split = {"cv": folds, "groups": groups, "params": weights or None}
            probs = cross_val_predict(model, X, truth, method="predict_proba", **split)
            self.estimator_ = model.fit(X, truth, **weights)
        self.classes_ = np.asarray(self.estimator_.classes_)
        method = VectorScaling() if self.method is None else self.method
        self.recalibrated_ = method.fit(
            probs, _numbered(self.classes_, truth), weights=sample_weight
        )
        return self

    def predict_proba(self, X: object) -> FloatArray:
        """Return the recalibrated probabilities, shape (n, K), for features ``X`` (n, d)."""
        check_is_fitted(self, "recalibrated_")
        return np.asarray(self.recalibrated_(self.estimator_.predict_proba(X)))

    def predict(self, X: object) -> AnyArray:
        """Return the classes of largest recalibrated probability, shape (n,).

        ``X`` (n, d) are features.
        """
        probs = self.predict_proba(X)  # which says first whether there was a fit
        return self.classes_[probs.argmax(axis=1)]

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import get_tags  # newer than the oldest that is supported, as is this

        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    @property
    def n_features_in_(self) -> int:
        """Number of features of the data that the fitted estimator takes."""
        return int(self.estimator_.n_features_in_)


def _numbered(classes: AnyArray, y: AnyArray) -> IntArray:
    """Return the index of every label ``y`` (n,) among ``classes`` (K,), integers (n,).

    InvalidPredictionsError names the first label that is none of them.
    """
    order = np.argsort(classes, kind="stable")
    codes = order[np.minimum(np.searchsorted(classes[order], y), classes.size - 1)]
    for row in np.flatnonzero(classes[codes] != y)[:1]:
        listed = ", ".join(map(str, classes))
        raise InvalidPredictionsError(
            f"y: row {row} is {y.tolist()[row]!r}, none of the classes {listed}"
        )
    return codes


def _problem(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None = None,
    pos_label: object = None, labels: ArrayLike | None = None, lens: LensLike | None = None,
    **options: Any,
) -> tuple[Predictions, dict[str, Any]]:  # fmt: skip
    """Return (predictions, options): arguments of scikit-learn as functions of caltest take them.

    Parameters are as in :func:`calibration_error`, and the options are keyword arguments of a
    function such as :func:`caltest.calibration_test`: ``options`` as given, and ``lens``. The event
    of two classes is label 1 of the predictions. InvalidPredictionsError for labels that are no
    class, and where one column does not say which class it is of.
    """
    y, probs = column_or_1d(as_ndarray(y_true, "y_true")), as_ndarray(y_prob, "y_prob")
    check_classification_targets(y)
    weights = None if sample_weight is None else as_ndarray(sample_weight, "sample_weight")
    if weights is not None and weights.size and weights.min() == weights.max() > 0:
        weights = np.ones_like(weights)
    values, order = np.unique(y), None if labels is None else np.asarray(labels)
    if probs.ndim == 2 and probs.shape[1] > 1:
        classes = values if order is None else order
        if classes.size != probs.shape[1]:
            raise InvalidPredictionsError(
                f"y_prob has {probs.shape[1]} columns, but there are {classes.size} classes: pass "
                "labels=estimator.classes_"
            )
        if pos_label is not None and lens is None:
            places = (j for j, c in enumerate(classes.tolist()) if c == pos_label)
            lens = OneVsRest(next(places, str(pos_label)))
        codes, names = _numbered(classes, y), [str(c) for c in classes]
        data = Predictions.of(probs, codes, names, weights=weights, rounded=False, as_is=True)
        return _in_ratios(data), {"lens": lens, **options}
    if pos_label is None and order is not None:
        pos_label = order[-1]
    elif pos_label is None and (set(values.tolist()) <= {0, 1} or set(values.tolist()) <= {-1, 1}):
        pos_label = 1
    others = (values if order is None else np.union1d(values, order)).tolist()
    others = [value for value in others if value != pos_label]
    if pos_label is None or len(others) > 1:
        raise InvalidPredictionsError(
            "y_prob is one column, the probability of one of two classes, but y_true holds "
            f"{', '.join(map(repr, values[:5].tolist()))}: pass the class as pos_label, or a "
            "column for each class"
        )
    names = [str(others[0]) if others else f"not {pos_label}", str(pos_label)]
    data = Predictions.of(probs, y == pos_label, names, weights=weights, rounded=False, as_is=True)
    return _in_ratios(data), {"lens": lens, **options}


def _in_ratios(data: Predictions) -> Predictions:
    """Return the rows of positive weight, with weights as small whole numbers where possible.

    Notes of ``data`` that an input may mean something else are given as DoubtfulInputWarning: an
    error would end a search of scikit-learn.
    """
    for doubt in (note for note in data.notes if isinstance(note, Doubt)):
        warnings.warn(doubt, DoubtfulInputWarning, stacklevel=4)
    return data.in_ratios()
