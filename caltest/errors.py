"""What can go wrong, by name."""


class InvalidPredictionsError(ValueError):
    """Probabilities or labels that cannot be tested; the message says where and what to do."""


class StatisticError(ValueError):
    """A statistic, lens or null that does not fit the data it was asked about."""


class SparseBinsWarning(UserWarning):
    """Consistency resampling was asked for with too few predictions in a bin to be valid."""


class FewClustersWarning(UserWarning):
    """There are so few clusters, or rare labels in them, that a test says little or may fail."""


class DegenerateDataWarning(UserWarning):
    """The null distribution is a single value, so the test can say nothing."""


class LimitLawWarning(UserWarning):
    """A limit law was asked for in data in which it is known to reject calibrated models."""
