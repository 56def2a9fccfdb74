"""Models that are made up: what they give follows from the pixels."""

from dataclasses import dataclass

import numpy as np

from equipoise.models import ModelInfo


def info(name, **facts):
    return ModelInfo(name=f"python:{name}", family=name, weights_sha256=name, **facts)


SCORER, ANSWERER = info("scorer"), info("answerer")
CLASSIFIER, ENCODER = info("classifier", dimension=3), info("encoder", dimension=3)


def means(images):
    """Mean of each colour, shape (n, 3)."""
    return (
        np.stack([np.asarray(image).mean(axis=(0, 1)) for image in images]).astype(np.float32) / 255
    )


@dataclass(frozen=True)
class Scorer:
    info: ModelInfo = SCORER

    def score(self, images, texts):
        lengths = np.array([len(text) for text in texts], dtype=np.float32)
        return means(images)[:, :1] / lengths


@dataclass(frozen=True)
class Classifier:
    info: ModelInfo = CLASSIFIER
    labels: tuple[str, ...] = ("red", "green", "red")

    def predict_proba(self, images):
        scores = means(images) + 0.01
        return scores / scores.sum(axis=1, keepdims=True)

    def features(self, images):
        return means(images)


@dataclass(frozen=True)
class Answerer:
    info: ModelInfo = ANSWERER

    def answer(self, images, question):
        return [question] * len(images)


@dataclass(frozen=True)
class Encoder:
    """Colours as vectors; a text is the vector of its letters' counts."""

    info: ModelInfo = ENCODER

    def embed_images(self, images):
        return means(images)

    def embed_texts(self, texts):
        counts = [[text.count("a") + 1, text.count("o") + 1, len(text)] for text in texts]
        return np.array(counts, dtype=np.float32)
