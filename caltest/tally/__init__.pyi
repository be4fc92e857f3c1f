"""Tallies: sums over micro-cells, of any number of rows, from which exact answers follow."""

from .base import AnyTally as AnyTally
from .cells import MicroCells as MicroCells
from .cells import TalliedCells as TalliedCells
from .counts import Counts as Counts
from .counts import Tallied as Tallied
from .files import scan as scan
from .sample import RowSample as RowSample
from .sql import tally_sql as tally_sql
from .statistics import by_residuals as by_residuals
from .statistics import same_as_rows as same_as_rows
from .statistics import tallied as tallied
from .tallies import Tallies as Tallies
from .tally import Tally as Tally
