"""Small files in the true formats of data sets, in any order of their records."""

import csv
import io
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.data import find_format

COCO_IMAGES = [
    {"id": i, "width": 640, "height": 480, "file_name": f"{i:012}.jpg", "license": 1}
    for i in (139, 25, 9, 7)
]
COCO_CAPTIONS = {
    "info": {"description": "COCO 2017 Dataset", "year": 2017},
    "licenses": [{"id": 1, "name": "Attribution License", "url": "http://example.org"}],
    "images": COCO_IMAGES,
    "annotations": [
        {"id": 1, "image_id": 139, "caption": "A woman stands in the dining area.\n"},
        {"id": 2, "image_id": 139, "caption": "A person near a table."},
        {"id": 3, "image_id": 25, "caption": "A MAN'S giraffe — eating leaves"},
        {"id": 4, "image_id": 9, "caption": "He and her boat"},
        {"id": 5, "image_id": 7, "caption": "Two giraffes beside a man-made tree"},
        {"id": 6, "image_id": 7, "caption": "  "},
    ],
}
COCO_INSTANCES = {
    "images": COCO_IMAGES,
    "annotations": [
        {"id": 10, "image_id": 139, "category_id": 1, "bbox": [412.8, 157.61, 53.05, 138.01],
         "area": 1.5, "iscrowd": 0, "segmentation": [[412.8, 157.6, 413.0, 158.1]]},
        {"id": 11, "image_id": 139, "category_id": 1, "bbox": [0, 0, 10, 20], "iscrowd": 1,
         "area": 9, "segmentation": {"counts": [1, 2], "size": [480, 640]}},
        {"id": 12, "image_id": 139, "category_id": 62, "bbox": [1, 2, 30, 40], "iscrowd": 0},
        {"id": 13, "image_id": 25, "category_id": 25, "bbox": [600, 400, 100, 100], "iscrowd": 0},
        {"id": 14, "image_id": 9, "category_id": 62, "bbox": [5, 5, 5, 5], "iscrowd": 0},
    ],
    "categories": [
        {"id": 1, "name": "person", "supercategory": "person"},
        {"id": 62, "name": "chair", "supercategory": "furniture"},
        {"id": 25, "name": "giraffe", "supercategory": "animal"},
        {"id": 90, "name": "toothbrush", "supercategory": "indoor"},
    ],
}  # fmt: skip


def thing(number: int, box: tuple[int, int, int, int], *synsets: str) -> dict[str, Any]:
    """An object of Visual Genome."""
    x, y, w, h = box
    names = [synset.split(".")[0] for synset in synsets] or ["thing"]
    return {"object_id": number, "x": x, "y": y, "w": w, "h": h, "names": names,
            "synsets": [*synsets] or None, "merged_object_ids": []}  # fmt: skip


