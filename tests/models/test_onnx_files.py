"""Every file that an ONNX graph keeps tensors in is part of the model, and no other file is."""

import os
import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto as Types
from onnx import helper as make

from equipoise.core import ModelError
from equipoise.models import load_model
from equipoise.models.onnx import load_onnx_classifier
from equipoise.models.onnx_files import NESTED
from equipoise.models.registry import Options, find_adapter
from onnx_exports import external

IMAGES = np.random.default_rng(3).integers(0, 256, (5, 4, 4, 3), dtype=np.uint8)
VALUES = np.array([1, 2, 4], np.float32)
OPSETS = [make.make_opsetid("", 18), make.make_opsetid("own", 1)]


def weights(name, location, values=VALUES):
    tensor = onnx.numpy_helper.from_array(values, name)
    external(tensor, location, offset=0, length=values.nbytes)
    return tensor


def times(left, right, to):
    return make.make_node("Mul", [left, right], [to])


def model_of(nodes, tensors=(), functions=(), sparse=()):
    """Return a graph of mean colours, times whatever the nodes multiply them with."""
    means = [
        make.make_node("Cast", ["images"], ["floats"], to=Types.FLOAT),
        make.make_node("ReduceMean", ["floats", "axes"], ["means"], keepdims=0),
    ]
    graph = make.make_graph(
        [*means, *nodes],
        "means",
        [make.make_tensor_value_info("images", Types.UINT8, ["n", 4, 4, 3])],
        [make.make_tensor_value_info("scores", Types.FLOAT, ["n", 3])],
        [make.make_tensor("axes", Types.INT64, [2], [1, 2]), *tensors],
        sparse_initializer=sparse,
    )
    return make.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=9)


def initializer(at):
    return model_of([times("means", "w", "scores")], [weights("w", at)])


def attribute(at):
    constant = make.make_node("Constant", [], ["w"], value=weights("w", at))
    return model_of([constant, times("means", "w", "scores")])


def branch(at, depth=1):
    """Weights in both branches of an If, inside another If."""

    def body(name, inner):
        out = make.make_tensor_value_info(name, Types.FLOAT, ["n", 3])
        if inner:
            return make.make_graph([choice(name, inner - 1)], name, [], [out])
        node = times("means", f"w{name}", name)
        return make.make_graph([node], name, [], [out], [weights(f"w{name}", at)])

    def choice(to, inner):
        bodies = {f"{way}_branch": body(f"{to}_{way}", inner) for way in ("then", "else")}
        return make.make_node("If", ["bright"], [to], **bodies)

    total = make.make_node("ReduceSum", ["means"], ["total"], keepdims=0)
    bright = make.make_node("Cast", ["total"], ["bright"], to=Types.BOOL)
    return model_of([total, bright, choice("scores", depth)])


def function(at):
    nodes = [make.make_node("Constant", [], ["w"], value=weights("w", at)), times("a", "w", "b")]
    function = make.make_function("own", "Weigh", ["a"], ["b"], nodes, OPSETS[:1])
    return model_of([make.make_node("Weigh", ["means"], ["scores"], domain="own")], (), [function])


def sparse(at):
    places = onnx.numpy_helper.from_array(np.arange(3), "places")
    tensor = make.make_sparse_tensor(weights("w", at), places, [3])
    return model_of([times("means", "w", "scores")], sparse=[tensor])


KINDS = {kind.__name__: kind for kind in (initializer, attribute, branch, function, sparse)}


def write(model, folder, at="model.onnx.data"):
    (folder / at).parent.mkdir(parents=True, exist_ok=True)
    (folder / at).write_bytes(VALUES.tobytes())
    (folder / "model.labels.txt").write_text("doctor\nnurse\ncook\n")
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def identity(path):
    adapter, target = find_adapter(f"onnx:{path}")
    return adapter.identify(target, Options(f"onnx:{path}"))


@pytest.mark.parametrize("at", ["model.onnx.data", "./inner/weights"])
@pytest.mark.parametrize("kind", KINDS)
def test_another_byte_in_a_file_of_tensors_is_another_model(kind, at, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = write(KINDS[kind](at), tmp_path / "model", at)
    model, before = load_model(f"onnx:{path}"), identity(path)
    scores = model.predict_proba(IMAGES)
    np.testing.assert_allclose(scores, IMAGES.mean(axis=(1, 2)) * VALUES, rtol=1e-6)
    assert model.info.files.items() <= before["files"].items()
    data = bytearray((path.parent / at).read_bytes())
    data[-1] ^= 1
    (path.parent / at).write_bytes(data)
    other = load_model(f"onnx:{path}")
    assert other.info.key != model.info.key
    assert other.info.weights_sha256 != model.info.weights_sha256
    assert identity(path) != before
    assert not np.allclose(other.predict_proba(IMAGES), scores)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_in_the_working_folder_is_not_read(kind, tmp_path, monkeypatch):
    path = write(KINDS[kind]("model.onnx.data"), tmp_path / "model")
    expected = load_model(f"onnx:{path}").predict_proba(IMAGES)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "model.onnx.data").write_bytes(bytes(12))
    np.testing.assert_array_equal(load_model(f"onnx:{path}").predict_proba(IMAGES), expected)
    (path.parent / "model.onnx.data").unlink()
    with pytest.raises(ModelError, match=r"model/model\.onnx\.data, which doesn't exist"):
        load_model(f"onnx:{path}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", ["../weights", "inner/../../weights", "/{}/weights", "C:\\weights"])
