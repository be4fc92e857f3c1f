"""Dask data frames: the same bits as from the rows, whatever the partitions and the workers."""

import os
import signal

import numpy as np
import pytest

import caltest as ct

dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
]


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
    kept = lazy[lazy.id < 100]
    assert ct.Tally.from_dask(kept, "p", "y") == ct.Tally.of(some.p, some.y)


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
