"""Candidate causes of a finding, from data, pictures, labels and embeddings."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.cluster.vq import kmeans2

from equipoise.core import (
    Aggregate,
    ConfigError,
    DataError,
    Estimate,
    Finding,
    Floats,
    InputError,
    Integers,
    Progress,
    Strings,
    record,
)
from equipoise.core.files import read_table as read_parquet
from equipoise.core.files import table_bytes
from equipoise.core.types import Json
from equipoise.data import hall_boxes, synset_text
from equipoise.data.problems import check_ids
from equipoise.data.tables import (
    as_numbers,
    as_text,
    is_numbers,
    no_rows,
    open_table,
    read_table,
    spells_numbers,
)  # fmt: skip
from equipoise.evidence import LABELS, Pictures, concept_scores, keep_labels
from equipoise.evidence.examples import CORNERS
from equipoise.evidence.pictures import picture_facts
from equipoise.metrics import correlation, cramers_v, rank_causes
from equipoise.metrics.labels.causes import How
from equipoise.metrics.labels.sampled import SampledCells
from equipoise.report import read
from equipoise.report.text import interval, listed, number
from equipoise.review.coding import code_table, subject_of
from equipoise.review.disparities import Disparity, has_subject
from equipoise.review.examples import VALUES
from equipoise.review.labels import consensus, read_label_file, read_labels
from equipoise.review.probing import MEDIUM, Probe, Read, measure_losses
from equipoise.review.questions import UNSURE, stored_name
from equipoise.review.sampling import drawn_strata, read_draws
from equipoise.review.seeing import Row
from equipoise.review.wordnet import SCHEMA as SENSES
from equipoise.review.wordnet import UNCLEAR, meanings, read_senses
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import stream
from equipoise.stats.threads import each

FILE, DEFINITIONS = "causes.parquet", "definitions.parquet"
WRONG = "wrong label"
_KEYS = ("model", "metric", "subject", "groups", "version", "group")
_FIX = "run `equipoise causes` again"
CLUSTER, NEIGHBOURS, HIDDEN = "cluster", "neighbours with other labels", "object hidden"
DISAGREE = "annotators who disagree"
_RIGHT = "right"
# Nearest images of which the share with another label counts, and images compared at once.
_NEAREST, _BATCH = 10, 512
# Values of a cause that the page lists, and different numbers up to which each is a value.
_MOST_VALUES, _MOST_NUMBERS = 30, 8
# Subjects that a sentence lists.
_LISTED = 8
PEOPLE = frozenset({
    *map(synset_text, chain(*dict(hall_boxes().groups).values())),
    "person", "people", "child", "boy",
})  # fmt: skip
"""Labels of boxes that show a person."""


@dataclass(frozen=True)
class Sources:
    """Where candidate causes come from.

    Attributes
    ----------
    names : tuple of str
        Columns of `table` or of the images of the config; "resolution" and "brightness" of the
        pictures; "box size", "box from the left" and "box from the top" of the object; "objects"
        and "people" in the image, of a data set with boxes.
    table : Path, optional
        Table in place of that of the config.
    id : str
        Its column of ids.
    embeddings : str
        File of embeddings to cluster, or a model.
    ids : Path, optional
        Ids of its rows, where it has none.
    clusters : int
    folder : Path, optional
        Folder of the pictures, in place of that of the config.
    annotations : Path, optional
        Table of the label that each annotator gave to an image.
    wordnet : Path, optional
        Folder of index.noun and data.noun.
    medium : str
        Zero-shot model that predicts the medium of each image.
    mask : bool
        Whether the audited model runs again, with each object hidden.
    allow_pickle, trust_remote_code : bool
        Whether models may run code, see `Probe`.
    seed : int
    progress : callable, optional
    """

    names: tuple[str, ...] = ()
    table: Path | None = None
    id: str = "image_id"
    embeddings: str = ""
    ids: Path | None = None
    clusters: int = 8
    folder: Path | None = None
    annotations: Path | None = None
    wordnet: Path | None = None
    medium: str = ""
    mask: bool = False
    allow_pickle: bool = False
    trust_remote_code: bool = False
    seed: int = 0
    progress: Progress | None = None


@record
class Candidates:
    """Candidate causes of a disparity.

    Attributes
    ----------
    values : mapping of str to polars.Series, shape (n,)
    methods : mapping of str to "reweight" or "remove"
    weights : mapping of str to ndarray, shape (n,)
        Of causes that a sample of the images has.
    details : mapping of str to list of dict
        Tables by cause: media corrected by human labels, and outcomes without objects.
    clusters : Estimate or None
        Cramér's V of groups and clusters; its p-value tests that groups differ.
    senses : polars.DataFrame
        Of WordNet, see `read_senses`.
    """

    values: dict[str, pl.Series] = field(default_factory=dict)
    methods: dict[str, How] = field(default_factory=dict)
    weights: dict[str, Floats] = field(default_factory=dict)
    details: dict[str, list[Row]] = field(default_factory=dict)
    clusters: Estimate | None = None
    senses: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SENSES))


def gather(run: Path, disparity: Disparity, sources: Sources) -> Candidates:
    """Return the candidate causes from columns, human labels, codes and models.

    Raises
    ------
    ConfigError
        If there is none, a name is unknown, or a model can't be run.
    DataError
        If a table, picture or file of embeddings can't be read.
    """
    candidates, trust = Candidates(), (sources.allow_pickle, sources.trust_remote_code)
    probe = Probe(run, disparity, sources.folder, *trust, sources.progress)
    _add_labels(candidates, probe)
    columns, values = _read_columns(probe, sources), candidates.values
    choices = {**columns, **_read_pictures(probe, columns)}
    for name in sources.names:
        if name not in choices:
            raise ConfigError(f"--cause {name}: expected one of {', '.join(choices)}")
        values[name] = choices[name]()
    if sources.wordnet is not None:
        senses = read_senses(sources.wordnet, subjects_of(run))
        candidates = replace(candidates, senses=senses)
        values.update(_find_meanings(values, senses.filter(subject=disparity.finding.subject)))
    if sources.annotations is not None:
        values[DISAGREE] = _measure_disagreement(sources.annotations, sources.id, probe)
    if sources.embeddings:
        values.update(_probe_embeddings(probe, sources))
        candidates = replace(candidates, clusters=_compare_clusters(disparity, values[CLUSTER]))
    if sources.medium:
        name = f"{MEDIUM} by {sources.medium}"
        media = values[name] = probe.predict_media(sources.medium)
        candidates.details[name] = probe.correct_media(media, sources.seed)
    if sources.mask:
        hidden = probe.predict_without_objects(probe.find_boxes(columns))
        values[HIDDEN] = pl.Series(hidden, nan_to_null=True)
        losses = measure_losses(disparity, hidden, Bootstrap(), sources.seed)
        candidates.details[HIDDEN] = [*losses]
    _remove_empty(values, disparity, sources.names)
    _remove_copies(values, disparity, sources.names)
    if not values:
        raise ConfigError(
            f"no cause to try. To do: add --cause with one of {', '.join(choices)}, or "
            "--embeddings; or label images with 'equipoise label sample'"
        )
    return candidates


def _remove_empty(
    values: dict[str, pl.Series], disparity: Disparity, named_causes: tuple[str, ...]
) -> None:
    """Remove causes without values; raise where the user named the cause."""
    compared = pl.Series(np.logical_or(*disparity.sides.values()))
    for name, cells in [*values.items()]:
        if cells.filter(compared).count():
            continue
        if name in named_causes:
            raise ConfigError(
                f"--cause {name}: no image of the finding has a value. To do: check the ids of the "
                "table, or name another cause"
            )
        del values[name]


def _remove_copies(
    values: dict[str, pl.Series], disparity: Disparity, named_causes: tuple[str, ...]
) -> None:
    """Remove causes that are the label or the prediction; raise where the user named the cause.

    What the finding is made of explains all of it, and says nothing of why.
    """
    labels = pl.Series(disparity.labels.tolist(), dtype=pl.String)
    originals = {"the label": labels}
    if "prediction" in disparity.images.table.columns:
        originals["the prediction"] = disparity.images.table["prediction"]
    for (name, cells), (original, texts) in product([*values.items()], originals.items()):
        if not _is_copy(cells, texts):
            continue
        if name in named_causes:
            raise ConfigError(
                f"--cause {name}: it has the same values as {original}, so it explains all of the "
                "finding and none of its reasons. To do: name another cause"
            )
        values.pop(name, None)


def _is_copy(values: pl.Series, texts: pl.Series) -> bool:
    """Whether each value goes with one text, and each of several texts with one value."""
    pairs = pl.DataFrame({"value": values, "text": texts}).drop_nulls().unique()
    return len(pairs) > 1 and pairs["value"].is_unique().all() and pairs["text"].is_unique().all()


def subjects_of(run: Path) -> list[str]:
    """Return the classes or concepts of a run, sorted by name."""
    return sorted({finding.subject for finding in read(run).findings if has_subject(finding)})


def _read_columns(probe: Probe, sources: Sources) -> dict[str, Read]:
    """Return a reader for each column that may be a cause."""
    if sources.table is not None:
        table, key = open_table(sources.table), sources.id
    elif probe.source_images is None:
        return {}
    else:
        source = probe.source_images.source(probe.models.base)
        table = open_table(source.table, encoding=source.encoding, delimiter=source.delimiter)
        key = source.id

    def read_column(name: str) -> pl.Series:
        cells = table.read((key, name))
        column = cells[name]
        read = as_numbers if is_numbers(column.type) or spells_numbers(column) else as_text
        names = as_text(cells[key], table.name, key)
        if sources.table is not None:
            if names.is_empty():
                raise no_rows(table.name)
            check_ids(names, table.name)
        values = read(column, table.name, name)
        if values.dtype.is_float():
            if len(infinite := values.is_infinite().arg_true()):
                raise DataError(
                    "the cell is infinite", file=table.name, column=name, row=infinite[0] + 1,
                    expected="a finite number", fix="correct it, or leave it empty",
                )  # fmt: skip
            values = values.fill_nan(None)
        return probe.disparity.align(names, values)

    return {name: partial(read_column, name) for name in table.names if name != key}


def _find_meanings(values: Mapping[str, pl.Series], senses: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the class meanings of columns that hold variants of its name."""
    columns = dict[str, pl.Series]()
    for name, variants in values.items():
        column = meanings(_format_values(variants), senses)
        if column.filter(column != UNCLEAR).len():
            columns[f"meaning by {name}"] = column
    return columns