def test_a_path_that_leaves_the_folder_is_refused(kind, at, tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path / "model")
    (tmp_path / "weights").write_bytes(VALUES.tobytes())
    path = write(KINDS[kind](at.format(tmp_path)), tmp_path / "model")
    with pytest.raises(ModelError, match="outside its folder"):
        load_model(f"onnx:{path}")


def test_a_link_that_leaves_the_folder_is_refused(tmp_path):
    path = write(initializer("model.onnx.data"), tmp_path / "model")
    (tmp_path / "model" / "model.onnx.data").rename(tmp_path / "weights")
    (tmp_path / "model" / "model.onnx.data").symlink_to(tmp_path / "weights")
    with pytest.raises(ModelError, match="outside its folder"):
        load_model(f"onnx:{path}")


def test_links_of_a_hubs_cache_are_followed(tmp_path):
    path = write(initializer("model.onnx.data"), tmp_path / "blobs")
    key = load_model(f"onnx:{path}").info.key
    snapshot = tmp_path / "snapshots" / "0"
    snapshot.mkdir(parents=True)
    for name in ("model.onnx", "model.onnx.data", "model.labels.txt"):
        (snapshot / name).symlink_to(tmp_path / "blobs" / name)
    assert load_model(f"onnx:{snapshot}").info.key == key


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_too_short_is_refused(kind, tmp_path):
    path = write(KINDS[kind]("model.onnx.data"), tmp_path)
    (tmp_path / "model.onnx.data").write_bytes(bytes(11))
    with pytest.raises(ModelError, match=r"bytes 0 to 12 of model\.onnx\.data, which has 11"):
        load_model(f"onnx:{path}")


def test_a_pipe_in_place_of_a_file_is_refused(tmp_path):
    path = write(initializer("model.onnx.data"), tmp_path)
    (tmp_path / "model.onnx.data").unlink()
    os.mkfifo(tmp_path / "model.onnx.data")
    with pytest.raises(ModelError, match="doesn't exist"):
        load_model(f"onnx:{path}")


def test_an_address_in_memory_is_no_file(tmp_path):
    path = write(initializer("*/_ORT_MEM_ADDR_/*"), tmp_path, "model.onnx.data")
    with pytest.raises(ModelError, match="doesn't exist"):
        load_model(f"onnx:{path}")


def test_a_tensor_in_two_halves_is_not_read_from_the_working_folder(tmp_path, monkeypatch):
    """Protobuf merges the halves of a message that stands twice: neither half names a file."""
    monkeypatch.chdir(tmp_path)
    path = write(attribute("model.onnx.data"), tmp_path)
    written = onnx.load(path, load_external_data=False)
    value = next(node for node in written.graph.node if node.op_type == "Constant").attribute[0]
    untouched, place = Types(), Types(data_location=Types.EXTERNAL)
    untouched.CopyFrom(value.t)
    untouched.ClearField("data_location")
    value.t.CopyFrom(untouched)
    once = value.SerializeToString()
    half = place.SerializeToString()
    twice = once + bytes([5 << 3 | 2, len(half)]) + half
    assert onnx.AttributeProto.FromString(twice).t.data_location == Types.EXTERNAL
    node = next(node for node in written.graph.node if node.op_type == "Constant")
    node.ClearField("attribute")
    before = node.SerializeToString()
    after = before + bytes([5 << 3 | 2, len(twice)]) + twice
    written.graph.node.remove(node)
    graph = written.graph.SerializeToString()
    # A node in front of its reader: fields of a message may stand in any order.
    graph = bytes([1 << 3 | 2, len(after)]) + after + graph
    written.ClearField("graph")
    size = bytes([len(graph) & 0x7F | 0x80, len(graph) >> 7])
    path.write_bytes(written.SerializeToString() + bytes([7 << 3 | 2]) + size + graph)
    assert onnx.load(path).graph.node
    with pytest.raises(ModelError, match="that onnxruntime can load"):
        load_model(f"onnx:{path}")


@pytest.mark.parametrize("end", [1, -1, -7])
def test_a_graph_that_ends_early_is_refused(end, tmp_path):
    path = write(branch("model.onnx.data"), tmp_path)
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ModelError, match="is not a model that onnxruntime can load"):
        load_onnx_classifier(path, ["a", "b", "c"])


def test_a_copied_folder_keeps_the_key(tmp_path):
    path = write(initializer("model.onnx.data"), tmp_path / "model")
    shutil.copytree(path.parent, tmp_path / "copy")
    assert load_model(f"onnx:{tmp_path / 'copy'}").info.key == load_model(f"onnx:{path}").info.key


def test_all_fields_that_lead_to_tensors_are_followed():
    def leads(message):
        return {
            field.number: field.message_type.name
            for field in getattr(onnx, message).DESCRIPTOR.fields
            if field.message_type is not None and field.message_type.name in NESTED
        }

    assert {message: leads(message) for message in NESTED} == NESTED
