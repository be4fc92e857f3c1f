"""What every room uses: types of arrays, refusals, progress, and how values are written."""

from .arrays import BoolArray as BoolArray
from .arrays import Ended as Ended
from .arrays import FloatArray as FloatArray
from .arrays import IntArray as IntArray
from .written import several as several