def _measure_disagreement(file: Path, key: str, probe: Probe) -> pl.Series:
    """Return the share of each image's annotators who disagree with most."""
    table = read_table(file, texts=(key, "annotator", "label"), role="annotations")
    labels = pl.DataFrame(dict(table.texts)).drop_nulls()
    labels = labels.unique([key, "annotator"], keep="last", maintain_order=True)
    shares = (
        labels.group_by(key, "label").len("votes")
        .group_by(key).agg(of=pl.col("votes").sum(), most=pl.col("votes").max())
        .filter(pl.col("of") > 1).select(key, share=1 - pl.col("most") / pl.col("of"))
    )  # fmt: skip
    return probe.disparity.align(shares[key], shares["share"])


def _add_labels(candidates: Candidates, probe: Probe) -> None:
    """Add causes from human labels: wrong labels, other questions and codes."""
    labels, disparity = read_labels(probe.run), probe.disparity
    for question in labels["question"].unique().sort().to_list():
        subject = subject_of(question)
        if subject is not None:
            if subject in ("", disparity.finding.subject):
                table = code_table(labels, subject)
                for name in table.columns[1:]:
                    candidates.values[name] = probe.disparity.align(table["image_id"], table[name])
                    candidates.methods[name] = "remove"
            continue
        answers = consensus(labels.filter(question=question)).filter(pl.col("answer") != UNSURE)
        of_labels = question in (_RIGHT, stored_name(_RIGHT, disparity.finding.subject))
        name = WRONG if of_labels else question
        values = probe.disparity.align(answers["image_id"], answers["answer"])
        if of_labels:
            values = values == "no"
            candidates.methods[name] = "remove"
        candidates.values[name] = values
        if (weights := _weigh_images(probe.run, disparity, question, values)) is not None:
            candidates.weights[name] = weights


