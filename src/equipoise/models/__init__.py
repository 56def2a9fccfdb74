"""Adapters for model libraries, and the protocols that models implement."""

from equipoise.models.generators import ImageGenerator, Sampling, StepImage, SteppedGenerator
from equipoise.models.info import ModelInfo
from equipoise.models.loading import load_generator, load_model
from equipoise.models.protocols import Answerer, Classifier, DualEncoder, NoAnswer, PairScorer
from equipoise.models.service import Service

__all__ = [
    "Answerer",
    "Classifier",
    "DualEncoder",
    "ImageGenerator",
    "ModelInfo",
    "NoAnswer",
    "PairScorer",
    "Sampling",
    "Service",
    "StepImage",
    "SteppedGenerator",
    "load_generator",
    "load_model",
]
