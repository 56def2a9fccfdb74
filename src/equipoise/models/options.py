"""What `load_model` was asked, as every adapter receives it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How to load a model.

    Attributes
    ----------
    name : str
        The whole name, with its prefix.
    device, dtype, backend, preprocessing : str
        As in `load_model`.
    revision : str or None
        Branch, tag or commit of a checkpoint on a hub.
    allow_pickle, trust_remote_code : bool
        Whether files may be read that can run code.
    fetch : bool
        Whether a hub may be asked for files that the local cache does not hold.
    """

    name: str
    device: str = "auto"
    dtype: str = "auto"
    revision: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    backend: str = "auto"
    preprocessing: str = "auto"
    fetch: bool = True
