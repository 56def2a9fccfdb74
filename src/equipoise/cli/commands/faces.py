"""`equipoise faces`: find the faces in a folder of images."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.outputs import check_output, write_output
from equipoise.cli.terminal import PATH, json_option, say_json, say_values

if TYPE_CHECKING:
    import polars as pl

    from equipoise.core.types import Json


@click.command("faces", epilog="Example: equipoise faces images --level query --level region")
@click.argument("folder", type=PATH)
@click.option(
    "--level",
    "levels",
    multiple=True,
    metavar="NAME",
    help="Name for a level of folders inside FOLDER, the outermost first. Repeatable.",
)
@click.option(
    "--ledger",
    type=PATH,
    metavar="FILE",
    help="Table of columns to add, such as query, country, rank and date.",
)
@click.option(
    "--file",
    default="file",
    show_default=True,
    metavar="COLUMN",
    help="Column of the ledger with the path of the image inside FOLDER.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0.0),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Margin on each side, as a share of the face.",
)
@click.option(
    "--out",
    type=PATH,
    default=Path("faces.csv"),
    show_default=True,
    metavar="FILE",
    help="The table.",
)
@json_option
def faces_command(
    folder: Path,
    levels: tuple[str, ...],
    ledger: Path | None,
    file: str,
    margin: float,
    out: Path,
    as_json: bool,
) -> None:
    """Find faces in FOLDER and write a table of crops.

    Audits can read the table. Its columns are image_id (the path inside FOLDER), face (yes, no,
    unreadable), faces (their number), and left, top, right and bottom of the largest face.
    """
    from equipoise.audits.images import open_images
    from equipoise.config.images import PicturesConfig
    from equipoise.core import ConfigError
    from equipoise.data.formats.reading import read_plain
    from equipoise.data.problems import repeated
    from equipoise.data.tables import open_table
    from equipoise.explain.faces import FACES, largest_faces

    if not isfinite(margin):
        raise click.BadParameter(f"{margin} is not finite", param_hint="'--margin'")
    check_output(out)
    ledger_columns = () if ledger is None else open_table(ledger).names
    names = [name for name in ledger_columns if name != file]
    columns = [*FACES, *levels, *names]
    if twice := repeated(columns):
        raise ConfigError(
            f"the table would have two columns {twice[0]!r}; expected different names of levels, "
            f"the ledger's columns and {', '.join(FACES)}. To do: rename it, or leave --level out"
        )
    images = open_images(PicturesConfig(folder=folder.absolute(), levels=levels), Path())
    pictures = images.need_pictures("faces")
    assert images.table is not None  # noqa: S101 - of a folder there is one
    table: pl.DataFrame = images.table.frame
    facts: dict[str, Json] = {"table": str(out), "images": len(pictures)}
    if ledger is not None:
        rows = read_plain(ledger, id=file, columns=names).table
        facts["images without a row of the ledger"] = table.join(rows, "image_id", "anti").height
        facts["rows of the ledger without an image"] = rows.join(table, "image_id", "anti").height
        table = table.join(rows, "image_id", "left", maintain_order="left")
    faces = largest_faces(pictures, margin=margin)
    table = table.join(faces, "image_id", "left", maintain_order="left")
    write_output(out, table.write_csv())
    shares = table.group_by([*levels, "face"], maintain_order=True).len("images")
    facts["faces"] = shares.sort([*levels, "face"]).to_dicts()
    (say_json if as_json else say_values)(facts)
