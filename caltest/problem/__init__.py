"""What a statistic sees: units whose outcomes are random and whose predictions are fixed.

``base`` says what every problem offers, ``cells`` are partitions of its units, ``rows`` and
``tally`` the two kinds there are, ``counting`` the compiled loops that draw and count.
"""

from caltest.problem.base import LinearTerm as LinearTerm
from caltest.problem.base import Outcomes as Outcomes
from caltest.problem.base import Problem as Problem
from caltest.problem.base import ResidualSums as ResidualSums
from caltest.problem.cells import MAX_MASS as MAX_MASS
from caltest.problem.cells import Cells as Cells
from caltest.problem.cells import Estimand as Estimand
from caltest.problem.clustered import ClusteredProblem as ClusteredProblem
from caltest.problem.clustered import problem_of_tally as problem_of_tally
from caltest.problem.followup import Drawn as Drawn
from caltest.problem.followup import FollowupProblem as FollowupProblem
from caltest.problem.followup import row_problem as row_problem
from caltest.problem.micro import MicroCells as MicroCells
from caltest.problem.rows import Flips as Flips
from caltest.problem.rows import RowProblem as RowProblem
from caltest.problem.tally import Counts as Counts
from caltest.problem.tally import TallyProblem as TallyProblem
