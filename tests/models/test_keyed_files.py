"""Every file that an adapter opens to load and run a model decides the key of its evidence."""

import ctypes
import importlib
import json
import os
import shutil
import struct
import sys
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from equipoise.audits.model_cache import open_model
from equipoise.core import ModelError
from equipoise.evidence import RunOptions
from equipoise.models import Sampling, load_generator, load_model
from model_checkpoints import graph_of_means, images
from onnx_exports import external, means_graph

IN_OPEN = 0x20
EVENT = struct.Struct("iIII")
PIXELS = [image[:3, :5] for image in images()]


@contextmanager
def opened_in(folder):
    """Collect the files below a folder that anything opens, Python or a native library."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells which files native code opens")
    system = ctypes.CDLL(None, use_errno=True)
    watch = system.inotify_init1(os.O_NONBLOCK)
    folders = {
        system.inotify_add_watch(watch, str(directory).encode(), IN_OPEN): directory
        for directory in (folder, *folder.rglob("*"))
        if directory.is_dir()
    }
    opened = set()
    try:
        yield opened
        with suppress(BlockingIOError):
            while data := os.read(watch, 1 << 16):
                while data:
                    number, _, _, length = EVENT.unpack_from(data)
                    name = data[EVENT.size : EVENT.size + length].rstrip(b"\0").decode()
                    opened |= {folders[number] / name} if name else set()
                    data = data[EVENT.size + length :]
    finally:
        os.close(watch)


def changed(path):
    """Change one byte so that JSON and code stay readable."""
    data = bytearray(path.read_bytes())
    if path.name == "units.json":  # layout decides no output
        data = data.replace(b"0.25", b"0.75")
    elif path.suffix in {".json", ".py", ".jinja"}:
        data += b"\n"
    else:
        spelt = (place for place, byte in enumerate(data) if chr(byte).isalnum())
        data[max(spelt, default=-1)] ^= 1
    path.write_bytes(data)


def copied(family, checkpoint, folder):
    shutil.copytree(checkpoint(family), folder, dirs_exist_ok=True)
    return f"{family if family in ('open_clip', 'timm') else 'hf'}:{folder}"


def sharded(checkpoint, folder):
    import transformers

    name = copied("clip", checkpoint, folder)
    (folder / "model.safetensors").unlink()
    clip = transformers.CLIPModel.from_pretrained(checkpoint("clip"))
    clip.save_pretrained(folder, max_shard_size="50KB")
    return name


def templated(checkpoint, folder):
    name = copied("llava", checkpoint, folder)
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tools.jinja").write_text("{{ messages }}")
    return name


def onnx(_, folder):
    import onnx as library

    library.save(graph_of_means(("scores", ["n", 3]), sides=(3, 5)), folder / "model.onnx")
    (folder / "model.labels.txt").write_text("doctor\nnurse\ncook\n")
    return f"onnx:{folder / 'model.onnx'}"


def onnx_of_floats(_, folder):
    """Weights in a file of their own, settings in model.yaml."""
    import onnx as library

    graph = means_graph(("n", 3, 3, 5))
    weights = next(
        initializer for initializer in graph.graph.initializer if initializer.name == "weights"
    )
    (folder / "model.onnx.data").write_bytes(external(weights, "model.onnx.data"))
    library.save(graph, folder / "model.onnx")
    (folder / "model.yaml").write_text(
        "size: [3, 5]\ninterpolation: bilinear\noutput: logits\nlabels: [doctor, nurse, cook]\n"
    )
    return f"onnx:{folder}"


PLAIN = """
import numpy as np
from equipoise.models import ModelInfo

class Own:
    info = ModelInfo("python:keyed_own.factory:make", "own", "ab")
    labels = ("a", "b")
    def predict_proba(self, images):
        from keyed_late import half
        return np.full((len(images), 2), half(), dtype=np.float32)
    def features(self, images):
        if not len(images):
            import keyed_extra.part
        return np.zeros((len(images), 3), dtype=np.float32)
