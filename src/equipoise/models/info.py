"""Facts that identify a model, to decide whether its evidence can be reused."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from equipoise.core.types import Json
from equipoise.core.writing import write

WEIGHTS = frozenset(
    {".bin", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx", ".ot", ".pt", ".pth", ".safetensors"}
)
DOCUMENTS = frozenset({".gif", ".jpeg", ".jpg", ".md", ".pdf", ".png", ".svg", ".webp"})
TEMPLATES = "additional_chat_templates"  # the one folder inside a checkpoint that is read


@dataclass(frozen=True)
class ModelInfo:
    """Facts about a loaded model.

    Attributes
    ----------
    name : str
        As asked for, for example ``hf:openai/clip-vit-base-patch32``.
    family : str
        What kind of model it is, for example ``clip``.
    weights_sha256 : str
        Digest of the weights: of the file, or of the names and digests of several.
    files : mapping of str to str
        SHA-256 of each file that was read (weights, configuration, tokenizer, image processor).
    revision : str or None
        Commit of the checkpoint where it has one; None for a folder or a file.
    dimension : int or None
        Length of an embedding, or of a classifier's features; None for the others.
    scale, bias : float or None
        What the model itself makes of a cosine: ``scale * cosine + bias`` is its logit.
    dtype, device : str
        Numbers computed with, and where: ``float32``, ``cuda:0``.
    backend : str
        What ran its tower for images: ``torch``, ``openvino`` or ``onnxruntime``.
    preprocessing : mapping
        How images and texts became tensors: which image processor ran and its settings, the
        tokenizer, the longest text; of an answerer, its prompt and decoding.
    versions : mapping of str to str
        Libraries and their versions. They are told, and not part of `key`.
    """

    name: str
    family: str
    weights_sha256: str
    files: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    dimension: int | None = None
    scale: float | None = None
    bias: float | None = None
    dtype: str = "float32"
    device: str = "cpu"
    backend: str = "torch"
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """SHA-256 of every fact that can change an output; a renamed copy keeps its key."""
        facts = asdict(self) | {"device": self.device.partition(":")[0]}
        for field_name in ("name", "revision", "versions"):
            del facts[field_name]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_settings(path: Path, settings: Mapping[str, Json]) -> None:
    """Write settings as JSON: the same bytes for the same settings."""
    text = json.dumps(settings, indent=1, sort_keys=True)
    write(path, f"{text}\n".encode())


def digests(paths: Iterable[Path], folder: Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of each file by its path in the folder, else by its name."""
    return {
        path.name if folder is None else path.relative_to(folder).as_posix(): sha256_of(path)
        for path in sorted(paths)
    }


def settings_in(folder: Path, *, code: bool = False) -> list[Path]:
    """Return every file of a model's folder that a library may open, but for weights.

    A library chooses its files by rules of its own, so none is left out by name: only hidden files,
    documents and pictures, and Python code that is not run.

    Parameters
    ----------
    folder : Path
    code : bool
        Whether Python code of the folder is run.
    """
    paths = {*folder.glob("*"), *folder.glob(f"{TEMPLATES}/*")}
    paths = {path for path in paths if path.suffix != ".py"}
    paths |= {*folder.glob("**/*.py")} if code else set()
    idle = WEIGHTS | DOCUMENTS
    return sorted(
        path
        for path in paths
        if path.suffix.lower() not in idle and path.name[0] != "." and path.is_file()
    )


def one_digest(files: Mapping[str, str]) -> str:
    """Return a single digest for several files, by names and digests."""
    if len(files) == 1:
        return next(iter(files.values()))
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
