"""Cumulative errors: published values, slow twins, enumeration, the Brownian laws, size."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from numpy.testing import assert_allclose

import caltest as ct
from caltest.nulls import Batches, RedrawLabels
from caltest.nulls.laws import BrownianNull
from caltest.statistics.cumulative import KolmogorovSmirnov, Kuiper
from caltest.statistics.prepared import problem_of

BOTH = [KolmogorovSmirnov, Kuiper]


def redraws(batch, data):
    """Replicates of a function of label vectors, by seed, first number and count."""
    return Batches(RedrawLabels().drawer(data), data.n, batch).replicates


#: x, P(max|W| ≥ x), P(range ≥ x): 60 digits by mpmath, from both series where both converge.
TAILS = np.array(
    [
        (0.2, 0.99999999999994869, 1.0),
        (0.5, 0.99084300971023924, 0.99999991222227752),
        (0.7, 0.89732552681932565, 0.99927531913797566),
        (0.9, 0.72238619627208401, 0.97584610921348971),
        (0.999, 0.63013754500869793, 0.93714454010562912),
        (1.0, 0.62922257020047609, 0.93663541207954943),
        (1.001, 0.62830808537658995, 0.93612391410567961),
        (1.25, 0.42224542634752318, 0.74795639432446519),
        (1.5, 0.26721521438306098, 0.51294075423024825),
        (2.0, 0.091000523846366249, 0.18149433939418731),
        (3.0, 0.0053995921265203777, 0.010799168467638438),
        (5.0, 1.1466062875167756e-6, 2.2932125750335512e-6),
        (8.0, 2.4883842297087136e-15, 4.9767684594174273e-15),
        (12.0, 7.105928448310716e-33, 1.4211856896621432e-32),
        (20.0, 1.1014496474424935e-88, 2.202899294884987e-88),
        (30.0, 1.9626855708592748e-197, 3.9253711417185496e-197),
        (37.0, 2.2902284890098307e-299, 4.5804569780196615e-299),
    ]
)
LAWS = [BrownianNull("maximum"), BrownianNull("range")]


def cdf(law):
    return lambda x: np.array([1 - law.sf(v) for v in x])


@pytest.mark.parametrize("which", [0, 1])
def test_tails_far_out(which):
    law = LAWS[which]
    assert_allclose([law.sf(x) for x in TAILS[:, 0]], TAILS[:, 1 + which], rtol=2e-13)
    assert [law.sf(x) for x in (-1.0, 0.0, 1e-300, 100.0)] == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("which", "critical"),
    # 10, 5 and 1 % points of max |W| and of the range: roots of the laws' series, by other code
    [(0, [1.959964, 2.241403, 2.807034]), (1, [2.241175, 2.497672, 3.023341])],
)
def test_quantiles(which, critical):
    law = LAWS[which]
    assert_allclose([law.ppf(q) for q in (0.9, 0.95, 0.99)], critical, atol=1e-6)
    for q in (1e-6, 0.3, 0.999999):
        assert 1 - law.sf(law.ppf(q)) == pytest.approx(q, rel=1e-9)


@pytest.mark.parametrize("which", [0, 1])
def test_moments_are_integrals_of_the_tail(which):
    law = LAWS[which]
    x = np.linspace(0, 10, 5001)
    tail = np.array([law.sf(v) for v in x])
    mean = scipy.integrate.simpson(tail, x=x)
    square = scipy.integrate.simpson(2 * x * tail, x=x)
    assert (law.mean(), law.std()) == pytest.approx((mean, np.sqrt(square - mean**2)), abs=1e-9)


def test_scaled_law():
    law = BrownianNull("range", 0.25)
    assert law.sf(0.5) == LAWS[1].sf(2.0)
    scaled, unscaled = (np.array([x.mean(), x.std(), x.ppf(0.9)]) for x in (law, LAWS[1]))
    assert_allclose(scaled, unscaled / 4)
    assert scipy.stats.kstest(law.rvs(20_000, rng=1)[:4000], cdf(law)).pvalue > 1e-3
    none = BrownianNull("maximum", 0.0)
    assert (none.mean(), none.std(), none.sf(0.0), none.sf(0.1)) == (0.0, 0.0, 1.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
def test_limit_of_random_walks(which):
    p = np.random.default_rng(8).random(20_000)
    data = ct.Predictions(np.column_stack([p, 1 - p]), np.zeros(p.size, np.int64))
    fixed = BOTH[which]().prepare(problem_of(data))
    values = redraws(fixed.batch, data)((1, 1), 0, 2000)
    assert scipy.stats.kstest(values, cdf(fixed.laws["asymptotic"](data.labels))).pvalue > 1e-3
