"""Published studies: each is a file of this folder, with its configuration and its tables."""

from importlib.resources import files
from typing import Literal

STUDIES = tuple(
    sorted(
        folder.name.removesuffix(".yaml")
        for folder in files(__package__).iterdir()
        if folder.name.endswith(".yaml")
    )
)
"""Names of the studies: of the files of this folder."""
StudyName = Literal[STUDIES]  # type: ignore[valid-type]
