"""The drivers of random calls and of faults: they see a fault, and find none in the first calls."""

from types import SimpleNamespace

import numpy as np
import pytest

import caltest as ct
from caltest._base.saving import FileStamp
from validation import faults, fuzz


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 20, 40])
def test_the_first_calls_end_well(start):
    fallen = [(n, fuzz.checked(n)[2]) for n in range(start, start + 20)]
    assert [entry for entry in fallen if entry[1]] == []


def test_a_call_is_the_same_in_every_run():
    assert fuzz.checked(7) == fuzz.checked(7)
    first, second = (fuzz.data_of(np.random.default_rng([1, 2])) for _ in range(2))
    assert fuzz.raw(first) == fuzz.raw(second)


class Answer(SimpleNamespace):
    def as_dict(self):
        return vars(self)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"pvalue": 0.0}, "pvalue is 0.0"), ({"low": 2.0, "high": 1.0}, "low 2.0 above high 1.0")],
)
def test_a_broken_promise_is_seen(fields, words):
    assert words in fuzz.promises(Answer(**fields))


@pytest.mark.parametrize("error", [ZeroDivisionError("0"), MemoryError(), KeyError("x")])
def test_another_exception_is_seen(error, monkeypatch):
    def broken(*args, **options):
        raise error

    number = next(n for n in range(200) if verb_of(n) == "brier_decomposition")
    monkeypatch.setattr(ct, "brier_decomposition", broken)
    assert type(error).__name__ in fuzz.checked(number)[2]


def verb_of(number):
    rng = np.random.default_rng([fuzz.SEED, number])
    fuzz.data_of(rng)
    return fuzz.call_of(rng)[0]


#: Calls that fell once: memory, a p-value of 0, casts of complex numbers, divisions by 0 or small.
FELL = (4390, 7542, 9176, 10442, 10743, 12073, 18707)


@pytest.mark.parametrize("number", FELL)
def test_calls_that_fell_once_end_well(number):
    assert fuzz.checked(number)[2] == ""


def test_a_run_goes_on_where_it_ended(tmp_path):
    fuzz.run(tmp_path / "fuzz.json", 3, 1.0)
    found = fuzz.run(tmp_path / "fuzz.json", 5, 1.0)
    assert found["calls"] == 5
    assert sum(sum(ended.values()) for ended in found["verbs"].values()) == 5


def test_states_know_the_times_of_the_data_from_the_first_run_on(tmp_path):
    faults.data(tmp_path)
    assert all(FileStamp.of(path).mtime_ns is not None for path in tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("subject", faults.SUBJECTS, ids=lambda s: s.name)
def test_a_stopped_command_leaves_whole_files(subject):
    calls = faults.calls_of(subject)
    for at in np.linspace(20, calls, 6).astype(int):
        for error in (KeyboardInterrupt, MemoryError):
            assert faults.stopped(subject, int(at), error) == ""
    assert faults.killed(subject, calls // 2) == ""
    assert faults.full(subject, 2, 28) == ("", True)
    assert faults.clock_back(subject) == ""


@pytest.mark.slow
def test_half_a_file_is_seen():
    subject = faults.SUBJECTS[2]
    faults.undisturbed_of(subject)
    wrong = faults.after(subject, lambda folder: (folder / subject.file).write_text("half"))
    assert wrong == "the file is neither the old nor the new one"
