"""Predictions, outcomes and the design of the data; lenses and bins."""

from . import distances as distances
from . import examples as examples
from .labels import Facts as Facts
from .labels import RowFacts as RowFacts
from .predictions import NamedClasses as NamedClasses
from .predictions import Predictions as Predictions
