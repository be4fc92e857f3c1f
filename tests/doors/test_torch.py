"""The metric of torchmetrics: what all rows at once give, whatever the batches, and no exception.

``NoTorch`` runs everywhere; the rest where torch and torchmetrics are installed.
"""

import copy
import pickle
import warnings

import numpy as np
import pytest

import caltest as ct
import caltest.torch as door
from caltest.errors import InvalidPredictionsError, StatisticError, UnmeasuredWarning
from caltest.torch import CalibrationMetric

RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet(np.ones(4), 90)
LABELS = np.array([RNG.choice(4, p=row) for row in PROBS])
BATCHES = [slice(0, 40), slice(40, 41), slice(41, 90)]
OF_THE_OTHER = "ignore:The ``compute`` method of metric CalibrationMetric:UserWarning"


def test_without_torchmetrics_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(door, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'caltest\[torch\]'"):
        CalibrationMetric()


torchmetrics = pytest.importorskip("torchmetrics")
torch = pytest.importorskip("torch")


def tensors(rows=slice(None)):
    return torch.tensor(PROBS[rows]), torch.tensor(LABELS[rows])


def filled(*args, batches=BATCHES, **options):
    metric = CalibrationMetric(*args, **options)
    for rows in batches:
        metric.update(*tensors(rows))
    return metric


@pytest.mark.parametrize("value", ["estimate", "null_mean", "null_std", "pvalue"])
@pytest.mark.parametrize("lens", [None, ct.OneVsRest(2), ct.Partition([[0, 1], [2, 3]])])
def test_batches_are_as_good_as_all_at_once(value, lens):
    test = ct.calibration_test(PROBS, LABELS, lens=lens)
    found = filled(value=value, lens=lens).compute()
    assert float(found) == pytest.approx(getattr(test, value), rel=1e-9)


@pytest.mark.parametrize("statistic", [ct.ECE(10), ct.Kuiper(), ct.CoxScore(), ct.DebiasedL2(15)])
def test_statistics_of_tallies(statistic):
    tally = ct.Tally.of(PROBS, LABELS, lens=ct.TopK(1))
    assert (
        float(filled(statistic).compute()) == ct.calibration_test(tally, None, statistic).estimate
    )


def test_a_statistic_of_rows_is_refused_before_training():
    with pytest.raises(StatisticError, match="SKCE"):
        CalibrationMetric(ct.SKCE())
    with pytest.raises(StatisticError, match="value must be one of"):
        CalibrationMetric(value="p")


def test_batches_and_their_order_change_no_bit():
    whole = filled(batches=[slice(None)]).tally()
    assert filled().tally() == filled(batches=BATCHES[::-1]).tally() == whole
    assert whole == ct.Tally.of(PROBS, LABELS)


def test_a_call_returns_the_value_of_the_batch_and_keeps_all():
    metric = CalibrationMetric()
    for rows in BATCHES:
        alone = ct.ECE()(PROBS[rows].max(axis=1), PROBS[rows].argmax(axis=1) == LABELS[rows])
        assert float(metric(*tensors(rows))) == pytest.approx(alone, abs=1e-12)
    assert metric.tally() == filled().tally()


def test_reset_forgets():
    metric = filled()
    metric.reset()
    metric.update(*tensors(BATCHES[0]))
    assert metric.tally() == filled(batches=BATCHES[:1]).tally()


def test_states_merge():
    metric = filled(batches=BATCHES[:1])
    metric.merge_state(filled(batches=BATCHES[1:]))
    assert metric.tally() == filled().tally()


@pytest.mark.parametrize(
    "copied",
    [
        lambda metric: metric.clone(),
        copy.deepcopy,
        lambda metric: pickle.loads(pickle.dumps(metric)),
        lambda metric: metric.to("cpu").double().half().float(),
    ],
)
def test_copies_go_on(copied):
    metric = copied(filled(batches=BATCHES[:2]))
    metric.update(*tensors(BATCHES[2]))
    assert metric.tally() == filled().tally()


def test_the_state_is_kept_in_a_checkpoint(tmp_path):
    torch.save(filled(batches=BATCHES[:2]).state_dict(), tmp_path / "state.pt")
    metric = CalibrationMetric()
    metric.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    metric.update(*tensors(BATCHES[2]))
    assert metric.tally() == filled().tally()


def test_the_state_of_another_question_is_not_measured():
    metric = CalibrationMetric(lens=ct.OneVsRest(1))
    metric.load_state_dict(filled(lens=ct.OneVsRest(2)).state_dict())
    metric.update(*tensors(BATCHES[0]))
    with pytest.warns(UnmeasuredWarning, match="loaded from a metric with another lens"):
        assert torch.isnan(metric.compute())


def test_a_collection_shares_the_state_of_one_question():
    collection = torchmetrics.MetricCollection(
        {
            "ece": CalibrationMetric(),
            "floor": CalibrationMetric(value="null_mean"),
            "one": CalibrationMetric(lens=ct.OneVsRest(1)),
        }
    )
    # the first batch is one in which class 1 is the top class: sums of both lenses are equal
    top = PROBS.argmax(axis=1) == 1
    collection.update(*tensors(top))
    collection.update(*tensors(~top))
    groups = sorted(sorted(group) for group in collection.compute_groups.values())
    assert groups == [["ece", "floor"], ["one"]]
    found = collection.compute()
    for name, lens, value in (
        ("ece", None, "estimate"), ("floor", None, "null_mean"),
        ("one", ct.OneVsRest(1), "estimate"),
    ):  # fmt: skip
        test = ct.calibration_test(PROBS, LABELS, lens=lens)
        assert float(found[name]) == pytest.approx(getattr(test, value), rel=1e-9)


def test_processes_are_synchronised_by_adding_sums():
    # what torch.distributed gathers, without its processes
    metrics = [filled(batches=[rows]) for rows in BATCHES] + [CalibrationMetric()]  # one is idle
    states = {name: [getattr(m, name) for m in metrics] for name in metrics[0]._defaults}

    def gathered(state, group=None):
        parts = next(s for s in states.values() if any(state is part for part in s))
        return list(parts)

    metric = metrics[0]
    before = metric.tally()
    metric.sync(dist_sync_fn=gathered, distributed_available=lambda: True)
    assert metric.tally() == filled().tally()
    metric.unsync()
    assert metric.tally() == before


@pytest.mark.slow
def test_two_processes_of_torch_distributed(tmp_path):
    """Each process of gloo computes the answer of all rows."""
    torch.multiprocessing.spawn(of_one_process, (str(tmp_path),), nprocs=2)
    whole = float(filled(value="pvalue").compute())
    for rank in range(2):
        assert float((tmp_path / f"{rank}.txt").read_text()) == whole


def of_one_process(rank, folder):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    metric = filled(value="pvalue", batches=BATCHES[rank::2])
    with open(f"{folder}/{rank}.txt", "w") as file:
        file.write(repr(float(metric.compute())))
    torch.distributed.destroy_process_group()


def test_logits_images_and_elements_to_ignore():
    p = RNG.random((2, 3, 8, 9))
    p /= p.sum(axis=1, keepdims=True)
    y = RNG.integers(0, 3, (2, 8, 9))
    metric = CalibrationMetric(from_logits=True, ignore_index=-100)
    target = torch.tensor(y)
    target[0, :, :2] = -100
    metric.update(torch.tensor(np.log(p)), target)
    rows = np.moveaxis(p, 1, -1).reshape(-1, 3)[(target != -100).numpy().ravel()]
    expected = ct.Tally.of(rows, y.ravel()[(target != -100).numpy().ravel()])
    assert metric.tally().n == expected.n == 128
    assert float(metric.compute()) == pytest.approx(ct.calibration_test(expected).estimate)


@pytest.mark.parametrize("shape", [(60,), (60, 1), (4, 15), (4, 1, 3, 5)])
def test_binary_predictions_of_any_shape(shape):
    p = torch.tensor(RNG.random(60)).reshape(shape)
    y = (torch.rand(60, generator=torch.Generator().manual_seed(1)) < 0.4).reshape(shape)
    for target in (y, y.long(), y.float()):
        metric = CalibrationMetric()
        metric.update(p.clone().requires_grad_(), target)
        assert metric.tally() == ct.Tally.of(p.numpy().ravel(), y.numpy().ravel())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_floating_point_types(dtype):
    p = torch.tensor(PROBS).to(getattr(torch, dtype))
    metric = CalibrationMetric()
    metric.update(p, torch.tensor(LABELS))
    rows = p.double().numpy()
    expected = ct.ECE()(
        (rows / rows.sum(axis=1, keepdims=True)).max(axis=1), rows.argmax(axis=1) == LABELS
    )
    assert float(metric.compute()) == pytest.approx(expected, abs=1e-6)


def test_a_value_above_one_by_rounding_is_one():
    metric = CalibrationMetric()
    metric.update(torch.tensor([1.0000001, 0.5]), torch.tensor([1, 0]))
    assert metric.tally().n == 2


@pytest.mark.filterwarnings(OF_THE_OTHER)
def test_without_rows_the_value_is_nan():
    metric = CalibrationMetric()
    metric.update(torch.empty(0, 4), torch.empty(0, dtype=torch.long))
    with pytest.warns(UnmeasuredWarning, match="no rows yet"):
        assert torch.isnan(metric.compute())
    metric.reset()
    metric.update(*tensors())
    assert torch.isfinite(metric.compute())


NAN = torch.tensor([[0.5, float("nan"), 0.25, 0.25]])


def test_reversed_probabilities_are_measured():
    p = torch.linspace(0.01, 0.99, 400)
    metric = CalibrationMetric()
    metric.update(p, p < 0.5)
    assert float(metric.compute()) > 0.4


REFUSED = {
    "column 1 is nan": (NAN, torch.tensor([1])),
    "outside": (torch.tensor([[2.0, -1.0, 0.5, -0.5]]), torch.tensor([0])),
    "with 4 classes": (torch.full((1, 4), 0.25), torch.tensor([4])),
    "have 4 and 3 classes": (torch.full((1, 3), 1 / 3), torch.tensor([0])),
    "one target for each": (torch.full((2, 4), 0.25), torch.tensor([0])),
    "pass class numbers": (torch.full((2, 4), 0.25), torch.eye(4)[:2]),
    "type torch.int64": (torch.ones(2, 4, dtype=torch.long), torch.tensor([0, 1])),
    "type torch.complex64": (torch.full((2, 4), 0.25 + 0j), torch.tensor([0, 1])),
    "TypeError": ("text", None),
}


def answer_after(metric, *batch):
    metric.update(*batch)
    metric.update(*tensors(BATCHES[0]))
    return metric.compute()


@pytest.mark.parametrize("words", REFUSED)
def test_a_batch_that_cannot_be_measured_is_nan_and_one_warning(words):
    metric = filled()
    with pytest.warns(UnmeasuredWarning, match=words) as said:
        found = answer_after(metric, *REFUSED[words])
    assert len(said) == 1
    assert torch.isnan(found)
    with pytest.raises(InvalidPredictionsError, match="1 batches could not be measured"):
        metric.tally()
    other = filled()
    other.merge_state(metric)  # nor can what another process has refused
    with pytest.warns(UnmeasuredWarning):
        assert torch.isnan(other.compute())
    metric.reset()
    metric.update(*tensors())
    assert torch.isfinite(metric.compute())


def hostile(rng):
    """Return a random batch, most of which nobody can measure."""
    shapes = [(), (0,), (1,), (3,), (3, 1), (3, 2), (3, 4), (2, 3, 4), (0, 4), (2, 2, 2, 2)]
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool]

    def tensor(shape, kind):
        values = torch.tensor(rng.random(shape))
        if rng.random() < 0.3:
            values = values * rng.choice([1.0, 7.0, -1.0, np.inf, np.nan])
        if values.ndim > 1 and rng.random() < 0.5:
            values = values / values.sum(dim=1, keepdim=True)
        return (values * 3 if not kind.is_floating_point else values).to(kind)

    shape = shapes[rng.integers(len(shapes))]
    kind = kinds[rng.integers(len(kinds))]
    likely = [shape, shape[:1] + shape[2:], shapes[rng.integers(len(shapes))]]
    target = tensor(likely[rng.integers(3)], kinds[rng.integers(len(kinds))])
    strange = [None, "text", [], [[0.5]], 0.5, object()]
    preds = tensor(shape, kind) if rng.random() < 0.9 else strange[rng.integers(len(strange))]
    return preds, target if rng.random() < 0.9 else strange[rng.integers(len(strange))]


