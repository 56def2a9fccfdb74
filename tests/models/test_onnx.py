"""The ONNX adapter: what it returns, and what it says when it cannot."""

import numpy as np
import onnx
import pytest

from equipoise.core import ModelError
from equipoise.models import load_model
from equipoise.models.onnx import load_onnx_classifier
from equipoise.planted.colours.models import WEIGHTS
from equipoise.planted.colours.render import SHAPES, render_test_set
from model_checkpoints import graph_of_means
from model_checkpoints import onnx as shapes

GRAPH = WEIGHTS / "complete.onnx"


@pytest.fixture(scope="module")
def model():
    return load_onnx_classifier(GRAPH, SHAPES)


@pytest.fixture
def graph(tmp_path):
    return shapes(tmp_path)


def test_by_name_with_its_labels_beside_it(graph, model):
    images = render_test_set(10).images
    loaded = load_model(f"onnx:{graph}")
    assert loaded.labels == SHAPES
    expected = model.predict_proba(images)
    np.testing.assert_array_equal(loaded.predict_proba(images), expected)
    np.testing.assert_array_equal(loaded.predict_proba(list(images)), expected)
    assert (loaded.info.backend, loaded.info.dimension) == ("onnxruntime", None)


def test_by_name_without_labels(graph):
    graph.with_suffix(".labels.txt").unlink()
    with pytest.raises(ModelError, match=r"no names of classes in .*shapes\.labels\.txt\. To do: "):
        load_model(f"onnx:{graph}")


@pytest.mark.parametrize(
    "options", [{"device": "cuda"}, {"dtype": "bfloat16"}, {"backend": "openvino"}]
)
def test_by_name_elsewhere_than_on_the_cpu(graph, options):
    with pytest.raises(ModelError, match="onnx: runs on the CPU"):
        load_model(f"onnx:{graph}", **options)


def test_lists_of_images(model):
    assert model.predict_proba([]).shape == (0, 3)
    sizes = [np.zeros((32, 32, 3), np.uint8), np.zeros((16, 16, 3), np.uint8)]
    for images in (sizes, sizes[1:]):
        with pytest.raises(ModelError, match="takes uint8 images of one size"):
            model.predict_proba(images)


def test_no_second_output_no_features(model):
    with pytest.raises(ModelError, match=r"complete\.onnx has no second output of shape \(n, dim"):
        model.features(render_test_set(1).images)


def test_features_are_the_second_output(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(graph_of_means(("scores", ["n", 3]), ("seen", ["n", 3])), path)
    model = load_onnx_classifier(path, ("r", "g", "b"), batch_size=2)
    images = np.arange(5 * 48, dtype=np.uint8).reshape(5, 4, 4, 3)
    assert model.info.dimension == 3
    expected = images.mean(axis=(1, 2))
    np.testing.assert_allclose(model.features(images), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(images), expected, rtol=1e-6)


def test_graphs_with_other_outputs(tmp_path):
    three = graph_of_means(*((name, ["n", 3]) for name in "abc"))
    open_ended = graph_of_means(("a", ["n", "d"]), ("b", ["n", "d"]), channels="d")
    path = tmp_path / "m.onnx"
    for graph in (three, open_ended):
        onnx.save(graph, path)
        with pytest.raises(ModelError, match="has the outputs"):
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
    with pytest.raises(ModelError, match="gives 3 numbers an image, and there are 2 names"):
        load_onnx_classifier(GRAPH, ("square", "ellipse"))
