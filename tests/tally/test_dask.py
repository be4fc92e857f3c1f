"""Dask data frames: the same bits as from the rows, whatever the partitions and the workers."""

import os
import signal

import numpy as np
import pytest

import caltest as ct
from caltest import cli
from caltest.tally import reading

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


def test_verbs_name_what_tallies_a_frame():
    lazy = dd.from_pandas(frame(100).assign(w=1.0), npartitions=2)
    for verb in (ct.audit, ct.calibration_test, ct.confidence_interval, ct.report):
        with pytest.raises(
            ct.InvalidPredictionsError, match=r"compute\(\) returns, or tally it by"
        ):
            verb(lazy, "y")


def test_what_a_frame_cannot_say(monkeypatch):
    lazy = dd.from_pandas(frame(100).assign(w=1.0), npartitions=2)
    with pytest.raises(ct.InvalidPredictionsError, match=r"no labels found.*label="):
        ct.Tally.from_dask(lazy[["id", "p"]])
    with pytest.raises(ct.InvalidPredictionsError, match=r"Series.*pass what compute\(\) returns"):
        ct.audit(lazy.p, lazy.y)
    lazy = lazy.assign(p=lazy.p.where(lazy.id != 77, 1.5))
    with pytest.raises(ct.InvalidPredictionsError, match=r"first rows: .*row 78"):
        ct.Tally.from_dask(lazy, "p", "y")
    monkeypatch.setattr(reading, "FIRST", 20)
    with pytest.raises(ct.InvalidPredictionsError, match=r"partition 1: .*row 28"):
        ct.Tally.from_dask(lazy, "p", "y")


def test_numbers_of_32_bits_do_not_depend_on_partitions():
    for kind in ("f4", "f8"):
        p = np.tile([0.3, 0.7, 1 / 3, 0.1, 1 - 0.7], 30).astype(kind)
        rows = pd.DataFrame({"p": p, "y": [0, 1] * 75})
        found = [ct.Tally.from_dask(dd.from_pandas(rows, npartitions=n)) for n in (1, 4, 150)]
        assert found[0] == found[1] == found[2]


@pytest.fixture
def parts(tmp_path):
    rows = frame(2000)
    for j in range(40):
        rows.iloc[50 * j : 50 * j + 50].to_parquet(tmp_path / f"part-{j:02d}.parquet")
    return tmp_path


@pytest.mark.slow
def test_files_by_workers(parts, capsys):
    rows, pattern = frame(2000), str(parts / "part-*.parquet")
    expected = ct.Tally.of(rows.p, rows.y)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as own,
        distributed.Client(own) as client,
    ):
        address = own.scheduler_address
        assert ct.scan(pattern, scheduler=client) == expected
        assert ct.scan(pattern, scheduler=address).notes == (
            "read 2000 rows of 40 files, columns y, p",
        )
        state = parts / "state"
        good = (parts / "part-33.parquet").read_bytes()
        (parts / "part-33.parquet").write_bytes(good[:900] + b"x" * 500)
        with pytest.raises(ct.InvalidPredictionsError, match=r"part-33.*Counted before"):
            ct.scan(pattern, scheduler=address, resume=state)
        (parts / "part-33.parquet").write_bytes(good)
        kept = ct.scan(pattern, scheduler=address, resume=state)
        assert kept == expected == ct.scan(pattern, resume=state)
        with pytest.raises(SystemExit) as stop:
            cli.main(["test", pattern, "--scheduler", address])
        assert stop.value.code == 0
        assert "read 2000 rows of 40 files" in capsys.readouterr().out
        pids = client.run(os.getpid)
        client.loop.call_later(0.05, lambda: os.kill(next(iter(pids.values())), signal.SIGKILL))
        for _ in range(3):
            assert ct.scan(pattern, scheduler=client) == expected


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["processes", "threads"])
def test_workers_of_this_machine(parts, scheduler):
    before = distributed.client._global_clients.copy()
    found = ct.scan(parts / "part-*.parquet", scheduler=scheduler)
    assert found == ct.scan(parts / "part-*.parquet")
    assert distributed.client._global_clients == before
    data = ct.examples.digits("overfit")
    columns = {f"p_{k}": data.probs[:, k] for k in range(10)}
    rows = pd.DataFrame({**columns, "label": data.labels})
    for j in range(3):  # cells of whole vectors are those of the first 300 rows, for all workers
        rows.iloc[300 * j : 300 * j + 300].to_parquet(parts / f"many-{j}.parquet")
    many = parts / "many-*.parquet"
    assert ct.scan(many, scheduler=scheduler) == ct.scan(many)


def test_what_is_no_scheduler(parts):
    with pytest.raises(ct.StatisticError, match="give an address such as"):
        ct.scan(parts / "part-*.parquet", scheduler="process")


def test_more_than_two_classes():
    data = ct.examples.digits("overfit")
    columns = {f"p_{k}": data.probs[:, k] for k in range(10)}
    lazy = dd.from_pandas(pd.DataFrame({**columns, "label": data.labels}), npartitions=7)
    expected = ct.Tallies.of(data.probs, data.labels, classes=[*range(10)])
    assert ct.Tallies.from_dask(lazy) == expected  # whose trees are fitted to all 900 rows, too
    top = ct.Tally.from_dask(lazy)
    assert top == ct.Tallies.from_dask(lazy, lenses=[ct.TopK(1)]).through(None)
    run = {"n_resamples": 399, "rng": 1}
    tallies = ct.Tallies.from_dask(lazy)
    found = [row.pvalue for row in ct.audit(tallies, **run).rows]
    assert found == [row.pvalue for row in ct.audit(expected, **run).rows]
    pairs = [(ct.ECE(), None), (ct.ECE(), ct.OneVsRest(3))]
    assert ct.joint_test(tallies, pairs=pairs).pvalue == ct.joint_test(expected, pairs=pairs).pvalue
