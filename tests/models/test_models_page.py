"""docs/models.md names every prefix, extra, architecture, option and key."""

import inspect
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

from equipoise.cli.training import TrainConfig
from equipoise.config.fields import ExtractionConfig, RowsConfig, RunConfig
from equipoise.config.images import PicturesConfig
from equipoise.models import load_model
from equipoise.models.hf import ANSWERERS, ENCODERS, SCORERS
from equipoise.models.protocols import PROTOCOLS
from equipoise.models.python import load
from equipoise.models.registry import Options, adapters
from schema_keys import schema_keys
from yaml_keys import yaml_blocks, yaml_keys

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = yaml_blocks(PAGE)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ARCHITECTURES = [*ENCODERS, *SCORERS, *ANSWERERS]
OPTIONS = {*inspect.signature(load_model).parameters} - {"name"}
KEYS = set().union(*map(yaml_keys, BLOCKS))


@pytest.mark.parametrize("name", [*(f"{p}:" for p in adapters()), *ARCHITECTURES])
def test_every_name_is_on_the_page(name):
    assert f"`{name}" in PAGE


def test_every_option_and_key_is_in_a_block():
    keys = OPTIONS | schema_keys(RunConfig) | schema_keys(ExtractionConfig)
    elsewhere = schema_keys(PicturesConfig) | schema_keys(RowsConfig)
    assert keys | (schema_keys(TrainConfig) - elsewhere) <= KEYS


def test_the_blocks_of_keys_are_read_by_their_schemas():
    blocks = [*map(yaml.safe_load, BLOCKS)]
    _, own, served = (values["models"] for values in blocks if "models" in values)
    assert RunConfig.model_validate(own["ours"]).device == "cuda:1"
    service = {key: served["llava"][key] for key in ("model", "service")}
    assert RunConfig.model_validate(service).service.budget == 5
    _, extraction = (values["extraction"] for values in blocks if "extraction" in values)
    assert ExtractionConfig.model_validate(extraction) == ExtractionConfig(part=256)
    training, staged = (values for values in blocks if "schedule" in values)
    assert TrainConfig.model_validate(training).schedule.patience == 3
    assert len(TrainConfig.model_validate(training | staged).schedule.stages) == 2


@pytest.mark.parametrize("kind", PROTOCOLS.values(), ids=lambda kind: kind.__name__)
def test_every_kind_is_on_the_page(kind):
    assert f"| `{kind.__name__}` |" in PAGE


def test_every_extra_on_the_page_exists():
    named = set(re.findall(r"\.\[(\w+)\]", PAGE))
    assert named == {"hf", "chat", "open_clip", "timm", "openvino", "served"}
    assert named <= EXTRAS.keys()


def test_the_example_is_a_model(tmp_path, monkeypatch):
    code = next(b for b in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "Shades" in b)
    (tmp_path / "shades.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shades", raising=False)
    model = load("shades:make", Options("python:shades:make"))
    images = [np.full((2, 3, 3), value, dtype=np.uint8) for value in (0, 255)]
    np.testing.assert_array_equal(model.predict_proba(images), [[1, 0], [0, 1]])
    assert model.features(images).shape == (2, 3)


def test_the_example_of_fiber_embeds_with_a_stand_in_for_its_code(tmp_path, monkeypatch):
    """A tiny package has the names, arguments and shapes that the example uses of the authors'."""
    import torch
    import transformers

    class Towers(torch.nn.Module):
        def __init__(self, settings):
            super().__init__()
            assert (settings["image_size"], settings["test_only"]) == (576, True)
            self.words = torch.nn.Embedding(9, 4)

        def infer(self, batch, *, text_only=False, image_only=False):
            if image_only:
                return {"cls_feats": batch["image"][0].mean(dim=(2, 3))[:, [0, 1, 2, 0]]}
            masks = batch["text_masks"][:, :, None]
            assert text_only
            return {"cls_feats": (self.words(batch["text_ids"]) * masks).sum(dim=1)}

    def prepared(size):
        return lambda image: torch.full((3, size, size), image.getpixel((0, 0))[0] / 255)

    def tokens(texts, *, max_length, **_):
        rows = torch.tensor([[len(text) % 9] + [0] * (max_length - 1) for text in texts])
        masks = (torch.arange(max_length) < 1).expand(len(texts), -1)
        return transformers.BatchEncoding({"input_ids": rows, "attention_mask": masks})

    members = {
        "fiber": {},
        "fiber.config": {
            "config": lambda: {"max_text_len": 40, "image_size": 384, "tokenizer": "roberta-base"},
            "task_finetune_irtr_itc_coco": lambda: {"max_text_len": 50, "image_size": 576},
        },
        "fiber.modules": {},
        "fiber.modules.fiber_module": {"FIBERTransformerSS": Towers},
        "fiber.transforms": {},
        "fiber.transforms.transform": {"albef_transform": prepared},
    }
    for name, content in members.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(
        transformers.RobertaTokenizerFast, "from_pretrained", lambda _: tokens, raising=True
    )
    code = next(
        b for b in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class Fiber" in b
    )
    (tmp_path / "fiber_model.py").write_text(code)
    (tmp_path / "fiber_coco_irtr_itc.ckpt").write_bytes(b"weights")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fiber_model", raising=False)
    model = load("fiber_model:make", Options("python:fiber_model:make"))
    images = [np.full((2, 3, 3), value, dtype=np.uint8) for value in (51, 255)]
    np.testing.assert_allclose(model.embed_images(images)[:, 0], [0.2, 1.0], atol=1e-6)
    assert model.embed_texts(["a nurse", "a doctor"]).shape == (2, 4)
    assert len(model.info.weights_sha256) == 64
