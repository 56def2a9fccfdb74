"""Float graphs as people export them give what the exported model gives."""

import json
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
import yaml

from equipoise.core import ModelError
from equipoise.models import load_model
from equipoise.models.onnx_settings import PROCESSORS, read_settings
from equipoise.models.preprocessing import PillowPixels, probes
from equipoise.models.registry import Options, find_adapter
from model_checkpoints import graph_of_means, images
from onnx_exports import export, means_graph, tiny_timm, write_timm_config

LABELS = ["doctor", "nurse", "cook"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
YAML = {
    "size": [4, 4],
    "interpolation": "bilinear",
    "output": "logits",
    "layout": "NCHW",
    "labels": LABELS,
}


def pictures():
    from PIL import Image

    return [Image.fromarray(image) for image in images()]


def write_yaml(folder, **changes):
    settings = {key: value for key, value in {**YAML, **changes}.items() if value is not None}
    (folder / "model.yaml").write_text(yaml.safe_dump(settings))


def identity(name):
    adapter, target = find_adapter(name)
    return adapter.identify(target, Options(name))


def softmax(logits):
    return logits.softmax(dim=-1).numpy()


def optimum(family, checkpoint, folder, **options):
    """Write what optimum writes: the graph, config.json and preprocessor_config.json."""
    import torch
    import transformers

    source, subfolder = checkpoint(family), options.pop("subfolder", "")
    model = transformers.AutoModelForImageClassification.from_pretrained(source)

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, pixel_values):
            return self.model(pixel_values).logits

    processor = transformers.AutoImageProcessor.from_pretrained(source, backend="pil")
    shape = (2, *processor([images()[0]], return_tensors="pt").pixel_values.shape[1:])
    (folder / subfolder).mkdir(exist_ok=True)
    export(Logits(), folder / subfolder / "model.onnx", shape, **options)
    for name in ("config.json", "preprocessor_config.json"):
        shutil.copy(source / name, folder / name)
    return model, processor


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("vit", {"external": True}),
        ("vit_multi_label", {"subfolder": "onnx", "external": True}),
        ("convnext", {"dynamic": False}),
    ],
)
def test_an_export_of_transformers(family, options, checkpoint, tmp_path, monkeypatch):
    import torch

    model, processor = optimum(family, checkpoint, tmp_path, **options)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    loaded = load_model(f"onnx:{tmp_path}")
    with torch.no_grad():
        logits = model(**processor(pictures(), return_tensors="pt")).logits
    multi_label = model.config.problem_type == "multi_label_classification"
    expected = logits.sigmoid().numpy() if multi_label else softmax(logits)
    probabilities = loaded.predict_proba(images())
    np.testing.assert_allclose(probabilities, expected, atol=2e-5)
    assert probabilities.argmax(axis=1).tolist() == expected.argmax(axis=1).tolist()
    assert loaded.labels == tuple(model.config.id2label.values())
    assert loaded.info.preprocessing["probabilities"] == ("sigmoid" if multi_label else "softmax")
    assert loaded.batch_size == (2 if options.get("dynamic") is False else 32)
    adapter, target = find_adapter(f"onnx:{tmp_path}")
    assert adapter.preview(target).labels == loaded.labels
    assert loaded.info.files.items() <= identity(f"onnx:{tmp_path}")["files"].items()


@pytest.mark.parametrize("changes", [{}, {"crop_mode": "squash", "interpolation": "bilinear"}])
def test_an_export_of_timm(changes, tmp_path):
    import timm
    import torch

    model = tiny_timm().eval()
    export(model, tmp_path / "model.onnx", (2, 3, 32, 32))
    write_timm_config(model, tmp_path, **changes)
    settings = timm.data.resolve_data_config({"input_size": (3, 32, 32), **changes}, model=model)
    transform = timm.data.create_transform(**settings, is_training=False)
    with torch.no_grad():
        expected = softmax(model(torch.stack([transform(picture) for picture in pictures()])))
    loaded = load_model(f"onnx:{tmp_path / 'model.onnx'}")
    np.testing.assert_allclose(loaded.predict_proba(images()), expected, atol=2e-5)
    assert loaded.labels == tuple(LABELS)