def _weigh_images(
    run: Path, disparity: Disparity, question: str, values: pl.Series
) -> Floats | None:
    """Return inverse sampling weights of labelled images; None without a sample."""
    draws = read_draws(run, question)
    if not draws:
        return None
    strata = drawn_strata(run, disparity.images, draws)
    labelled = values.is_not_null().to_numpy()
    cells = SampledCells.of(np.where(labelled, 1.0, np.nan), strata, disparity.groups)
    share = cells.labelled / cells.sizes
    in_stratum = cells.code >= 0
    weights = np.zeros(len(labelled))
    weights[in_stratum & labelled] = 1.0 / share[cells.code[in_stratum & labelled]]
    return weights


def _read_pictures(probe: Probe, columns: Mapping[str, Read]) -> dict[str, Read]:
    """Return readers of picture sizes, brightness, boxes and object counts."""

    def measure_pictures(measure: Callable[[Pictures], npt.ArrayLike]) -> pl.Series:
        pictures = probe.pictures
        return probe.disparity.align(
            pl.Series(pictures.ids), pl.Series(np.asarray(measure(pictures)))
        )

    def measure_boxes(measure: Callable[[Floats], Floats]) -> pl.Series:
        return pl.Series(measure(probe.find_boxes(columns)), nan_to_null=True)

    def count_boxes(selected: pl.Expr) -> pl.Series:
        if probe.label_boxes is None:
            raise ConfigError("objects and people: expected a data set with boxes of objects")
        # A box of two labels has two rows.
        boxes = probe.label_boxes.filter(selected).unique(["image_id", *CORNERS])
        counts = boxes.group_by("image_id").len()
        return probe.disparity.align(counts["image_id"], counts["len"]).fill_null(0)

    words = pl.col("label").str.replace_all("_", " ").str.replace(r"\.n\.\d+$", "")
    return {
        "resolution": lambda: measure_pictures(
            lambda pictures: picture_facts(pictures).sizes.prod(axis=1)
        ),
        "brightness": lambda: measure_pictures(
            lambda pictures: each(
                lambda place: _measure_brightness(pictures, place), range(len(pictures))
            )
        ),
        "box size": lambda: measure_boxes(lambda boxes: (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)),
        "box from the left": lambda: measure_boxes(lambda boxes: boxes[:, 0]),
        "box from the top": lambda: measure_boxes(lambda boxes: boxes[:, 1]),
        "objects": lambda: count_boxes(pl.lit(value=True)),
        "people": lambda: count_boxes(words.str.to_lowercase().is_in([*PEOPLE])),
    }


