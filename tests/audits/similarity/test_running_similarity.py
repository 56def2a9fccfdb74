"""An audit of similarity from a model and pictures: gaps are in logits of the model's own scale."""

import numpy as np
import polars as pl
import pytest
from PIL import Image

from equipoise import audits
from equipoise.planted.scenes.captions import neutral_prompts
from equipoise.planted.scenes.embed import WEIGHTS, embed_images, load_clip, neutral_queries
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import Scenes, render_sets

SUBJECT = "solid square"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Four counterfactual sets of one subject as PNG files, with their table."""
    pytest.importorskip("torch", reason="could not import torch")
    pytest.importorskip("transformers", reason="could not import transformers")
    drawn = render_sets(4, seed=5)
    rows = np.flatnonzero(np.array(drawn.table()["subject"]) == SUBJECT)
    folder = tmp_path_factory.mktemp("pictures")
    kept = Scenes(
        tuple(drawn.image_id[i] for i in rows),
        tuple(drawn.set_id[i] for i in rows),
        drawn.images[rows],
        drawn.factors.take(rows),
    )
    for name, pixels in zip(kept.image_id, kept.images, strict=True):
        Image.fromarray(pixels).save(folder / f"{name}.png")
    table = kept.table()
    frame = pl.DataFrame({key: table[key].tolist() for key in ("image_id", "set", "hue", "frame")})
    return folder, kept, frame.with_columns(file=pl.col("image_id") + ".png")


def config(folder, frame, store, **model):
    prompts = pl.DataFrame({"prompt": neutral_prompts(SUBJECT), "subject": [SUBJECT] * 3})
    return audits.parse_config(
        {
            "audit": "similarity",
            "data": {
                "images": {
                    "table": frame, "id": "image_id", "path": "file", "root": str(folder),
                },
                "groups": ["frame"],
                "sets": "set",
            },
            "queries": {"table": prompts, "id": "prompt", "subject": "subject"},
            "models": {"clip": {"model": f"hf:{WEIGHTS / 'clip-biased'}", **model}},
            "extraction": {"store": str(store), "device": "cpu", "dtype": "float32"},
            "resampling": {"replicates": 50, "permutations": 50},
        }
    )  # fmt: skip


@pytest.mark.parametrize("given", [{}, {"scale": 1.0}])
def test_a_model_is_run_and_its_scale_or_the_given_one_makes_logits(scenes, tmp_path, given):
    folder, drawn, frame = scenes
    result = audits.run(config(folder, frame, tmp_path / "evidence", **given))
    gap = next(f for f in result.findings if f.metric == "logit_gap" and f.version == "default")
    clip = load_clip("biased")
    query = neutral_queries(clip)[SUBJECTS.index(SUBJECT)]
    logits = given.get("scale", clip.info.scale) * (embed_images(clip, drawn.images) @ query)
    level = drawn.factors.frame == 0
    expected = abs(logits[level].mean() - logits[~level].mean())
    assert gap.value == pytest.approx(expected, rel=1e-4)
    assert result.manifest.models["clip"]["scale"] == pytest.approx(clip.info.scale)
