"""Evidence of any number of rows, drawn from a seed and written piece by piece.

Each world is a folder with tables, embeddings and `audit.yaml`, as a user brings them.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

PIECE = 1 << 16
CLASSES, SEXES, REGIONS = 40, ("Female", "Male"), 6
QUERIES = 20


def predictions(folder, rows):
    """Labels with two attributes, and two models; rows of the second lie in another order."""
    names = pa.array([f"class {index:02d}" for index in range(CLASSES)])
    sexes, regions = pa.array(SEXES), pa.array([f"region {index}" for index in range(REGIONS)])

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
            "sex": sexes.take(_code(places, 2, len(SEXES))),
            "region": regions.take(_code(places, 3, REGIONS)),
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


def _queried(kind, about, own):
    """Return a world of images of one pool, and queries that each lie nearer to one sex."""

    def world(folder, rows, dimension):
        middles, queries = (
            _directions(len(SEXES), dimension),
            _directions(QUERIES, dimension, seed=1),
        )
        images = _images(folder, rows)
        _npy(folder / "images.npy", rows, dimension, lambda places: middles[images(places)["sex"]])
        leaning = queries + 0.2 * middles[np.arange(QUERIES) % 2]
        np.save(folder / "queries.npy", leaning.astype(np.float16))
        names = [f"query {index}" for index in range(QUERIES)]
        pq.write_table(pa.table({"query": names}), folder / "queries.parquet")
        model = {"images": {"file": "images.npy"}, "queries": {"file": "queries.npy"}, **own}
        config = {
            "audit": kind,
            "data": {"images": {"table": "images.parquet", "id": "image_id"}, "groups": ["sex"]},
            "queries": {"table": "queries.parquet", "id": "query"},
            "models": {"first": model},
            **about,
        }
        (folder / "audit.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    return world


# Images are ranked by queries, or compared with them.
retrieval = _queried("retrieval", {"ranking": {"k": 12}}, {})
similarity = _queried("similarity", {}, {"scale": 10})


def concepts(folder, rows):
    """Scores of twenty concepts, of which every second is found less surely in one sex."""
    codes = _images(folder, rows)
    shown = {index: _code_of(30 + index) for index in range(QUERIES)}

    def part(places, scored):
        labels = np.stack([shown[index](places) < 10 for index in range(QUERIES)], axis=1)
        if not scored:
            return labels.astype(np.float32)
        noise = np.stack([_code(places, 60 + index, 1000) for index in range(QUERIES)], axis=1)
        less = 0.2 * (codes(places)["sex"] == 0)[:, None] * (np.arange(QUERIES) % 2)
        return np.asarray(labels * (0.6 - less) + noise / 1000, dtype=np.float32)

    for name, scored in (("labels", False), ("scores", True)):
        with (folder / f"{name}.npy").open("wb") as file:
            about = {"descr": "<f4", "fortran_order": False, "shape": (rows, QUERIES)}
            np.lib.format.write_array_header_1_0(file, about)
            for places in _pieces(rows):
                file.write(part(places, scored).tobytes())
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


def _code_of(salt):
    return lambda places: _code(places, salt, 100)


def diversity(folder, rows, dimension):
    """Images of six regions, of which one is less diverse; vectors are a column of Parquet."""
    own = _directions(REGIONS, dimension)
    images = _images(folder, rows)

    def middles(places):
        region = images(places)["region"]
        return own[region] * np.where(region == 0, 0.7, 0.5)[:, None]

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
    own, words = _directions(len(SEXES), dimension), _directions(QUERIES, dimension, seed=1)
    images = _images(folder, rows)
    _vectors(folder / "vectors.parquet", rows, dimension, lambda p: own[images(p)["sex"]])
    leaning = words + 0.2 * own[np.arange(QUERIES) % 2]
    np.save(folder / "words.npy", leaning.astype(np.float16))
    names = [f"word {index}" for index in range(QUERIES)]
    pq.write_table(pa.table({"word": names}), folder / "words.parquet")
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
    sexes, regions = pa.array(SEXES), pa.array([f"region {index}" for index in range(REGIONS)])

    def codes(places):
        return {"sex": _code(places, 2, len(SEXES)), "region": _code(places, 3, REGIONS)}

    def part(places):
        own = codes(places)
        told = {"sex": sexes.take(own["sex"]), "region": regions.take(own["region"])}
        return {"image_id": _ids(places), **told}

    _table(folder / "images.parquet", (part(places) for places in _pieces(rows)))
    return codes


def _directions(many, dimension, seed=0):
    drawn = np.random.default_rng(seed).standard_normal((many, dimension), dtype=np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _drawn(rows, dimension, middles):
    """Yield unit vectors around the middle of each row."""
    rng = np.random.default_rng(2)
    for places in _pieces(rows):
        noise = rng.standard_normal((len(places), dimension), dtype=np.float32)
        vectors = noise / np.float32(dimension**0.5) + middles(places)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        yield places, vectors.astype(np.float16)


def _npy(path, rows, dimension, middles):
    with path.open("wb") as file:
        about = {"descr": "<f2", "fortran_order": False, "shape": (rows, dimension)}
        np.lib.format.write_array_header_1_0(file, about)
        for _, vectors in _drawn(rows, dimension, middles):
            file.write(vectors.tobytes())


def _vectors(path, rows, dimension, middles):
    def parts():
        for places, vectors in _drawn(rows, dimension, middles):
            cells = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension)
            yield {"image_id": _ids(places), "embedding": cells}

    _table(path, parts())


def _config(folder, text):
    lines = [line.removeprefix("        ") for line in text.splitlines()]
    (folder / "audit.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