def test_an_export_of_torchvision(tmp_path):
    import torch
    from torchvision import models, transforms

    torch.manual_seed(1)
    model = models.squeezenet1_1(num_classes=3).eval()
    export(model, tmp_path / "model.onnx", (2, 3, 32, 32), external=True)
    write_yaml(tmp_path, size=36, crop=32, mean=[*MEAN], std=[*STD])
    steps = [transforms.Resize(36), transforms.CenterCrop(32), transforms.ToTensor()]
    transform = transforms.Compose([*steps, transforms.Normalize(MEAN, STD)])
    with torch.no_grad():
        expected = softmax(model(torch.stack([transform(picture) for picture in pictures()])))
    loaded = load_model(f"onnx:{tmp_path / 'model.onnx'}")
    np.testing.assert_allclose(loaded.predict_proba(images()), expected, atol=2e-5)


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", ["RGB", "BGR"])
@pytest.mark.parametrize("sizes", [True, False])
def test_layouts_channels_and_numbers(kind, layout, channels, sizes, tmp_path):
    axes, sides = ((2, 3), (3, 4, 4)) if layout == "NCHW" else ((1, 2), (4, 4, 3))
    graph = means_graph(("n", *(sides if sizes else "abc")), kind=kind, axes=axes)
    onnx.save(graph, tmp_path / "model.onnx")
    write_yaml(tmp_path, layout=layout, channels=channels, scale=1)
    pixels = np.random.default_rng(2).integers(0, 256, (40, 4, 4, 3), dtype=np.uint8)
    logits = pixels.mean(axis=(1, 2))[:, :: 1 if channels == "RGB" else -1]
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    loaded = load_model(f"onnx:{tmp_path}")
    np.testing.assert_allclose(loaded.predict_proba(pixels), expected, rtol=1e-4, atol=1e-6)
    assert loaded.info.dtype == {"FLOAT": "float32", "FLOAT16": "float16"}[kind]