def _measure_brightness(pictures: Pictures, place: int) -> float:
    try:
        return float(pictures.decoded(place).mean()) / 255.0
    except (DataError, OSError):
        return float("nan")


def _probe_embeddings(probe: Probe, sources: Sources) -> dict[str, pl.Series]:
    """Return each image's cluster and its share of neighbours with other labels."""
    usable, units = probe.embed_images(sources.embeddings, sources.ids, sources.id)
    return {
        CLUSTER: _cluster_images(probe.disparity, sources, usable, units),
        NEIGHBOURS: _compare_neighbours(probe.disparity, usable, units),
    }


def _compare_neighbours(disparity: Disparity, usable: Integers, units: Floats) -> pl.Series:
    labels = pl.Series(disparity.labels[usable].tolist(), dtype=pl.String).fill_null("")
    code, other_shares = labels.rank("dense").to_numpy(), np.full(len(disparity.ids), np.nan)
    rows = np.flatnonzero(disparity.about[usable])
    n_nearest = min(_NEAREST, len(units) - 1)
    for start in range(0, len(rows) if n_nearest else 0, _BATCH):
        batch = rows[start : start + _BATCH]
        cosines = concept_scores(units[batch], units)
        cosines[np.arange(len(batch)), batch] = -np.inf
        nearest = np.argpartition(-cosines, n_nearest - 1, axis=1)[:, :n_nearest]
        other_shares[usable[batch]] = (code[nearest] != code[batch, None]).mean(axis=1)
    return pl.Series(other_shares, nan_to_null=True)


