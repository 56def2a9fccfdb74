"""Names of models that lie beside a file: relative in the file, in full when it is read."""

import os
from pathlib import Path


def relative(name: str, folder: Path) -> str:
    """Return the name of a model with its folder or file relative to another folder."""
    prefix, _, rest = name.partition(":")
    if prefix == "python" or not rest or not Path(rest).expanduser().exists():
        return name
    return f"{prefix}:{Path(os.path.relpath(Path(rest).expanduser(), folder)).as_posix()}"


def absolute(name: str, folder: Path) -> str:
    """Return the name of a model with a folder or file that lies beside another in full."""
    prefix, _, rest = name.partition(":")
    beside = folder / rest
    if prefix == "python" or not rest or not beside.exists():
        return name
    return f"{prefix}:{os.path.normpath(beside)}"