@pytest.mark.filterwarnings(OF_THE_OTHER)
@pytest.mark.parametrize("seed", range(4))
def test_hostile_batches_raise_nothing(seed):
    rng = np.random.default_rng(seed)
    measured = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnmeasuredWarning)
        warnings.filterwarnings("ignore", "The ``compute`` method of metric")
        for _ in range(50):
            metric = CalibrationMetric(value=["estimate", "pvalue"][rng.integers(2)])
            batch = hostile(rng) if rng.random() < 0.9 else tensors(BATCHES[rng.integers(3)])
            alone = metric(*batch)
            found = metric.compute()
            assert found.shape == alone.shape == ()
            assert torch.isnan(found) or 0.0 <= float(found) <= 1.0
            measured += bool(torch.isfinite(found))
    assert 0 < measured < 50


@pytest.mark.filterwarnings("ignore")  # Lightning's own
def test_lightning_logs_it(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)
            self.ece = CalibrationMetric()
            self.others = torchmetrics.MetricCollection(
                {"p": CalibrationMetric(value="pvalue"), "none": CalibrationMetric(ct.ECE(10))}
            )

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, index):
            p, y = batch
            self.ece.update(p, y)
            self.others["none"].update(p - 9.0, y)
            self.log("ece", self.ece, on_step=False, on_epoch=True)
            self.others["p"].update(p, y)
            self.log_dict({"p": self.others["p"], "none": self.others["none"]})

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.utils.data.TensorDataset(torch.tensor(PROBS).float(), torch.tensor(LABELS))
    loader = torch.utils.data.DataLoader(data, batch_size=20)
    trainer = lightning.Trainer(
        max_epochs=2, logger=False, default_root_dir=tmp_path, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(Model(), loader, loader)
    logged = trainer.callback_metrics
    test = ct.calibration_test(PROBS.astype(np.float32), LABELS)
    assert float(logged["ece"]) == pytest.approx(test.estimate, rel=1e-5)
    assert float(logged["p"]) == pytest.approx(test.pvalue, rel=1e-5)
    assert torch.isnan(logged["none"])
