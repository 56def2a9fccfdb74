"""What runs the tower for images: OpenVINO and ONNX Runtime give what torch gives."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from alone import alone
from equipoise.core import MissingExtraError, ModelError
from equipoise.models import load_model, openvino, runtimes, towers
from equipoise.models.registry import Options
from equipoise.models.runtimes import Placement, has_bfloat16, place
from equipoise.models.towers import with_backend
from model_checkpoints import TEXTS, images

FAMILIES = ("clip", "siglip", "flava", "vit", "resnet", "convnext", "vit_multi_label")
LIBRARIES = ("open_clip", "timm")


@pytest.fixture(scope="module")
def load(checkpoint):
    def loaded(family, backend, dtype="float32"):
        prefix = family if family in LIBRARIES else "hf"
        name = f"{prefix}:{checkpoint(family)}"
        return load_model(name, device="cpu", dtype=dtype, backend=backend)

    return loaded


def outputs(model):
    if hasattr(model, "embed_images"):
        return [model.embed_images(images()), model.embed_texts(TEXTS)]
    return [model.predict_proba(images()), model.features(images())]


def least_cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(((a * b).sum(axis=1) / norms).min())


@pytest.mark.parametrize("family", [*FAMILIES, *LIBRARIES])
def test_float32_is_torchs(load, family):
    ours, reference = load(family, "openvino"), load(family, "torch")
    for got, expected in zip(outputs(ours), outputs(reference), strict=True):
        assert got.dtype == np.float32
        assert least_cosine(got, expected) >= 0.999999
        np.testing.assert_allclose(got, expected, atol=2e-5)
    info = ours.info
    assert (info.backend, info.dtype, info.device) == ("openvino", "float32", "cpu")
    assert "openvino" in info.versions
    assert info.key != reference.info.key


@pytest.mark.skipif(not has_bfloat16(), reason="needs a CPU with bfloat16")
@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_on_request_is_near(load, family):
    ours, reference = load(family, "openvino", "bfloat16"), load(family, "torch")
    # Pooling by attention over 32 random numbers is uneven; with 768 it is 0.99996.
    least = 0.9997 if family == "siglip" else 0.9999
    got, expected = outputs(ours)[0], outputs(reference)[0]
    assert least_cosine(got, expected) >= least
    assert not np.array_equal(got, expected)
    assert (ours.info.backend, ours.info.dtype) == ("openvino", "bfloat16")
    assert ours.info.key != load(family, "openvino").info.key


def test_results_of_one_call_stay_when_the_next_is_made(load):
    model = load("clip", "openvino")
    first = model.embed_images(images()[:2])
    earlier = first.copy()
    model.embed_images(images()[2:4])
    np.testing.assert_array_equal(first, earlier)


def placement(dtype="float32", device="cpu"):
    return Placement(device, dtype, torch)


def chosen(path, *, dtype="float32", device="cpu"):
    return with_backend(placement(dtype, device), Options("hf:x"), [path, path]).backend


def test_what_auto_means(tmp_path, monkeypatch):
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"0" * 1000)
    assert chosen(weights) == "torch"  # not worth converting
    monkeypatch.setattr(towers, "MIN_BYTES", 2000)
    assert chosen(weights) == "openvino"
    assert chosen(weights, device="cuda") == "torch"
    assert chosen(weights, dtype="float16") == "torch"
    for able, expected in ((True, "openvino"), (False, "torch")):
        monkeypatch.setattr(towers, "has_bfloat16", lambda able=able: able)
        assert chosen(weights, dtype="bfloat16") == expected
    monkeypatch.setattr(towers, "find_spec", lambda name: None)
    assert chosen(weights) == "torch"


def test_openvino_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(towers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"'\.\[openvino\]'"):
        with_backend(placement(), Options("hf:x", backend="openvino"), [])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_that_openvino_cannot_compute_with(dtype, monkeypatch):
    monkeypatch.setattr(towers, "has_bfloat16", lambda: False)
    with pytest.raises(ModelError, match=f"cannot compute with {dtype} on this CPU"):
        with_backend(placement(dtype), Options("hf:x", backend="openvino"), [])


def test_backends_and_devices():
    with pytest.raises(ModelError, match="There is no backend 'tensorrt'"):
        place("cpu", "auto", "hf", "tensorrt")
    with pytest.raises(ModelError, match="backend openvino runs on the CPU"):
        place("cuda:1", "auto", "hf", "openvino")


@pytest.mark.parametrize("family", ["blip_matching", "llava"])
def test_models_without_a_tower_for_images_alone(load, family):
    message = r"^hf:.* is a \w+, which runs on torch only, not on openvino\. To do: set ba"
    with pytest.raises(ModelError, match=message):
        load(family, "openvino")
    assert load(family, "torch").info.backend == "torch"


def test_a_tower_that_takes_more_than_pixels(load):
    message = (
        r"^hf:.* cannot be run by openvino \(.*it takes pixel_values, pixel_attention_mask, spa"
    )
    with pytest.raises(ModelError, match=message):
        load("siglip2", "openvino")


def test_a_tower_that_comes_out_as_another_one(load, monkeypatch):
    real = openvino.compiled

    def off(*args):
        run = real(*args)
        return lambda pixels: tuple(array + 0.05 for array in run(pixels))

    monkeypatch.setattr(towers.openvino, "compiled", off)
    message = (
        r" cannot be run by openvino \(ModelError: its vectors have cosine 0\.\d+ with torch's"
    )
    with pytest.raises(ModelError, match=message):
        load("clip", "openvino")
    monkeypatch.setattr(towers, "MIN_BYTES", 0)
    with pytest.warns(UserWarning, match=r"cannot be run by openvino \(Model"):
        model = load("clip", "auto", "bfloat16" if has_bfloat16() else "float32")
    assert model.info.backend == "torch"
    assert next(model.model.parameters()).dtype == getattr(torch, model.info.dtype)


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("flags : avx2 amx_bf16 x", True),
        ("flags : avx2 avx512_bf16", True),
        ("bf16x avx512", False),
    ],
)
def test_this_cpu(cpuinfo, expected, monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    monkeypatch.setattr(runtimes, "CPU", tmp_path / "cpuinfo")
    assert has_bfloat16.__wrapped__() == expected
    monkeypatch.setattr(runtimes, "CPU", tmp_path / "elsewhere")
    assert not has_bfloat16.__wrapped__()


TELEMETRY = """
import socket, sys

