"""Results in runs of MLflow and of Weights & Biases, both on this machine alone."""

import polars as pl
import pytest

import equipoise
from equipoise.core import InputError, RunError
from equipoise.core.finding import REAL
from integrations.page import block

# Trackers warn about libraries that they use.
pytestmark = pytest.mark.filterwarnings("ignore")

PEOPLE = pl.DataFrame(
    {
        "gender": ["women", "men"] * 100,
        "label": [1, 1, 0, 0] * 50,
        "pred": [1, 1, 0, 0] * 30 + [0, 1, 0, 0] * 20,
    }
)


@pytest.fixture(scope="module")
def result():
    return equipoise.audit(PEOPLE, target="label", pred="pred", groups="gender")


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("faces", str(tmp_path / "files")))
    yield mlflow
    while mlflow.active_run():
        mlflow.end_run()


@pytest.fixture
def wandb(tmp_path, monkeypatch):
    for name, value in {"MODE": "offline", "DIR": tmp_path, "SILENT": "true"}.items():
        monkeypatch.setenv(f"WANDB_{name}", str(value))
    wandb = pytest.importorskip("wandb")
    yield wandb
    if wandb.run:
        wandb.finish()


def with_verdicts(result):
    return [finding for finding in result.findings if finding.tested]


def test_a_run_of_mlflow_has_numbers_verdicts_and_the_report(result, mlflow, tmp_path):
    with mlflow.start_run() as run:
        result.log()
        result.log(step=2)
    data = mlflow.get_run(run.info.run_id).data
    name = "equipoise/pred/true_positive_rate_difference/gender/1"
    finding = next(
        f for f in with_verdicts(result)
        if (f.metric, f.aggregate, f.subject) == ("true_positive_rate", "difference", "1")
    )  # fmt: skip
    ends = {"": finding.value, "/low": finding.ci_low, "/high": finding.ci_high}
    assert {end: data.metrics[f"{name}{end}"] for end in ends} == pytest.approx(ends)
    assert data.tags[name] == finding.verdict.value
    assert finding.verdict in REAL
    assert "equipoise/pred/accuracy_difference/gender/within_class" in data.tags
    verdicts = {key: value for key, value in data.tags.items() if key.startswith("equipoise/")}
    assert sorted(verdicts.values()) == sorted(f.verdict.value for f in with_verdicts(result))
    counts = {key: n for key, n in data.metrics.items() if key.startswith("equipoise/verdicts/")}
    assert sum(counts.values()) == len(verdicts)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, name)
    assert [metric.step for metric in history] == [0, 2]
    paths = {path.name for path in (tmp_path / "files").rglob("equipoise/*")}
    assert paths == {"report.html", "findings.json", "2"}


def test_a_run_of_wandb_has_numbers_verdicts_and_the_report(result, wandb, tmp_path):
    run = wandb.init(project="faces")
    result.log()
    name = "equipoise/pred/true_positive_rate_difference/gender/1"
    assert run.summary[f"{name}/verdict"] in {str(verdict) for verdict in REAL}
    assert run.summary[f"{name}/low"] < run.summary[name] < run.summary[f"{name}/high"]
    result.log(step=7)
    assert run.step == 7
    wandb.finish()
    # Other files come and go while the library's service ends.
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert b"true_positive_rate_difference" in log.read_bytes()


def test_the_tracker_is_the_one_with_an_active_run(result, mlflow, wandb):
    with pytest.raises(InputError, match="no run of a tracker is active"):
        result.log()
    with pytest.raises(InputError, match="'tensorboard'; expected one of 'mlflow', 'wandb'"):
        result.log("tensorboard")
    with pytest.raises(RunError, match=r"call wandb\.init"):
        result.log("wandb")
    wandb.init(project="faces")
    with mlflow.start_run(), pytest.raises(InputError, match="runs of mlflow and wandb are active"):
        result.log()
    # As functions of MLflow do, naming it starts a run.
    result.log("mlflow")
    assert mlflow.active_run() is not None


def test_the_block_of_the_page_runs(mlflow):
    PEOPLE.write_csv("predictions.csv")
    exec(block("MLflow and Weights & Biases"), {})
    assert "equipoise/pred/equalized_odds_difference/gender" in mlflow.last_active_run().data.tags


def test_names_of_findings_are_unique(result, tmp_path):
    from equipoise.report.tracking import tracked

    twice = tuple(result.findings) * 2
    result.save(tmp_path / "run")
    entries = tracked(result, tmp_path / "run")
    again = tracked(type(result)(twice, result.manifest), tmp_path / "run")
    assert len(again.verdicts) == 2 * len(entries.verdicts) > 0
    assert [path.name for path in entries.files] == ["report.html", "findings.json"]
