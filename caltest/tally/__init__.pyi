"""Tallies: sums over micro-cells, of any number of rows, from which exact answers follow."""

from .base import AnyTally as AnyTally
from .base import Source as Source
from .clustered import ClusteredTally as ClusteredTally
from .files import scan as scan
from .sample import RowSample as RowSample
from .sql import tally_sql as tally_sql
from .tallies import Tallies as Tallies
from .tally import Tally as Tally
