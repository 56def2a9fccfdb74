"""Models that read an image's colour: everything that they say is known beforehand."""

import numpy as np
import polars as pl
from PIL import Image

from equipoise.audits import parse_config
from equipoise.models import ModelInfo

COLOURS = {"red": (250, 10, 10), "green": (10, 250, 10), "blue": (10, 10, 250)}
NAMES = (*COLOURS,)


def info(kind, **more):
    return ModelInfo(f"python:fake:{kind}", "fake", kind, **more)


def seen(images):
    """Mean colour of each image, as numbers from 0 to 1."""
    return np.stack([np.asarray(image).reshape(-1, 3).mean(axis=0) for image in images]) / 255


class Encoder:
    """Texts are the colours that they name; each text adds a little of its own."""

    def __init__(self, **more):
        self.info = info("encoder", dimension=3, scale=20.0, **more)

    def embed_images(self, images):
        return seen(images).astype(np.float32)

    def embed_texts(self, texts):
        rows = [[0.05 + float(name in text) for name in NAMES] for text in texts]
        return np.asarray(rows, dtype=np.float32)


class Scorer:
    """Scores of pairs."""

    info = info("scorer")

    def score(self, images, texts):
        weights = np.array([[float(name in text) for name in NAMES] for text in texts])
        return (seen(images) @ weights.T).astype(np.float32)


class Classifier:
    """A classifier with labels of its own."""

    info = info("classifier", dimension=3)
    labels = ("crimson", "lime", "navy")

    def predict_proba(self, images):
        shares = seen(images)
        return (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)

    def features(self, images):
        return seen(images).astype(np.float32)


class Answerer:
    """Answers in a sentence; does not know what is blue."""

    info = info("answerer")

    def answer(self, images, question):
        assert question == "Which colour is it?"
        names = [NAMES[place] for place in seen(images).argmax(axis=1)]
        return ["I do not know" if name == "blue" else f"It is {name.upper()}." for name in names]


def painted(folder, n=120):
    """Write pictures of one colour each; those of group b are green where they should be red."""
    (folder / "pictures").mkdir()
    rng = np.random.default_rng(3)
    rows = []
    for index in range(n):
        group, truth = "ab"[index % 2], NAMES[int(rng.integers(0, 3))]
        colour = "green" if (group, truth) == ("b", "red") else truth
        pixels = np.tile(np.array(COLOURS[colour], dtype=np.uint8), (4, 5, 1))
        Image.fromarray(pixels).save(folder / "pictures" / f"p{index:03}.png")
        rows.append({"id": f"p{index:03}", "file": f"p{index:03}.png", "colour": truth,
                     "group": group, "shown": colour})  # fmt: skip
    frame = pl.DataFrame(rows)
    frame.write_csv(folder / "images.csv")
    return frame


def configured(audit, data, **model):
    """Return the configuration of an audit of the pictures of `painted`."""
    images = {"table": "images.csv", "id": "id", "path": "file", "root": "pictures"}
    return parse_config(
        {
            "audit": audit,
            "data": {"images": images, "groups": ["group"], **data},
            "models": {"m": model},
            "resampling": {"replicates": 20, "permutations": 199},
        }
    )


def numbers(result):
    """Return the numbers of every finding except findings of raw texts."""
    names = ("metric", "subject", "value", "ci_low", "ci_high", "chance", "q_value", "verdict")
    findings = [finding for finding in result.findings if not finding.version.endswith("raw")]
    return [repr([getattr(finding, name) for name in names]) for finding in findings]
