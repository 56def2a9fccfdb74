"""Checkpoints of transformers on disk: where they lie, which files count, which are refused."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models.hub import PICKLED_ONLY, commit, fetched, without_revision
from equipoise.models.info import digests, one_digest, settings_in
from equipoise.models.options import Options

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
CONFIG, ADAPTER = "config.json", "adapter_config.json"
TOLD = ("*.json", "*.txt", "*.model", "*.jinja")  # configuration, tokenizer, image processor


@dataclass(frozen=True)
class Checkpoint:
    """A folder that `save_pretrained` wrote, or a snapshot of a hub's repository.

    Attributes
    ----------
    asked : str
        Hub id or folder, as asked for.
    folder : Path
        Where the files are.
    config : mapping
        What config.json holds.
    weights : tuple of Path
        The files of weights that will be read.
    revision : str or None
        Commit, of a snapshot.
    """

    asked: str
    folder: Path
    config: dict[str, Any]
    weights: tuple[Path, ...]
    revision: str | None

    @property
    def architecture(self) -> str:
        """The class that the weights are of, as config.json says; empty where it does not."""
        return next(iter(self.config.get("architectures") or []), "")

    @property
    def safe(self) -> bool:
        """Whether the weights are safetensors."""
        return all(path.suffix == ".safetensors" for path in self.weights)

    def digests(self, code: bool) -> tuple[dict[str, str], str]:
        """Return the SHA-256 of every file that is read, and one of the weights."""
        weights = digests(self.weights)
        settings = digests(settings_in(self.folder, code=code), self.folder)
        return settings | weights, one_digest(weights)


def find_checkpoint(asked: str, options: Options) -> Checkpoint:
    """Find the files of a checkpoint: in a folder, in the local cache, or on the hub.

    Parameters
    ----------
    asked : str
        A folder or a hub id.
    options : Options
        Which revision, and whether pickles are allowed.

    Returns
    -------
    Checkpoint

    Raises
    ------
    ModelError
        If there are no such files, they cannot be fetched, or the weights are pickles.
    """
    folder = Path(asked).expanduser()
    if folder.is_dir():
        without_revision(asked, options)
        found, revision = folder, None
    else:
        found = fetched(asked, options, _wanted(options))
        revision = commit(found)
    return Checkpoint(
        asked, found, _config(asked, found), _weights(asked, found, options.allow_pickle), revision
    )


def _wanted(options: Options) -> list[str]:
    patterns = [*TOLD, "model*.safetensors"]
    patterns += ["pytorch_model*.bin"] if options.allow_pickle else []
    patterns += ["*.py"] if options.trust_remote_code else []
    return patterns


def _config(asked: str, folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        raise ModelError(
            f"{asked} holds no {CONFIG}. To do: name a folder that save_pretrained wrote."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} holds no configuration of a model.")
    _refuse_others(folder, config)
    return config


def _refuse_others(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that has the library read other weights than those that key evidence."""
    other = (
        f"{CONFIG} names weights of its own (transformers_weights)"
        if "transformers_weights" in config
        else f"{ADAPTER} is an adapter for other weights"
    )
    if "transformers_weights" in config or (folder / ADAPTER).is_file():
        raise ModelError(
            f"{folder}: {other}. To do: merge them into the model and save it by save_pretrained."
        )


def _weights(asked: str, folder: Path, allow_pickle: bool) -> tuple[Path, ...]:
    names = (SAFE, PICKLED) if allow_pickle else (SAFE,)
    for name in names:
        for path in (folder / name, folder / f"{name}.index.json"):
            if path.is_file():
                return _shards(asked, path)
    if any(folder.glob("pytorch_model*.bin*")):
        raise ModelError(PICKLED_ONLY.format(asked))
    raise ModelError(f"{asked} holds no weights ({SAFE}).")


def _shards(asked: str, path: Path) -> tuple[Path, ...]:
    if path.suffix != ".json":
        return (path,)
    index = json.loads(path.read_text(encoding="utf-8"))
    names = sorted({*index["weight_map"].values()})
    missing = [
        name for name in names if Path(name).name != name or not (path.parent / name).is_file()
    ]
    if missing:
        raise ModelError(f"{asked} lacks weights that its index names: {', '.join(missing)}.")
    return tuple(path.parent / name for name in names)