"""
CODE = {
    "keyed_own/__init__.py": "",
    "keyed_own/factory.py": "from .parts import Own\ndef make(device, dtype): return Own()\n",
    "keyed_own/parts.py": PLAIN,
    "keyed_late.py": "import keyed_deep.number\ndef half(): return keyed_deep.number.HALF\n",
    "keyed_deep/__init__.py": "",
    "keyed_deep/number.py": "HALF = 0.5\n",
    # Nothing is imported to find the files that decide a key.
    "keyed_extra/__init__.py": "raise RuntimeError('imported')\n",
    "keyed_extra/part.py": "",
}


def python(_, folder):
    for name, text in CODE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return "python:keyed_own.factory:make"


def wrapped(checkpoint, folder):
    from equipoise.models.wrapped import Ensemble, Rule, Wrapping, save_wrapped

    base = load_model(copied("clip", checkpoint, folder / "base"), device="cpu")
    (folder / "fitted").mkdir()
    save_wrapped(
        folder / "fitted", base.info, Wrapping(Ensemble((Rule("a {}", ("a red {}",)),), ("red",)))
    )
    return f"equipoise:{folder / 'fitted'}"


def edited(checkpoint, folder):
    from equipoise.models.edits import Site, UnitEdit

    base = load_model(copied("vit", checkpoint, folder / "base"), device="cpu")
    units = Site("classifier", -1, (1,), (0,), (0.25,), (1.0,))
    edit = UnitEdit(base.info.name, None, base.info.weights_sha256, "clamp", (units,))
    edit.write(folder / "units.json")
    return f"edited:{folder / 'units.json'}"


def diffusers(_, folder):
    from diffusion_checkpoints import stable_diffusion

    return f"diffusers:{stable_diffusion(folder)}"


ADAPTERS = {
    **{
        family: partial(copied, family)
        for family in ("clip", "blip_matching", "vit", "open_clip", "timm")
    },
    **{
        write.__name__: write
        for write in (
            sharded, templated, onnx, onnx_of_floats, python, wrapped, edited, diffusers,
        )
    },
}  # fmt: skip


def run(name):
    """Load a model anew, run it, and return what its evidence is kept under."""
    for module in [module_name for module_name in sys.modules if module_name.startswith("keyed_")]:
        del sys.modules[module]
    importlib.invalidate_caches()
    if name.startswith("diffusers:"):
        maker = load_generator(name, device="cpu")
        maker.generate(["a"], seeds=[0], sampling=Sampling(steps=1, height=16, width=16))
        return maker.info.key, ()
    model = load_model(name, device="cpu")
    for call in ("embed_images", "predict_proba"):
        if hasattr(model, call):
            getattr(model, call)(PIXELS)
    if hasattr(model, "embed_texts"):
        model.embed_texts(["a photo"])
    return model.info.key, tuple(getattr(model, "labels", ()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


# transformers leaves the files of chat templates open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_changed_file_changes_the_key_or_is_refused(adapter, checkpoint, folder):
    name = ADAPTERS[adapter](checkpoint, folder)
    with opened_in(folder) as opened:
        before = run(name)
    files = sorted(path for path in opened if path.is_file())
    assert len(files) >= 2
    contents = {path: path.read_bytes() for path in files}
    stale = []
    for path in files:
        changed(path)
        with suppress(ModelError):
            stale += [path.relative_to(folder)] if run(name) == before else []
        path.write_bytes(contents[path])
    assert run(name) == before
    assert not stale


@pytest.mark.parametrize("damage", ["config", "adapter"])
def test_a_checkpoint_that_names_other_weights_is_refused(damage, checkpoint, folder):
    name = copied("vit", checkpoint, folder)
    if damage == "adapter":
        (folder / "adapter_config.json").write_text("{}")
    else:
        settings = json.loads((folder / "config.json").read_text())
        named = json.dumps(settings | {"transformers_weights": "other.safetensors"})
        (folder / "config.json").write_text(named)
    with pytest.raises(ModelError, match="save it by save_pretrained"):
        load_model(name)


def test_a_remembered_graph_is_not_met_with_other_weights(folder):
    import onnx as library

    name, store = onnx(lambda _: folder, folder), folder / "store"
    before = open_model(name, RunOptions(), store).info.key
    assert open_model(name, RunOptions(), store).info.key == before
    graph = library.load(folder / "model.onnx")
    weights = graph.graph.initializer[0]
    weights.raw_data = library.numpy_helper.to_array(weights).astype("<f4").tobytes()[::-1]
    library.save(graph, folder / "model.onnx")
    assert open_model(name, RunOptions(), store).info.key != before
