"""Tallies: sums over fine bins of any number of observations."""

from .clustered import ClusteredTally as ClusteredTally
from .grid import AnyTally as AnyTally
from .grid import RowSample as RowSample
from .grid import RowsOrTally as RowsOrTally
from .problems import ClusteredProblem as ClusteredProblem
from .problems import Counts as Counts
from .problems import MicroCells as MicroCells
from .problems import TallyProblem as TallyProblem
from .problems import problem_of_tally as problem_of_tally
from .scans import scan as scan
from .scans import tally_sql as tally_sql
from .tally import Tallies as Tallies
from .tally import Tally as Tally

__all__ = [
    "ClusteredTally",
    "Tallies",
    "Tally",
    "TallyProblem",
    "scan",
    "tally_sql",
]