def refuse(*args, **kwargs):
    print("a socket was opened", file=sys.stderr)
    raise OSError("no network")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
{before}
"""

LOADED = """
from equipoise.models import load_model
model = load_model("hf:{folder}", device="cpu", backend="openvino")
assert model.info.backend == "openvino"
print(*(name for name in sys.modules if name == "openvino_telemetry"))
"""


def test_nothing_is_reported_to_anyone(checkpoint, tmp_path):
    """Nothing in the home folder forbids it; still no socket is opened and no file is left."""
    assert find_spec("openvino_telemetry")
    code = TELEMETRY.format(before="") + LOADED.format(folder=checkpoint("clip"))
    done = alone(code, HOME=str(tmp_path), CI="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
    assert "a socket was opened" not in done.stderr
    assert [path for path in tmp_path.rglob("*") if "intel" in path.parts] == []


def test_a_plain_import_would_report(tmp_path):
    """The test above can fail."""
    done = alone(TELEMETRY.format(before="import openvino"), HOME=str(tmp_path), CI="")
    assert "a socket was opened" in done.stderr
    assert (tmp_path / "intel").is_dir()


INTERRUPTED = """
import gc, os, signal, time
from equipoise.models import load_model

first, second = (load_model("hf:{folder}", device="cpu", backend="openvino") for _ in range(2))
del first
gc.collect()
del second
gc.collect()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_is_no_crash_after_models_were_let_go(checkpoint, tmp_path):
    """Each core of OpenVINO lends this thread a stack for signals; two ended with that of one."""
    done = alone(INTERRUPTED.format(folder=checkpoint("clip")), HOME=str(tmp_path), CI="")
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
