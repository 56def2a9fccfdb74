"""Run directories: evidence on disk, whole or not there at all."""

from equipoise.evidence.predictions import read_predictions, write_predictions
from equipoise.evidence.rundir import is_run, new_run

__all__ = ["is_run", "new_run", "read_predictions", "write_predictions"]
