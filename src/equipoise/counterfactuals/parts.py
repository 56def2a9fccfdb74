"""Requested images, the draws of each candidate, and the Parquet files that hold images."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import (
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from equipoise.core import DataError, Facts, Fields, Floats32, InputError, Strings, record
from equipoise.core.files import read_json_file, read_table, table_bytes
from equipoise.core.types import FileFacts
from equipoise.core.writing import write, writer
from equipoise.counterfactuals.captions import CaptionSets
from equipoise.evidence import new_run
from equipoise.evidence.pictures import Pictures, rows_of
from equipoise.evidence.store import input_of, key_of, part_name, read_manifest, read_rows
from equipoise.models.generators import Sampling, StepImage
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from equipoise.models.images import Image

Shares = tuple[float, float]
"""Ends between which the share of the steps is drawn for each candidate, evenly."""
COARSE = 16 * 16
"""Places of maps of images to themselves that are shared, as in Hertz et al. 2023.

Finer ones would fix every pixel."""

COLUMNS = pa.schema(
    [(name, pa.string()) for name in ("image_id", "prompt_id", "prompt", "set")]
    + [("candidate", pa.int64()), ("seed", pa.int64())]
    + [(name, pa.float64()) for name in ("shared", "shared_self", "guidance")]
    + [(name, pa.string()) for name in ("base", "state", "reason")]
)
"""Columns of each image, beside those of its prompt."""

TABLE = "images.parquet"

# Raised whenever the same prompts, model and settings would give other files than before.
_FORMAT = 2
_LAST = "last"
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
# Rows that are read together with a picture.
_TOGETHER = 8
_DRAWS = ("seed", "shared", "shared_self", "places", "guidance")
RATE = "rate.json"
"""File with the number of images that the last run made, and their seconds."""


@dataclass(frozen=True)
class Group:
    """Prompts that share one generation: a set, or a single prompt.

    Attributes
    ----------
    name : str
        The id of the set, or of the prompt.
    ids, prompts : tuple of str
        Of each prompt of it.
    set : str or None
        The set of its prompts, None without one.
    """

    name: str
    ids: Strings
    prompts: Strings
    set: str | None


@dataclass(frozen=True)
class Candidate:
    """One image of each prompt of a group.

    Attributes
    ----------
    group : Group
    number : int
        From 0.
    seed : int
        Of the noise that all its images start from.
    base : int
        The prompt whose maps the others share; its image is what the model makes of it alone.
    shared : float or None
        Share of the steps in which maps of texts are shared; None without control.
    shared_self : float or None
        The same of maps of images to themselves.
    places : int or None
        Largest of these maps that are shared; None for all.
    guidance : float or None
        Drawn strength of guidance; None where it is that of all images.
    """

    group: Group
    number: int
    seed: int
    base: int = 0
    shared: float | None = None
    shared_self: float | None = None
    places: int | None = COARSE
    guidance: float | None = None

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.group.ids)

    def rows(self) -> Iterator[Fields]:
        """Yield the known columns of each image before it is made."""
        group = self.group
        for prompt_id, prompt in zip(group.ids, group.prompts, strict=True):
            yield {
                "image_id": f"{prompt_id}/{self.number:03d}",
                "prompt_id": prompt_id,
                "prompt": prompt,
                "set": group.set,
                "candidate": self.number,
                "seed": self.seed,
                "shared": self.shared,
                "shared_self": self.shared_self,
                "guidance": self.guidance,
                "base": None if self.shared is None else group.ids[self.base],
            }


@dataclass(frozen=True)
class Piece:
    """Whole candidates that go into one part."""

    candidates: tuple[Candidate, ...]

    def __len__(self) -> int:
        """Return the number of images."""
        return sum(map(len, self.candidates))

    def rows(self) -> list[Fields]:
        """Return the known columns of each image before it is made."""
        return [row for candidate in self.candidates for row in candidate.rows()]


def images_of(candidates: Iterable[Candidate]) -> tuple[list[str], list[int]]:
    """Return the prompt and the seed of each image of some candidates."""
    prompts: list[str] = []
    seeds: list[int] = []
    for candidate in candidates:
        prompts += candidate.group.prompts
        seeds += [candidate.seed] * len(candidate)
    return prompts, seeds


def _between(ends: Shares, uniform: float) -> float:
    low, high = ends
    return low + (high - low) * uniform


@record
class Request:
    """Prompts or captions to make images of.

    Attributes
    ----------
    table : pyarrow.Table
        Of the user; `id` is the column that names a row.
    id : str
        ``prompt_id`` or ``caption_id``.
    groups : tuple of Group
    candidates : int
        Of each group.
    seed : int
    shared, shared_self : (float, float) or None
        Ends between which the shares of the steps are drawn; None where nothing is shared.
    places : int or None
        Largest maps of images to themselves that are shared; None for all.
    guidance : (float, float) or None
        Ends between which the strength of guidance is drawn; None where it is one for all.
    at_steps : tuple of int
        Passes of the denoiser at which images are stored, too.
    """

    table: pa.Table
    id: str
    groups: tuple[Group, ...]
    candidates: int
    seed: int
    shared: Shares | None = None
    shared_self: Shares | None = None
    places: int | None = COARSE
    guidance: Shares | None = None
    at_steps: tuple[int, ...] = ()

    @property
    def images(self) -> int:
        """Number of images requested."""
        return int(self.table.num_rows) * self.candidates

    def candidate(self, group: Group, number: int) -> Candidate:
        """Return a candidate, which depends on its group and number alone."""
        draws = stream(self.seed, "generation", group.name, number)
        seed, base = int(draws.integers(2**63)), int(draws.integers(len(group.ids)))
        shared = shared_self = guidance = None
        if self.shared is None:
            base = 0
        else:
            uniform, uniform_self = draws.random(2).tolist()
            shared = _between(self.shared, uniform)
            if self.shared_self is not None:
                shared_self = _between(self.shared_self, uniform_self)
        if self.guidance is not None:
            guidance = _between(self.guidance, draws.random())
        return Candidate(group, number, seed, base, shared, shared_self, self.places, guidance)

    def pieces(self, part: int) -> Iterator[Piece]:
        """Yield whole candidates in pieces of at most `part` images, of one candidate at least.

        All groups have their first candidates before any has later ones. Pieces are cut in blocks
        of candidates whose size depends on the groups alone, so that a request for more candidates
        leaves earlier pieces as they are, but for the last block.
        """
        block = max(part // self.table.num_rows, 1)
        for first in range(0, self.candidates, block):
            waiting: list[Candidate] = []
            for group in self.groups:
                for place in range(first, min(first + block, self.candidates)):
                    if waiting and sum(map(len, waiting)) + len(group.ids) > part:
                        yield Piece(tuple(waiting))
                        waiting = []
                    waiting.append(self.candidate(group, place))
            yield Piece(tuple(waiting))

    def parts(self, folder: Path, facts: Fields) -> dict[Path, Piece]:
        """Return the pieces by the path of their part, which tells the facts and all draws."""
        key, parts = key_of(facts), {}
        for number, piece in enumerate(self.pieces(facts["part"])):
            rows = [[*row.values()] for row in piece.rows()]
            parts[folder / part_name(number, key_of([key, rows])[:16])] = piece
        return parts

    def facts(self, model: str, sampling: Sampling, part: int) -> Fields:
        """Return all that decides the content of a folder, but the number of candidates.

        Parameters
        ----------
        model : str
            `ModelInfo.key`.
        sampling : Sampling
        part : int
            Images in a part.
        """
        rows = [
            [group.name, group.ids, group.prompts, [group.set] * len(group.ids)]
            for group in self.groups
        ]
        facts = {
            "format": _FORMAT,
            "model": model,
            "sampling": asdict(sampling),
            "draws": {name: getattr(self, name) for name in _DRAWS},
            "prompts": key_of(rows),
            "part": part,
            **({"at_steps": self.at_steps} if self.at_steps else {}),
        }
        plain: Fields = json.loads(json.dumps(facts))  # as a manifest gives it back
        return plain


def request_prompts(
    table: pa.Table, images: int, seed: int, at_steps: tuple[int, ...] = ()
) -> Request:
    """Return prompts, each a group of its own.

    Raises
    ------
    InputError
        When a column is missing or has a reserved name, or ids are empty or repeat.
    """
    ids, prompts = _texts(table, ("prompt_id", "prompt"), images)
    sets = table["set"].to_pylist() if "set" in table.column_names else [None] * len(ids)
    groups = tuple(
        Group(name, (name,), (prompt,), members)
        for name, prompt, members in zip(ids, prompts, sets, strict=True)
    )
    return Request(table, "prompt_id", groups, images, seed, at_steps=at_steps)


def request_captions(
    captions: CaptionSets | pa.Table,
    candidates: int,
    seed: int,
    shared: Shares | None,
    shared_self: Shares | float | None,
    *,
    places: int | None = COARSE,
    guidance: Shares | None = None,
) -> Request:
    """Return captions, grouped by their sets in the order in which these appear.

    Where nothing is shared, each caption is a group of its own and its images are independent.
    `guidance` has the ends between which its strength is drawn for each candidate.

    Raises
    ------
    InputError
        As of `request_prompts`, or when shares are none.
    """
    ends, self_ends = _ends_of(shared), _ends_of(shared_self)
    if ends is None and self_ends is not None:
        raise InputError("shared_self without shared; expected shares of both, or of neither")
    table = captions.table if isinstance(captions, CaptionSets) else captions
    members: dict[str, list[Strings]] = {}
    columns = _texts(table, ("caption_id", "caption", "set"), candidates)
    if ends is None:
        single = [Group(row[0], row[:1], row[1:2], row[2]) for row in zip(*columns, strict=True)]
        return Request(table, "caption_id", tuple(single), candidates, seed, guidance=guidance)
    for *row, name in zip(*columns, strict=True):
        members.setdefault(name, []).append(tuple(row))
    groups = []
    for name, rows in members.items():
        ids, prompts = zip(*rows, strict=True)
        groups.append(Group(name, ids, prompts, name))
    return Request(
        table, "caption_id", tuple(groups), candidates, seed, ends, self_ends, places, guidance
    )


def _ends_of(share: Shares | float | None) -> Shares | None:
    """Return a share, or two, as the ends that it is drawn between, checked."""
    if share is None:
        return None
    low, high = (share, share) if isinstance(share, int | float) else share
    if not 0 <= low <= high <= 1:
        raise InputError(f"shares {share}; expected two from 0 to 1, the lower first")
    return float(low), float(high)


def _texts(table: Any, columns: Strings, count: int) -> list[list[str]]:
    """Return columns of distinct ids and of texts, checked."""
    if count < 1:
        raise InputError(f"{count} images of each {columns[-1]}; expected 1 or more")
    names = {*table.column_names} if isinstance(table, pa.Table) else set()
    reserved = names & ({*COLUMNS.names, "image"} - {*columns, "set"})
    if not names >= {*columns} or reserved or not table.num_rows:
        raise InputError(
            f"expected a pyarrow.Table with rows and the columns {', '.join(columns)}, and without "
            "the columns of images: "
            f"{', '.join(sorted(reserved)) or 'one of the former is missing'}"
        )
    values: list[list[Any]] = [table[name].to_pylist() for name in columns]
    wrong = [cell for cells in values for cell in cells if not isinstance(cell, str) or not cell]
    wrong += [name for name, times in Counter(values[0]).items() if times > 1]
    if wrong:
        raise InputError(f"{columns}: {wrong[0]!r}; expected texts, and each {columns[0]} once")
    return values


def step_columns(step: str) -> tuple[str, str]:
    """Return the columns of the image and the latent at a step, or at "last"."""
    return f"image at {step}", f"latent at {step}"


def part_bytes(
    piece: Piece,
    images: Sequence[Image | tuple[StepImage, ...] | str | None],
    at_steps: tuple[int, ...] = (),
) -> bytes:
    """Return the Parquet file of a part: the same bytes for the same images.

    Parameters
    ----------
    piece : Piece
    images : sequence
        For each image an array, or its images at steps and the final one; None where it was
        refused, or the reason of a failure.
    at_steps : tuple of int
    """
    rows, schema = piece.rows(), COLUMNS.append(pa.field("image", _IMAGE))
    for row, image in zip(rows, images, strict=True):
        if image is None:
            row |= {"state": "refused", "reason": "the model refused to show it"}
        elif isinstance(image, str):
            row |= {"state": "failed", "reason": image}
        elif isinstance(image, tuple):
            final = _picture(row["image_id"], image[-1].image)
            steps = _step_cells(row["image_id"], image, at_steps)
            row |= {"state": "image", "image": final, **steps}
        else:
            row |= {"state": "image", "image": _picture(row["image_id"], image)}
    if at_steps:
        schema = schema.append(pa.field("estimated", pa.bool_()))
        for step in (*map(str, at_steps), _LAST):
            picture, latent = step_columns(step)
            schema = schema.append(pa.field(latent, pa.list_(pa.float32())))
            schema = schema if step == _LAST else schema.append(pa.field(picture, _IMAGE))
    table = pa.Table.from_pylist(rows, schema)
    return table_bytes(table, compression="none", row_group_size=_TOGETHER)


def _picture(name: str, image: Image) -> Fields:
    return {"bytes": png(image), "path": f"{name}.png"}


def _step_cells(name: str, images: tuple[StepImage, ...], at_steps: tuple[int, ...]) -> Fields:
    """Return the cells of an image's steps; the final image is in a column of its own."""
    cells: Fields = {"estimated": all(image.estimated for image in images)}
    for step, step_image in zip((*map(str, at_steps), _LAST), images, strict=True):
        picture, latent = step_columns(step)
        cells[latent] = step_image.latent.ravel().astype("<f4")
        if step != _LAST:
            cells[picture] = _picture(f"{name} at {step}", step_image.image)
    return cells


