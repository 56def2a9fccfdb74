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
    "revision with safetensors, convert the weights, or, if you trust their source, set "
    "allow_pickle: true."
)


def fetch_folder(
    hub_id: str, options: Options, patterns: Sequence[str], ignored: Sequence[str] = ("*/*",)
) -> Path:
    """Return the folder with the files of a repository.

    Parameters
    ----------
    hub_id : str
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
    check_source(hub_id)
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "hf") from error
    try:
        folder = snapshot_download(
            hub_id,
            revision=options.revision,
            allow_patterns=[*patterns],
            ignore_patterns=[*ignored],
            local_files_only=not options.fetch,
        )
    except Exception as error:
        revision = f" at revision {options.revision}" if options.revision else ""
        prefix = options.name.partition(":")[0]
        raise ModelError(
            f"{hub_id}{revision} isn't a folder here, is not in the local cache, and could not be "
            f"fetched ({type(error).__name__}). To do: download its files where there is a "
            f"network and name the folder ({prefix}:path/to/folder), or set HF_HOME to a cache "
            "that holds it."
        ) from error
    return Path(folder)


def check_source(target: str) -> None:
    """Refuse a name of neither a folder nor a hub id; a hub id isn't looked up.

    Raises
    ------
    ModelError
        With the path.
    """
    if not (HUB_ID.fullmatch(target) or Path(target).expanduser().is_dir()):
        raise ModelError(f"There is no folder {target}, and it isn't a hub id (owner/name).")


def check_path(target: str) -> None:
    """Refuse a path to nothing, of a library whose other names aren't paths.

    Raises
    ------
    ModelError
        With the path.
    """
    is_path = target.startswith(("./", "../", "/", "~"))
    if is_path and not Path(target).expanduser().exists():
        raise ModelError(f"There is no file or folder {target}. To do: correct the path.")


def cached_file(hub_id: str, name: str) -> Path | None:
    """Return a repository's file from the local cache, or None; never fetch.

    None as well without the library that knows where the cache is.
    """
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    path = try_to_load_from_cache(hub_id, name) if HUB_ID.fullmatch(hub_id) else None
    return Path(path) if isinstance(path, str) else None


def refuse_revision(target: str, options: Options) -> None:
    """Refuse a revision for a folder, a file or a factory."""
    if options.revision is not None:
        raise ModelError(
            f"{target} isn't a repository of a hub, so it has no revision {options.revision!r}. "
            "To do: leave the revision out."
        )


def commit(folder: Path) -> str | None:
    """Return the commit of a snapshot in the cache, None for another folder."""
    return folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else None


def weights_file(target: str, folder: Path, names: Sequence[str], options: Options) -> Path:
    """Return the first file that exists; refuse a pickle unless it is allowed."""
    existing = [folder / name for name in names if (folder / name).is_file()]
    if not existing:
        raise ModelError(f"{target} holds no weights ({names[0]}).")
    return refuse_pickle(existing[0], target, options)


def refuse_pickle(path: Path, target: str, options: Options) -> Path:
    """Return a file of weights; refuse a pickle unless pickles are allowed."""
    if path.suffix != ".safetensors" and not options.allow_pickle:
        raise ModelError(PICKLED_ONLY.format(target))
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
        """Return the weights of a settings folder, or of ``hf-hub:id``.

        Raises
        ------
        ModelError
            If the settings or the weights are missing, or the weights are a pickle.
        """
        hub_id, folder = target.removeprefix("hf-hub:"), Path(target)
        if folder.is_dir():
            refuse_revision(target, options)
        else:
            readable = [
                name for name in names if options.allow_pickle or name.endswith(".safetensors")
            ]
            folder = fetch_folder(hub_id, options, [settings, "*.json", "*.txt", *readable])
        if not (folder / settings).is_file():
            raise ModelError(f"{hub_id} holds no {settings}.")
        weights = weights_file(hub_id, folder, names, options)
        return cls(f"local-dir:{folder}", weights, folder / settings, commit(folder))

    @property
    def architecture_name(self) -> str:
        """The architecture's name in the library; "" for a folder with settings."""
        return "" if self.settings else self.architecture

    @cached_property
    def digest(self) -> dict[str, str]:
        """The SHA-256 of the weights, by the name of their file."""
        return digests([self.weights])

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of the weights and of every readable file next to them."""
        return self.digest | digests(settings_in(self.settings.parent) if self.settings else [])

    def identity(self, library: str, options: Options) -> Mapping[str, Json]:
        """Return the facts that decide which model it is; see `Adapter.identify`."""
        facts = {
            "files": self.files,
            "architecture": self.architecture_name,
            "revision": self.revision,
        }
        return facts | place(options.device, options.dtype, library).identity
