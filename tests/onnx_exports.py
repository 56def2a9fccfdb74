"""Classifiers exported as ONNX, as torch, transformers and timm write them."""

import json

import numpy as np


def export(model, path, shape, *, dynamic=True, external=False):
    """Write a graph with the input `pixel_values` and the output `logits`."""
    import torch

    torch.onnx.export(
        model.eval(),
        (torch.zeros(shape),),
        path,
        input_names=["pixel_values"],
        output_names=["logits"],
        dynamic_shapes=({0: torch.export.Dim("n")},) if dynamic else None,
        external_data=external,
        dynamo=True,
        verbose=False,
    )
    return path


def tiny_timm():
    """Return a small network of timm with random weights."""
    import timm
    import torch

    torch.manual_seed(5)
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 2}
    return timm.create_model("vit_tiny_patch16_224", num_classes=3, **sizes)


def write_timm_config(model, folder, **changes):
    """Write config.json as timm does on the Hub."""
    settings = {**model.pretrained_cfg, "input_size": [3, 32, 32], **changes}
    config = {
        "architecture": "vit_tiny_patch16_224",
        "num_classes": 3,
        "label_names": ["doctor", "nurse", "cook"],
        "pretrained_cfg": settings,
    }
    (folder / "config.json").write_text(json.dumps(config))


def means_graph(shape=("n", 3, 4, 4), *, kind="FLOAT", nodes=(), axes=(2, 3), classes=3):
    """Return a graph from float images to the mean of each channel."""
    import onnx

    make, types = onnx.helper, onnx.TensorProto
    source, out = getattr(types, kind), types.FLOAT
    graph = make.make_graph(
        [
            make.make_node("Cast", ["pixel_values"], ["floats"], to=out),
            make.make_node("ReduceMean", ["floats", "axes"], ["means"], keepdims=0),
            *nodes,
            make.make_node("Mul", ["means", "weights"], ["logits"]),
        ],
        "means",
        [make.make_tensor_value_info("pixel_values", source, shape)],
        [make.make_tensor_value_info("logits", out, ["n", classes])],
        [
            onnx.numpy_helper.from_array(np.ones(1, np.float32), "weights"),
            make.make_tensor("axes", types.INT64, [2], axes),
        ],
    )
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=9)


def external(tensor, location, **span):
    """Move a tensor of a graph to another file; return its bytes."""
    import onnx

    data = tensor.raw_data
    onnx.external_data_helper.set_external_data(tensor, location, **span)
    tensor.ClearField("raw_data")
    return data