def png(image: Image) -> bytes:
    """Return an image as a PNG file."""
    from PIL import Image as pillow  # noqa: N813

    file = io.BytesIO()
    pillow.fromarray(image).save(file, "png")
    return file.getvalue()


def cost_per_image(folder: Path) -> tuple[float, float] | None:
    """Return the seconds and bytes of an image in a folder; None before any was made."""
    try:
        rate = read_json_file(folder / RATE)
        # The first parts stand for all.
        parts = [*folder.glob("part-*.parquet")][:20]
        rows = sum(pq.read_metadata(path).num_rows for path in parts)
        size = sum(path.stat().st_size for path in parts)
        return rate["seconds"] / rate["images"], size / rows
    except (OSError, ValueError, TypeError, KeyError, ZeroDivisionError, pa.ArrowException):
        return None


@record
class Generated:
    """Images of prompts or of caption sets.

    Attributes
    ----------
    folder : Path
        Where they lie: ``<store>/generations/<key>``.
    table : pyarrow.Table
        One row per requested image, none dropped: `image_id`, `caption_id` (of sets) or
        `prompt_id`, `prompt`, `set` (null without), `candidate` (from 0), `seed`, `shared` and
        `shared_self` (shares of the steps; null without control), `base` (the caption whose
        attention the others share), `state` (``image``, ``refused`` or ``failed``), `reason`,
        and the other columns of the prompts or captions.
    pictures : Pictures
        Those with the state ``image``, by `image_id`.
    info : mapping
        Facts of the model.
    inputs : mapping
        The images as an input of an audit: `sha256`, `bytes`, `rows`.
    computed : int
        Images that this run computed; 0 when all were there.
    steps : mapping of int to Pictures
        Those of `pictures` at passes of the denoiser, with the same ids.
    latents : mapping of (int or None) to ndarray of float32, shape (pictures, numbers)
        What the images at steps are decoded from, and the final ones (None).
    estimated : bool
        Whether images at steps are estimates of the clean image; else they have their noise.
    """

    folder: Path
    table: pa.Table
    pictures: Pictures
    info: Facts
    inputs: Mapping[str, FileFacts]
    computed: int = 0
    steps: Mapping[int, Pictures] = field(default_factory=dict)
    latents: Mapping[int | None, Floats32] = field(default_factory=dict)
    estimated: bool = True


