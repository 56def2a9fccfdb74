"""Worlds of small pictures in which one cause, that is known, makes a model fail in one group."""

from datetime import UTC, datetime

import numpy as np
import polars as pl
from PIL import Image

from equipoise import audits
from equipoise.evidence import new_run
from equipoise.report import write
from equipoise.review import add_labels, merge_labels

KINDS = {
    "small objects": "box size",
    "wrong labels": "wrong label",
    "paintings": "medium",
    "a sub-type": "cluster",
    "model bias": None,
}
"""Kind of world to the cause that explains it."""
SIDE = 32


class World:
    """Images of women and men with a cup or a bowl.

    Small objects, paintings, a sub-type and wrong labels make the model fail, in both groups alike.
    The planted cause is more common among women; in the world of a model bias none is.
    """

    def __init__(self, kind, n=900, seed=0, *, planted=True):
        rng = np.random.default_rng([seed, [*KINDS].index(kind)])
        self.kind, self.rng = kind, rng
        self.women = rng.random(n) < 0.5

        def drawn(name, usual, women):
            share = np.where(self.women & (kind == name) & planted, women, usual)
            return rng.random(n) < share

        small = drawn("small objects", 0.1, 0.55)
        self.size = np.where(small, rng.uniform(6, 9, n), rng.uniform(9, 20, n))
        self.painting = drawn("paintings", 0.15, 0.65)
        # Men lack the sub-type where it is the cause.
        self.other_type = drawn("a sub-type", 0.0 if kind == "a sub-type" else 0.15, 0.5)
        self.wrong_label = drawn("wrong labels", 0.03, 0.35)
        self.truth = rng.choice(["bowl", "cup"], n)
        fail = 0.06 + 0.5 * small + 0.4 * self.painting + 0.45 * self.other_type
        fail += 0.25 * (self.women & (kind == "model bias") & planted)
        right = rng.random(n) >= np.minimum(fail, 0.95)

        def other(flip):
            return np.where(flip, np.where(self.truth == "cup", "bowl", "cup"), self.truth)

        self.label, self.said = other(self.wrong_label), other(~right)
        self.right = self.label == self.said
        self.group = np.where(self.women, "women", "men")

    @property
    def gap(self):
        return self.right[self.women].mean() - self.right[~self.women].mean()

    def cause(self):
        """The planted cause, and how it is taken out."""
        values = {
            "small objects": (self.size, "reweight"),
            "wrong labels": (self.wrong_label, "remove"),
            "paintings": (self.painting, "reweight"),
            "a sub-type": (self.other_type, "reweight"),
        }
        return values[self.kind]

    def audited(self, folder):
        """Write pictures, embeddings and labels, audit the predictions, and return the run."""
        rng, n = self.rng, len(self.group)
        ids = [f"{row:04d}.png" for row in range(n)]
        (folder / "photos").mkdir()
        left, top = (rng.uniform(0, SIDE - self.size).astype(int) for _ in range(2))
        right, bottom = (start + self.size.astype(int) for start in (left, top))
        for row, name in enumerate(ids):
            pixels = rng.integers(90, 160, (SIDE, SIDE, 3)) if not self.painting[row] else 120
            picture = np.full((SIDE, SIDE, 3), pixels, dtype=np.uint8)
            picture[top[row] : bottom[row], left[row] : right[row]] //= 2
            Image.fromarray(picture).save(folder / "photos" / name)
        table = pl.DataFrame(
            {
                "id": ids, "label": self.label, "said": self.said, "group": self.group,
                "left": left, "top": top, "right": right, "bottom": bottom,
                "medium": np.where(self.painting, "painting", "photograph"),
                "camera": rng.choice([*"abc"], n),
            }
        )  # fmt: skip
        table.write_csv(folder / "images.csv")
        vectors = rng.normal(size=(n, 6))
        vectors[:, 0] += 6.0 * np.where(self.other_type, -1.0, 1.0)
        np.save(folder / "vectors.npy", vectors.astype(np.float32))
        (folder / "ids.txt").write_text("\n".join(ids))
        corners = {side: side for side in ("left", "top", "right", "bottom")}
        source = str(folder / "images.csv")
        config = audits.parse_config(
            {
                "audit": "predictions",
                "data": {
                    "images": {
                        "table": source, "id": "id", "path": "id",
                        "root": str(folder / "photos"), "crop": corners,
                    },
                    "target": "label",
                    "groups": ["group"],
                },
                "models": {"ours": {"table": source, "id": "id", "prediction": "said"}},
                "metrics": {"accuracy_gap": {}, "rates": {}},
                "resampling": {"replicates": 50},
            }
        )  # fmt: skip
        with new_run(folder / "run") as run:
            inputs = audits.prepare(config, base=folder)
            write(audits.run(inputs, base=folder), run)
            audits.save(inputs, run)
        labelled = rng.choice(n, n // 2, replace=False)
        answers = np.where(self.wrong_label[labelled], "no", "yes")
        columns = {"image_id": [ids[row] for row in labelled], "answer": answers.tolist()}
        labels = pl.DataFrame(columns).with_columns(
            question=pl.lit("right"), labeller=pl.lit("ann"), at=datetime(2026, 11, 28, tzinfo=UTC)
        )
        add_labels(folder / "run", merge_labels(labels))
        return folder / "run"


def ranked_first(kind, folder, seed):
    """Return whether the planted cause ranks first, or no cause in the world of a model bias."""
    from equipoise.review import causes, disparities

    run = World(kind, seed=seed).audited(folder)
    disparity = disparities.find_disparity(run, metric="accuracy")
    assert disparity.group == "women"
    names = ("box size", "medium", "brightness", "camera", "box from the left")
    embedded = {"embeddings": str(folder / "vectors.npy"), "ids": folder / "ids.txt"}
    sources = causes.Sources(names, **embedded)
    ranking = causes.rank(disparity, causes.gather(run, disparity, sources), seed=seed)
    explaining = ranking.table.filter("explains")["cause"].to_list()
    if KINDS[kind] is None:
        return not explaining
    return bool(explaining) and explaining[0] == KINDS[kind]
