"""Audits of ONNX exports through the real command: from any folder, with all their files."""

import json
import re

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from audits.live_models.worlds import CHOSEN, IMAGES, of_model, written
from equipoise import report
from equipoise.cli.app import app
from equipoise.core import ModelError
from model_checkpoints import graph_of_means
from onnx_exports import export, means_graph, tiny_timm, write_timm_config


@pytest.fixture
def audit(world, tmp_path, monkeypatch):
    """Run `equipoise audit` of a model from another folder; return its result and its run."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    def ran(model, out, **options):
        values = of_model("predictions", {"model": model, **options}) | {
            "data": {"images": IMAGES, "target": "subject", "groups": ["frame"]}
        }
        config, out = written(world, values), world / out
        return CliRunner().invoke(app, ["audit", str(config), "--out", str(out)]), out

    return ran


def findings(outcome):
    done, out = outcome
    assert done.exit_code == 0, done.exception or done.output
    return report.read(out).findings, (out / "findings.parquet").read_bytes()


def byte_pair(world):
    """Write torch's default export, a graph and a file of weights, that takes bytes."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.linear = torch.nn.Linear(32 * 32 * 3, len(CHOSEN))

        def forward(self, images):
            pixels = (images.float() / 255).reshape(images.shape[0], -1)
            return torch.softmax(20 * self.linear(pixels), -1)

    torch.onnx.export(
        Net().eval(),
        (torch.zeros(2, 32, 32, 3, dtype=torch.uint8),),
        world / "model.onnx",
        dynamic_shapes=({0: torch.export.Dim("n")},),
        verbose=False,
    )
    (world / "model.labels.txt").write_text("\n".join(CHOSEN))
    return world / "model.onnx.data"


def float_timm(world):
    """Write a float export of timm with its config.json."""
    model = tiny_timm()
    model.reset_classifier(len(CHOSEN))
    export(model, world / "model.onnx", (2, 3, 32, 32), external=True)
    write_timm_config(model, world)
    config = json.loads((world / "config.json").read_text())
    config["label_names"] = [*CHOSEN]
    (world / "config.json").write_text(json.dumps(config))
    return world / "model.onnx.data"


@pytest.mark.parametrize("make", [byte_pair, float_timm])
def test_other_weights_in_their_file_are_other_findings(make, audit, world):
    weights = make(world)
    first, table = findings(audit("onnx:model.onnx", "first"))
    same, again = findings(audit("onnx:model.onnx", "again"))
    assert (table, len(first)) == (again, len(same))
    values = np.frombuffer(weights.read_bytes(), np.float32)
    weights.write_bytes((-values).tobytes())
    done, out = audit("onnx:model.onnx", "other")
    _, other = findings((done, out))
    assert other != table
    models = [report.read(world / name).manifest.models["m"] for name in ("first", "other")]
    assert models[0]["weights_sha256"] != models[1]["weights_sha256"]
    assert models[0]["files"].keys() == models[1]["files"].keys() >= {weights.name}


def test_a_graph_that_gives_nan_is_named_by_its_key(audit, world):
    graph = graph_of_means(("scores", ["n", 3]), sides=(32, 32))
    weights = next(tensor for tensor in graph.graph.initializer if tensor.name == "weights")
    weights.CopyFrom(onnx.numpy_helper.from_array(np.array([np.nan], np.float32), "weights"))
    onnx.save(graph, world / "model.onnx")
    (world / "model.labels.txt").write_text("\n".join(CHOSEN[:3]))
    done, _ = audit("onnx:model.onnx", "out", open_vocabulary=True)
    assert isinstance(done.exception, ModelError)
    assert re.match(r"models\.m\.model: .*NaN", str(done.exception))


def test_logits_that_are_declared_probabilities_are_refused(audit, world):
    onnx.save(means_graph(("n", 3, 32, 32)), world / "model.onnx")
    (world / "model.yaml").write_text(
        "size: [32, 32]\ninterpolation: bilinear\nscale: 1\noutput: probabilities\n"
        f"labels: [{', '.join(CHOSEN[:3])}]\n"
    )
    done, _ = audit("onnx:model.onnx", "out", open_vocabulary=True)
    assert isinstance(done.exception, ModelError)
    assert re.match(r"models\.m\.model: ", str(done.exception))
