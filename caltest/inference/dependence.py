"""Tests of rows in clusters: which null answers, how strong the dependence is, what to refuse."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from caltest.errors import FewClustersWarning, StatisticError
from caltest.inference.series import summary_of
from caltest.predictions import FloatArray, Predictions
from caltest.results import ClusterSummary, HorizonSummary
from caltest.simulate import Scheme, SharedRedraws, WildSigns
from caltest.simulate.agreement import Agreement
from caltest.simulate.crossed import CrossedAgreement, Pair, is_pair, limits_of
from caltest.simulate.dependent import COUPLINGS, Dependence
from caltest.simulate.series import Overlap

#: Clusters below which dependence cannot be told from chance.
FEWEST = 5
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
    null: Any, data: Predictions, stack: int
) -> tuple[tuple[Coupled, ...], ClusterSummary | HorizonSummary | None]:
    """Return the schemes whose largest p-value counts, and what was learnt of the clusters."""
    scheme = SharedRedraws() if isinstance(null, str) and null == "auto" else null
    if data.horizon is not None and not isinstance(scheme, SharedRedraws):
        raise StatisticError(
            f"null={null!r} takes rows for independent, but forecasts {data.horizon} steps ahead "
            "overlap: use null='auto', or EValue() with null='betting'"
        )
    if not isinstance(scheme, Scheme) or not scheme.takes_clusters:
        raise StatisticError(
            f"null={null!r} takes rows for independent, but they come in clusters: use "
            "null='auto', or OneRowPerCluster()"
        )
    if data.horizon is not None and isinstance(scheme, SharedRedraws):
        return _in_series(scheme, data)
    if data.crossed is not None:
        if not isinstance(scheme, SharedRedraws):
            raise StatisticError(
                f"{scheme!r} does not take two columns of clusters: use null='auto'"
            )
        return _of_two(scheme, data, stack)
    assert data.clusters is not None
    sizes = np.unique(data.clusters, return_counts=True)[1]
    if isinstance(scheme, WildSigns) and sizes.size < MANY:
        _say(f"{sizes.size} clusters are few for random signs: below {MANY} use null='auto'", stack)
    if not isinstance(scheme, SharedRedraws):
        return (Coupled(scheme),), None
    if sizes.size < FEWEST:
        raise StatisticError(
            f"too few clusters ({sizes.size}) to tell how much their rows depend on each other: "
            "test with null=OneRowPerCluster() (caltest test --null 'OneRowPerCluster()')"
        )
    schemes, limits, effective, size_effects = [], {}, [], []
    for each in scheme.each(data):
        coupling, given = each.coupling or "label", each.dependence
        if isinstance(coupling, tuple) or (
            isinstance(given, tuple) and not isinstance(given, Dependence)
        ):
            raise StatisticError(f"{each!r} is for two columns of clusters")
        agreement = Agreement.of(data, coupling)
        limit = agreement.limits() if given is None else Dependence.of(given)
        variance, joint = agreement.sums()
        agreed = float(agreement(data.labels[None, :], centred=False)[0, 0])
        kappa = inflation(variance, joint, agreed)
        schemes.append(Coupled(replace(each, dependence=limit), kappa))
        spread = variance + limit.overall * joint
        effective.append(float(spread.sum() ** 2 / max((spread**2).sum(), 1e-300)))
        limits[agreement.coupling] = limit
        size_effects.append(agreement.size_effect())
    commonest = data.probs[:, data.probs.mean(axis=0).argmax()]
    shared = (1.0 - np.bincount(agreement.cluster, commonest) / agreement.counts).sum()
    label, correctness = limits.get("label"), limits.get("correctness")
    summary = ClusterSummary(
        count=sizes.size,
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        effective=min(effective),
        shared=float(shared),
        dependence=None if label is None else label.overall,
        correctness=None if correctness is None else correctness.overall,
        in_parts=max(limit.largest for limit in limits.values()),
        estimated=scheme.dependence is None,
        inflation=max(each.inflation for each in schemes),
        size_effect=max(size_effects, key=abs),
    )
    warn_of_few([summary], stack + 1)
    return tuple(schemes), summary


def _of_two(
    scheme: SharedRedraws, data: Predictions, stack: int
) -> tuple[tuple[Coupled, ...], ClusterSummary]:
    """Return redraws with the dependence of two columns of clusters, and what was learnt."""
    agreements = {coupling: CrossedAgreement.of(data, coupling) for coupling in COUPLINGS}
    schemes: dict[object, Coupled] = {}
    degrees: dict[str, Pair] = {}
    for each in scheme.each(data):
        assert isinstance(each.coupling, tuple)
        a, b = (agreements[coupling] for coupling in each.coupling)
        if each.dependence is not None and not is_pair(each.dependence):
            raise StatisticError("dependence of two columns of clusters is a pair (λ₁, λ₂)")
        limits = each.dependence if is_pair(each.dependence) else limits_of(a, b)
        kappa = max(column.inflation(limits) for column in (a, b))
        law = (each.coupling, limits) if sum(limits) > 0.0 else kappa  # without λ all draw alike
        schemes[law] = Coupled(replace(each, dependence=limits), kappa)
        if a is b:
            degrees[each.coupling[0]] = limits
    commonest = data.probs[:, data.probs.mean(axis=0).argmax()]
    summary: ClusterSummary | None = None
    for j in (1, 0):
        column = agreements["label"].columns[j]
        dependence = {c: pair[j] for c, pair in degrees.items()}
        (variance, joint), sizes = column.sums(), column.counts
        spread = variance + max(dependence.values(), default=0.0) * joint
        summary = ClusterSummary(
            count=sizes.size,
            smallest=int(sizes.min()),
            largest=int(sizes.max()),
            effective=float(spread.sum() ** 2 / max((spread**2).sum(), 1e-300)),
            shared=float((1.0 - np.bincount(column.cluster, commonest) / sizes).sum()),
            dependence=dependence.get("label"),
            correctness=dependence.get("correctness"),
            in_parts=max(dependence.values(), default=0.0),
            estimated=scheme.dependence is None,
            inflation=max(each.inflation for each in schemes.values()),
            size_effect=column.size_effect(),
            name=data.cluster_names[j],
            beside=summary,
        )
    assert summary is not None
    warn_of_few([summary], stack + 1)
    return tuple(schemes.values()), summary


def _in_series(
    scheme: SharedRedraws, data: Predictions
) -> tuple[tuple[Coupled, ...], HorizonSummary]:
    """Return redraws in blocks that begin anywhere, at the limit of the dependence."""
    summary = summary_of(data)
    assert summary is not None
    schemes, limits = [], {}
    for each in scheme.each(data):
        coupling, given = each.coupling or "label", each.dependence
        assert not isinstance(coupling, tuple)
        limit = given if isinstance(given, (int, float)) else Overlap.of(data, coupling).limit()
        schemes.append(Coupled(replace(each, dependence=limit)))
        limits[coupling] = limit
    label, correctness = limits.get("label"), limits.get("correctness")
    summary = replace(
        summary, dependence=label, correctness=correctness, estimated=scheme.dependence is None
    )
    return tuple(schemes), summary


def inflation(variance: FloatArray, joint: FloatArray, agreed: float) -> float:
    """Return κ, by how much labels agree more than a redraw allows; 1 where nothing can vary."""
    allowed = float((variance + joint).sum())
    return max(1.0, (float(variance.sum()) + agreed) / allowed) if allowed > 1e-9 else 1.0


def warn_of_few(summaries: Sequence[ClusterSummary], level: int) -> None:
    """Warn of the fewest clusters of several tests; ``level`` as in ``warnings.warn``."""
    summaries = [each for summary in summaries for each in summary.along]
    fewest = min(summaries, key=lambda summary: summary.effective)
    shared = min(summary.shared for summary in summaries)
    if fewest.effective < FEW:
        _say(
            f"{fewest.count} clusters weigh as much as {fewest.effective:.1f} equal ones: the "
            "test keeps its level, but has little power",
            level,
        )
    if shared < FEW:
        _say(
            f"if all rows of a cluster had the same label, only {shared:.1f} clusters would be "
            "expected to have the rarer one, too few to test with; the test is valid where each "
            "row follows its own prediction, else test with null=OneRowPerCluster() "
            "(caltest test --null 'OneRowPerCluster()')",
            level,
        )


def _say(words: str, level: int) -> None:
    warnings.warn(words, FewClustersWarning, stacklevel=level)
