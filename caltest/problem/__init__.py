"""What a statistic sees: units whose outcomes are random and whose predictions are fixed.

``base`` says what every problem offers, ``cells`` are partitions of its units, ``rows`` and
``tally`` the two kinds there are, ``counting`` the compiled loops that draw and count.
"""

from caltest.problem.base import LinearTerm, Problem, ResidualSums
from caltest.problem.cells import MAX_MASS, Cells, Estimand
from caltest.problem.clustered import ClusteredProblem, problem_of_tally
from caltest.problem.followup import Drawn, FollowupProblem, row_problem
from caltest.problem.micro import MicroCells
from caltest.problem.rows import Flips, RowProblem
from caltest.problem.tally import Counts, TallyProblem

__all__ = [
    "MAX_MASS",
    "Cells",
    "ClusteredProblem",
    "Counts",
    "Drawn",
    "Estimand",
    "Flips",
    "FollowupProblem",
    "LinearTerm",
    "MicroCells",
    "Problem",
    "ResidualSums",
    "RowProblem",
    "TallyProblem",
    "problem_of_tally",
    "row_problem",
]
