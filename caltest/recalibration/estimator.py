"""A recalibrated scikit-learn classifier; needs the extra ``caltest[sklearn]``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from caltest.predictions import FloatArray
from caltest.recalibration.fitting import Recalibration
from caltest.recalibration.scaling import TemperatureScaling


class RecalibratedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose probabilities are recalibrated on rows it was not trained on.

    ``fit`` leaves the classifier as it is and fits the recalibration only, so that ``X`` and ``y``
    are a validation set. Where scikit-learn copies the classifier, as in ``cross_val_score``, wrap
    it in :class:`sklearn.frozen.FrozenEstimator`, or the copy is not fitted.

    Parameters
    ----------
    estimator : classifier
        Fitted, with ``predict_proba``.
    method : Recalibration, default TemperatureScaling()
        How to recalibrate.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes of the estimator.
    recalibrated_ : Recalibrated
        The fitted map.

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
        self,
        estimator: Any,
        method: Recalibration = TemperatureScaling(),  # noqa: B008 (a frozen value)
    ) -> None:
        self.estimator = estimator
        self.method = method

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the recalibration on the estimator's predictions of X; y holds its classes."""
        check_is_fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator.classes_)
        labels = np.searchsorted(self.classes_, y)
        known = self.classes_[np.minimum(labels, self.classes_.size - 1)] == np.asarray(y)
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(f"y: row {row} is {np.asarray(y)[row]!r}, no class of the estimator")
        self.recalibrated_ = self.method.fit(self.estimator.predict_proba(X), labels)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the recalibrated probabilities, shape (n, K)."""
        check_is_fitted(self, "recalibrated_")
        probs: FloatArray = self.recalibrated_(self.estimator.predict_proba(X))
        return probs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes of largest recalibrated probability, shape (n,)."""
        probs = self.predict_proba(X)
        return self.classes_[probs.argmax(axis=1)]