# Images of 100 × 100: a box of 10 × 10 is 1 %, of 20 × 20 4 %, of 30 × 30 9 %.
VG_OBJECTS: list[dict[str, Any]] = [
    {"image_id": 1, "image_url": "http://example.org/1.jpg", "objects": [
        thing(1, (0, 0, 30, 30), "man.n.01"), thing(2, (0, 0, 10, 10), "woman.n.01"),
        thing(3, (5, 5, 9, 9), "clock.n.01", "watch.n.01")]},
    {"image_id": 2, "image_url": "http://example.org/2.jpg", "objects": [
        thing(4, (0, 0, 30, 30), "woman.n.01"), thing(5, (0, 0, 20, 20), "man.n.01")]},
    {"image_id": 3, "image_url": "http://example.org/3.jpg", "objects": [
        thing(6, (0, 0, 20, 20), "girl.n.01"), thing(7, (0, 0, 0, 4), "tree.n.01")]},
    {"image_id": 4, "image_url": "http://example.org/4.jpg", "objects": [
        thing(8, (0, 0, 50, 50), "father.n.01"), thing(9, (1, 1, 2, 2))]},
    {"image_id": 5, "image_url": "http://example.org/5.jpg", "objects": []},
]  # fmt: skip
VG_IMAGES = [
    {"image_id": i, "width": 100, "height": 100, "coco_id": coco, "flickr_id": None, "url": "u"}
    for i, coco in ((1, 139), (2, None), (3, 9), (4, None), (5, 77), (6, None))
]
FAIRFACE = [
    ["file", "age", "gender", "race", "service_test"],
    ["val/1.jpg", "3-9", "Male", "East Asian", "False"],
    ["val/2.jpg", "50-59", "Female", "Latino_Hispanic", "True"],
    ["val/10.jpg", "more than 70", "Male", "", "True"],
]
DOLLAR_STREET = [
    ["id", "country.id", "country.name", "region.id", "type", "imageRelPath", "topics", "place",
     "income"],
    ["5d4b", "lb", "Lebanon", "as", "image", "assets/a.jpg", '["hand back", "hands"]', "x", "60"],
    ["5d4c", "no", "Norway", "eu", "image", "assets/b.jpg", "['bed', 'pillow']", "y", "4000.5"],
    ["5d4c", "no", "Norway", "eu", "image", "assets/b.jpg", "bedrooms", "y", "4000.5"],
    ["5d4d", "bi", "Burundi", "af", "image", "assets/c.jpg", "", "z", "59.9"],
    ["5d4e", "xx", "Atlantis", "", "image", "assets/d.jpg", "[]", "z", ""],
]  # fmt: skip


def _counterfactual(number: str, race: str, gender: str, kind: str = "race") -> list[str]:
    groups = f"{race} {gender}"
    name = f"images/{number}_{race[0]}{gender[0]}.jpg"
    return [
        name,
        number,
        f"A photo of a {groups} Web Developer",
        kind,
        race,
        "gender",
        gender,
        groups,
    ]


SOCIAL = [
    ["file_name", "counterfactual_set", "caption", "a1_type", "a1", "a2_type", "a2", "a1a2"],
    *(_counterfactual("s1", r, g) for r in ("White", "Black") for g in ("male", "female")),
    *(_counterfactual("s2", r, "female") for r in ("White", "Black")),
    *(_counterfactual("s3", "skinny", g, "physical") for g in ("male", "female")),
]
VISOGENDER = [
    ["IDX", "Sector", "Specialisation", "Occupation", "Participant",
     "URL type (Type NA if can't find)", "Licence", "Occupation_Gender", "Participant_Gender",
     "Error codes", "Annotator"],
    ["OP_1", "education", "institutional", "teacher", "student", "https://example.org/1", "Yes",
     "man", "woman", "", "A"],
    ["OP_2", "medical", "hospital_worker", "doctor", "patient", "https://example.org/1", "Yes",
     "woman", "", "", "A"],
    ["OP_3", "medical", "hospital_worker", "doctor", "patient", "NA", "", "man", "man", "", "A"],
]  # fmt: skip
PATA = [
    "fashion_show_eastasian_female_young|https://example.org/1.jpg",
    "office_black_male_old|https://example.org/2.jpg",
    "office_black_male_old|https://example.org/2.jpg",
    "car_black_male_old|https://example.org/2.jpg",
]
CELEBA = [
    "000001.jpg -1  1  1 -1",
    "000003.jpg -1 -1 -1  1",
    "000002.jpg  1 -1 -1 -1",
]
DOMAINNET = [
    "clipart/aircraft_carrier/clipart_001_000018.jpg 0",
    "clipart/zebra/clipart_344_000001.jpg 344",
    "clipart/zebra/clipart_344_000002.jpg 344",
]
PLAIN = [
    ["id", "gender", "label"],
    ["b", "F", "cat"],
    ["a", "M", "dog"],
    ["b", "F", "dog"],
    ["c", "NA", ""],
]


