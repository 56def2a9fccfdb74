"""Human labels of a run: read, merged, written, exported."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import polars as pl

from equipoise.core import DataError, Objects
from equipoise.core.files import read_table, table_bytes, unreadable
from equipoise.data.tables import open_table
from equipoise.data.tables import read_table as read_any_table
from equipoise.evidence import LABELS, keep_labels
from equipoise.review.labellers import SETTLED, name_problem

FILE = "labels.parquet"
SCHEMA = pl.Schema({
    "image_id": pl.String(), "question": pl.String(), "answer": pl.String(),
    "labeller": pl.String(), "at": pl.Datetime("ms", "UTC"),
})  # fmt: skip
_KEY = ["image_id", "question", "labeller"]
_FIELDS = ("question", "answer", "labeller", "at")


def key_of(image_id: str) -> str:
    """Return the anonymous name of an image on labellers' pages and in answers."""
    return blake2b(image_id.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def read_labels(run: Path) -> pl.DataFrame:
    """Return the labels of a run: `image_id`, `question`, `answer`, `labeller`, `at`.

    Raises
    ------
    RunError
        If the file is damaged.
    """
    return read_label_file(run / LABELS / FILE, SCHEMA, "read the answers in again")


def read_label_file(path: Path, schema: pl.Schema, fix: str) -> pl.DataFrame:
    """Return a table from the folder of labels; an empty table without the file."""
    if not path.exists():
        return pl.DataFrame(schema=schema)
    try:
        return pl.DataFrame(read_table(path), schema_overrides=schema)
    except Exception as error:
        raise unreadable(path, error, fix) from error


def look_up_values(ids: Iterable[str], keys: pl.Series, values: pl.Series) -> pl.Series:
    """Return the first value of each id; null for an id without a value."""
    id_table = pl.DataFrame({"id": ids}, {"id": pl.String})
    table = pl.DataFrame({"id": keys, "value": values}).unique("id", keep="first")
    return id_table.join(table, on="id", how="left", maintain_order="left")["value"]


def count_by_labeller(labels: pl.DataFrame, ids: Iterable[str]) -> dict[str, int]:
    """Return how many of some images each labeller has answered."""
    table = labels.filter(pl.col("image_id").is_in([*ids]))
    counts = table.group_by("labeller").agg(pl.col("image_id").n_unique()).sort("labeller")
    return dict(counts.iter_rows())


def add_labels(run: Path, *tables: pl.DataFrame) -> None:
    """Merge labels into a run; they are on the disk when this returns.

    Raises
    ------
    RunError
        If the labels of the run are damaged or can't be written: it stays as it was.
    """
    keep_labels(
        run, lambda: {FILE: table_bytes(merge_labels(read_labels(run), *tables).to_arrow())}
    )


def merge_labels(*tables: pl.DataFrame) -> pl.DataFrame:
    """Merge labels: of an image, question and labeller the latest answer stays."""
    merged = pl.concat([table.select(*SCHEMA).cast(SCHEMA) for table in tables])
    ordered = merged.sort(*_KEY, "at", "answer", nulls_last=False)
    return ordered.unique(_KEY, keep="last", maintain_order=True)


def read_answers(
    files: Iterable[Path],
    ids: Objects,
    answers: dict[str, Sequence[str]],
    *,
    settles: bool = False,
) -> pl.DataFrame:
    """Read answers: JSON or CSV of a labelling page, or another run's export.

    Parameters
    ----------
    files : iterable of Path
    ids : ndarray of str objects
        Images of the run.
    answers : mapping of str to sequence of str
        Answers of the questions that have fixed ones.
    settles : bool
        Whether answers of `settled`, which overrule all others, are accepted.

    Raises
    ------
    DataError
        If a file can't be read, or a row has an unknown image, an unknown answer, no date, or a
        labeller with a refused name.
    """
    names = pl.DataFrame({"image_id": [*map(str, ids)]}).with_columns(
        pl.col("image_id").map_elements(key_of, pl.String).alias("key")
    )
    return merge_labels(*(_read_file(Path(file), names, answers, settles) for file in files))


def _read_file(
    file: Path, names: pl.DataFrame, answers: dict[str, Sequence[str]], settles: bool
) -> pl.DataFrame:
    rows = _read_rows(file)
    on = "key" if "key" in rows.columns else "image_id"
    joined = rows.join(names, on=on, how="left", maintain_order="left").with_columns(
        pl.col("labeller").str.strip_chars(),
        known=pl.col(on).is_in(names[on].implode()),
        time=pl.col("at").str.to_datetime(time_unit="ms", time_zone="UTC", strict=False),
    )
    _refuse(file, joined.filter(~pl.col("known")), on, "an image of this run", "read the answers "
            "into the run that the sample was drawn from")  # fmt: skip
    _refuse_names(file, joined, settles)
    _refuse(file, joined.filter(pl.col("time").is_null()), "at", "a date and time such as "
            "2026-11-28T09:30:00Z", "correct it")  # fmt: skip
    for question, choices in answers.items():
        invalid = (pl.col("question") == question) & ~pl.col("answer").is_in([*choices])
        _refuse(
            file, joined.filter(invalid), "answer", f"one of {', '.join(choices)}", "correct it"
        )
    return joined.select("image_id", *_FIELDS[:3], at="time")


def _read_rows(file: Path) -> pl.DataFrame:
    """Return the rows with an answer, as text."""
    id_column = "image_id" if "image_id" in open_table(file).names else "key"
    texts = read_any_table(file, texts=[id_column, *_FIELDS]).texts
    return pl.DataFrame(dict(texts)).with_row_index("row", 1).drop_nulls("answer")


def _refuse(file: Path, invalid: pl.DataFrame, column: str, expected: str, fix: str) -> None:
    if invalid.height:
        row = invalid.row(0, named=True)
        raise DataError(
            f"it has {row[column]!r}", file=str(file), column=column, row=row["row"],
            expected=expected, fix=fix,
        )  # fmt: skip


def _refuse_names(file: Path, rows: pl.DataFrame, settles: bool) -> None:
    """Refuse the first labeller with an invalid name."""
    fix = "correct it. Add --settled to accept answers that settle disagreements"
    for name in rows["labeller"].unique(maintain_order=True):
        problem = name_problem(name or "", settles=settles)
        invalid = rows.filter(pl.col("labeller").eq_missing(name) & (problem != ""))
        _refuse(file, invalid, "labeller", problem, fix)


def consensus(labels: pl.DataFrame) -> pl.DataFrame:
    """Return one answer per image: the settled one, else the answer of more than half.

    Parameters
    ----------
    labels : polars.DataFrame
        Of one question.

    Returns
    -------
    polars.DataFrame
        `image_id` and `answer`, null where labellers disagree.
    """
    settled = labels.filter(pl.col("labeller") == SETTLED).select("image_id", settled="answer")
    counts = labels.group_by("image_id", "answer").len("votes")
    return (
        counts.with_columns(of=pl.col("votes").sum().over("image_id"))
        .group_by("image_id")
        .agg(answer=pl.col("answer").filter(2 * pl.col("votes") > pl.col("of")).first())
        .join(settled, on="image_id", how="left")
        .select("image_id", answer=pl.coalesce("settled", "answer"))
        .sort("image_id")
    )


def disagreements(labels: pl.DataFrame) -> pl.DataFrame:
    """Return images with unsettled disagreements: `image_id`, `answers`."""
    answer_list = pl.format("{}: {}", "labeller", "answer").sort().str.join("; ")
    return (
        labels.group_by("image_id")
        .agg(
            answers=answer_list,
            kinds=pl.col("answer").n_unique(),
            settled=(pl.col("labeller") == SETTLED).any(),
        )
        .filter((pl.col("kinds") > 1) & ~pl.col("settled"))
        .select("image_id", "answers")
        .sort("image_id")
    )
