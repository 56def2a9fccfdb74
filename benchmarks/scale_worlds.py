"""Evidence of any number of rows, drawn from a seed and written piece by piece.

Each world is a folder with tables, embeddings and `audit.yaml`, as a user brings them.
"""

from functools import partial
from textwrap import dedent

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

PIECE = 1 << 16
CLASSES, SEXES, REGIONS = 40, ("Female", "Male"), 6
QUERIES = 20
_SEXES, _REGIONS = pa.array(SEXES), pa.array([f"region {index}" for index in range(REGIONS)])


def predictions(folder, rows):
    """Labels with two attributes, and two models; rows of the second lie in another order."""
    names = pa.array([f"class {index:02d}" for index in range(CLASSES)])

    def drawn(places, salt, share):
        """Labels and a model's answers, which depend on the place of a row alone."""
        truth = _code(places, 1, CLASSES)
        # Women of one class in four are taken for the next class more often.
        odd = (_code(places, 2, 2) == 0) & (truth % 4 == 0)
        wrong = _code(places, salt, 1000) < 1000 * (share + 0.1 * odd)
        shift = 1 + _code(places, salt + 1, 4)
        return {"image_id": _ids(places), "label": names.take((truth + shift * wrong) % CLASSES)}

    def labels(places):
        return {
            "image_id": _ids(places),
            "target": names.take(_code(places, 1, CLASSES)),
            "sex": _SEXES.take(_code(places, 2, len(SEXES))),
            "region": _REGIONS.take(_code(places, 3, REGIONS)),
        }

    order = np.random.default_rng(0).permutation(rows)
    _table(folder / "labels.parquet", (labels(places) for places in _pieces(rows)))
    _table(folder / "first.parquet", (drawn(places, 10, 0.2) for places in _pieces(rows)))
    shuffled = (drawn(order[places], 20, 0.25) for places in _pieces(rows))
    _table(folder / "second.parquet", shuffled)
    _config(
        folder,
        """\
        audit: predictions
        data:
          table: labels.parquet
          id: image_id
          target: target
          groups: [sex, region, [sex, region]]
        models:
          first: {table: first.parquet, prediction: label}
          second: {table: second.parquet, prediction: label}
        """,
    )


