"""Results in runs of Weights & Biases: metrics, verdicts, and the report as an artefact."""

import sys
from typing import Any

from equipoise.core import RunError
from equipoise.report.tracking import TrackedResult, Tracker

_ARTIFACT, _TYPE = "equipoise-report", "report"


def _active_run() -> Any:
    return getattr(sys.modules.get("wandb"), "run", None)


def _log(result: TrackedResult) -> None:
    run = _active_run()
    if run is None:
        raise RunError("no run of wandb is active. To do: call wandb.init() first")
    verdicts = {f"{name}/verdict": verdict for name, verdict in result.verdicts.items()}
    run.log({**result.numbers, **verdicts}, step=result.step)
    artifact = sys.modules["wandb"].Artifact(_ARTIFACT, type=_TYPE)
    for file in result.files:
        artifact.add_file(str(file))
    run.log_artifact(artifact)


TRACKER = Tracker(lambda: _active_run() is not None, _log)
