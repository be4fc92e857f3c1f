"""Predictions: validated probabilities and labels, the one internal currency."""

from caltest._base.arrays import BoolArray as BoolArray
from caltest._base.arrays import FloatArray as FloatArray
from caltest._base.arrays import IntArray as IntArray
from caltest._base.provenance import Provenance as Provenance
from caltest.predictions.classes import NamedClasses as NamedClasses
from caltest.predictions.data import Predictions as Predictions
from caltest.predictions.reading import Facts as Facts
from caltest.predictions.reading import RowFacts as RowFacts