def _cluster_images(
    disparity: Disparity, sources: Sources, usable: Integers, units: Floats
) -> pl.Series:
    """Return the cluster of each image: k-means of unit vectors."""
    n_clusters = min(sources.clusters, len(units))
    _, code = kmeans2(
        units,
        n_clusters,
        iter=30,
        minit="++",
        seed=stream(sources.seed, "clusters"),
        missing="warn",
    )
    # Clusters are numbered by their first image, so that names don't depend on the start.
    _, first_rows, place = np.unique(code, return_index=True, return_inverse=True)
    rank_of = np.argsort(np.argsort(first_rows))
    names = pl.Series([f"cluster {rank + 1}" for rank in rank_of[place].tolist()])
    return disparity.align(pl.Series(disparity.ids[usable]), names)


def _compare_clusters(disparity: Disparity, clusters: pl.Series) -> Estimate:
    """Test whether groups differ over clusters."""
    compared = disparity.about & (disparity.groups.large >= 0) & clusters.is_not_null().to_numpy()
    names, cluster = np.unique(clusters.to_numpy()[compared].astype(str), return_inverse=True)
    table = np.zeros((len(disparity.groups), len(names)), dtype=np.int64)
    np.add.at(table, (disparity.groups.codes[compared], cluster), 1)
    return cramers_v(table[table.any(axis=1)])


@record
class Ranking:
    """Causes of a finding, ranked by the disparity that they explain.

    Attributes
    ----------
    disparity : Disparity
    table : polars.DataFrame
        Of `rank_causes`, with `evidence`: each group's share or mean of the cause; `value`: the
        value of the cause that the group has more often than the others; and `shares` of each
        value: the images, share and mean outcome of the group and of the others.
    values : polars.DataFrame
        `image_id`, and the value of each cause as text; numbers as thirds.
    candidates : Candidates
    """

    disparity: Disparity
    table: pl.DataFrame
    values: pl.DataFrame
    candidates: Candidates

    @property
    def facts(self) -> dict[str, str]:
        """The ranking's finding and group, by the names of `_KEYS`."""
        finding = self.disparity.finding
        return {name: getattr(finding, name) for name in _KEYS[:-1]} | {
            "group": self.disparity.group
        }


def rank(
    disparity: Disparity, candidates: Candidates, *, seed: int = 0,
    resampling: Resampling = Bootstrap(),  # noqa: B008 - it is frozen
) -> Ranking:  # fmt: skip
    """Rank candidate causes by explained disparity; see `rank_causes` of metrics."""
    causes = {name: values.to_numpy() for name, values in candidates.values.items()}
    table = rank_causes(
        disparity.outcome, disparity.groups, causes, how=candidates.methods,
        first=disparity.group, weights=candidates.weights, units=disparity.images.units,
        resampling=resampling, rng=seed,
    )  # fmt: skip
    texts = {name: _format_values(values) for name, values in candidates.values.items()}
    summaries = list[Row]()
    for name in table["cause"].to_pylist():
        shares = _count_shares(disparity, texts[name])
        summaries.append({
            "evidence": _describe_groups(disparity, candidates.values[name], shares),
            "value": shares[0]["value"] if shares else None, "shares": shares[:_MOST_VALUES],
        })  # fmt: skip
    summary_table = pl.DataFrame(
        summaries, {"evidence": pl.String(), "value": pl.String(), "shares": _SHARES}
    )
    value_table = pl.DataFrame(
        {"image_id": pl.Series(disparity.ids.tolist(), dtype=pl.String), **texts}
    )
    return Ranking(disparity, pl.DataFrame(table).hstack(summary_table), value_table, candidates)


