"""Model outputs on disk, run directories, and the engine that extracts them."""

from equipoise.evidence.examples import read_pictures, with_every_column, write_examples
from equipoise.evidence.extraction import (
    Extraction,
    ExtractionSettings,
    Pending,
    extract_answers,
    extract_choices,
    extract_embeddings,
    extract_probabilities,
    extract_scores,
    pending,
)
from equipoise.evidence.pictures import (
    Decoding,
    ImageError,
    Pictures,
    decode,
    picture_facts,
    pictures_in_folder,
    pictures_of_table,
    pictures_on_disk,
)
from equipoise.evidence.predictions import read_predictions, write_predictions
from equipoise.evidence.run_labels import LABELS, keep_labels, list_labels, tidy
from equipoise.evidence.rundir import check_place, is_run, new_run, rewrite
from equipoise.evidence.working import OptionQuestion, RunOptions
from equipoise.evidence.zero_shot import (
    Prompts,
    Texts,
    ZeroShot,
    class_vectors,
    concept_scores,
    embed_classes,
    embed_texts,
    prompts,
    zero_shot,
)

__all__ = [
    "LABELS",
    "Decoding",
    "Extraction",
    "ExtractionSettings",
    "ImageError",
    "OptionQuestion",
    "Pending",
    "Pictures",
    "Prompts",
    "RunOptions",
    "Texts",
    "ZeroShot",
    "check_place",
    "class_vectors",
    "concept_scores",
    "decode",
    "embed_classes",
    "embed_texts",
    "extract_answers",
    "extract_choices",
    "extract_embeddings",
    "extract_probabilities",
    "extract_scores",
    "is_run",
    "keep_labels",
    "list_labels",
    "new_run",
    "pending",
    "picture_facts",
    "pictures_in_folder",
    "pictures_of_table",
    "pictures_on_disk",
    "prompts",
    "read_pictures",
    "read_predictions",
    "rewrite",
    "tidy",
    "with_every_column",
    "write_examples",
    "write_predictions",
    "zero_shot",
]
