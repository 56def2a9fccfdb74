"""Filters of candidates in their order, their thresholds and evidence, and the sets kept."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import permutations
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import (
    AnyArray,
    Booleans,
    Fields,
    Floats,
    Floats32,
    InputError,
    Integers,
    Objects,
    record,
)
from equipoise.core.files import write_table
from equipoise.core.writing import write
from equipoise.counterfactuals.candidates import Candidates
from equipoise.counterfactuals.parts import png
from equipoise.data.formats.social_counterfactuals import COLUMNS
from equipoise.data.problems import listed
from equipoise.evidence import new_run
from equipoise.evidence.pictures import Pictures, decode
from equipoise.metrics.numbers.threshold_accuracy import Learned, learned_threshold

SetThresholds = Mapping[str, Mapping[str, float]]
Thresholds = Mapping[str, float | Mapping[str, float]]

HOWARD_2024: SetThresholds = MappingProxyType(
    {
        "race-gender": MappingProxyType({"gender": 12, "race": 9}),
        "physical-gender": MappingProxyType({"gender": 10, "physical": 5}),
        "physical-race": MappingProxyType({"race": 13, "physical": 8}),
    }
)
"""Images of a set that must show their attribute, by the attributes that vary together: Howard et
al. 2024, Table 10, of 12, 10 and 30."""

# Numbers of the matrices that are held at once.
_CELLS = 4_000_000
ALL = "all"
TABLE, PICTURES = "images.parquet", "pictures"
# Images in a file of the released layout.
_ROWS = 1000
_PNG = b"\x89PNG\r\n\x1a\n"
_TEXTS = {"reason": pl.String}


@record
class Check:
    """One criterion for images.

    Attributes
    ----------
    name : str
        Such as "caption similarity" or "gender shown".
    value : ndarray of float64, shape (n,)
        Of each image; NaN where it was not checked.
    threshold : float
        Bound that the value has to exceed; unsafe content has to stay below it.
    rejected, checks : ndarray of float64, shape (n,)
        How many checks each image fails itself, and how many were made of it: one, or one for
        every other image of its set. NaN where it was not checked.
    reason : ndarray of objects, shape (n,)
        Why an image fails; "" otherwise.
    set_value, set_threshold : ndarray of float64, shape (candidates,)
        The number that decides for the set, and its bound.
    passed : ndarray of bool, shape (candidates,)
    pairs : tuple of ndarray, each shape (p,), or None
        Rows of both images of each pair, and its value.
    """

    name: str
    value: Floats
    threshold: float
    rejected: Floats
    checks: Floats
    reason: Objects
    set_value: Floats
    set_threshold: Floats
    passed: Booleans
    pairs: tuple[Integers, Integers, Floats] | None = None


@record
class Stage:
    """One filter: a candidate passes it when it passes each of its checks.

    Attributes
    ----------
    name : str
    checks : tuple of Check
    """

    name: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> Booleans:
        """Whether each candidate passes, shape (candidates,)."""
        return np.asarray(np.logical_and.reduce([check.passed for check in self.checks]))


def own_check(
    candidates: Candidates,
    name: str,
    value: Floats,
    threshold: float,
    fails: Booleans,
    reason: Objects | str,
    *,
    checked: Booleans | None = None,
    needed: Floats | None = None,
) -> Check:
    """Return a check of each image by itself.

    Parameters
    ----------
    candidates : Candidates
    name : str
    value, threshold, reason
        As in `Check`.
    fails : ndarray of bool, shape (n,)
    checked : ndarray of bool, shape (n,), optional
        Images to check; those that were made unless given.
    needed : ndarray of float64, shape (candidates,), optional
        How many images of a candidate must not fail; all unless given.
    """
    checked = candidates.made if checked is None else checked
    good = candidates.count(checked & ~fails).astype(np.float64)
    least = candidates.sizes.astype(np.float64) if needed is None else needed
    return Check(
        name,
        np.where(checked, value, np.nan),
        threshold,
        np.where(checked, fails, np.nan),
        checked.astype(np.float64),
        np.where(checked & fails, reason, "").astype(object),
        good,
        least,
        good >= least,
    )


def made_stage(candidates: Candidates) -> Stage:
    """Return the stage before any filter: whether there is an image of every caption."""
    generated = candidates.made
    texts = zip(candidates.state, candidates.columns["reason"], strict=True)
    reason = np.array(
        [f"{state}: {cause}" if cause else str(state) for state, cause in texts], object
    )
    value, all_checked = generated.astype(np.float64), np.ones_like(generated)
    check = own_check(candidates, "image made", value, 0.0, ~generated, reason, checked=all_checked)
    return Stage("complete", (check,))


def content_filter(
    candidates: Candidates,
    probabilities: Floats,
    labels: Sequence[str],
    unsafe: Sequence[str],
    *,
    threshold: float,
) -> Stage:
    """Reject images that a classifier gives to labels that count as unsafe.

    Parameters
    ----------
    candidates : Candidates
        n images.
    probabilities : ndarray, shape (n, labels)
        In the order of the candidates; rows without an image are not read.
    labels, unsafe : sequence of str
        Those of the classifier, and those of them that count as unsafe.
    threshold : float
        From which sum of the probabilities of unsafe labels on an image fails.

    Raises
    ------
    InputError
        When an unsafe label is none of the classifier's, or a probability is not from 0 to 1.
    """
    possible = (probabilities >= -1e-6) & (probabilities <= 1 + 1e-6)
    wrong = candidates.made & ~possible.all(axis=1)
    if wrong.any():
        name = candidates.columns["image_id"][wrong][0]
        raise InputError(f"scores of {name!r}: expected probabilities, numbers from 0 to 1")
    if {*unsafe} - {*labels}:
        raise InputError(f"unsafe: {[*unsafe]}; expected some of {listed(labels)}")
    places = sorted(labels.index(name) for name in unsafe)
    share = probabilities[:, places].sum(axis=1)
    names = np.array(labels, dtype=object)[places]
    worst = names[np.nan_to_num(probabilities[:, places]).argmax(axis=1)]
    check = own_check(candidates, "content", share, threshold, share >= threshold, worst)
    return Stage("content", (check,))


def similarity_filter(
    candidates: Candidates,
    images: AnyArray,
    captions: AnyArray,
    *,
    threshold: float,
    pairs: float | None,
) -> Stage:
    """Compare every image with its caption and with the other images of its candidate.

    Parameters
    ----------
    candidates : Candidates
        n images.
    images : ndarray, shape (n, d)
        Embeddings, in the order of the candidates; rows without an image are not read.
    captions : ndarray, shape (n, d)
        Of each image's caption, in the same space.
    threshold : float
        Bound that the cosine of image and caption must exceed.
    pairs : float or None
        Bound that the cosine of any two images of a candidate must exceed; None: not checked.

    Returns
    -------
    Stage
        Checks "caption similarity" and "pair similarity". An outlier fails every pair it is in,
        and costs each other image one.
    """
    image_vectors, texts = _units(images, candidates.made), _units(captions, candidates.made)
    cosine = np.einsum("nd,nd->n", image_vectors, texts, dtype=np.float64)
    reason = f"cosine with the caption ≤ {threshold:g}"
    check = own_check(
        candidates, "caption similarity", cosine, threshold, cosine <= threshold, reason
    )
    if pairs is None:
        return Stage("similarity", (check,))
    return Stage("similarity", (check, _pair_check(candidates, image_vectors, pairs)))


def _units(vectors: AnyArray, generated: Booleans) -> Floats32:
    units = np.zeros(vectors.shape, dtype=np.float32)
    rows = vectors[generated].astype(np.float64)
    units[generated] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units


def _pair_check(candidates: Candidates, units: Floats32, least: float) -> Check:
    parts = zip(*_pairs(candidates, units), strict=True)
    first, second, value = (np.concatenate(part) for part in parts)
    generated = candidates.made[first] & candidates.made[second]
    first, second, value = first[generated], second[generated], value[generated]
    n, ends = candidates.images, np.concatenate([first, second])
    checks = np.bincount(ends, minlength=n).astype(np.float64)
    failed = np.bincount(ends, np.tile(value <= least, 2), minlength=n)
    lowest, of_set = np.full(n, np.nan), np.full(len(candidates), np.nan)
    np.fmin.at(lowest, ends, np.tile(value, 2))
    np.fmin.at(of_set, candidates.candidate[first], value)
    text = f"cosine with another image of the set ≤ {least:g}"
    return Check(
        "pair similarity",
        lowest,
        least,
        np.where(checks > 0, failed, np.nan),
        checks,
        np.where(failed > 0, text, "").astype(object),
        of_set,
        np.full(len(candidates), least),
        ~(of_set <= least),
        pairs=(first, second, value),
    )


def _pairs(candidates: Candidates, units: Floats32) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Yield pairs and their cosines, candidates of one size at a time."""
    for size in np.unique(candidates.sizes).tolist():
        begin = candidates.starts[:-1][candidates.sizes == size]
        first, right = np.triu_indices(size, 1)
        step = max(1, _CELLS // max(1, size * max(size, units.shape[1])))
        for start in range(0, len(begin), step):
            rows = begin[start : start + step, None] + np.arange(size)
            chunk = units[rows]
            cosines = np.matmul(chunk, chunk.transpose(0, 2, 1))[:, first, right]
            yield rows[:, first].ravel(), rows[:, right].ravel(), cosines.ravel().astype(np.float64)


def attribute_filter(
    candidates: Candidates,
    images: AnyArray,
    values: Mapping[str, tuple[Sequence[str], AnyArray]],
    thresholds: SetThresholds,
) -> Stage:
    """Keep candidates with enough images that match their own attribute values.

    Parameters
    ----------
    candidates : Candidates
        n images.
    images : ndarray, shape (n, d)
        Embeddings, in the order of the candidates; rows without an image are not read.
    values : mapping of str to (names, vectors)
        Of every attribute that varies its values, and a vector of shape (values, d) of a text for
        each, such as "an old person".
    thresholds : mapping of str to mapping of str to number
        Images of a candidate that must show their attribute, by the attributes that vary together
        (`HOWARD_2024`): a whole number of at least 2, or a share of the set above 0 and at most 1.

    Returns
    -------
    Stage
        A check "<attribute> shown" for every attribute.

    Raises
    ------
    InputError
        When a threshold is missing, or exceeds a set.
    """
    varying = {name for combination in candidates.combinations for name in combination.split("-")}
    checks = (
        _shown(candidates, images, name, *values[name], thresholds)
        for name in candidates.types
        if name in varying
    )
    return Stage("attributes", tuple(checks))


def _shown(
    candidates: Candidates,
    images: AnyArray,
    name: str,
    names: Sequence[str],
    vectors: AnyArray,
    thresholds: SetThresholds,
) -> Check:
    column = candidates.columns[name].tolist()
    prompted = np.array([names.index(cell) if cell else -1 for cell in column], dtype=np.int64)
    checked, texts = candidates.made & (prompted >= 0), vectors.astype(np.float64)
    units = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    rows = images[checked].astype(np.float64)
    cosines = np.zeros((candidates.images, len(names)))
    cosines[checked] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ units.T
    # By how much the own value leads the best other one.
    image_rows = np.arange(len(prompted))
    prompted_cosines = cosines[image_rows, prompted]
    cosines[image_rows, prompted] = -np.inf
    other = cosines.argmax(axis=1)
    margin = prompted_cosines - cosines[image_rows, other]
    looks = np.array([f"looks more like “{value}”" for value in names], dtype=object)[other]
    # How many images of each candidate must show the attribute; 0 where it is constant.
    least, combinations = np.zeros(len(candidates)), candidates.of_candidates("attributes")
    for combination in candidates.combinations:
        if name in combination.split("-"):
            same = combinations == combination
            size = int(candidates.sizes[same].max())
            least[same] = _needed(thresholds, combination, name, size)
    return own_check(
        candidates, f"{name} shown", margin, 0.0, margin <= 0, looks, checked=checked, needed=least
    )


def _needed(thresholds: SetThresholds, combination: str, name: str, size: int) -> int:
    """Return how many images of a set must show an attribute."""
    number = thresholds[combination].get(name)
    if number is None or number > size:
        raise InputError(
            f"thresholds[{combination!r}][{name!r}]: {number!r}; expected a whole number of images "
            f"from 2 to {size}, or a share such as 0.75 (1.0: all)"
        )
    return number if isinstance(number, int) else math.ceil(number * size - 1e-9)


def of_combination(thresholds: Thresholds, combination: str) -> Thresholds:
    """Return a combination's thresholds, or all thresholds if it has none.

    One attribute that varies alone has the name of its combination.
    """
    about = thresholds.get(combination)
    return about if isinstance(about, Mapping) else thresholds


def learned_thresholds(
    candidates: Candidates,
    stage: Stage,
    labels: Mapping[str, Mapping[str, bool]],
    *,
    level: float = 0.95,
) -> dict[tuple[str, str], Learned]:
    """Learn the thresholds of every attribute and combination that people labelled.

    Parameters
    ----------
    candidates : Candidates
    stage : Stage
        Of `attribute_filter`, whatever its thresholds.
    labels : mapping of str to mapping of str to bool
        Attribute to candidates' names to whether people found that they show it.
    level : float

    Returns
    -------
    dict of (combination, attribute) to Learned
        Of those that have labels.

    Raises
    ------
    InputError
        When there are too few labels of one that varies; it names both.
    """
    labels_by_name = {}
    of_candidates, sets = candidates.of_candidates("attributes"), candidates.of_candidates("set")
    for check in stage.checks:
        name = check.name.removesuffix(" shown")
        image_labels = labels.get(name, {})
        labelled = np.array([candidate_name in image_labels for candidate_name in candidates.names])
        for combination in candidates.combinations:
            same = of_candidates == combination
            rows = np.flatnonzero(labelled & same)
            if name not in combination.split("-") or not len(rows):
                continue
            try:
                labels_by_name[combination, name] = learned_threshold(
                    check.set_value[rows],
                    [image_labels[candidates.names[row]] for row in rows],
                    int(candidates.sizes[same].max()),
                    sets[rows],
                    level,
                )
            except InputError as error:
                raise InputError(f"{name} in sets of {combination}: {error}") from None
    return labels_by_name


@record
class Filtered:
    """Candidates that went through filters, one after the other.

    Attributes
    ----------
    candidates : Candidates
    filters : tuple of Stage
        In their order, after the stage of complete sets.
    best : int, optional
        Candidates to keep of a set: those most like their captions, which needs the filter of
        similarity. All unless given.
    """

    candidates: Candidates
    filters: tuple[Stage, ...]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage: whether there is an image of every caption, then the filters."""
        return (made_stage(self.candidates), *self.filters)

    @cached_property
    def entering(self) -> tuple[Booleans, ...]:
        """Candidates that reach each stage, then candidates that pass them all."""
        reach = [np.ones(len(self.candidates), dtype=bool)]
        for stage in self.stages:
            reach.append(reach[-1] & stage.passed)
        return tuple(reach)

    @cached_property
    def kept(self) -> Booleans:
        """Candidates that are kept, shape (candidates,)."""
        return self.entering[-1]

    def rows(self, stage: int, check: Check) -> Booleans:
        """Return whether each image reached a stage and was checked there."""
        return self.entering[stage][self.candidates.candidate] & ~np.isnan(check.rejected)

    def summary(self) -> pa.Table:
        """Return the losses of each stage, by the attributes that vary together and over all.

        Returns
        -------
        pyarrow.Table
            `attributes` ("all" over all), `stage`, `order`, `sets_before`, `sets_rejected`,
            `sets_after`, `images_before`, `images_rejected`, `images_after`: whole sets, and the
            images in them. Requested: before the first stage. Kept: after the last.
        """
        candidates = self.candidates
        masks, names = self.entering, [stage.name for stage in self.stages]
        combinations = candidates.of_candidates("attributes")
        combinations_and_all = [*candidates.combinations]
        if len(combinations_and_all) > 1:
            combinations_and_all.append(ALL)
        rows = []
        for combination in combinations_and_all:
            selected = (combinations == combination) | (combination == ALL)
            sizes = {"sets": selected.astype(np.int64), "images": candidates.sizes * selected}
            for order, stage in enumerate(names):
                row: Fields = {"attributes": combination, "stage": stage, "order": order}
                for unit, size in sizes.items():
                    before = int(size[masks[order]].sum())
                    after = int(size[masks[order + 1]].sum())
                    row[f"{unit}_before"] = before
                    row[f"{unit}_rejected"] = before - after
                    row[f"{unit}_after"] = after
                rows.append(row)
        return pa.Table.from_pylist(rows)


def evidence(filtered: Filtered) -> dict[str, pa.Table]:
    """Return the evidence of every stage.

    Parameters
    ----------
    filtered : Filtered

    Returns
    -------
    dict of str to pyarrow.Table
        `filter_images`, `filter_pairs` and `filter_sets`: `stage`, `check`, the `set` (candidate)
        and image or images, `value`, `threshold`, `passed`, and of images and sets a `reason`.
        All candidates are there, those that an earlier stage rejected, too: `reached` says which
        sets came as far.
    """
    tables: dict[str, list[pl.DataFrame]] = {}
    candidates, owner = filtered.candidates, filtered.candidates.candidate
    names = pl.Series(candidates.names, dtype=pl.String)
    ids = pl.Series(candidates.columns["image_id"].tolist(), dtype=pl.String)
    for place, stage in enumerate(filtered.stages):
        for check in stage.checks:
            about = {"stage": pl.lit(stage.name), "check": pl.lit(check.name)}
            images = {
                "set": names.gather(owner),
                "image_id": ids,
                "value": check.value,
                "threshold": np.full(len(ids), check.threshold),
                "passed": check.rejected == 0,
                "reason": check.reason.tolist(),
            }
            numbers = zip(check.set_value, candidates.sizes, check.set_threshold, strict=True)
            reasons = [
                f"{good:g} of {n} images pass, {least:g} needed" for good, n, least in numbers
            ]
            tables_of_check: dict[str, Fields] = {"filter_images": images}
            if check.pairs is not None:
                first, second, value = check.pairs
                reasons = [f"least alike: {value:.4g}" for value in check.set_value]
                tables_of_check["filter_pairs"] = {
                    "set": names.gather(owner[first]),
                    "image_id": ids.gather(first),
                    "other_id": ids.gather(second),
                    "value": value,
                    "threshold": np.full(len(value), check.threshold),
                    "passed": value > check.threshold,
                }
            tables_of_check["filter_sets"] = {
                "set": names,
                "reached": filtered.entering[place],
                "value": check.set_value,
                "threshold": check.set_threshold,
                "passed": check.passed,
                "reason": np.where(check.passed, "", reasons).tolist(),
            }
            for name, columns in tables_of_check.items():
                table = pl.DataFrame(columns, schema_overrides=_TEXTS).select(pl.all(), **about)
                if name == "filter_images":
                    table = table.filter(~np.isnan(check.rejected))
                tables.setdefault(name, []).append(table)
    return {name: pl.concat(parts).to_arrow() for name, parts in tables.items()}


def released_columns(candidates: Candidates) -> dict[str, list[str]]:
    """Return the columns that the released SocialCounterfactuals has of every image.

    Returns
    -------
    dict of str to list of str
        `counterfactual_set` (the candidate), `caption`, `a1_type`, `a1`, `a2_type`, `a2`, `a1a2`.

    Raises
    ------
    InputError
        When a caption doesn't have the values of two attributes, one after the other.
    """
    rows = []
    names = [candidates.names[place] for place in candidates.candidate.tolist()]
    for row, (name, caption) in enumerate(zip(names, candidates.columns["caption"], strict=True)):
        varying = [(of, value) for of in candidates.types if (value := candidates.columns[of][row])]
        pairs = permutations(varying, 2) if len(varying) == 2 else ()
        text = str(caption).casefold()
        pair = next((p for p in pairs if f"{p[0][1]} {p[1][1]}".casefold() in text), None)
        if pair is None and candidates.made[row]:
            raise InputError(
                f"the caption {caption!r} doesn't name two attributes, one after the other, as "
                "SocialCounterfactuals does. To do: set write_sets: true, which writes any sets"
            )
        (a1_type, a1), (a2_type, a2) = pair or (("", ""), ("", ""))
        rows.append((name, caption, a1_type, a1, a2_type, a2, f"{a1} {a2}"))
    return dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def write_sets(
    filtered: Filtered, pictures: Pictures, folder: Path, *, released: bool = False
) -> int:
    """Write the images of the kept candidates, and a table that names them.

    Parameters
    ----------
    filtered : Filtered
    pictures : Pictures
        Those of the candidates, by `image_id`.
    folder : Path
        Left as it is where it is there already. It gets `images.parquet`: `image_id`, `file`
        (inside the folder), `set` (the candidate), `caption_set`, and the columns of the
        candidates; and `pictures/*.png`.
    released : bool
        Write `data/train-*.parquet` as the released SocialCounterfactuals has them instead: the
        columns of `released_columns`, and `image`.

    Returns
    -------
    int
        Images of the data set.

    Raises
    ------
    InputError
        When captions don't fit the released layout.
    RunError
        When the folder cannot be written.
    """
    candidates = filtered.candidates
    rows = np.flatnonzero(filtered.kept[candidates.candidate])
    if (folder / ("data" if released else TABLE)).exists():
        return len(rows)
    ids = candidates.columns["image_id"][rows]

    def image(row: int) -> bytes:
        data = pictures.read(pictures.places[ids[row]])
        return data if data.startswith(_PNG) else png(decode(data))

    with new_run(folder) as partial:
        if released:
            _write_released(released_columns(candidates), rows, image, partial / "data")
            return len(rows)
        files = [f"{PICTURES}/{number:07d}.png" for number in range(len(rows))]
        columns: Fields = {
            "image_id": ids,
            "file": np.array(files, dtype=object),
            "set": np.array(candidates.names, dtype=object)[candidates.candidate[rows]],
            "caption_set": candidates.columns["set"][rows],
        }
        for name, column in candidates.columns.items():
            if name not in ("state", "reason", *columns):
                columns[name] = column[rows]
        for row, file in enumerate(files):
            write(partial / file, image(row))
        table = pa.table({name: pa.array(column.tolist()) for name, column in columns.items()})
        write_table(table, partial / TABLE)
    return len(rows)


def _write_released(
    columns: Mapping[str, Sequence[str]],
    rows: Integers,
    image: Callable[[int], bytes],
    folder: Path,
) -> None:
    parts = [range(start, min(start + _ROWS, len(rows))) for start in range(0, len(rows), _ROWS)]
    for number, part in enumerate(parts):
        cells = {name: [column[rows[row]] for row in part] for name, column in columns.items()}
        pixels = [{"bytes": image(row), "path": f"{row:07d}.png"} for row in part]
        file = f"train-{number:05d}-of-{len(parts):05d}.parquet"
        write_table(pa.table({**cells, "image": pixels}), folder / file)
