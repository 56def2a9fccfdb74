"""Why groups differ: candidate causes of a finding, from data, pictures, labels and embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from scipy.cluster.vq import kmeans2

from equipoise.audits.config import AuditConfig
from equipoise.audits.images import known
from equipoise.core import (
    AuditResult,
    Booleans,
    ConfigError,
    DataError,
    Estimate,
    Finding,
    Floats,
    Groups,
    Objects,
    RunError,
    record,
)
from equipoise.core.files import read_table as read_parquet
from equipoise.core.files import table_bytes
from equipoise.core.types import Json
from equipoise.data import ArraySource, Items, load_vectors
from equipoise.data.problems import listed
from equipoise.data.tables import as_numbers, as_text, is_numbers, open_table, spells_numbers
from equipoise.evidence import LABELS, Pictures, decode, keep_labels
from equipoise.evidence.examples import LABELLED
from equipoise.evidence.pictures import picture_facts
from equipoise.metrics import correlation, cramers_v, rank_causes
from equipoise.metrics.counts.causes import How
from equipoise.metrics.counts.comparisons import OTHERS
from equipoise.metrics.counts.sampled import SampledCells
from equipoise.report import read
from equipoise.report.text import number
from equipoise.report.words import ranked
from equipoise.review.coding import code_table, subject_of
from equipoise.review.examples import VALUES, Examples
from equipoise.review.labels import consensus, read_labels
from equipoise.review.questions import UNSURE
from equipoise.review.sampling import RunImages, load_images, read_draws
from equipoise.review.thumbnails import find_pictures, images_of, places_of
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import stream
from equipoise.stats.threads import each

FILE = "causes.parquet"
WRONG = "wrong label"
_KEYS = ("model", "metric", "subject", "groups", "group")
_OF_PICTURES = ("resolution", "brightness")
_OF_BOXES = ("box size", "box from the left", "box from the top")
CLUSTER = "cluster"
_RIGHT = "right"
_Values = Booleans | Floats | Objects


@record
class Disparity:
    """A finding as an outcome of each image.

    Attributes
    ----------
    finding : Finding
    ids : ndarray of str objects, shape (n,)
    groups : Groups
    group : str
        Group that is compared with all others.
    outcome : ndarray, shape (n,)
        NaN for images that the finding isn't about.
    shows : str
        What the mean of the outcome is.
    images : RunImages or None
        Of a run of predictions.
    """

    finding: Finding
    ids: Objects
    groups: Groups
    group: str
    outcome: Floats
    shows: str
    images: RunImages | None = None

    @property
    def others(self) -> str:
        """Name of what the group is compared with."""
        groups = zip(self.groups.names, self.groups.usable, strict=True)
        rest = [name for name, large in groups if large and name != self.group]
        return rest[0] if len(rest) == 1 else OTHERS

    @property
    def units(self) -> Objects | None:
        """Unit of each image, where the run has units."""
        return None if self.images is None else self.images.units


def _same(images: RunImages, name: str, subject: str) -> Booleans:
    return (images.table[name] == subject).fill_null(value=False).to_numpy()


def _right(images: RunImages, subject: str) -> tuple[Floats, str]:
    if not subject:
        right = (images.table["right"] == "right").to_numpy()
        return np.where(images.table["target"].is_null(), np.nan, right), "accuracy"
    said, true = (_same(images, name, subject) for name in ("prediction", "target"))
    return (said == true).astype(np.float64), f"accuracy of “{subject}” against all other classes"


def _said(images: RunImages, subject: str) -> tuple[Floats, str]:
    return _same(images, "prediction", subject).astype(np.float64), f"share called “{subject}”"


def _hit(images: RunImages, subject: str) -> tuple[Floats, str]:
    said, true = (_same(images, name, subject) for name in ("prediction", "target"))
    return np.where(true, said, np.nan), f"share of “{subject}” that the model recognises"


def _alarm(images: RunImages, subject: str) -> tuple[Floats, str]:
    said, true = (_same(images, name, subject) for name in ("prediction", "target"))
    return np.where(true, np.nan, said), f"share of other images that are called “{subject}”"


def _precise(images: RunImages, subject: str) -> tuple[Floats, str]:
    said, true = (_same(images, name, subject) for name in ("prediction", "target"))
    return np.where(said, true, np.nan), f"share of images called “{subject}” that are"


_OUTCOMES: Mapping[str, Callable[[RunImages, str], tuple[Floats, str]]] = {
    **dict.fromkeys(("accuracy", "accuracy_gap", "worst_group_accuracy"), _right),
    **dict.fromkeys(("true_positive_rate", "false_negative_rate", "equalized_odds"), _hit),
    **dict.fromkeys(("false_positive_rate", "true_negative_rate"), _alarm),
    **dict.fromkeys(("selection_rate", "demographic_parity"), _said),
    "precision": _precise,
}
_WHOLE = ("accuracy", "accuracy_gap", "worst_group_accuracy")


def _metric(finding: Finding) -> str:
    return finding.metric.removesuffix("_against_rest")


def find_disparity(
    run: Path,
    *,
    metric: str = "",
    subject: str = "",
    model: str = "",
    groups: str = "",
    group: str = "",
) -> Disparity:
    """Return a finding of a run of predictions or concepts with the outcome of each image.

    Parameters
    ----------
    run : Path
    metric, subject, model, groups : str
        Of the finding; the most serious one that fits unless given.
    group : str
        Group to compare with all others; the one that is worst off unless given.

    Raises
    ------
    RunError
        If it is no run of these kinds.
    ConfigError
        If no finding fits, or there is no such group.
    """
    result = read(run)
    kind = result.manifest.resolved.get("audit")
    if kind not in ("predictions", "concepts"):
        raise RunError(
            f"{run}: a run of {kind}; expected one of predictions or concepts, whose images have "
            "outcomes"
        )
    fitting = [
        one
        for one in ranked(one for one in result.findings if one.by_group)
        if _explainable(one, str(kind))
        and all(
            wanted in ("", known)
            for wanted, known in (
                (metric, one.metric), (subject, one.subject), (model, one.model),
                (groups, one.groups),
            )
        )
    ]  # fmt: skip
    if not fitting:
        able = sorted({_metric(one) for one in result.findings if _explainable(one, str(kind))})
        raise ConfigError(
            f"{run}: no finding fits; expected a metric among {listed(able)} and a subject, model "
            "and groups of the run. To do: name others with --finding, --subject, --model, --groups"
        )
    finding = fitting[0]
    found = (_of_predictions if kind == "predictions" else _of_concept)(run, result, finding)
    alarms = _OUTCOMES.get(_metric(finding)) is _alarm
    return _among(found, group, max if alarms else min)


def _explainable(finding: Finding, kind: str) -> bool:
    if not finding.by_group:
        return False
    if kind == "concepts":
        return bool(finding.subject)
    metric = _metric(finding)
    return metric in _OUTCOMES and (metric in _WHOLE or bool(finding.subject))


def _of_predictions(run: Path, _: AuditResult, finding: Finding) -> Disparity:
    images = load_images(run, model=finding.model, groups=finding.groups)
    outcome, shows = _OUTCOMES[_metric(finding)](images, finding.subject)
    return Disparity(finding, images.ids, images.groups, "", outcome, shows, images)


def _of_concept(run: Path, result: AuditResult, finding: Finding) -> Disparity:
    examples = Examples.of(run)
    rows = examples.rows(finding.model, finding.subject)
    rows = rows.filter(pl.col("outcome").is_in(LABELLED))
    outcome = np.full(len(examples), np.nan)
    outcome[rows["place"].to_numpy()] = rows["score"].to_numpy()
    section = result.manifest.resolved.get("data")
    least = section.get("min_group_size", 30) if isinstance(section, Mapping) else 30
    names = examples.group_names(finding.groups).to_list()
    groups = Groups.of(np.array(names, dtype=object), min_size=int(str(least)))
    shows = f"mean score of images labelled “{finding.subject}”"
    return Disparity(finding, examples.ids, groups, "", outcome, shows)


def _among(found: Disparity, group: str, worst: Callable[..., str]) -> Disparity:
    """Return a disparity with the group that is compared: the worst off unless given."""
    means = {
        name: float(np.nanmean(found.outcome[found.groups.codes == code]))
        for code, (name, usable) in enumerate(
            zip(found.groups.names, found.groups.usable, strict=True)
        )
        if usable and not np.isnan(found.outcome[found.groups.codes == code]).all()
    }
    if len(means) < 2:
        raise ConfigError(
            f"{found.finding.metric} of “{found.finding.subject}”: fewer than two groups have "
            "enough images"
        )
    group = group or found.finding.group or worst(means, key=lambda name: means[name])
    if group not in means:
        raise ConfigError(f"--group {group}: expected one of {', '.join(means)}")
    return replace(found, group=group)


@dataclass(frozen=True)
class Sources:
    """Where candidate causes come from.

    Attributes
    ----------
    names : tuple of str
        Columns of `table` or of the images of the config; "resolution" and "brightness" of the
        pictures; "box size", "box from the left" and "box from the top" of crops.
    table : Path, optional
        Table in place of that of the config.
    id : str
        Its column of ids.
    embeddings : Path, optional
        File of embeddings to cluster.
    ids : Path, optional
        Ids of its rows, where it has none.
    clusters : int
    folder : Path, optional
        Folder of the pictures, in place of that of the config.
    seed : int
    """

    names: tuple[str, ...] = ()
    table: Path | None = None
    id: str = "image_id"
    embeddings: Path | None = None
    ids: Path | None = None
    clusters: int = 8
    folder: Path | None = None
    seed: int = 0


@record
class Candidates:
    """Candidate causes of a disparity.

    Attributes
    ----------
    values : mapping of str to ndarray, shape (n,)
    how : mapping of str to "reweight" or "remove"
    weights : mapping of str to ndarray, shape (n,)
        Of causes that a sample of the images has.
    clusters : Estimate or None
        Cramér's V of groups and clusters, whose p tests that groups differ.
    """

    values: dict[str, _Values] = field(default_factory=dict)
    how: dict[str, How] = field(default_factory=dict)
    weights: dict[str, Floats] = field(default_factory=dict)
    clusters: Estimate | None = None


def gather(run: Path, disparity: Disparity, sources: Sources) -> Candidates:
    """Return the candidate causes: those that are named, human labels, codes and clusters.

    Raises
    ------
    ConfigError
        If there is none, or a name is unknown.
    DataError
        If a table, picture or file of embeddings can't be read.
    """
    found, differ = Candidates(), None
    _add_labels(found, run, disparity)
    config = _config(run)
    columns = _columns(config, disparity.ids, sources)
    for name in sources.names:
        if name in columns:
            found.values[name] = columns[name]()
        elif name in (*_OF_PICTURES, *_OF_BOXES):
            found.values[name] = _of_picture(name, run, disparity.ids, sources.folder)
        else:
            expected = (*columns, *_OF_PICTURES, *_OF_BOXES)
            raise ConfigError(f"--cause {name}: expected one of {', '.join(expected)}")
    if sources.embeddings is not None:
        clusters = _clusters(disparity, sources)
        found.values[CLUSTER] = clusters
        differ = _differ(disparity, clusters)
    if not found.values:
        known_names = ", ".join((*columns, *_OF_PICTURES))
        raise ConfigError(
            f"no cause to try. To do: add --cause with one of {known_names}, or --embeddings; or "
            "label images with `equipoise label` or `equipoise review`"
        )
    return Candidates(found.values, found.how, found.weights, differ)


def _config(run: Path) -> AuditConfig:
    from equipoise.audits.config import parse_config

    return parse_config(read(run).manifest.resolved, source=str(run / "manifest.json"))


def _columns(
    config: AuditConfig, ids: Objects, sources: Sources
) -> dict[str, Callable[[], _Values]]:
    """Return the columns that causes may be, to be read one by one."""
    encoding, delimiter = "utf-8", ","
    if sources.table is not None:
        table, key = open_table(sources.table), sources.id
        if key not in table.names:
            raise DataError(
                f"there is no column {key!r}", file=table.name, expected=", ".join(table.names),
                fix="name the column of ids with --id",
            )  # fmt: skip
    else:
        section = images_of(config)
        if section is None:
            return {}
        source = known(section, Path()).source(Path())
        encoding, delimiter = source.encoding, source.delimiter
        table, key = open_table(source.table, encoding=encoding, delimiter=delimiter), source.id

    def read_column(name: str) -> _Values:
        found = table.read((key, name))
        names = as_text(found[key], table.name, key)
        column = found[name]
        if is_numbers(column.type) or spells_numbers(column):
            values = as_numbers(column, table.name, name)
        else:
            values = as_text(column, table.name, name)
        return _joined(ids, names, values)

    return {name: lambda name=name: read_column(name) for name in table.names if name != key}  # type: ignore[misc]


def _joined(ids: Objects, names: pl.Series, values: pl.Series) -> _Values:
    """Return the value of each image, None or NaN where it has none."""
    table = pl.DataFrame({"id": names, "value": values}).unique("id", keep="first")
    own = pl.DataFrame({"id": pl.Series(ids.tolist(), dtype=pl.String)})
    joined = own.join(table, on="id", how="left", maintain_order="left")["value"]
    if joined.dtype == pl.String:
        return np.array(joined.to_list(), dtype=object)
    return joined.cast(pl.Float64).to_numpy()


def _add_labels(found: Candidates, run: Path, disparity: Disparity) -> None:
    """Add what people say of the images: wrong labels, other questions, and codes."""
    labels = read_labels(run)
    for question in labels["question"].unique().sort().to_list():
        subject = subject_of(question)
        if subject is not None:
            if subject in ("", disparity.finding.subject):
                table = code_table(labels, subject)
                for name in table.columns[1:]:
                    found.values[name] = _joined_booleans(disparity.ids, table, name)
                    found.how[name] = "remove"
            continue
        answers = consensus(labels.filter(question=question)).filter(pl.col("answer") != UNSURE)
        name = WRONG if question == _RIGHT else question
        values = _joined(disparity.ids, answers["image_id"], answers["answer"])
        if question == _RIGHT:
            values = np.array([None if one is None else one == "no" for one in values], object)
            found.how[name] = "remove"
        found.values[name] = values
        if (weights := _weights(run, disparity, question, values)) is not None:
            found.weights[name] = weights


def _joined_booleans(ids: Objects, table: pl.DataFrame, name: str) -> Objects:
    given = dict(table.select("image_id", name).iter_rows())
    return np.array([given.get(one) for one in ids.tolist()], dtype=object)


def _weights(run: Path, disparity: Disparity, question: str, values: _Values) -> Floats | None:
    """Return the inverse of the share of its stratum that was labelled, for a drawn sample."""
    draws = read_draws(run, question)
    if not draws or disparity.images is None:
        return None
    has = np.array([one is not None for one in values])
    strata = disparity.images.strata(draws[0].level)
    cells = SampledCells.of(np.where(has, 1.0, np.nan), strata, disparity.groups)
    share = cells.labelled / cells.sizes
    known = cells.code >= 0
    weights = np.zeros(len(has))
    weights[known & has] = 1.0 / share[cells.code[known & has]]
    return weights


def _of_picture(name: str, run: Path, ids: Objects, folder: Path | None) -> Floats:
    """Return a number of each picture, NaN where it can't be read."""
    pictures = find_pictures(run, folder)
    places = places_of(pictures)
    row = np.array([places.get(one, -1) for one in ids.tolist()])
    own = pictures.take(row[row >= 0].tolist())
    found = np.full(len(ids), np.nan)
    if name in _OF_BOXES:
        if own.crops is None:
            raise ConfigError(f"--cause {name}: the images of the config have no crop")
        left, top, right, bottom = own.crops.T.astype(np.float64)
        numbers = {"box size": (right - left) * (bottom - top), "box from the left": left,
                   "box from the top": top}  # fmt: skip
        found[row >= 0] = numbers[name]
    elif name == "resolution":
        found[row >= 0] = picture_facts(own).sizes.prod(axis=1)
    else:
        found[row >= 0] = each(lambda place: _brightness(own, place), range(len(own)))
    return found


