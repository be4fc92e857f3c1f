"""Tests of rows in clusters: which null answers, how strong the dependence is, what to refuse."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from caltest._base.facts import FEWEST
from caltest._base.written import Fields
from caltest.errors import FewClustersWarning, StatisticError
from caltest.inference.series import summary_of
from caltest.predictions import Predictions
from caltest.results import ClusterSummary, HorizonSummary
from caltest.simulate import Scheme, SharedRedraws, WildSigns
from caltest.simulate.agreement import Agreement
from caltest.simulate.dependent import Coupling, Degree, Dependence

#: Effective clusters below which power is low; clusters with a rare label below which labels that
#: rows share are too few (failures were seen at 4 and fewer).
FEW = 10.0
#: Clusters from which on random signs hold their level, if labels are not rare.
MANY = 50


class Coupled(NamedTuple):
    """A scheme that keeps dependence within clusters, and κ, by which its draws fall short."""

    scheme: Scheme
    inflation: float = 1.0


def clustered(
    null: object, data: Predictions, stack: int
) -> tuple[tuple[Coupled, ...], ClusterSummary | HorizonSummary | None]:
    """Return the schemes whose largest p-value counts, and what was learnt of the clusters."""
    scheme = _admitted(null, data, stack + 1)
    if not isinstance(scheme, SharedRedraws):
        return (Coupled(scheme),), None
    schemes: dict[object, Coupled] = {}
    shared: dict[Coupling, Degree] = {}
    agreements = scheme.agreements(data)
    for each, agreement in agreements:
        degree = agreement.degree(each.dependence)
        kappa = agreement.inflation(degree)
        law = each.coupling if degree != (0.0, 0.0) else kappa  # without λ all draw alike
        schemes[law] = Coupled(replace(each, dependence=degree), kappa)
        first, second = each.couplings
        shared |= {first: degree} if first == second else {}
    facts: Fields = {"estimated": scheme.dependence is None}
    if (series := summary_of(data)) is not None:
        facts |= {"dependence": shared.get("label"), "correctness": shared.get("correctness")}
        return tuple(schemes.values()), replace(series, **facts)
    facts["inflation"] = max(each.inflation for each in schemes.values())
    summary: ClusterSummary | None = None
    # The first column is summed up last, with the second beside it
    for j in (0,) if data.crossed is None else (1, 0):
        limits = {coupling: Dependence.of(degree, j) for coupling, degree in shared.items()}
        columns = [each for _, each in agreements if isinstance(each, Agreement)]
        if data.crossed is not None:
            facts |= {"name": data.cluster_names[j], "beside": summary}
            clusters = (data.clusters, data.crossed)[j]
            columns = [Agreement.of(replace(data, clusters=clusters, crossed=None))]
        summary = _summary(columns, limits, facts)
    assert summary is not None
    warn_of_few([summary], stack + 1)
    return tuple(schemes.values()), summary


def _admitted(null: object, data: Predictions, stack: int) -> Scheme:
    """Return the scheme that was asked for; refuse one that these clusters cannot have."""
    scheme = SharedRedraws() if isinstance(null, str) and null == "auto" else null
    if data.horizon is not None and not isinstance(scheme, SharedRedraws):
        raise StatisticError(
            f"null={null!r} takes rows for independent, but forecasts {data.horizon} steps ahead "
            "overlap: use null='auto', or EValue() with null='betting'"
        )
    if not isinstance(scheme, Scheme) or not scheme.takes_clusters:
        raise StatisticError(
            f"null={null!r} takes rows for independent, but they come in clusters: use "
            f"null='auto'{', or OneRowPerCluster()' * (data.crossed is None)}",
            [("--null", "auto")],
        )
    if data.crossed is not None and not isinstance(scheme, SharedRedraws):
        raise StatisticError(f"{scheme!r} does not take two columns of clusters: use null='auto'")
    assert data.clusters is not None
    sizes = np.unique(data.clusters, return_counts=True)[1]
    if isinstance(scheme, WildSigns) and sizes.size < MANY:
        _say(f"{sizes.size} clusters are few for random signs: below {MANY} use null='auto'", stack)
    shared = isinstance(scheme, SharedRedraws) and data.horizon is None
    if shared and sizes.size < FEWEST:
        raise StatisticError(
            f"too few clusters ({sizes.size}) to tell how much their rows depend on each other: "
            "test with null=OneRowPerCluster()",
            [("test", "--null", "OneRowPerCluster()")],
        )
    return scheme


def _summary(
    agreements: Sequence[Agreement], limits: Mapping[Coupling, Dependence], facts: Fields
) -> ClusterSummary:
    """Say what was learnt of a column of clusters, of each coupling or of the labels."""
    data, sizes, cluster = agreements[0].data, agreements[0].counts, agreements[0].cluster
    overall = {coupling: limit.overall for coupling, limit in limits.items()}
    effective = []
    for agreement in agreements:
        # Of two columns labels stand for what rows share, with the larger λ
        single = len(agreements) == 1
        degree = max(overall.values(), default=0.0) if single else overall[agreement.coupling]
        variance, joint = agreement.sums
        spread = variance + degree * joint
        effective.append(float(spread.sum() ** 2 / max((spread**2).sum(), 1e-300)))
    # The rarer label is any but the commonest class: of how many clusters is it to be expected?
    commonest = data.probs[:, data.probs.mean(axis=0).argmax()]
    return ClusterSummary(
        count=sizes.size,
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        effective=min(effective),
        shared=float((1.0 - np.bincount(cluster, commonest) / sizes).sum()),
        dependence=overall.get("label"),
        correctness=overall.get("correctness"),
        in_parts=max((limit.largest for limit in limits.values()), default=0.0),
        size_effect=max((each.size_effect() for each in agreements), key=abs),
        **facts,
    )


def warn_of_few(summaries: Sequence[ClusterSummary], level: int) -> None:
    """Warn of the fewest clusters of several tests; ``level`` as in ``warnings.warn``."""
    summaries = [each for summary in summaries for each in summary.along]
    fewest = min(summaries, key=lambda summary: summary.effective)
    shared = min(summary.shared for summary in summaries)
    if fewest.effective < FEW:
        _say(
            f"{fewest.count} clusters are as informative as {fewest.effective:.1f} of equal "
            "weight: the test keeps its level, but has little power",
            level,
        )
    if shared < FEW:
        remedy = "test with null=OneRowPerCluster() (caltest test --null 'OneRowPerCluster()')"
        if summaries[0].name:
            remedy = "test rows of which no two share a cluster of either column"
        _say(
            f"if all rows of a cluster had the same label, only {shared:.1f} clusters would be "
            "expected to have the rarer one, too few to test with; the test is valid where each "
            f"row follows its own prediction, else {remedy}",
            level,
        )


def _say(words: str, level: int) -> None:
    warnings.warn(words, FewClustersWarning, stacklevel=level)
