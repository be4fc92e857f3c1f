"""What is printed: on narrow terminals, in ASCII, and with names that would steer a terminal."""

import io
import sys

import numpy as np
import pytest
from rich.console import Console

import caltest as ct
from caltest import cli
from caltest.errors import printable

ESCAPED = "\x1b[31mred\x1b[0m", "b\x07e\x9dl\u202el"


def multiclass():
    """Return an audit with several tests in a row."""
    return ct.audit(ct.examples.digits("overfit"), n_resamples=199, rng=0)


def impossible():
    """Return an audit with the longest finding: an outcome of probability 0."""
    probs = np.tile([[0.0, 1.0], [0.4, 0.6], [0.7, 0.3]], (20, 1))
    return ct.audit(probs, np.arange(60) % 2, n_resamples=199, rng=0)


def little():
    """Return an audit of very little data."""
    return ct.audit([0.2, 0.6, 0.7, 0.4], [0, 1, 1, 0], n_resamples=199, rng=0)


REPORTS = [make() for make in (multiclass, impossible, little)]


@pytest.mark.parametrize("report", REPORTS, ids=["multiclass", "impossible", "little"])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_a_narrow_table_loses_columns_but_no_finding(report, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(report)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    table = text[text.index("lens") : text.index("Verdict:")]
    assert "…" not in table.replace("0…9", "")
    header, *lines = table.splitlines()
    for row in report.rows:
        (at,) = (j for j, line in enumerate(lines) if f"{line}  ".startswith(f"{row.lens}  "))
        rest = " ".join([lines[at], *(line for line in lines[at + 1 :] if line[:1] == " ")])
        finding = row.verdict.replace(" (impossible outcome)", "*")
        assert all(word in rest.split() for word in finding.split())
        for name, shown in (("error", row.shown[0]), ("adjusted", f"{row.adjusted:.3f}")):
            if name in header and row.adjusted >= 0.01:
                assert shown in lines[at]
    worst, floor, error = (name in header for name in ("shown", "noise floor", "error"))
    assert worst <= floor <= error
    # An error or z of several tests is never shown without a word about which it is.
    assert ("Shown: the test of smallest p" in " ".join(text.split())) == error


def test_names_cannot_steer_the_terminal():
    red, bell = map(printable, ESCAPED)
    assert (red, bell) == ("red", "bell")
    p = np.linspace(0.1, 0.88, 40)
    labels = np.array(ESCAPED)[np.arange(40) % 2]
    data = ct.Predictions.of(p, labels, classes=ESCAPED)
    shown = [
        str(ct.audit(data, n_resamples=199, rng=0)),
        str(ct.compare_models({ESCAPED[0]: data, ESCAPED[1]: data}, n_resamples=99)),
        ct.reliability_curve(data, lens=ct.OneVsRest(1)).to_json(),
        str(ct.calibration_test(data, lens=ct.OneVsRest(ESCAPED[0]))),
    ]
    assert all(line.isprintable() for text in shown for line in text.splitlines())
    assert "bell" in shown[0]
    assert "red − bell" in shown[1] or "bell − red" in shown[1]
    with pytest.raises(ct.StatisticError, match=r"\(red, bell\)"):
        ct.OneVsRest("nobody")(data)


def test_dollars_in_names_are_text_in_pictures():
    from matplotlib.text import Text

    rng = np.random.default_rng(0)
    names = ["a$b$", r"$\frac$", "c$"]
    data = ct.Predictions.of(rng.dirichlet([1, 1, 1], 90), np.arange(90) % 3, classes=names)
    whole = {"lens": ct.Canonical(), "n_resamples": 19, "rng": 0}
    results = [
        ct.reliability_curve(data, **whole),
        ct.reliability_curve(data, lens=ct.OneVsRest(names[1])),
        ct.reliability_simplex(data, **whole),
        ct.compare_models(dict.fromkeys(names, data), n_resamples=19, rng=0),
        ct.calibration_test(data, lens=ct.OneVsRest(names[1])),
        ct.audit(data, n_resamples=199, rng=0),
    ]
    for result in results:
        figure = result.plot().figure
        figure.canvas.draw()  # wrong mathematics would raise
        texts = [text for text in figure.findobj(Text) if "$" in text.get_text()]
        assert not [text.get_text() for text in texts if text.get_parse_math()]


def test_an_ascii_terminal_gets_ascii(tmp_path, monkeypatch):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    path = tmp_path / "f.csv"
    rows = [f"{i / 40:.3f},{'né'[i % 2]}\n" for i in range(40)]
    path.write_text("p,label\n" + "".join(rows), encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        cli.main(["audit", str(path), "--classes", "n,é", "--n-resamples", "199"])
    assert stop.value.code == 0
    with pytest.raises(SystemExit):
        cli.main(["test", str(path), "--lens", "TopK(1 − 1)"])
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode("ascii") for stream in streams)
    assert all(words in out for words in ("+/-", r"P(\xe9)"))
    assert "TopK(1 - 1)" in err
