"""Run directories: evidence on disk, whole or not there at all."""

from equipoise.evidence.asking import RunOptions
from equipoise.evidence.decoding import Decoding, ImageError, decode
from equipoise.evidence.extraction import (
    Extraction,
    extract_answers,
    extract_embeddings,
    extract_probabilities,
    extract_scores,
)
from equipoise.evidence.picture_tables import pictures_on_disk
from equipoise.evidence.pictures import Pictures, pictures_in_folder, pictures_of_table
from equipoise.evidence.predictions import read_predictions, write_predictions
from equipoise.evidence.rundir import is_run, new_run
from equipoise.evidence.waiting import Pending, pending

__all__ = [
    "Decoding",
    "Extraction",
    "ImageError",
    "Pending",
    "Pictures",
    "RunOptions",
    "decode",
    "extract_answers",
    "extract_embeddings",
    "extract_probabilities",
    "extract_scores",
    "is_run",
    "new_run",
    "pending",
    "pictures_in_folder",
    "pictures_of_table",
    "pictures_on_disk",
    "read_predictions",
    "write_predictions",
]
