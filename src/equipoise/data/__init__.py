"""Tables in, one checked and joined form out."""

from equipoise.data.arrays import ArraySource
from equipoise.data.coded import Coded
from equipoise.data.items import Items, ItemSource, load_items
from equipoise.data.matrices import Matrix, load_matrix
from equipoise.data.normalize import Normalization
from equipoise.data.predictions import load_predictions
from equipoise.data.results import ModelPredictions, PredictionData, Predictions
from equipoise.data.sources import LabelSource, PredictionSource
from equipoise.data.tables import Table, read_table
from equipoise.data.vectors import Vectors, load_vectors

__all__ = [
    "ArraySource",
    "Coded",
    "ItemSource",
    "Items",
    "LabelSource",
    "Matrix",
    "ModelPredictions",
    "Normalization",
    "PredictionData",
    "PredictionSource",
    "Predictions",
    "Table",
    "Vectors",
    "load_items",
    "load_matrix",
    "load_predictions",
    "load_vectors",
    "read_table",
]