def test_probabilities_stay_as_they_are(tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    write_yaml(tmp_path, output="probabilities")
    white = np.full((1, 4, 4, 3), 255, np.uint8)
    np.testing.assert_allclose(load_model(f"onnx:{tmp_path}").predict_proba(white), 1, rtol=1e-6)


@pytest.mark.parametrize("stem", PROCESSORS)
@pytest.mark.parametrize("explicit", [True, False])
def test_processors_of_transformers_do_what_the_settings_say(stem, explicit, tmp_path):
    import transformers
    from PIL import Image

    # The default of this class cuts more than there is, which no checkpoint does.
    sizes = {"size": {"shortest_edge": 288}} if stem == "MobileViT" else {}
    processor = getattr(transformers, f"{stem}ImageProcessorPil")(**sizes)
    settings = json.loads(processor.to_json_string())
    if not explicit:  # as versions before wrote them
        steps = ("do_resize", "do_rescale", "do_normalize", "do_center_crop", "resample")
        settings = {key: value for key, value in settings.items() if key not in steps}
        settings |= {"size": next(iter(settings["size"].values())), "crop_pct": None}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    recipe = read_settings(tmp_path / "model.onnx")
    for probe in (*probes(), *images()):
        picture = Image.fromarray(probe)
        expected = processor(picture, return_tensors="np")["pixel_values"]
        pixels = PillowPixels(recipe.recipe)([picture])["pixel_values"]
        pixels = pixels[:, ::-1] if recipe.channels == "BGR" else pixels
        np.testing.assert_allclose(pixels, expected, atol=2e-6)


@pytest.mark.parametrize("name", ["preprocessor_config.json", "config.json", "model.onnx"])
def test_settings_beside_the_graph_are_part_of_the_key(name, checkpoint, tmp_path):
    optimum("vit", checkpoint, tmp_path, external=True)
    target = f"onnx:{tmp_path}"
    before, facts = load_model(target), identity(target)
    path = tmp_path / name
    if name == "model.onnx":
        path = tmp_path / "model.onnx.data"
        path.write_bytes(path.read_bytes()[::-1])
    else:
        path.write_text(path.read_text() + "\n")
    assert load_model(target).info.key != before.info.key
    assert identity(target) != facts


def test_a_changed_yaml_changes_the_key(tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    keys = set()
    for changes in (
        {},
        {"mean": [0.1, 0.2, 0.3]},
        {"channels": "BGR"},
        {"output": "probabilities"},
    ):
        write_yaml(tmp_path, **changes)
        keys.add(load_model(f"onnx:{tmp_path}").info.key)
    assert len(keys) == 4


def test_labels_of_text_win_over_id2label(checkpoint, tmp_path):
    optimum("vit", checkpoint, tmp_path)
    names = [f"class {place}" for place, _ in enumerate(load_model(f"onnx:{tmp_path}").labels)]
    (tmp_path / "model.labels.txt").write_text("\n".join(names))
    model = load_model(f"onnx:{tmp_path}")
    assert model.labels == tuple(names)
    assert "model.labels.txt" in model.info.files


GRAPHS = {
    "dynamic": means_graph(("n", "a", "b", "c")),
    "double": means_graph(kind="DOUBLE"),
    "grey": means_graph(("n", 1, 4, 4)),
    "flat": means_graph(("n", 3), axes=(0, 1)),
    "open": means_graph(("n", "a", "b", "c"), classes="k"),
    "float": means_graph(),
}


@pytest.mark.parametrize(
    ("graph", "settings", "words"),
    [
        ("dynamic", {"layout": None}, r"layout not named\. To do: .*layout: NCHW or NHWC"),
        ("float", {"layout": "NHWC"}, r"shape \['n', 3, 4, 4\], .* layout NHWC"),
        ("float", {"size": [5, 4]}, r"5 × 4 pixels"),
        ("grey", {}, r"shape \['n', 1, 4, 4\]"),
        ("double", {}, r"the type tensor\(double\)\. Known are tensor\(uint8\), tensor\(float\)"),
        ("flat", {}, "Expected one input of images, with 4 dimensions"),
        ("float", {"labels": None}, "no names of classes"),
        ("float", {"labels": ["a", "b"]}, "3 numbers an image, and there are 2 names"),
        ("float", {"size": 4}, "of no fixed size"),
        ("float", {"size": 4, "crop": 5}, "a crop within the size"),
        ("float", {"std": [0, 1, 1]}, "std holds 0"),
        ("float", {"scale": 1 / 255}, "model.yaml: scale: .*at least 1"),
        ("float", {"interpolation": "lanczos"}, "model.yaml: interpolation: "),
        ("float", {"output": None}, "model.yaml: output: "),
        ("float", {"means": [1, 1, 1]}, "model.yaml: means: "),
    ],
)
def test_errors_name_the_file_and_the_key(graph, settings, words, tmp_path):
    onnx.save(GRAPHS[graph], tmp_path / "model.onnx")
    write_yaml(tmp_path, **settings)
    with pytest.raises(ModelError, match=words):
        load_model(f"onnx:{tmp_path}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a mapping"),
        ("size: 4\nsize: 5\n", "each key appears once"),
        ("size: [4", "is no YAML"),
        ("\xff", "UTF-8"),
    ],
)
def test_a_yaml_that_cannot_be_read(text, words, tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    (tmp_path / "model.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError, match=words):
        load_model(f"onnx:{tmp_path}")


def test_labels_that_yaml_takes_for_other_things_stay_text(tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    text = (tmp_path / "model.yaml").write_text
    text("size: [4, 4]\ninterpolation: bicubic\noutput: logits\nlabels: [no, 010, 1:30]\n")
    assert load_model(f"onnx:{tmp_path}").labels == ("no", "010", "1:30")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_processor_type": "EfficientNetImageProcessor"}, "image_processor_type is 'Effic"),
        ({"image_processor_type": None}, "image_processor_type is ''"),
        ({"rescale_offset": True}, "rescale_offset changes images in an unknown way"),
        ({"size": None}, "lacks size"),
        ({"image_mean": None, "image_std": None}, "lacks image_mean, image_std"),
        ({"do_resize": False}, "cannot be followed"),
        ({"do_pad": True}, "do_pad changes images"),
        ({"resample": 1}, "cannot be followed"),
    ],
)
def test_processors_that_cannot_be_followed(change, words, checkpoint, tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    path = checkpoint("vit") / "preprocessor_config.json"
    settings = {**json.loads(path.read_text()), **change}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=words):
        load_model(f"onnx:{tmp_path}")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[]", "config.json holds a list"),
        ("{", "config.json is no JSON"),
        ('{"pretrained_cfg": {"mean": [0, 0, 0]}}', "pretrained_cfg needs input_size"),
        ('{"id2label": {"1": "a", "2": "b"}}', "id2label has to number the classes from 0 on"),
        ("{}", "no names of classes"),
    ],
)
def test_configs_that_cannot_be_followed(config, words, checkpoint, tmp_path):
    onnx.save(means_graph(("n", "a", "b", "c")), tmp_path / "model.onnx")
    shutil.copy(checkpoint("vit") / "preprocessor_config.json", tmp_path)
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(ModelError, match=words):
        load_model(f"onnx:{tmp_path}")