_SHARES = pl.List(pl.Struct({
    "value": pl.String, "n": pl.Int64, "share": pl.Float64, "outcome": pl.Float64,
    "others_n": pl.Int64, "others_share": pl.Float64, "others_outcome": pl.Float64,
}))  # fmt: skip


def _count_shares(disparity: Disparity, texts: pl.Series) -> list[Row]:
    """Return each value's shares and mean outcomes, most over-represented first."""
    in_group, in_others = map(pl.Series, disparity.sides.values())
    table = pl.DataFrame(
        {"value": texts, "outcome": disparity.outcome, "n": in_group, "others_n": in_others}
    )
    outcome, n, others_n = pl.col("outcome"), pl.col("n"), pl.col("others_n")
    counts = (
        table.filter(n | others_n)
        .drop_nulls("value")
        .group_by("value")
        .agg(
            n.sum(), others_n.sum(),
            outcome=outcome.filter(n).mean(), others_outcome=outcome.filter(others_n).mean(),
        )
    )  # fmt: skip
    shares = counts.with_columns(
        share=n / pl.max_horizontal(n.sum(), 1),
        others_share=others_n / pl.max_horizontal(others_n.sum(), 1),
    )
    return shares.sort(pl.col("others_share") - pl.col("share"), "value").to_dicts()


def _format_values(values: pl.Series) -> pl.Series:
    """Return values as text: numbers as thirds where there are many."""
    if values.dtype == pl.String:
        return values
    if values.dtype == pl.Boolean:
        return values.replace_strict([True, False], ["yes", "no"])
    if values.drop_nulls().n_unique() <= _MOST_NUMBERS:
        return values.map_elements("{:g}".format, pl.String)
    low, high = np.quantile(values.drop_nulls(), [1 / 3, 2 / 3])
    third: pl.Series = (values > low).cast(pl.Int8) + (values > high).cast(pl.Int8)
    return third.replace_strict([0, 1, 2], ["low", "middle", "high"])


def _describe_groups(disparity: Disparity, values: pl.Series, shares: list[Row]) -> str:
    """Describe how a cause differs between the group and the others."""
    if values.dtype.is_numeric():
        means = list[str]()
        for name, rows in disparity.sides.items():
            cells = values.filter(pl.Series(rows)).drop_nulls().to_numpy()
            if len(cells):
                means.append(f"{name}: mean {cells.mean():.3g}")
        return "; ".join(means)
    # Of yes and no, the text has the share of yes, whichever is more frequent.
    stated_row = next((row for row in shares if row["value"] == "yes"), next(iter(shares), None))
    if stated_row is None:
        return ""
    value = "" if stated_row["value"] == "yes" else f" {stated_row['value']}"
    keys = zip(disparity.sides, ("share", "others_share"), strict=True)
    return "; ".join(f"{name}: {100 * stated_row[key]:.1f} %{value}" for name, key in keys)


def write_ranking(run: Path, ranking: Ranking) -> None:
    """Write a ranking into the labels of a run; replace that finding's earlier one."""
    keep_labels(run, lambda: _merge_files(run, ranking))


