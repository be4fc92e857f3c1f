"""All studies, and the pages that compare numbers with other programs and enumerate grades.

``python -m validation.all --resume DIR`` goes on where the sums of the folder end, and writes the
pages; the options are those of every single study.
"""

from __future__ import annotations

import sys

from validation import (
    agreement,
    benefit,
    benefit_designs,
    classes,
    clusters,
    comparison,
    coverage,
    delays,
    dependent_rows,
    equivalence,
    families,
    folds,
    grades,
    guards,
    outcomes,
    power,
    revisions,
    segment_classes,
    segments,
    shares,
    signed,
    tallies,
    type_one_error,
    votes,
    ways,
)
from validation.study import run

STUDIES = (
    benefit,
    benefit_designs,
    comparison,
    classes,
    clusters,
    type_one_error,
    tallies,
    coverage,
    delays,
    dependent_rows,
    equivalence,
    families,
    folds,
    guards,
    outcomes,
    power,
    revisions,
    segment_classes,
    segments,
    shares,
    signed,
    votes,
    ways,
)

if __name__ == "__main__":
    if not {"--quick", "--plan", "--help", "-h"} & set(sys.argv):
        agreement.TARGET.write_text(agreement.page(), encoding="utf-8")
        grades.PAGE.write_text(grades.page()[0], encoding="utf-8")
    run(*(module.STUDY for module in STUDIES))