def _brightness(pictures: Pictures, place: int) -> float:
    crop = None if pictures.crops is None else pictures.crops[place]
    try:
        return float(decode(pictures.read(place), crop=crop).mean()) / 255.0
    except (DataError, OSError):
        return float("nan")


def _clusters(disparity: Disparity, sources: Sources) -> Objects:
    """Return the cluster of each image: k-means of unit vectors."""
    items = Items("images", "image_id", disparity.ids, {}, {}, {})
    ids = None if sources.ids is None else sources.ids
    table = str(sources.embeddings).endswith((".parquet", ".csv"))
    source = ArraySource(sources.embeddings, ids=ids, id=sources.id if table else None)
    vectors = load_vectors(source, items, max_unmatched=1.0)
    usable = np.flatnonzero(vectors.usable)
    units = np.asarray(vectors.take(usable), dtype=np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    many = min(sources.clusters, len(units))
    _, code = kmeans2(
        units, many, iter=30, minit="++", seed=stream(sources.seed, "clusters"), missing="warn"
    )
    # Clusters are numbered by their first image, so that names don't depend on the start.
    first = {cluster: place for place, cluster in reversed([*enumerate(code.tolist())])}
    rank = {cluster: place for place, cluster in enumerate(sorted(first, key=first.__getitem__), 1)}
    names = np.full(len(disparity.ids), None, dtype=object)
    names[usable] = [f"cluster {rank[cluster]}" for cluster in code.tolist()]
    return names


def _differ(disparity: Disparity, clusters: Objects) -> Estimate:
    """Test whether groups differ over clusters."""
    known = np.array([one is not None for one in clusters]) & (disparity.groups.large >= 0)
    known &= ~np.isnan(disparity.outcome)
    names, cluster = np.unique(clusters[known].astype(str), return_inverse=True)
    table = np.zeros((len(disparity.groups), len(names)), dtype=np.int64)
    np.add.at(table, (disparity.groups.codes[known], cluster), 1)
    return cramers_v(table[table.any(axis=1)])


@record
class Ranking:
    """Causes of a finding, ranked by what they explain.

    Attributes
    ----------
    disparity : Disparity
    table : polars.DataFrame
        Of `rank_causes`, with `evidence`: each group's share or mean of the cause; and `value`: the
        value of the cause that the group has more often than the others.
    values : polars.DataFrame
        `image_id`, and the value of each cause as text; numbers as thirds.
    clusters : Estimate or None
    """

    disparity: Disparity
    table: pl.DataFrame
    values: pl.DataFrame
    clusters: Estimate | None


def rank(
    disparity: Disparity, candidates: Candidates, *, seed: int = 0,
    resampling: Resampling = Bootstrap(),  # noqa: B008 - it is frozen
) -> Ranking:  # fmt: skip
    """Rank candidate causes by what they explain; see `equipoise.metrics.rank_causes`."""
    table = rank_causes(
        disparity.outcome, disparity.groups, candidates.values, how=candidates.how,
        first=disparity.group, weights=candidates.weights, units=disparity.units,
        resampling=resampling, rng=seed,
    )  # fmt: skip
    texts = {name: _texts(values) for name, values in candidates.values.items()}
    found = {
        name: (*_evidence(disparity, values, texts[name]),)
        for name, values in candidates.values.items()
    }
    shown = pl.DataFrame(table).with_columns(
        pl.Series(name, [found[cause][place] for cause in table["cause"].to_pylist()], pl.String)
        for place, name in enumerate(("evidence", "value"))
    )
    own = pl.DataFrame({"image_id": pl.Series(disparity.ids.tolist(), dtype=pl.String), **texts})
    return Ranking(disparity, shown, own, candidates.clusters)


def _texts(values: _Values) -> pl.Series:
    """Return values as people choose among them."""
    if values.dtype.kind != "f":
        named = {True: "yes", False: "no"}
        texts = [named.get(one, one) if isinstance(one, bool) else one for one in values.tolist()]
        return pl.Series(texts, dtype=pl.String)
    low, high = np.nanquantile(values, [1 / 3, 2 / 3]) if (~np.isnan(values)).any() else (0, 0)
    thirds = np.array(["low", "middle", "high"], dtype=object)
    names: Objects = thirds[(values > low).astype(np.int64) + (values > high)]
    names[np.isnan(values)] = None
    return pl.Series(names.tolist(), dtype=pl.String)


def _evidence(disparity: Disparity, values: _Values, texts: pl.Series) -> tuple[str, str | None]:
    """Say how a cause differs between the group and the others, and in which value the most."""
    code = disparity.groups.names.index(disparity.group)
    about, large = ~np.isnan(disparity.outcome), disparity.groups.large
    sides = {
        disparity.group: about & (large == code),
        disparity.others: about & (large >= 0) & (large != code),
    }
    first, second = (
        dict(texts.filter(pl.Series(rows)).drop_nulls().value_counts(normalize=True).iter_rows())
        for rows in sides.values()
    )
    more = {name: share - second.get(name, 0.0) for name, share in first.items()}
    value = max(sorted(more), key=lambda name: more[name], default=None)
    if values.dtype.kind == "f":
        means = {name: values[rows & ~np.isnan(values)] for name, rows in sides.items()}
        said = [f"{name}: mean {one.mean():.3g}" for name, one in means.items() if len(one)]
    elif value is None:
        said = []
    else:
        # Of yes and no the share of yes is said, whichever is more frequent.
        about_value = "yes" if {*first, *second} <= {"yes", "no"} else value
        words = "" if about_value == "yes" else f" {about_value}"
        shares = zip(sides, (first, second), strict=True)
        said = [f"{name}: {100 * one.get(about_value, 0.0):.1f} %{words}" for name, one in shares]
    return "; ".join(said), value


def write_ranking(run: Path, ranking: Ranking) -> None:
    """Write a ranking into the labels of a run, in place of an earlier one of the same finding."""
    facts = {name: getattr(ranking.disparity.finding, name) for name in _KEYS[:-1]}
    facts["group"] = ranking.disparity.group
    own = ranking.table.with_columns(**{name: pl.lit(text) for name, text in facts.items()})
    own = own.select(*_KEYS, pl.exclude(_KEYS), pl.lit(ranking.disparity.shows).alias("shows"))
    earlier = read_rankings(run)
    if earlier.height:
        same = pl.all_horizontal(pl.col(name) == text for name, text in facts.items())
        own = pl.concat([earlier.filter(~same), own])
    values = ranking.values
    if (path := run / LABELS / VALUES).exists():
        known_values = pl.DataFrame(read_parquet(path))
        new = {*values.columns} - {"image_id"}
        values = values.join(known_values.drop(new, strict=False), on="image_id", how="left")
    files = {FILE: own, VALUES: values.with_columns(pl.exclude("image_id").cast(pl.Categorical))}
    keep_labels(run, {name: table_bytes(one.to_arrow()) for name, one in files.items()})


def read_rankings(run: Path) -> pl.DataFrame:
    """Return every ranking of a run; a table without rows if there is none.

    Raises
    ------
    RunError
        If the file is damaged.
    """
    path = run / LABELS / FILE
    if not path.exists():
        return pl.DataFrame(schema=dict.fromkeys(_KEYS, pl.String))
    try:
        return pl.DataFrame(read_parquet(path))
    except Exception as error:
        raise RunError(
            f"{path}: cannot be read: {error}. To do: run `equipoise causes` again"
        ) from error


def concreteness(run: Path, finding: Finding, table: Path) -> Estimate:
    """Correlate the concreteness of classes or concepts with the size of their disparities.

    Parameters
    ----------
    run : Path
    finding : Finding
        Of any subject: the metric, model and groups count.
    table : Path
        With the columns `Word` and `Conc.M`, as Brysbaert et al. 2014 publish them.

    Returns
    -------
    Estimate
        Of `equipoise.metrics.correlation`; below 0 concrete concepts have smaller disparities.

    Raises
    ------
    DataError
        If the table can't be read or lacks a column.
    """
    opened = open_table(table)
    columns = opened.read(("Word", "Conc.M"))
    words = as_text(columns["Word"], opened.name, "Word").str.to_lowercase().to_list()
    means = as_numbers(columns["Conc.M"], opened.name, "Conc.M").to_list()
    known_means = dict(zip(words, means, strict=True))
    sizes = {
        one.subject: max(group.value for group in one.by_group)
        - min(group.value for group in one.by_group)
        for one in read(run).findings
        if one.by_group
        and one.subject
        and (one.metric, one.model, one.groups) == (finding.metric, finding.model, finding.groups)
    }
    pairs = [(known_means.get(name.lower()), size) for name, size in sorted(sizes.items())]
    x = [np.nan if mean is None else mean for mean, _ in pairs]
    return correlation(x, [size for _, size in pairs])


def as_json(ranking: Ranking) -> dict[str, Json]:
    """Return a ranking as plain values."""
    return {
        **{name: getattr(ranking.disparity.finding, name) for name in _KEYS[:-1]},
        "group": ranking.disparity.group,
        "shows": ranking.disparity.shows,
        "causes": ranking.table.to_dicts(),
    }


def sentences(ranking: Ranking, norms: Estimate | None = None) -> Iterator[str]:
    """Say what is compared, what explains it, and how clusters and concreteness fit."""
    first, disparity = ranking.table.row(0, named=True), ranking.disparity
    many = f"n = {first['n']:,}"
    yield (
        f"The {disparity.shows}: {disparity.group} minus {disparity.others} is "
        f"{_interval(first, 'disparity', 'disparity_low', 'disparity_high')}, {many}."
    )
    found = ranking.table.filter("explains")["cause"].to_list()
    if found:
        yield f"Explained by: {', '.join(found)}."
    elif first["disparity_low"] <= 0.0 <= first["disparity_high"]:
        yield "The interval holds 0: there may be no difference to explain."
    else:
        yield "None of these causes explains it."
    if ranking.clusters is not None and ranking.clusters.p_value is not None:
        one = ranking.clusters
        yield f"Groups over clusters: Cramér's V {number(one.value)}, p = {number(one.p_value)}."
    if norms is not None:
        low, high = norms.interval().low, norms.interval().high
        yield (
            f"Concreteness and disparity over {norms.n['pairs']} subjects: r = "
            f"{number(norms.value)} [{number(low)}, {number(high)}]."
        )


def _interval(row: Mapping[str, float], value: str, low: str, high: str) -> str:
    return f"{number(row[value])} [{number(row[low])}, {number(row[high])}]"


def rows(ranking: Ranking) -> list[dict[str, str]]:
    """Return the rows that people read."""
    return [
        {
            "cause": row["cause"],
            "how": row["how"],
            "explained": _interval(row, "explained", "low", "high"),
            "chance": f"{number(row['chance_low'])} to {number(row['chance_high'])}",
            "without": number(row["without"]),
            "explains": "yes" if row["explains"] else row["reason"] or "no",
            "n": f"{row['n']:,}",
            "by group": row["evidence"],
        }
        for row in ranking.table.to_dicts()
    ]