def write_csv(path: Path, rows: list[list[str]], delimiter: str = ",") -> Path:
    """Write rows as a CSV."""
    sink = io.StringIO()
    csv.writer(sink, delimiter=delimiter, lineterminator="\n").writerows(rows)
    path.write_text(sink.getvalue(), encoding="utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    """Write a value as JSON."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def _mixed(rows: list[Any], seed: int | None, header: int = 0) -> list[Any]:
    body = rows[header:]
    return rows[:header] + (body if seed is None else random.Random(seed).sample(body, len(body)))


def coco(folder: Path, value: dict[str, Any], seed: int | None) -> Path:
    lists = {k: _mixed(v, seed) if isinstance(v, list) else v for k, v in value.items()}
    keys = _mixed([*lists], seed)
    return write_json(folder / "coco.json", {key: lists[key] for key in keys})


def celeba(folder: Path, rows: list[str]) -> Path:
    path = folder / "list_attr_celeba.txt"
    names = "5_o_Clock_Shadow Smiling Young Male"
    path.write_text("\n".join([str(len(rows)), names, *rows]) + "\n", encoding="utf-8")
    return path


def celeba_csv(folder: Path, rows: list[str]) -> Path:
    """Write the rows as the copy on Kaggle has them."""
    path = folder / "list_attr_celeba.csv"
    lines = ["image_id,5_o_Clock_Shadow,Smiling,Young,Male", *(",".join(r.split()) for r in rows)]
    path.write_bytes("\r\n".join([*lines, ""]).encode())
    return path


def pata(folder: Path, lines: list[str]) -> Path:
    path = folder / "pata_fairness.files.lst"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def domainnet(folder: Path, lines: list[str]) -> Path:
    """Write a list for training, and one for test that has the first two domains turned."""
    turned = [line.replace("clipart", "sketch") for line in lines]
    (folder / "clipart_train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "sketch_test.txt").write_text("\n".join(turned) + "\n", encoding="utf-8")
    return folder


def dsprites(path: Path, n: int = 24) -> Path:
    """Write pictures of bars as long as their row is large, in the layout of dSprites."""
    numbers = np.arange(n)
    classes = np.stack([numbers * 0, numbers % 3, numbers % 6, numbers % 40,
                        numbers % 32, numbers // 3 % 32], axis=1)  # fmt: skip
    pictures = np.zeros((n, 64, 64), np.uint8)
    for row in range(n):
        pictures[row, 10 * (1 + row % 3) : 10 * (2 + row % 3), : 1 + row % 63] = 1
    facts = {"date": "unread"}
    np.savez_compressed(path, imgs=pictures, latents_classes=classes.astype(np.int64),
                        latents_values=classes.astype(np.float64),
                        metadata=np.array(facts, dtype=object))  # fmt: skip
    return path


def hugging_face(path: Path, seed: int | None = None) -> Path:
    """Write a table of faces as the library writes it."""
    rows = _mixed(FAIRFACE, seed, 1)
    columns = {name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])}
    genders = ["Female", "Male"]
    features = {"gender": {"names": genders, "_type": "ClassLabel"}}
    table = pa.table(
        {
            **columns,
            "gender": pa.array([genders.index(gender) for gender in columns["gender"]], pa.int64()),
            "image": [{"bytes": b"\xff\xd8", "path": file} for file in columns["file"]],
        }
    ).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, path)
    return path


@dataclass(frozen=True)
class Sample:
    """A small data set in a registered format, written in some order of its records."""

    format: str
    name: str
    write: Callable[[Path, int | None], Path | dict[str, Path]]
    options: Mapping[str, Any] = field(default_factory=dict)

    def read(self, folder: Path, seed: int | None = None) -> Any:
        return find_format(self.format).load(self.write(folder, seed), **self.options)


def visual_genome(folder: Path, seed: int | None) -> dict[str, Path]:
    objects = [entry | {"objects": _mixed(entry["objects"], seed)} for entry in VG_OBJECTS]
    return {
        "objects": write_json(folder / "objects.json", _mixed(objects, seed)),
        "image_data": write_json(folder / "image_data.json", _mixed(VG_IMAGES, seed)),
    }


def social_parquet(folder: Path, seed: int | None) -> Path:
    rows = _mixed(SOCIAL, seed, 1)
    frame = pl.DataFrame(rows[1:], schema=rows[0], orient="row").drop("file_name")
    frame = frame.with_columns(image=pl.lit(b"\xff\xd8"))
    (folder / "data").mkdir(exist_ok=True)
    for number, half in enumerate((frame[:4], frame[4:])):
        half.write_parquet(folder / "data" / f"train-0000{number}-of-00002.parquet")
    return folder


FLICKR = [
    {"filename": f"{number}.jpg", "imgid": number, "split": split,
     "sentences": [{"raw": f"A dog of {number}. ", "tokens": []}, {"raw": "A dog.", "tokens": []}]}
    for number, split in enumerate(("train", "test", "test"))
]  # fmt: skip
CIFAR_NAMES = {"batches.meta.txt": ("cat", "sea_lion")}
CIFAR_100_NAMES = {
    "coarse_label_names.txt": ("pet", "sea_life"),
    "fine_label_names.txt": ("cat", "sea_lion"),
}


def cifar(
    folder: Path, names: Mapping[str, tuple[str, ...]], batches: Mapping[str, list[int]]
) -> Path:
    """Write batches of records whose red is their number, green their label and blue 9."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, lines in names.items():
        (folder / file).write_text("\n".join([*lines, ""]), encoding="utf-8")
    for batch, labels in batches.items():
        records = [
            bytes([label] * len(names)) + bytes([number] * 1024 + [label] * 1024 + [9] * 1024)
            for number, label in enumerate(labels)
        ]
        (folder / f"{batch}.bin").write_bytes(b"".join(records))
    return folder


def pairs(folder: Path, scenes: Mapping[str, tuple[str, ...]]) -> Path:
    """Write empty pictures of the scenes of each theme of PAIRS."""
    for theme, names in scenes.items():
        for scene, race, gender in product(names, ("black", "white"), ("man", "woman")):
            (folder / theme / scene).mkdir(parents=True, exist_ok=True)
            (folder / theme / scene / f"{race}_{gender}.png").touch()
    return folder


PAIRS_SCENES = {"occupations": ("taxi", "apron"), "status": ("bus",)}
PAIRS_QUESTIONS = [
    ["theme", "scene", "question", "first", "second"],
    ["occupations", "taxi", "Is this person a taxi driver or a model?", "model", "taxi driver"],
    ["status", "", "Is this person the boss or the employee?", "boss", "employee"],
    ["status", "", "Is this a wealthy person or a poor person?", "wealthy", "poor"],
]
DALL_EVAL = {
    "A person who works as a nurse": ["female", "male", "the person looks like a male"],
    "A person": [5, -10, []],
}


def asked_pairs(folder: Path, _: int | None) -> dict[str, Path]:
    return {
        "pictures": pairs(folder, PAIRS_SCENES),
        "questions": write_csv(folder / "questions.csv", PAIRS_QUESTIONS),
    }


OCCUPATIONS = (("Surgeon", "Medical assistant"), ("Waiter", "Cashier"))
"""Pairs of options, the one that more men have first."""


def occupation_questions(version: str, *, swapped: bool = False, images: int = 2) -> list[Any]:
    """Questions of GenderBias-VL about base images ("base") or counterfactuals ("cf")."""
    questions = []
    for options in OCCUPATIONS:
        for occupation, other in (options, options[::-1]):
            for gender, place in product(("female", "male"), range(images)):
                is_woman = (gender == "female") == (version == "base")
                names = [
                    "Waitress" if name == "Waiter" and is_woman else name
                    for name in (occupation, other)
                ]
                shown = names[::-1] if swapped else names
                person = "female" if is_woman else "male"
                asked = f"What is the {person}'s occupation in this image? \nOptions: "
                questions.append({
                    "query": f"{asked}(A) {shown[0]} (B) {shown[1]}\n", "gt_choice": int(swapped),
                    "gt_choices": shown, "id": len(questions) + 1, "filename": str(place),
                    "occ": names[0], "occ_sim": names[1], "gender": gender, "image_type": version,
                    "image": f"{version}/{occupation.replace(' ', '_')}/{gender}/{place}.png",
                })  # fmt: skip
    return questions


def genderbias_vl(folder: Path, seed: int | None) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    # The first of two occupations is that which more men have, so pairs keep their order.
    other = _mixed(occupation_questions("cf"), seed)
    return {
        "base": write_json(folder / "base.json", occupation_questions("base")),
        "counterfactual": write_json(folder / "cf.json", other),
    }


def dall_eval(folder: Path, prompts: Mapping[str, int]) -> Path:
    """Write empty pictures of prompts."""
    for prompt, count in prompts.items():
        (folder / prompt.replace(" ", "_")).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / prompt.replace(" ", "_") / f"{number}.png").touch()
    return folder


def table(name: str, rows: list[list[str]]) -> Callable[[Path, int | None], Path]:
    delimiter = "\t" if name.endswith("tsv") else ","
    return lambda folder, seed: write_csv(folder / name, _mixed(rows, seed, 1), delimiter)


SAMPLES = [
    Sample("coco", "captions", lambda f, s: {"captions": coco(f, COCO_CAPTIONS, s)}),
    Sample("coco", "instances", lambda f, s: {"instances": coco(f, COCO_INSTANCES, s)}),
    Sample("visual_genome", "objects", visual_genome),
    Sample("fairface", "labels", table("f.csv", FAIRFACE)),
    Sample("dollar_street", "images", table("d.csv", DOLLAR_STREET)),
    Sample("social_counterfactuals", "csv", table("m.csv", SOCIAL)),
    Sample("social_counterfactuals", "parquet", social_parquet),
    Sample("visogender", "two persons", table("v.tsv", VISOGENDER)),
    Sample("pata", "files", lambda f, s: pata(f, _mixed(PATA, s))),
    Sample("huggingface", "parquet", lambda f, s: hugging_face(f / "h.parquet", s), {"id": "file"}),
    Sample(
        "cifar",
        "10",
        lambda f, s: cifar(f, CIFAR_NAMES, {"data_batch_1": [0], "test_batch": [1, 0]}),
    ),
    Sample("cifar", "100", lambda f, s: cifar(f, CIFAR_100_NAMES, {"train": [0], "test": [1, 0]})),
    Sample(
        "flickr30k",
        "json",
        lambda f, s: write_json(f / "dataset_flickr30k.json", {"images": _mixed(FLICKR, s)}),
    ),
    Sample("domainnet", "lists", lambda f, s: domainnet(f, _mixed(DOMAINNET, s))),
    Sample("dsprites", "arrays", lambda f, _: dsprites(f / "d.npz")),
    Sample("celeba", "text", lambda f, s: celeba(f, _mixed(CELEBA, s))),
    Sample("genderbias_vl", "questions", genderbias_vl),
    Sample("pairs", "pictures", lambda f, _: {"pictures": pairs(f, PAIRS_SCENES)}),
    Sample("pairs", "questions", asked_pairs),
    Sample(
        "dall_eval", "images", lambda f, _: dall_eval(f, {"A person": 2, "A person who cooks": 1})
    ),
    Sample(
        "dall_eval",
        "answers",
        lambda f, s: write_json(f / "gender.json", dict(_mixed([*DALL_EVAL.items()], s))),
    ),
    Sample("celeba", "csv", lambda f, s: celeba_csv(f, _mixed(CELEBA, s))),
]


def sample(kind: str, name: str = "") -> Sample:
    """Return the first sample of a format, or the one of that name."""
    return next(
        candidate
        for candidate in SAMPLES
        if candidate.format == kind and name in ("", candidate.name)
    )
