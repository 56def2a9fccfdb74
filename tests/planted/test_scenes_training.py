"""Training the models of the scenes: whole, on next to nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from equipoise.planted.scenes.embed import WEIGHTS
from tools.planted import clips, networks, scenes
from tools.planted.classifiers import ClassifierRecipe
from tools.planted.clips import ClipRecipe
from tools.planted.training import FILE

CLIP = ClipRecipe(images=96, batch_size=32, steps=3, more_steps=2, warm_up=1, settling_steps=2)
CLASSIFIER = ClassifierRecipe(images=64, batch_size=16, cnn_steps=3, vit_steps=3)


# Threads of several test processes that share cores wait for each other most of the time.
torch.set_num_threads(1)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_training_writes_every_model_and_its_record(tmp_path):
    scenes.train(tmp_path, scenes.PARTS, CLIP, CLASSIFIER)
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    shipped = {path.relative_to(WEIGHTS) for path in WEIGHTS.rglob("*") if path.is_file()}
    assert written == shipped - {Path("README.md")}
    record, ours = (
        json.loads((folder / FILE).read_text(encoding="utf-8")) for folder in (tmp_path, WEIGHTS)
    )
    assert record["recipes"]["clip"]["steps"] == 3
    assert ours["recipes"]["clip"] == vars(ClipRecipe())
    assert ours["recipes"]["classifiers"] == vars(ClassifierRecipe())
    assert [*record["clip"]] == [*ours["clip"]]


def test_the_loss_equals_the_library():
    torch.manual_seed(0)
    model = networks.build_clip(len(networks.build_tokenizer())).eval()
    tokens, mask = (torch.from_numpy(array) for array in clips.token_rows())
    captions = np.array([5, 900, 5, 41, 41, 1000])
    pixels = torch.rand(len(captions), 3, 32, 32)
    with torch.inference_mode():
        ours = clips._loss(model, pixels, captions, tokens, mask)
        theirs = model(
            input_ids=tokens[captions],
            attention_mask=mask[captions],
            pixel_values=pixels,
            return_loss=True,
        ).loss
    assert float(ours) == pytest.approx(float(theirs), abs=1e-5)