def test_a_float_graph_without_settings_is_refused(tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    (tmp_path / "model.labels.txt").write_text("a\nb\nc\n")
    with pytest.raises(ModelError, match=r"add preprocessor_config\.json .* or write model\.yaml"):
        load_model(f"onnx:{tmp_path}")


def test_two_files_of_labels_are_refused(tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    write_yaml(tmp_path)
    (tmp_path / "model.labels.txt").write_text("a\nb\nc\n")
    with pytest.raises(ModelError, match="both name the classes"):
        load_model(f"onnx:{tmp_path}")


def test_folders_without_one_graph_are_refused(tmp_path):
    with pytest.raises(ModelError, match="it holds none"):
        load_model(f"onnx:{tmp_path}")
    for name in ("a.onnx", "b.onnx"):
        onnx.save(means_graph(), tmp_path / name)
    with pytest.raises(ModelError, match=r"it holds a\.onnx, b\.onnx\. To do: name the file"):
        load_model(f"onnx:{tmp_path}")


def test_a_graph_of_an_unknown_number_of_classes_is_checked_when_it_runs(tmp_path):
    onnx.save(GRAPHS["open"], tmp_path / "model.onnx")
    write_yaml(tmp_path, labels=["a", "b"])
    model = load_model(f"onnx:{tmp_path}")
    with pytest.raises(ModelError, match=r"an output of shape \(32, 3\)"):
        model.predict_proba(images())


def test_a_yaml_beside_a_graph_of_bytes_is_refused(tmp_path):
    onnx.save(graph_of_means(("scores", ["n", 3])), tmp_path / "model.onnx")
    write_yaml(tmp_path)
    with pytest.raises(ModelError, match=r"model\.yaml would not be used"):
        load_model(f"onnx:{tmp_path}")


def test_graphs_of_floats_need_no_torch(tmp_path):
    onnx.save(means_graph(), tmp_path / "model.onnx")
    write_yaml(tmp_path)
    code = (
        "import sys, numpy; from equipoise.models import load_model;"
        f"load_model('onnx:{tmp_path}').predict_proba([numpy.zeros((9, 7, 3), 'uint8')]);"
        "sys.exit(bool({'torch', 'torchvision', 'transformers', 'timm', 'onnx'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
