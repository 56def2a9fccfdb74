"""Tables in, one checked and joined form out."""

from equipoise.data.coded import Coded
from equipoise.data.normalize import Normalization
from equipoise.data.predictions import load_predictions
from equipoise.data.results import ModelPredictions, PredictionData, Predictions
from equipoise.data.sources import LabelSource, PredictionSource
from equipoise.data.tables import Table, read_table

__all__ = [
    "Coded",
    "LabelSource",
    "ModelPredictions",
    "Normalization",
    "PredictionData",
    "PredictionSource",
    "Predictions",
    "Table",
    "load_predictions",
    "read_table",
]