def _merge_files(run: Path, ranking: Ranking) -> dict[str, bytes]:
    """Return the files of all rankings, causes and meanings, with a new ranking."""
    facts = ranking.facts
    details = ranking.candidates.details
    table = ranking.table.with_columns(
        details=pl.Series([json.dumps(details.get(cause, [])) for cause in ranking.table["cause"]]),
        shows=pl.lit(ranking.disparity.shows),
        **{name: pl.lit(text) for name, text in facts.items()},
    ).select(*_KEYS, pl.exclude(_KEYS))  # fmt: skip
    earlier = read_rankings(run)
    if earlier.height:
        same = pl.all_horizontal(pl.col(name) == text for name, text in facts.items())
        table = pl.concat([earlier.filter(~same), table], how="diagonal")
    values = ranking.values
    if (path := run / LABELS / VALUES).exists():
        earlier_values = pl.DataFrame(read_parquet(path))
        new = {*values.columns} - {"image_id"}
        values = values.join(earlier_values.drop(new, strict=False), on="image_id", how="left")
    files = {FILE: table, VALUES: values.with_columns(pl.exclude("image_id").cast(pl.Categorical))}
    if ranking.candidates.senses.height:
        files[DEFINITIONS] = ranking.candidates.senses
    return {name: table_bytes(frame.to_arrow()) for name, frame in files.items()}


def read_definitions(run: Path, subject: str) -> pl.DataFrame:
    """Return the WordNet meanings of a class or concept; empty without `--wordnet`."""
    path = run / LABELS / DEFINITIONS
    return read_label_file(path, SENSES, _FIX).filter(subject=subject)


def read_rankings(run: Path) -> pl.DataFrame:
    """Return every ranking of a run; an empty table if there is none.

    Raises
    ------
    RunError
        If the file is damaged.
    """
    return read_label_file(run / LABELS / FILE, pl.Schema(dict.fromkeys(_KEYS, pl.String())), _FIX)


@record
class Concreteness:
    """How concrete the classes or concepts of a run are.

    Attributes
    ----------
    correlation : Estimate
        Of concreteness and the size of disparities: below 0 concrete concepts have smaller ones.
    ratings : mapping of str to float
        By subject.
    unrated : tuple of str
        Subjects that the table has by none of their words.
    subject : str
        That of the finding.
    """

    correlation: Estimate
    ratings: Mapping[str, float]
    unrated: Strings
    subject: str


def concreteness(run: Path, finding: Finding, table: Path) -> Concreteness:
    """Look up the concreteness of subjects, and correlate it with their disparities.

    Parameters
    ----------
    run : Path
    finding : Finding
        Of any subject: the metric, model, groups and version count.
    table : Path
        With the columns `Word` and `Conc.M`, as Brysbaert et al. 2014 publish them. A subject is
        looked up by its name, by the words of a synset such as "hot_dog.n.01", and by the first
        of its synonyms, as ImageNet lists them with commas.

    Raises
    ------
    DataError
        If the table can't be read or lacks a column.
    """
    norms = read_table(table, texts=("Word",), numbers=("Conc.M",), role="norms")
    words, means = norms.texts["Word"].str.to_lowercase(), norms.numbers["Conc.M"]
    concreteness_of = dict(zip(words, means, strict=True))
    sizes = dict[str, float]()
    same = attrgetter("metric", "model", "groups", "version")
    for other in read(run).findings:
        of_groups = has_subject(other) and other.aggregate is not Aggregate.AGAINST_REST
        if of_groups and same(other) == same(finding):
            sizes[other.subject] = float(np.ptp([group.value for group in other.by_group]))
    ratings = dict[str, float]()
    for name in sorted(sizes):
        known = (concreteness_of[word] for word in _words_of(name) if word in concreteness_of)
        rating = next((rating for rating in known if np.isfinite(rating)), None)
        if rating is not None:
            ratings[name] = rating
    unrated = tuple(name for name in sorted(sizes) if name not in ratings)
    names = sorted(sizes)
    estimate = correlation(
        [ratings.get(name, np.nan) for name in names], [sizes[name] for name in names]
    )
    return Concreteness(estimate, ratings, unrated, finding.subject)


def _words_of(subject: str) -> Iterator[str]:
    """Yield the words by which norms may know a subject, the closest first."""
    yield subject.lower()
    try:
        yield synset_text(subject).lower()
    except InputError:
        first = subject.partition(",")[0]
        yield first.replace("_", " ").strip().lower()


