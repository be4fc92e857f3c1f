"""Dask data frames: the same bits as from the rows, whatever the partitions and the workers."""

import os
import signal

import numpy as np
import pytest

import caltest as ct
from caltest.tallies import tally as reading

dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")


def frame(n=5000):
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 0.6, n)
    return pd.DataFrame({"id": np.arange(n), "p": p, "y": (rng.random(n) < p).astype(int)})


@pytest.mark.parametrize("partitions", [1, 3, 8, 13])
def test_same_bits_for_any_partitioning(partitions):
    rows = frame()
    found = ct.Tally.from_dask(dd.from_pandas(rows, npartitions=partitions))
    assert found == ct.Tally.of(rows.p, rows.y)


def test_weights_classes_and_empty_partitions():
    rows = frame(300).assign(w=np.tile([1.0, 2.0, 4.0], 100))
    lazy = dd.from_pandas(rows, npartitions=6)
    expected = ct.Tally.of(rows.p, rows.y, weights=rows.w)
    assert ct.Tally.from_dask(lazy, "p", "y", weights="w") == expected
    some = rows[rows.id < 100]
    assert ct.Tally.from_dask(lazy[lazy.id < 100], "p", "y") == ct.Tally.of(some.p, some.y)


@pytest.mark.slow
def test_on_processes_of_which_one_is_killed():
    rows = frame(20_000)

    def slowly(part):
        import time

        time.sleep(0.2)
        return part

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as own,
        distributed.Client(own) as client,
    ):
        lazy = dd.from_pandas(rows, npartitions=16).map_partitions(slowly, meta=rows.iloc[:0])
        pids = client.run(os.getpid)
        client.loop.call_later(1.0, lambda: os.kill(next(iter(pids.values())), signal.SIGKILL))
        found = ct.Tally.from_dask(lazy, "p", "y")
    assert found == ct.Tally.of(rows.p, rows.y)


def test_what_a_frame_cannot_say(monkeypatch):
    lazy = dd.from_pandas(frame(100).assign(w=1.0), npartitions=2)
    with pytest.raises(
        ct.InvalidPredictionsError, match=r"caltest does not recognise a column name as the label"
    ):
        ct.Tally.from_dask(lazy[["id", "p"]])
    with pytest.raises(ct.InvalidPredictionsError, match=r"Series.*pass what compute\(\) returns"):
        ct.audit(lazy.p, lazy.y)
    lazy = lazy.assign(p=lazy.p.where(lazy.id != 77, 1.5))
    with pytest.raises(ct.InvalidPredictionsError, match=r"partition 1: .*row 28"):
        ct.Tally.from_dask(lazy, "p", "y")
    monkeypatch.setattr(reading, "ROWS_FIRST_READ", 20)
    with pytest.raises(ct.InvalidPredictionsError, match=r"partition 1: .*row 28"):
        ct.Tally.from_dask(lazy, "p", "y")


@pytest.mark.slow
def test_numbers_of_32_bits_do_not_depend_on_partitions():
    for kind in ("f4", "f8"):
        p = np.tile([0.3, 0.7, 1 / 3, 0.1, 1 - 0.7], 30).astype(kind)
        rows = pd.DataFrame({"p": p, "y": [0, 1] * 75})
        found = [ct.Tally.from_dask(dd.from_pandas(rows, npartitions=n)) for n in (1, 4, 150)]
        assert found[0] == found[1] == found[2]


def test_more_than_two_classes():
    data = ct.examples.digits("overfit")
    columns = {f"p_{k}": data.probs[:, k] for k in range(10)}
    lazy = dd.from_pandas(pd.DataFrame({**columns, "label": data.labels}), npartitions=7)
    expected = ct.Tallies.of(data.probs, data.labels)
    assert ct.Tallies.from_dask(lazy) == expected  # whose trees are fitted to all 900 rows, too
    assert ct.Tally.from_dask(lazy) == ct.Tallies.from_dask(lazy, lenses=[ct.TopK(1)]).through(None)
    run = {"n_resamples": 399, "rng": 1}
    tallies = ct.Tallies.from_dask(lazy)
    found = [row.pvalue for row in ct.audit(tallies, **run).rows]
    assert found == [row.pvalue for row in ct.audit(expected, **run).rows]
    pairs = [(ct.ECE(), None), (ct.ECE(), ct.OneVsRest(3))]
    assert ct.joint_test(tallies, pairs=pairs).pvalue == ct.joint_test(expected, pairs=pairs).pvalue
