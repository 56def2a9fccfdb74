"""The ONNX adapter: what it returns, and what it says when it cannot."""

import hashlib

import numpy as np
import pytest

from equipoise.core.errors import ModelError
from equipoise.models import load_model
from equipoise.models.onnx import load_onnx_classifier
from equipoise.models.protocols import Classifier
from equipoise.planted.colours.models import WEIGHTS
from equipoise.planted.colours.render import SHAPES, render_test_set
from model_checkpoints import onnx

GRAPH = WEIGHTS / "complete.onnx"


@pytest.fixture(scope="module")
def model():
    return load_onnx_classifier(GRAPH, SHAPES)


@pytest.fixture
def beside(tmp_path):
    return onnx(tmp_path)


def test_by_name_with_its_labels_beside_it(beside, model):
    images = render_test_set(10).images
    loaded = load_model(f"onnx:{beside}")
    assert isinstance(loaded, Classifier)
    assert loaded.labels == SHAPES
    expected = model.predict_proba(images)
    np.testing.assert_array_equal(loaded.predict_proba(images), expected)
    np.testing.assert_array_equal(loaded.predict_proba(list(images)), expected)
    digest = hashlib.sha256(GRAPH.read_bytes()).hexdigest()
    assert (loaded.info.name, loaded.info.weights_sha256) == (f"onnx:{beside}", digest)
    assert (loaded.info.backend, loaded.info.dimension) == ("onnxruntime", None)


def test_by_name_without_labels(beside):
    beside.with_suffix(".labels.txt").unlink()
    with pytest.raises(ModelError, match=r"no names of classes in .*shapes\.labels\.txt\. To do: "):
        load_model(f"onnx:{beside}")


@pytest.mark.parametrize(
    "asked", [{"device": "cuda"}, {"dtype": "bfloat16"}, {"backend": "openvino"}]
)
def test_by_name_elsewhere_than_on_the_cpu(beside, asked):
    with pytest.raises(ModelError, match="onnx: runs on the CPU"):
        load_model(f"onnx:{beside}", **asked)


def test_lists_of_images(model):
    assert model.predict_proba([]).shape == (0, 3)
    sizes = [np.zeros((32, 32, 3), np.uint8), np.zeros((16, 16, 3), np.uint8)]
    for given in (sizes, sizes[1:]):
        with pytest.raises(ModelError, match="takes uint8 images of one size"):
            model.predict_proba(given)


def test_no_second_output_no_features(model):
    with pytest.raises(ModelError, match=r"complete\.onnx has no second output of shape \(n, dim"):
        model.features(render_test_set(1).images)


def graph_with(path, *outputs, channels=3):
    """A graph whose outputs are the images' mean colours, as many times as asked."""
    import onnx

    make, kind = onnx.helper, onnx.TensorProto
    nodes = [make.make_node("Cast", ["images"], ["floats"], to=kind.FLOAT)]
    nodes += [
        make.make_node("ReduceMean", ["floats", "sides"], [name], keepdims=0) for name, _ in outputs
    ]
    graph = make.make_graph(
        nodes,
        "means",
        [make.make_tensor_value_info("images", kind.UINT8, ["n", 4, 4, channels])],
        [make.make_tensor_value_info(name, kind.FLOAT, shape) for name, shape in outputs],
        [make.make_tensor("sides", kind.INT64, [2], [1, 2])],
    )
    opset = make.make_opsetid("", 18)
    onnx.save(make.make_model(graph, opset_imports=[opset], ir_version=9), path)
    return path


def test_features_are_the_second_output(tmp_path):
    path = graph_with(tmp_path / "m.onnx", ("scores", ["n", 3]), ("seen", ["n", 3]))
    model = load_onnx_classifier(path, ("r", "g", "b"), batch_size=2)
    images = np.arange(5 * 48, dtype=np.uint8).reshape(5, 4, 4, 3)
    assert model.info.dimension == 3
    expected = images.mean(axis=(1, 2))
    np.testing.assert_allclose(model.features(images), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(images), expected, rtol=1e-6)


def test_graphs_with_other_outputs(tmp_path):
    three = graph_with(tmp_path / "3.onnx", *((name, ["n", 3]) for name in "abc"))
    open_ended = graph_with(tmp_path / "2.onnx", ("a", ["n", "d"]), ("b", ["n", "d"]), channels="d")
    for path in (three, open_ended):
        with pytest.raises(ModelError, match="has the inputs and outputs"):
            load_onnx_classifier(path, SHAPES)


def test_missing_file():
    with pytest.raises(ModelError, match=r"^There is no model file nowhere\.onnx\.$"):
        load_model("onnx:nowhere.onnx")


def test_file_that_is_no_graph(tmp_path):
    path = tmp_path / "notes.onnx"
    path.write_text("not a graph")
    with pytest.raises(ModelError, match=r"notes\.onnx is not a model that onnxruntime can load"):
        load_onnx_classifier(path, SHAPES)


@pytest.mark.parametrize(
    ("images", "got"),
    [
        (np.zeros((2, 32, 32, 3)), r"float64 of shape \(2, 32, 32, 3\)"),
        (np.zeros((2, 3, 32, 32), dtype=np.uint8), r"uint8 of shape \(2, 3, 32, 32\)"),
        (np.zeros((32, 32, 3), dtype=np.uint8), r"uint8 of shape \(32, 32, 3\)"),
    ],
)
def test_images_of_another_form(model, images, got):
    with pytest.raises(ModelError, match=f"got {got}"):
        model.predict_proba(images)


def test_another_number_of_labels():
    model = load_onnx_classifier(GRAPH, ("square", "ellipse"))
    with pytest.raises(ModelError, match=r"an output of shape \(256, 3\)"):
        model.predict_proba(np.zeros((1, 32, 32, 3), dtype=np.uint8))
