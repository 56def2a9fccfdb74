"""Files of a hub's repository: from the local cache, or fetched."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from equipoise.core import MissingExtraError, ModelError
from equipoise.core.types import Json
from equipoise.models.info import digests, settings_in
from equipoise.models.registry import Options
from equipoise.models.runtimes import place

HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
PICKLED_ONLY = (
    "{} has its weights only as pickles, which can run any code when they are read. To do: use a "
    "revision with safetensors, convert the weights, or, if you trust where they come from, set "
    "allow_pickle: true."
)


def fetched(
    asked: str, options: Options, patterns: Sequence[str], ignored: Sequence[str] = ("*/*",)
) -> Path:
    """Return the folder with the files of a repository.

    Parameters
    ----------
    asked : str
        Hub id, owner/name.
    options : Options
        Which revision.
    patterns : sequence of str
        Names of the files that are needed, with wildcards.
    ignored : sequence of str
        Names of the files that are not, of these: those in folders unless given.

    Raises
    ------
    MissingExtraError
        If the library that fetches is not installed.
    ModelError
        If it is no hub id, or its files are neither in the cache nor to be had.
    """
    if not HUB_ID.fullmatch(asked):
        raise ModelError(f"There is no folder {asked}, and it is no hub id (owner/name).")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "hf") from error
    try:
        folder = snapshot_download(
            asked,
            revision=options.revision,
            allow_patterns=[*patterns],
            ignore_patterns=[*ignored],
            local_files_only=not options.fetch,
        )
    except Exception as error:
        at = f" at revision {options.revision}" if options.revision else ""
        prefix = options.name.partition(":")[0]
        raise ModelError(
            f"{asked}{at} is no folder here, is not in the local cache, and could not be fetched "
            f"({type(error).__name__}). To do: download its files where there is a network and "
            f"name the folder ({prefix}:path/to/folder), or set HF_HOME to a cache that holds it."
        ) from error
    return Path(folder)


def cached(asked: str, name: str) -> Path | None:
    """Return a file of a repository where the local cache holds it; nothing is fetched.

    None as well without the library that knows where the cache is.
    """
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(asked, name) if HUB_ID.fullmatch(asked) else None
    return Path(found) if isinstance(found, str) else None


def without_revision(asked: str, options: Options) -> None:
    """Refuse a revision of what has none: a folder, a file, a factory."""
    if options.revision is not None:
        raise ModelError(
            f"{asked} is no repository of a hub, so it has no revision {options.revision!r}. "
            "To do: leave the revision out."
        )


def commit(folder: Path) -> str | None:
    """Return the commit that a folder of the cache is a snapshot of, None of any other folder."""
    return folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else None


def weights_file(asked: str, folder: Path, names: Sequence[str], options: Options) -> Path:
    """Return the first of some files that is there; a pickle only where that is allowed."""
    there = [folder / name for name in names if (folder / name).is_file()]
    if not there:
        raise ModelError(f"{asked} holds no weights ({names[0]}).")
    return checked(there[0], asked, options)


def checked(path: Path, asked: str, options: Options) -> Path:
    """Return a file of weights; refuse a pickle unless pickles are allowed."""
    if path.suffix != ".safetensors" and not options.allow_pickle:
        raise ModelError(PICKLED_ONLY.format(asked))
    return path


@dataclass(frozen=True)
class LibraryWeights:
    """An architecture of timm or open_clip, and the files that it is loaded from.

    Attributes
    ----------
    architecture : str
        As the library takes it.
    weights : Path
        The file of weights.
    settings : Path or None
        The configuration beside it, in a folder.
    revision : str or None
        Commit of a snapshot.
    image_settings : dict
        Settings of image preparation that belong to the weights.
    """

    architecture: str
    weights: Path
    settings: Path | None = None
    revision: str | None = None
    image_settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def in_folder(
        cls, target: str, settings: str, names: Sequence[str], options: Options
    ) -> "LibraryWeights":
        """Return the weights of a folder that holds a library's settings, or of ``hf-hub:id``.

        Raises
        ------
        ModelError
            If the settings or the weights are missing, or the weights are a pickle.
        """
        asked, folder = target.removeprefix("hf-hub:"), Path(target)
        if folder.is_dir():
            without_revision(target, options)
        else:
            wanted = [one for one in names if options.allow_pickle or one.endswith(".safetensors")]
            folder = fetched(asked, options, [settings, "*.json", "*.txt", *wanted])
        if not (folder / settings).is_file():
            raise ModelError(f"{asked} holds no {settings}.")
        weights = weights_file(asked, folder, names, options)
        return cls(f"local-dir:{folder}", weights, folder / settings, commit(folder))

    @property
    def own_name(self) -> str:
        """The architecture's name in the library; empty for a folder, whose settings say it."""
        return "" if self.settings else self.architecture

    @cached_property
    def digest(self) -> dict[str, str]:
        """The SHA-256 of the weights, by the name of their file."""
        return digests([self.weights])

    @property
    def files(self) -> dict[str, str]:
        """The SHA-256 of the weights and of every file beside them that may be read."""
        return self.digest | digests(settings_in(self.settings.parent) if self.settings else [])

    def identity(self, library: str, options: Options) -> Mapping[str, Json]:
        """Return the facts that decide which model it is; see `Adapter.identify`."""
        facts = {"files": self.files, "architecture": self.own_name, "revision": self.revision}
        return facts | place(options.device, options.dtype, library).identity
