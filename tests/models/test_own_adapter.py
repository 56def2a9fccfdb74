"""An adapter of one's own, in one file: a model library with its prefix, run by an audit."""

from dataclasses import dataclass

import numpy as np
import pytest

from equipoise.core.errors import InputError, ModelError
from equipoise.models import Classifier, ModelInfo, load_model
from equipoise.models.registry import Preview, adapter, adapters, unregister


@dataclass
class Brightness:
    """Calls an image bright or dark."""

    info: ModelInfo
    labels: tuple[str, ...] = ("dark", "bright")

    def predict_proba(self, images):
        bright = [np.asarray(image).mean() / 255 for image in images]
        return np.array([[1 - share, share] for share in bright], dtype=np.float32)

    def features(self, images):
        return self.predict_proba(images)


def load_brightness(target, options):
    return Brightness(
        ModelInfo(
            name=options.name, family="toy", weights_sha256=target, files={}, revision=None,
            dimension=2, dtype="float32", device="cpu", preprocessing={},
        )
    )  # fmt: skip


@pytest.fixture
def toy():
    adapter("toy", preview=lambda _: Preview("classifier", ("dark", "bright")))(load_brightness)
    yield
    unregister("toy")


@pytest.mark.usefixtures("toy")
def test_it_loads_by_its_prefix():
    model = load_model("toy:one")
    assert isinstance(model, Classifier)
    image = np.full((2, 2, 3), 255, dtype=np.uint8)
    assert model.predict_proba([image]).tolist() == [[0.0, 1.0]]
    assert adapters()["toy"].preview("one").labels == ("dark", "bright")


@pytest.mark.usefixtures("toy")
def test_a_prefix_is_registered_once():
    with pytest.raises(InputError):
        adapter("toy")(load_brightness)


def test_an_unknown_prefix_lists_what_exists(tmp_path):
    with pytest.raises(ModelError, match="hf:"):
        load_model(f"toy:{tmp_path}")
