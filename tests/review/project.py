"""A run of predictions with images, labels that err more for one group, and answers."""

import json
import re

import numpy as np
import polars as pl
from PIL import Image

from equipoise import audits
from equipoise.evidence import new_run
from equipoise.report import write
from equipoise.review import key_of

CONFIG = """\
audit: predictions
data: {table: labels.csv, id: id, target: y, groups: [g], positive: nurse}
models:
  m: {table: m.csv, probabilities: {nurse: nurse, doctor: doctor}}
resampling: {replicates: 20, permutations: 20}
"""
N = 600


class Project:
    """A folder with a run, and people who know the truth."""

    def __init__(self, folder):
        self.folder = folder
        rng = np.random.default_rng(0)
        self.ids = [f"im_{place:04d}" for place in range(N)]
        self.group = rng.choice(["women", "men"], N, p=[0.3, 0.7])
        self.truth = rng.random(N) < 0.5
        wrong = rng.random(N) < np.where(self.group == "women", 0.2, 0.02)
        self.label = self.truth ^ wrong
        nurse = np.where(self.truth ^ (rng.random(N) < 0.1), 0.5, 0.0) + rng.random(N) / 2
        name = np.where(self.label, "nurse", "doctor")
        pl.DataFrame({"id": self.ids, "y": name, "g": self.group}).write_csv(folder / "labels.csv")
        columns = {"id": self.ids, "nurse": nurse, "doctor": 1 - nurse}
        pl.DataFrame(columns).write_csv(folder / "m.csv")
        (folder / "c.yaml").write_text(CONFIG)
        (folder / "photos").mkdir()
        for place, image_id in enumerate(self.ids):
            colour = Image.new("RGB", (8, 6), (place % 256, place // 256, 0))
            colour.save(folder / "photos" / f"{image_id}.png")

    def wrong(self, group):
        in_group = self.group == group
        return (self.truth != self.label)[in_group].mean()

    def answer(self, name, page="label.html", errors=0.0, suffix="json", at="2026-11-28T09:00:00Z"):
        """Write the answers of a labeller to the images of a page."""
        data = page_data(self.folder / page)
        rng = np.random.default_rng(len(name))
        place = {key_of(image_id): row for row, image_id in enumerate(self.ids)}
        rows = []
        for key, _, _ in data["images"]:
            right = self.truth[place[key]] == self.label[place[key]]
            says = right ^ (rng.random() < errors)
            entry = {"answer": "yes" if says else "no", "labeller": name, "at": at}
            rows.append({"key": key, "question": data["question"], **entry})
        file = self.folder / f"answers-{name}.{suffix}"
        if suffix == "json":
            file.write_text(json.dumps(rows))
        else:
            pl.DataFrame(rows).write_csv(file, quote_style="always")
        return file.name


def page_data(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'json" id="data">(.*?)</script>', text)[1])


def finished(folder, config):
    """Run the audit of a configuration, and return its folder."""
    config = audits.parse_config(config)
    with new_run(folder / "run") as run:
        inputs = audits.prepare(config, base=folder)
        write(audits.run(inputs, base=folder), run)
        audits.save(inputs, run)
    return folder / "run"
