"""The prefix ``equipoise:``: a folder that says which model to wrap, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import ModelError
from equipoise.models.ensembles import Ensemble, naming
from equipoise.models.hub import without_revision
from equipoise.models.info import ModelInfo, digests, one_digest
from equipoise.models.matching import Matching
from equipoise.models.options import Options
from equipoise.models.protocols import DualEncoder
from equipoise.models.registry import absolute, adapter, load_nested, relative

Floats = NDArray[np.float32]

SETTINGS, TRANSFORM = "equipoise_model.json", "transform.safetensors"
FORMAT, MATCHED = 1, 2
"""Of settings, and of those with a `matching`, which whoever reads 1 alone must not leave out."""


@dataclass(frozen=True)
class Wrapping:
    """What is done to the vectors of a model.

    Attributes
    ----------
    ensemble : Ensemble, optional
        Texts whose vector is the mean of those of several captions.
    transform : ndarray of float32, shape (dimension, dimension), optional
        What vectors are multiplied by, from the right.
    applied_to : tuple of str
        "texts", "images", or both.
    spared : tuple of str
        Texts that hold one of these words are not transformed.
    matching : Matching, optional
        What becomes of all these vectors in the end.
    record : mapping
        How it came about, for whoever reads the folder.
    """

    ensemble: Ensemble | None = None
    transform: Floats | None = None
    applied_to: tuple[str, ...] = ("texts", "images")
    spared: tuple[str, ...] = ()
    matching: Matching | None = None
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """All that decides an output but the numbers of the transform, as JSON takes it."""
        return {
            "ensemble": None if self.ensemble is None else asdict(self.ensemble),
            "applied_to": [] if self.transform is None else list(self.applied_to),
            "spared": list(self.spared),
        } | ({} if self.matching is None else {"matching": self.matching.facts})

    @property
    def numbers(self) -> dict[str, Floats]:
        """The numbers that decide an output, by name."""
        found = {} if self.transform is None else {"transform": self.transform}
        if self.matching is not None:
            found |= self.matching.numbers
        return {name: np.ascontiguousarray(one, dtype=np.float32) for name, one in found.items()}


@dataclass(frozen=True)
class WrappedEncoder:
    """A dual encoder whose vectors are changed on their way out; made by `load_model`."""

    info: ModelInfo
    base: DualEncoder
    wrapping: Wrapping

    def embed_images(self, images: Sequence[Any]) -> Floats:
        """Return projected vectors of n images, (n, dimension), not normalised."""
        found = self.base.embed_images(images)
        chosen = np.full(len(found), "images" in self.wrapping.applied_to)
        found, matching = self._transformed(found, chosen), self.wrapping.matching
        return found if matching is None else matching.images(found)

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Return projected vectors of n texts, (n, dimension), not normalised."""
        matching = self.wrapping.matching
        return self._read(texts) if matching is None else matching.texts(self._read, texts)

    def _read(self, texts: Sequence[str]) -> Floats:
        ensemble, applied = self.wrapping.ensemble, "texts" in self.wrapping.applied_to
        found = (
            self.base.embed_texts(texts)
            if ensemble is None
            else ensemble.embed(self.base.embed_texts, texts)
        )
        named = naming(self.wrapping.spared)
        chosen = [applied and named.search(text) is None for text in texts]
        return self._transformed(found, np.array(chosen, dtype=bool))

    def _transformed(self, vectors: Floats, chosen: NDArray[np.bool_]) -> Floats:
        transform = self.wrapping.transform
        if transform is None or not chosen.any():
            return vectors
        found = vectors.astype(np.float64)
        found[chosen] = found[chosen] @ transform.astype(np.float64)
        return found.astype(np.float32)


def save_wrapped(
    folder: Path, base: ModelInfo, wrapping: Wrapping, *, at: Path | None = None
) -> None:
    """Write what `load_model("equipoise:folder")` opens.

    Parameters
    ----------
    folder : Path
        There, and empty.
    base : ModelInfo
        Of the model to wrap. A folder or file is named relative to `at`.
    wrapping : Wrapping
    at : Path, optional
        Where the folder will lie in the end; `folder` unless given.
    """
    settings = {
        "format": FORMAT if wrapping.matching is None else MATCHED,
        "base": relative(base.name, folder if at is None else at),
        "base_weights_sha256": base.weights_sha256,
        **wrapping.facts,
        "record": dict(wrapping.record),
    }
    if numbers := wrapping.numbers:
        from safetensors.numpy import save_file

        save_file(numbers, folder / TRANSFORM)
    text = json.dumps(settings, indent=1, ensure_ascii=True, sort_keys=True)
    (folder / SETTINGS).write_text(f"{text}\n", encoding="utf-8")