def read_generated(folder: Path | str) -> Generated:
    """Read the images that `generate_prompts` or `generate_sets` made.

    Parameters
    ----------
    folder : Path or str
        A folder of a store, ``<store>/generations/<key>``.

    Returns
    -------
    Generated

    Raises
    ------
    DataError
        When there is no such folder, or the generation is not finished.
    RunError
        When a part is missing or damaged.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    parts = manifest.get("parts")
    names = parts if isinstance(parts, list) else []
    paths = [folder / name for name in names if isinstance(name, str)]
    if not paths or not manifest.get("whole"):
        raise DataError(
            "the generation was not finished", file=str(folder), fix="run the generation to its end"
        )
    try:
        table = read_table(folder / TABLE)
    except (OSError, pa.ArrowException):
        raise DataError(
            "it is missing or damaged", file=str(folder / TABLE), fix="run the generation again"
        ) from None
    at_steps = tuple(manifest.get("key", {}).get("at_steps", ()))
    return generated(folder, paths, table, manifest.get("model", {}), at_steps=at_steps)


def generated(
    folder: Path,
    paths: Sequence[Path],
    table: pa.Table,
    info: Facts,
    computed: int = 0,
    at_steps: tuple[int, ...] = (),
) -> Generated:
    """Return the images in the parts of a folder, sorted by id."""
    rows = read_rows(paths, COLUMNS.names)
    ids = rows["image_id"].to_numpy()
    generated = np.flatnonzero(pc.equal(rows["state"], "image").to_numpy())
    order = generated[np.argsort(ids[generated])]

    def pictures(column: str) -> Pictures:
        return Pictures(str(folder), ids[order], rows_of(paths, column).take(order.tolist()))

    inputs = {f"generations/{folder.name}": input_of(paths, rows.num_rows)}
    steps = {step: pictures(step_columns(str(step))[0]) for step in at_steps}
    latents, estimated = dict[int | None, Floats32](), True
    if at_steps:
        keys: dict[int | None, str] = {step: step_columns(str(step))[1] for step in at_steps}
        keys[None] = step_columns(_LAST)[1]
        cells = read_rows(paths, ["estimated", *keys.values()]).take(pa.array(order))
        estimated = bool(pc.all(cells["estimated"]).as_py())
        for step, column in keys.items():
            numbers = np.asarray(pc.list_flatten(cells[column]).to_numpy(), dtype=np.float32)
            latents[step] = numbers.reshape(len(order), -1 if len(order) else 1)
    return Generated(
        folder, table, pictures("image"), info, inputs, computed, steps, latents, estimated
    )


def join_parts(rows: pa.Table, request: pa.Table, id: str) -> pa.Table:  # noqa: A002
    """Return the rows of parts, in the order of the prompts, with the prompts' own columns."""
    places = pc.index_in(rows["prompt_id"], value_set=request[id].combine_chunks()).to_numpy()
    order = np.lexsort([rows["candidate"].to_numpy(), places])
    table = rows.take(pa.array(order))
    names = [id if name == "prompt_id" else name for name in table.column_names]
    table = table.rename_columns(names)
    for name in request.column_names:
        if name not in names:
            table = table.append_column(name, request[name].take(pa.array(places[order])))
    return table


def export_images(generated: Generated, folder: Path, *, overwrite: bool = False) -> int:
    """Write images as PNG files, and their table as `metadata.csv`.

    The folder appears when it is whole. The "imagefolder" of Hugging Face's datasets reads it.

    Parameters
    ----------
    generated : Generated
    folder : Path
        Must not exist, or be empty.
    overwrite : bool
        Replace an earlier export, if no other file lies in its folder.

    Returns
    -------
    int
        How many images were written.

    Raises
    ------
    RunError
        When the folder is taken, or cannot be written.
    """
    names: dict[str, str] = {}
    with new_run(folder, overwrite=overwrite) as partial:
        for place, image in enumerate(generated.pictures.ids.tolist()):
            names[image] = f"images/{place:08d}.png"
            write(partial / names[image], generated.pictures.read(place))
        files = [names.get(image) for image in generated.table["image_id"].to_pylist()]
        table = generated.table.add_column(0, "file_name", pa.array(files, pa.string()))
        with writer(partial / "metadata.csv") as file:
            pyarrow.csv.write_csv(table, file)
    return len(names)
