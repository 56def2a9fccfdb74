"""Files of an export on disk: a new folder, whole or not at all."""

from pathlib import Path

from equipoise.core.writing import make_folder, write
from equipoise.evidence import new_run
from equipoise.exports import Files


def write_files(files: Files, folder: Path, *, overwrite: bool = False) -> None:
    """Write the files of an export.

    Parameters
    ----------
    files : mapping of str to str
        Name in the folder to text.
    folder : Path
        Appears when it is whole.
    overwrite : bool
        Replace an earlier export, if its folder has no files of the user's own.

    Raises
    ------
    RunError
        When the folder is taken or can't be written.
    """
    with new_run(folder, overwrite=overwrite) as hidden:
        for name, text in files.items():
            path = hidden / name
            make_folder(path.parent)
            write(path, text.encode())
