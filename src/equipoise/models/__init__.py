"""Adapters for model libraries, and the protocols that models implement."""

from equipoise.models.generators import ImageGenerator, Sampling
from equipoise.models.info import ModelInfo
from equipoise.models.loading import load_generator, load_model
from equipoise.models.protocols import Answerer, Classifier, DualEncoder, PairScorer

__all__ = [
    "Answerer",
    "Classifier",
    "DualEncoder",
    "ImageGenerator",
    "ModelInfo",
    "PairScorer",
    "Sampling",
    "load_generator",
    "load_model",
]