@adapter("equipoise")
def load(target: str, options: Options) -> WrappedEncoder:
    """Load a wrapped dual encoder.

    Parameters
    ----------
    target : str
        A folder that holds equipoise_model.json.
    options : Options
        As for the model inside.

    Raises
    ------
    ModelError
        If the folder is none of these, or the model inside is missing, another one than was
        wrapped, or made by code that is not trusted.
    """
    without_revision(target, options)
    folder = Path(target).expanduser()
    settings = _settings(target, folder)
    base = _base(settings, folder, options)
    wrapping = _wrapping(settings, folder, base.info, target)
    files = digests(path for path in (folder / SETTINGS, folder / TRANSFORM) if path.is_file())
    kept = {name: files[name] for name in files if name == TRANSFORM}
    matching, scale = wrapping.matching, base.info.scale
    info = replace(
        base.info,
        name=options.name,
        dimension=base.info.dimension if matching is None else matching.dimension,
        # Without a scale of its own it is told what makes its cosines those of the model inside.
        scale=scale if matching is None else (1.0 if scale is None else scale) * matching.stretch,
        weights_sha256=one_digest({"base": base.info.weights_sha256, **kept}),
        files={**base.info.files, **files},
        revision=None,
        preprocessing={**base.info.preprocessing, "wrapping": wrapping.facts},
    )
    return WrappedEncoder(info, base, wrapping)


def _settings(target: str, folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS
    if not path.is_file():
        raise ModelError(
            f"{target} holds no {SETTINGS}. To do: name a folder that equipoise wrote."
        )
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        found = settings["format"]
        known = isinstance(settings["base"], str)
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} does not say which model to wrap ({error}).") from error
    if not known:
        raise ModelError(f"{path} does not say which model to wrap: its base is no text.")
    if found not in (FORMAT, MATCHED):
        raise ModelError(f"{path} has format {found!r}; this equipoise reads formats 1 and 2.")
    return dict(settings)


def _base(settings: Mapping[str, Any], folder: Path, options: Options) -> Any:
    name = absolute(settings["base"], folder)
    rest = name.partition(":")[2]
    if rest.startswith("../") and name == settings["base"]:
        raise ModelError(
            f"the fitted folder {folder.resolve()} wraps the model in "
            f"{(folder / rest).resolve()}, and nothing lies there: it is looked for in {rest} "
            "from the fitted folder. To do: put that model there, or move both folders together."
        )
    try:
        base = load_nested(name, options)
    except ModelError as error:
        raise ModelError(f"{options.name} wraps {name}, which is not loaded: {error}") from error
    if not isinstance(base, DualEncoder):
        raise ModelError(f"{options.name} wraps {name}, which is no dual encoder.")
    if base.info.weights_sha256 != settings.get("base_weights_sha256"):
        raise ModelError(
            f"{options.name} was made of another model than {name} is now: its weights differ. "
            "To do: put the model back, or mitigate this one anew."
        )
    return base


def _wrapping(settings: Mapping[str, Any], folder: Path, base: ModelInfo, target: str) -> Wrapping:
    try:
        ensemble = settings["ensemble"]
        applied, spared = tuple(settings["applied_to"]), tuple(settings["spared"])
        matches = settings["format"] == MATCHED
        numbers = _numbers(folder) if applied or matches else {}
        transform = numbers["transform"] if applied else None
        made = None if ensemble is None else Ensemble.of(ensemble)
        matching = Matching.of(settings["matching"], numbers) if matches else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{target} cannot be read: {error}.") from error
    if transform is not None and transform.shape != (base.dimension, base.dimension):
        raise ModelError(
            f"{target} transforms vectors with a matrix of shape {transform.shape}, and the model "
            f"inside has vectors of {base.dimension} numbers."
        )
    if matching is not None and len(matching.gate) != base.dimension:
        raise ModelError(
            f"{target} tells values from vectors of {len(matching.gate)} numbers, and the model "
            f"inside has vectors of {base.dimension} numbers."
        )
    return Wrapping(made, transform, applied, spared, matching, settings.get("record") or {})


def _numbers(folder: Path) -> dict[str, Floats]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(folder / TRANSFORM))
    except SafetensorError as error:
        raise ValueError(f"{TRANSFORM} is damaged ({error})") from error
