"""Shared by every room: array types, checks, progress, number formats."""

from .arrays import BoolArray as BoolArray
from .arrays import Ended as Ended
from .arrays import FloatArray as FloatArray
from .arrays import IntArray as IntArray
from .written import several as several
