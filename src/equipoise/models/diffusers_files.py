"""Pipelines of diffusers on disk: where they lie, which files are read, which are refused."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models.hub import PICKLED_ONLY, commit, fetched, without_revision
from equipoise.models.info import digests, one_digest, settings_in
from equipoise.models.options import Options

INDEX = "model_index.json"
_WEIGHTS = ("model", "diffusion_pytorch_model")
_PICKLED = ("pytorch_model", "diffusion_pytorch_model")
_TOLD = ("*.json", "*.txt", "*.model")  # configurations, tokenizers, schedulers


@dataclass(frozen=True)
class Files:
    """A folder that `save_pretrained` of a pipeline wrote, or a snapshot of a hub's repository.

    Attributes
    ----------
    asked : str
        Hub id or folder, as asked for.
    folder : Path
    index : mapping
        What model_index.json holds.
    digests : mapping of str to str
        SHA-256 of each file that is read, by its path in the folder.
    weights_sha256 : str
        One digest of all weights.
    revision : str or None
        Commit, of a snapshot.
    """

    asked: str
    folder: Path
    index: Mapping[str, Any] = field(repr=False)
    digests: Mapping[str, str] = field(repr=False)
    weights_sha256: str
    revision: str | None

    @property
    def without(self) -> tuple[str, ...]:
        """Parts that the pipeline was saved without, such as a third text encoder."""
        return tuple(part for part, given in self.index.items() if given == [None, None])


def find_pipeline(asked: str, options: Options) -> Files:
    """Find the files of a pipeline: in a folder, in the local cache, or on the hub.

    Raises
    ------
    ModelError
        If there are none, they cannot be fetched, weights are pickles, or code comes with them.
    """
    folder = Path(asked).expanduser()
    revision = None
    if folder.is_dir():
        without_revision(asked, options)
    else:
        folder = fetched(asked, options, _wanted(options), ("*.fp16*", "*non_ema*"))
        revision = commit(folder)
    index = _index(asked, folder)
    _refuse_code(asked, index, options)
    weights = _weights(asked, folder, index, options)
    code = options.trust_remote_code
    settings = [
        path for part in ("", *_parts(index)) for path in settings_in(folder / part, code=code)
    ]
    found = digests(weights, folder)
    return Files(
        asked, folder, index, digests({*settings}, folder) | found, one_digest(found), revision
    )


def _wanted(options: Options) -> list[str]:
    names = [f"*/{name}{more}.safetensors" for name in _WEIGHTS for more in ("", "-*-of-*")]
    if options.allow_pickle:
        names += [f"*/{name}{more}.bin" for name in _PICKLED for more in ("", "-*-of-*")]
    code = ["*.py"] if options.trust_remote_code else []
    return [INDEX, *(f"*/{name}" for name in _TOLD), *names, *code]


def _index(asked: str, folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    if not path.is_file():
        raise ModelError(
            f"{asked} holds no {INDEX}. To do: name a folder that save_pretrained of a pipeline "
            "of diffusers wrote."
        )
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(index, dict) or "_class_name" not in index:
        raise ModelError(f"{path} names no pipeline.")
    return index


def _refuse_code(asked: str, index: Mapping[str, Any], options: Options) -> None:
    """Refuse a pipeline or a part of it whose class is in a file that came with it."""
    own = [] if isinstance(index["_class_name"], str) else [INDEX]
    own += [
        part
        for part, given in _given(index).items()
        if not re.match(r"(diffusers|transformers)\b", given[0]) and not _known(given[0])
    ]
    if own and not options.trust_remote_code:
        raise ModelError(
            f"{asked} brings Python code of its own ({own[0]}), which would be run. To do: use a "
            "checkpoint without, or, if you have read the code, set trust_remote_code: true."
        )


def _known(library: str) -> bool:
    # Some pipelines name modules of diffusers by their last part, such as "stable_diffusion".
    from diffusers import pipelines

    return hasattr(pipelines, library)


def _given(index: Mapping[str, Any]) -> dict[str, Any]:
    return {
        part: given
        for part, given in index.items()
        if isinstance(given, list) and len(given) == 2 and isinstance(given[0], str)
        if not part.startswith("_")
    }


def _parts(index: Mapping[str, Any]) -> list[str]:
    return sorted(_given(index))


def _weights(asked: str, folder: Path, index: Mapping[str, Any], options: Options) -> list[Path]:
    found: list[Path] = []
    for part in _parts(index):
        safe = _named(folder / part, _WEIGHTS, "safetensors")
        pickled = _named(folder / part, _PICKLED, "bin")
        if pickled and not safe and not options.allow_pickle:
            raise ModelError(PICKLED_ONLY.format(f"{asked} ({part})"))
        found += safe or pickled
    if not found:
        raise ModelError(f"{asked} holds no weights ({_WEIGHTS[1]}.safetensors).")
    return found


def _named(folder: Path, names: tuple[str, ...], suffix: str) -> list[Path]:
    """Return the weights that are loaded: the whole file or its shards, of no variant."""
    shape = re.compile(rf"({'|'.join(names)})(-\d+-of-\d+)?\.{suffix}")
    return sorted(path for path in folder.glob(f"*.{suffix}") if shape.fullmatch(path.name))
