"""Names of models: what each prefix loads, and the error where it cannot."""

import importlib
import sys
from types import SimpleNamespace

import pytest

from alone import alone
from equipoise.core import MissingExtraError, ModelError
from equipoise.models import load_model
from equipoise.models.info import sha256_of
from equipoise.models.runtimes import Placement, place


@pytest.mark.parametrize("name", ["clip", "", "hf:", "keras:resnet", ":x"])
def test_a_name_that_names_nothing(name):
    with pytest.raises(ModelError) as error:
        load_model(name)
    prefixes = ("hf", "open_clip", "timm", "onnx", "python", "edited", "equipoise")
    assert all(f"{prefix}:" in str(error.value) for prefix in prefixes)


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        *((f"{prefix}:x", "torch", prefix) for prefix in ("hf", "open_clip", "timm")),
        ("hf:x", "transformers", "hf"),
        ("open_clip:x", "open_clip", "open_clip"),
        ("timm:x", "timm", "timm"),
    ],
)
def test_without_the_library(name, missing, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    message = rf"^{missing} is not installed\. .*'\.\[{extra}\]'"
    with pytest.raises(MissingExtraError, match=message):
        load_model(name)


def test_naming_a_model_loads_no_library():
    code = (
        "import sys, equipoise.models\n"
        "sys.exit(bool({'torch', 'transformers', 'PIL', 'timm', 'open_clip', 'onnxruntime',"
        " 'huggingface_hub'} & set(sys.modules)))"
    )
    assert alone(code).returncode == 0


class TestPlacement:
    """Devices and data types; no GPU is needed, a fake torch says what there is."""

    @staticmethod
    def fake(gpus, bf16=True):
        cuda = SimpleNamespace(
            is_available=lambda: gpus > 0,
            device_count=lambda: gpus,
            is_bf16_supported=lambda: bf16,
        )
        return SimpleNamespace(cuda=cuda)

    @pytest.mark.parametrize(
        ("gpus", "bf16", "arguments", "got"),
        [
            (0, False, ("auto", "auto"), ("cpu", "float32")),
            (1, True, ("auto", "auto"), ("cuda", "bfloat16")),
            (1, False, ("auto", "auto"), ("cuda", "float16")),
            (1, True, ("cpu", "auto"), ("cpu", "float32")),
            (2, True, ("cuda:1", "float32"), ("cuda:1", "float32")),
            (0, True, ("cpu", "bfloat16"), ("cpu", "bfloat16")),
        ],
    )
    def test_what_auto_means(self, gpus, bf16, arguments, got, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", self.fake(gpus, bf16))
        placement = place(*arguments, "hf")
        assert (placement.device, placement.dtype) == got

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("tpu", "auto"), "There is no device 'tpu'"),
            (("cuda:x", "auto"), "There is no device 'cuda:x'"),
            (("cuda:1", "auto"), "torch finds 1 GPUs"),
            (("cpu", "int8"), "There is no dtype 'int8'"),
        ],
    )
    def test_what_there_is_not(self, arguments, message, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", self.fake(1))
        with pytest.raises(ModelError, match=message):
            place(*arguments, "hf")

    def test_exhausted_memory_is_told_from_other_errors(self):
        import torch

        exhausted = place("cpu", "auto", "hf").batches().exhausted
        assert exhausted(torch.OutOfMemoryError("CUDA out of memory"))
        assert exhausted(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
        assert exhausted(MemoryError())
        assert exhausted(RuntimeError("Exception from src/inference: std::bad_alloc"))
        assert not exhausted(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
        assert not exhausted(ValueError("out of memory"))

    def test_tensors_go_where_the_model_is(self):
        """A device that holds no numbers stands for the second of two GPUs."""
        import torch

        tensors = {"pixels": torch.zeros(2, 3), "ids": torch.zeros(2, dtype=torch.int64), "n": [1]}
        put = Placement("meta", "bfloat16", torch).put(tensors)
        assert {put[name].device.type for name in ("pixels", "ids")} == {"meta"}
        assert (put["pixels"].dtype, put["ids"].dtype) == (torch.bfloat16, torch.int64)
        assert put["n"] == [1]
        assert Placement("cpu", "bfloat16", torch, "openvino").torch_dtype is torch.float32


OWN = """
import numpy as np
from equipoise.models import ModelInfo

class Own:
    info = ModelInfo("python:own:make", "own", "ab")
    labels = ("a", "b")
    def predict_proba(self, images):
        return np.full((len(images), 2), 0.5, dtype=np.float32)
    def features(self, images):
        return np.zeros((len(images), 3), dtype=np.float32)

class Bare(Own):
    info = {"name": "bare"}

def make(device, dtype):
    assert (device, dtype) == ("cpu", "auto")
    return Own()

def number(**_):
    return 3

def bare(**_):
    return Bare()

class Computed(Own):
    info = property(lambda self: Own.info)

def computed(**_):
    return Computed()

def fails(**_):
    raise KeyError("weights")

def lacks(**_):
    import not_there_at_all

def broken(**_):
    return np.not_there
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_models", raising=False)


@pytest.mark.usefixtures("own")
def test_the_code_of_a_factory_and_a_declared_revision_key_evidence(tmp_path):
    def made(revision=None):
        sys.modules.pop("own_models", None)
        importlib.invalidate_caches()
        model = load_model("python:own_models:make", device="cpu", revision=revision)
        return model.info

    first, declared = made(), made("two")
    assert first.files == {"own_models (source)": sha256_of(tmp_path / "own_models.py")}
    assert (declared.revision, declared.preprocessing) == ("two", {"declared_revision": "two"})
    assert len({first.key, declared.key, made("three").key}) == 3


@pytest.mark.usefixtures("own")
def test_a_factory_chooses_its_backend_itself():
    message = (
        r"^python:own_models:make is made by your own code, which chooses its backend itself\. "
    )
    with pytest.raises(ModelError, match=message):
        load_model("python:own_models:make", device="cpu", backend="openvino")


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("own_models", "module:factory"),
        ("own_models:", "module:factory"),
        ("absent_module:make", "No module named 'absent_module'"),
        ("own_models:mke", "AttributeError: .*'mke'"),
        ("own_models:broken", "AttributeError: .*'not_there'"),
        ("os:getcwd", "made a str.*DualEncoder"),
        ("os:sep", "TypeError: 'str' object is not callable"),
        ("own_models:fails", "KeyError: 'weights'"),
        ("own_models:lacks", "No module named 'not_there_at_all'"),
        ("own_models:number", "made a int.*DualEncoder"),
        ("own_models:computed", "an attribute, not a property"),
        ("own_models:bare", "info is a dict"),
    ],
)
def test_factories_that_do_not_do(target, message):
    with pytest.raises(ModelError, match=message):
        load_model(f"python:{target}")