def _queried(kind, about, extra, folder, rows, dimension):
    """Write images of one pool, and queries that each lie nearer to one sex."""
    middles, images = _directions(len(SEXES), dimension), _images(folder, rows)
    vectors = _drawn(rows, dimension, lambda places: middles[images(places)["sex"]])
    _npy(folder / "images.npy", "<f2", (rows, dimension), vectors)
    _leaning(folder, "query", "queries", middles)
    config = {
        "audit": kind,
        "data": {"images": {"table": "images.parquet", "id": "image_id"}, "groups": ["sex"]},
        "queries": {"table": "queries.parquet", "id": "query"},
        "models": {
            "first": {"images": {"file": "images.npy"}, "queries": {"file": "queries.npy"}, **extra}
        },
        **about,
    }
    (folder / "audit.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


# Images are ranked by queries, or compared with them.
retrieval = partial(_queried, "retrieval", {"ranking": {"k": 12}}, {})
similarity = partial(_queried, "similarity", {}, {"scale": 10})


def concepts(folder, rows):
    """Scores of twenty concepts, of which every second is found less surely in one sex."""
    codes = _images(folder, rows)

    def part(places, scored):
        labels = np.stack([_code(places, 30 + index, 100) < 10 for index in range(QUERIES)], axis=1)
        if not scored:
            return labels.astype(np.float32)
        noise = np.stack([_code(places, 60 + index, 1000) for index in range(QUERIES)], axis=1)
        less = 0.2 * (codes(places)["sex"] == 0)[:, None] * (np.arange(QUERIES) % 2)
        return np.asarray(labels * (0.6 - less) + noise / 1000, dtype=np.float32)

    for name, scored in (("labels", False), ("scores", True)):
        parts = (part(places, scored) for places in _pieces(rows))
        _npy(folder / f"{name}.npy", "<f4", (rows, QUERIES), parts)
    names = ", ".join(f"concept {index}" for index in range(QUERIES))
    _config(
        folder,
        f"""\
        audit: concepts
        data:
          images: {{table: images.parquet, id: image_id}}
          groups: [sex]
          labels: {{file: labels.npy, names: [{names}]}}
        models:
          first: {{file: scores.npy, names: [{names}]}}
        metrics: [average_precision, auroc]
        """,
    )


def diversity(folder, rows, dimension):
    """Images of six regions, of which one is less diverse; vectors are a column of Parquet."""
    centres = _directions(REGIONS, dimension)
    images = _images(folder, rows)

    def middles(places):
        region = images(places)["region"]
        return centres[region] * np.where(region == 0, 0.7, 0.5)[:, None]

    _vectors(folder / "vectors.parquet", rows, dimension, middles)
    _config(
        folder,
        """\
        audit: diversity
        data:
          images: {table: images.parquet, id: image_id}
          sets: [region]
        models:
          first: {file: vectors.parquet, id: image_id, column: embedding}
        """,
    )


def associations(folder, rows, dimension):
    """Words beside images of both sexes; vectors are a column of Parquet."""
    centres, images = _directions(len(SEXES), dimension), _images(folder, rows)
    _vectors(folder / "vectors.parquet", rows, dimension, lambda p: centres[images(p)["sex"]])
    names = _leaning(folder, "word", "words", centres)
    halves = [", ".join(names[start::2]) for start in range(2)]
    _config(
        folder,
        f"""\
        audit: associations
        data:
          images: {{table: images.parquet, id: image_id, kind: image}}
          words: {{table: words.parquet, id: word, kind: text}}
        models:
          first:
            embeddings:
              images: {{file: vectors.parquet, id: image_id, column: embedding}}
              words: {{file: words.npy}}
        sets:
          men: {{images: {{sex: Male}}}}
          women: {{images: {{sex: Female}}}}
          even: {{words: [{halves[0]}]}}
          odd: {{words: [{halves[1]}]}}
        measure:
          - {{metric: association_score, targets: [even, odd], attributes: [men, women]}}
          - {{metric: weat, targets: [even, odd], attributes: [men, women]}}
        """,
    )


def _code(places, salt, below):
    """Return numbers from 0 that depend on place and salt alone (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = (places.astype(np.uint64) + np.uint64(salt << 40)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) % np.uint64(below)).astype(np.int64)


def _ids(places):
    return pa.array([f"image_{place:09d}" for place in places.tolist()])


def _pieces(rows):
    for start in range(0, rows, PIECE):
        yield np.arange(start, min(start + PIECE, rows))


def _table(path, parts):
    first = pa.table(next(parts))
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(pa.table(part))


def _images(folder, rows):
    """Write the table of images, and return what gives the codes of rows."""

    def codes(places):
        return {"sex": _code(places, 2, len(SEXES)), "region": _code(places, 3, REGIONS)}

    def part(places):
        row_codes = codes(places)
        columns = {
            "sex": _SEXES.take(row_codes["sex"]),
            "region": _REGIONS.take(row_codes["region"]),
        }
        return {"image_id": _ids(places), **columns}

    _table(folder / "images.parquet", (part(places) for places in _pieces(rows)))
    return codes


def _directions(count, dimension, seed=0):
    directions = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _leaning(folder, singular, plural, middles):
    """Write vectors that each lean to one of two middles, and their names; return the names."""
    directions = _directions(QUERIES, middles.shape[1], seed=1)
    leaning = directions + 0.2 * middles[np.arange(QUERIES) % 2]
    np.save(folder / f"{plural}.npy", leaning.astype(np.float16))
    names = [f"{singular} {index}" for index in range(QUERIES)]
    pq.write_table(pa.table({singular: names}), folder / f"{plural}.parquet")
    return names


def _drawn(rows, dimension, middles):
    """Yield unit vectors around the middle of each row."""
    rng = np.random.default_rng(2)
    for places in _pieces(rows):
        noise = rng.standard_normal((len(places), dimension), dtype=np.float32)
        vectors = noise / np.float32(dimension**0.5) + middles(places)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        yield vectors.astype(np.float16)


def _npy(path, kind, shape, parts):
    with path.open("wb") as file:
        about = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, about)
        for part in parts:
            file.write(part.tobytes())


def _vectors(path, rows, dimension, middles):
    def parts():
        pieces = _drawn(rows, dimension, middles)
        for places, vectors in zip(_pieces(rows), pieces, strict=True):
            cells = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension)
            yield {"image_id": _ids(places), "embedding": cells}

    _table(path, parts())


def _config(folder, text):
    (folder / "audit.yaml").write_text(dedent(text), encoding="utf-8")
