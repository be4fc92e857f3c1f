"""Tables and tensors of other libraries give what the same numbers give as arrays."""

import numpy as np
import pytest

import caltest as ct
from caltest.data import Predictions
from caltest.errors import InvalidPredictionsError
from caltest.read.arguments import read_arguments

NAMES = ["cat", "dog", "owl"]
PROBS = np.array([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25], [0.125, 0.125, 0.75], [0.5, 0.5, 0.0]])
LABELS = [0, 1, 2, 0]
TEXT = [NAMES[label] for label in LABELS]
COLUMNS = {f"p_{name}": PROBS[:, j].tolist() for j, name in enumerate(NAMES)}
WHOLE = {**COLUMNS, "truth": TEXT, "site": ["a", "a", "b", "b"]}


def from_pandas(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def from_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def from_arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def from_duckdb(columns):
    duckdb, table = pytest.importorskip("duckdb"), from_arrow(columns)
    return duckdb.from_arrow(table)


def from_datasets(columns):
    return pytest.importorskip("datasets").Dataset.from_dict(columns)


#: How each library makes a table of columns.
TABLES = [dict, from_pandas, from_polars, from_arrow, from_duckdb, from_datasets]


@pytest.fixture(params=TABLES, ids=lambda make: make.__name__)
def table(request):
    return request.param


def same(data, **facts):
    np.testing.assert_array_equal(data.probs, PROBS)
    np.testing.assert_array_equal(data.labels, LABELS)
    for fact, values in facts.items():
        np.testing.assert_array_equal(getattr(data, fact), values)


def test_labels_and_facts_are_columns_by_their_names(table):
    data = read_arguments(table(WHOLE), "truth", clusters="site")
    same(data, clusters=[0, 0, 1, 1])
    assert data.classes == tuple(NAMES)
    assert data.notes == (
        "read 4 rows, 3 classes from p_cat, p_dog, p_owl, label truth, clusters from site",
    )
    same(read_arguments(table(WHOLE)))  # as in a file, names say the rest


def test_predictions_of_arrays_refuse_a_table_and_name_the_reader(table):
    with pytest.raises(InvalidPredictionsError, match=r"read_predictions\(table, label='truth'\)"):
        Predictions.of(table(WHOLE), "truth")
    same(ct.read_predictions(table(WHOLE), label="truth", by="site"), by=list("aabb"))


def test_options_that_leave_rows_out_are_those_of_the_reader():
    with pytest.raises(TypeError, match=r"read_predictions\(table, …\) and the tests leave rows"):
        Predictions.of([0.5, np.nan], [0, 1], drop_missing=True)


def test_labels_beside_the_table_and_columns_of_whole_rows(table):
    same(read_arguments(table(COLUMNS), np.array(TEXT), by=WHOLE["site"]), by=list("aabb"))
    same(read_arguments(table({"p": PROBS.tolist(), "y": LABELS}), "y"))
    probs = COLUMNS if table in (from_duckdb, dict) else table(COLUMNS)
    same(read_arguments(probs, table({"y": TEXT})))


def test_a_wrong_column_is_named(table):
    with pytest.raises(
        InvalidPredictionsError, match="there is no column 'y': the columns are p_cat"
    ):
        read_arguments(table(WHOLE), "y")
    columns = {"p_cat": PROBS[:, 0].tolist(), "p_dog": ["x", *PROBS[1:, 1].tolist()], "y": LABELS}
    with pytest.raises(
        InvalidPredictionsError, match="p_dog is 'x' in row 0, which is not a number"
    ):
        read_arguments(table(columns | {"p_dog": [str(v) for v in columns["p_dog"]]}), "y")


def test_a_missing_value_is_found(table):
    made = table({"p": [0.25, None, 0.5], "y": [0, 1, 1]})
    with pytest.raises(InvalidPredictionsError, match="p has no value in row 1"):
        read_arguments(made, "y")
    data = read_arguments(made, "y", drop_missing=True)
    np.testing.assert_array_equal(data.probs[:, 1], [0.25, 0.5])
    assert data.notes[1] == "left out 1 row without a value: p in 1"


def test_comparisons_take_tables():
    rng = np.random.default_rng(6)
    p, q, labels = rng.random(60), rng.random(60), rng.integers(0, 2, 60)
    expected = ct.compare(p, q, labels)
    pandas = pytest.importorskip("pandas")
    a, b = (pandas.DataFrame({"p": column, "y": labels}) for column in (p, q))
    assert ct.compare(a, b, "y").pvalue == expected.pvalue
    assert ct.compare_models({"A": a, "B": b}, "y").pairs[0].pvalue == expected.pvalue


def test_columns_say_which_class_they_are_of():
    pandas = pytest.importorskip("pandas")
    turned = pandas.DataFrame(PROBS[:, [2, 0, 1]], columns=[2, 0, 1])
    same(read_arguments(turned, LABELS))
    in_order = read_arguments(pandas.DataFrame(PROBS), LABELS)
    assert in_order.classes is None
    other = read_arguments(pandas.DataFrame(PROBS, columns=[7, 8, 9]), LABELS)
    assert other.classes == ("7", "8", "9")  # the labels are no such names, but their places
    with pytest.raises(InvalidPredictionsError, match="say which label each"):
        read_arguments(pandas.DataFrame(PROBS, columns=["p1", "p2", "p3"]), TEXT)
    headed = pandas.DataFrame({f"p_{name}": COLUMNS[f"p_{name}"] for name in NAMES[::-1]})
    assert read_arguments(headed, TEXT).classes == tuple(NAMES[::-1])


@pytest.mark.parametrize("fact", ["labels", "weights", "clusters", "by", "ids"])
def test_another_index_is_refused(fact):
    pandas = pytest.importorskip("pandas")
    probs = pandas.DataFrame(PROBS)
    given = {"labels": LABELS, fact: pandas.Series([1, 2, 0, 1], index=[0, 3, 1, 2])}
    message = rf"probs and {fact} have different indexes, first in row 1 \(1 and 3\).*{fact}.loc"
    with pytest.raises(InvalidPredictionsError, match=message):
        read_arguments(probs, given.pop("labels"), **given)
    given = {"labels": LABELS, fact: pandas.Series([1, 2, 1, 1])}
    assert read_arguments(probs, given.pop("labels"), **given).n == 4


def test_columns_may_have_any_name():
    """The columns of pandas are attributes, too, and no methods for it."""
    pandas = pytest.importorskip("pandas")
    odd = ["collect", "detach", "fetchnumpy", "with_format", "column_names", "dtype"]
    frame = pandas.DataFrame(np.eye(6), columns=odd)
    np.testing.assert_array_equal(read_arguments(frame, odd).labels, range(6))


def test_a_query_is_run():
    same(read_arguments(from_polars(WHOLE).lazy(), "truth"))


def test_rows_of_two_relations_have_no_order():
    relation = from_duckdb(WHOLE)
    with pytest.raises(InvalidPredictionsError, match=r"two relations.*labels as the name"):
        read_arguments(relation.project("p_cat, p_dog, p_owl"), relation.project("truth"))


def test_a_chosen_part_of_a_dataset_is_read_in_its_order():
    data = read_arguments(from_datasets(WHOLE).select([2, 0]), "truth", by="site")
    np.testing.assert_array_equal(data.probs, PROBS[[2, 0]])
    np.testing.assert_array_equal(data.labels, [2, 0])
    np.testing.assert_array_equal(data.by, ["b", "a"])


class OnDevice:
    """A tensor that is on another device and takes part in a gradient, as torch's behave."""

    dtype, detached, here = "torch.bfloat16", False, False

    def __init__(self, values):
        self.values = np.array(values)

    def _with(self, **state):
        made = type(self)(self.values)
        vars(made).update(vars(self), **state)
        return made

    def detach(self):
        return self._with(detached=True)

    def cpu(self):
        return self._with(here=True)

    def float(self):
        return self._with(dtype="torch.float32")

    def __array__(self, *args, **kwargs):
        if not (self.detached and self.here and self.dtype == "torch.float32"):
            raise TypeError("can't convert")
        return self.values


def test_tensors_come_from_any_device_and_of_any_type():
    same(read_arguments(OnDevice(PROBS), OnDevice(LABELS), ids=OnDevice(LABELS)))
    same(read_arguments([OnDevice(row) for row in PROBS], LABELS))