def as_json(ranking: Ranking) -> dict[str, Json]:
    """Return a ranking as plain values."""
    return {
        **ranking.facts,
        "shows": ranking.disparity.shows,
        "causes": ranking.table.to_dicts(),
        **ranking.candidates.details,
    }


def sentences(ranking: Ranking, norms: Concreteness | None = None) -> Iterator[str]:
    """Yield sentences on the disparity, its causes, clusters and concreteness."""
    top_cause, disparity = ranking.table.row(0, named=True), ranking.disparity
    size_text = f"n = {top_cause['n']:,}"
    yield (
        f"The {disparity.shows}: {disparity.group} minus {disparity.others} is "
        f"{_format_interval(top_cause, 'disparity', 'disparity_low', 'disparity_high')}, "
        f"{size_text}."
    )
    if disparity.predicted:
        yield (
            "A model predicted these groups. Numbers here aren't corrected for its errors, which "
            "make differences between groups and explained shares look smaller."
        )
    explaining = ranking.table.filter("explains")
    if explaining.height:
        yield f"Explained by: {', '.join(explaining.filter(beyond='')['cause'])}."
        for row in explaining.filter(pl.col("beyond") != "").iter_rows(named=True):
            yield (
                f"{row['cause']} explains nothing beyond {row['beyond']}: with that equal in both "
                "groups, nothing is left to it. Cramér's V of the two: "
                f"{number(row['association'])}."
            )
    elif top_cause["disparity_low"] <= 0.0 <= top_cause["disparity_high"]:
        yield "The interval holds 0: there may be no difference to explain."
    else:
        yield "None of these causes explains it."
    for cause, details in ranking.candidates.details.items():
        if not details:
            yield (
                f"The shares of {cause} come from the model: nobody has labelled the medium. "
                "To do: run 'equipoise label sample' with --question medium."
            )
    clusters = ranking.candidates.clusters
    if clusters is not None and clusters.p_value is not None:
        value, p_value = number(clusters.value), number(clusters.p_value)
        yield f"Groups over clusters: Cramér's V {value}, p = {p_value}."
    if norms is not None:
        yield from _describe_concreteness(norms)


def _describe_concreteness(norms: Concreteness) -> Iterator[str]:
    """Yield what is known of the concreteness of the subject and of all others."""
    if norms.subject in norms.ratings:
        rating = norms.ratings[norms.subject]
        higher = sum(other > rating for other in norms.ratings.values())
        yield (
            f"Concreteness of {norms.subject}: {rating:.2f} of 5; {higher} of "
            f"{len(norms.ratings)} subjects are more concrete."
        )
    if norms.unrated:
        total = len(norms.ratings) + len(norms.unrated)
        yield (
            f"Concreteness is unknown of {len(norms.unrated)} of {total} subjects: "
            f"{listed(norms.unrated, _LISTED)}."
        )
    low, high = norms.correlation.interval().low, norms.correlation.interval().high
    yield (
        f"Concreteness and disparity over {len(norms.ratings)} subjects: r = "
        f"{number(norms.correlation.value)} [{number(low)}, {number(high)}]."
    )


def _format_interval(row: Mapping[str, float], value: str, low: str, high: str) -> str:
    return f"{number(row[value])} {interval(row[low], row[high])}".removesuffix(" –")


def _describe_part(row: Mapping[str, Any]) -> str:
    """Return whether a cause explains the disparity, in words."""
    if not row["explains"]:
        return row["reason"] or "no"
    return f"nothing beyond {row['beyond']}" if row["beyond"] else "yes"


def rows(ranking: Ranking) -> list[dict[str, str]]:
    """Return the rows of the table on the terminal."""
    return [
        {
            "cause": row["cause"],
            "how": row["how"],
            "explained": _format_interval(row, "explained", "low", "high"),
            "chance": interval(row["chance_low"], row["chance_high"]),
            "without": number(row["without"]),
            "explains": _describe_part(row),
            "n": f"{row['n']:,}",
            "by group": row["evidence"],
        }
        for row in ranking.table.to_dicts()
    ]
