"""Small data sets in the true layout of real ones, with pictures: as a user has them on disk."""

import io
import json
from hashlib import sha256
from itertools import chain, cycle, product
from pathlib import Path
from shutil import copytree

import numpy as np
import polars as pl
from PIL import Image

from equipoise.data import lexicon
from equipoise.planted.faces import TOOLS, draw_faces
from equipoise.studies.study import read_study
from image_files import (
    CIFAR_100_NAMES,
    CIFAR_NAMES,
    FLICKR,
    cifar,
    dsprites,
    occupation_questions,
    write_csv,
    write_json,
)

RACES = ("Black", "East Asian", "Indian", "White")
AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
REGIONS = ("SSA", "LA", "EE", "SA", "WE", "SEA", "WANA", "NA", "EA")
INCOMES = (50, 150, 3000)
COUNTRIES = (
    ("bi", "Burundi", "af"), ("br", "Brazil", "am"), ("lb", "Lebanon", "as"),
    ("no", "Norway", "eu"),
)  # fmt: skip
TOPICS = ("phones", "roofs", "bikes", "parking lots", "lock on front door")
DOMAINS = ("clipart", "real", "sketch")
THINGS = ("laptop", "teapot", "zebra")
VISOGENDER_OO = [
    "IDX", "Sector", "Specialisation", "Occupation", "Object", "URL type (Type NA if can't find)",
    "LICENSE OK?", "Occupation_perceived_gender", "Error codes", "Annotator",
]  # fmt: skip


def picture(*seeds, form="JPEG", size=(20, 16)):
    """A picture of noise around a colour; the same seeds make the same one."""
    rng = np.random.default_rng([7, *seeds])
    colour = rng.integers(40, 215, 3)
    pixels = np.clip(rng.normal(colour, 25, (*size, 3)), 0, 255).astype(np.uint8)
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, form)
    return sink.getvalue()


def _put(path, *seeds, form="JPEG"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture(*seeds, form=form))


def fairface(folder, count=32):
    """`fairface_label_val.csv` and the pictures: `count` of every race and gender."""
    rows = [["file", "age", "gender", "race", "service_test"]]
    kinds = [*product(RACES, ("Female", "Male"))] * count
    for number, (race, gender) in enumerate(kinds, start=1):
        rows.append(
            [f"val/{number}.jpg", AGES[number % len(AGES)], gender, race, str(number % 2 == 0)]
        )
        _put(folder / "fairface" / "val" / f"{number}.jpg", number)
    write_csv(folder / "fairface" / "fairface_label_val.csv", rows)


def many_faces(folder):
    """FairFace with more faces than a protocol ranks, and the pictures of the first."""
    fairface(folder, count=8)
    labels = folder / "fairface" / "fairface_label_val.csv"
    rows = [line.split(",") for line in labels.read_text(encoding="utf-8").splitlines()]
    kinds = zip(cycle(AGES), cycle(("Female", "Male", "Male")), cycle(RACES), strict=False)
    rows += [[f"val/{number}.jpg", *next(kinds), "True"] for number in range(len(rows), 1101)]
    write_csv(labels, rows)


def visogender(folder, each=5):
    """The table of VisoGender with some men and women of each occupation, and their pictures."""
    text = read_study("visogender-retrieval").files["captions.csv"]
    captions = [line.split(",") for line in text.splitlines()[1:]]
    rows = []
    for number, ((caption, occupation), gender, _) in enumerate(
        product(captions, ("masculine", "feminine"), range(each)), 1
    ):
        thing = caption.partition(" their ")[2]
        address = f"https://example.org/{number}.jpg"
        rows.append([f"OO_{number}", "s", "s", occupation, thing, address, "Yes", gender, "", "A"])
        _put(folder / "visogender" / "images" / f"OO_{number}.jpg", number)
    write_csv(folder / "visogender" / "OO_Visogender_10052025.tsv", [VISOGENDER_OO, *rows], "\t")


def visogender_of_both(folder):
    """Both tables of VisoGender, with their pictures."""
    visogender(folder)
    lines = (folder / "visogender" / "OO_Visogender_10052025.tsv").read_text(encoding="utf-8")
    header = [*VISOGENDER_OO[:8], "Participant_perceived_gender", *VISOGENDER_OO[8:]]
    header[4] = "Participant"
    rows = [header]
    for number, line in enumerate(lines.splitlines()[1:]):
        name, *cells = line.split("\t")
        name = name.replace("OO", "OP")
        rows.append([name, *cells[:7], ("masculine", "feminine")[number % 2], *cells[7:]])
        _put(folder / "visogender" / "images" / f"{name}.jpg", number, 7)
    write_csv(folder / "visogender" / "OP_Visogender_11012024.tsv", rows, "\t")


def pairs(folder):
    """The four pictures of the scenes of PAIRS that have a question, and of a few of status."""
    lines = read_study("pairs").files["questions.csv"].splitlines()[1:]
    scenes = [line.split(",")[:2] for line in lines if line.split(",")[1]]
    scenes += [["status", f"scene {number}"] for number in range(8)]
    for place, (theme, scene) in enumerate(scenes):
        for number, person in enumerate(product(("black", "white"), ("man", "woman"))):
            name = f"{'_'.join(person)}.png"
            _put(folder / "pairs" / theme / scene / name, place, number, form="PNG")


def genderbias_vl(folder, images=6):
    """Questions of two contexts of GenderBias-VL, and the images."""
    for context, asks in (("VLbias", "gender"), ("Vbias", "person")):
        inside = folder / "genderbias_vl" / "test_meta_file" / context
        inside.mkdir(parents=True)
        for version in ("base", "cf"):
            questions = occupation_questions(version, images=images)
            write_json(inside / f"occ_test_{version}_ask_{asks}.json", questions)
            for number, question in enumerate(questions):
                path = folder / "genderbias_vl" / question["image"]
                _put(path, number, version == "cf", form="PNG")


def dall_eval(folder, images=2):
    """Answers about images of DALL-Eval's prompts, as its code writes them, and some images."""
    prompts = read_study("dall-eval").words["prompts.csv"].by_list["prompts"]
    tones = [1, 5, 10, -10, []]
    genders = ["male", "a female", "the person looks like a male", "a group of people"]
    answers = {
        name: {
            prompt: [kinds[(3 * place + number) % len(kinds)] for number in range(9)]
            for place, prompt in enumerate(prompts)
        }
        for name, kinds in (("gender", genders), ("skin_tone", tones))
    }
    for name, of_prompts in answers.items():
        (folder / "dall_eval").mkdir(exist_ok=True)
        write_json(folder / "dall_eval" / f"{name}.json", of_prompts)
    for place, prompt in enumerate(prompts[:3]):
        for number in range(images):
            inside = folder / "dall_eval" / "images" / prompt.replace(" ", "_")
            _put(inside / f"{number}.png", place, number, form="PNG")


def fairface_and_coco(folder):
    """Write the layouts of both."""
    fairface(folder)
    coco(folder, count=10)
    occupations = ("doctor", "engineer", "nurse", "pilot", "cook", "farmer")
    social_counterfactuals_in_pairs(folder, 1, occupations)


def coco(folder, count=110):
    """Write captions, instances and pictures: `count` of a man and of a woman, with objects."""
    category_names = {1: "person", 31: "handbag", 32: "tie", 62: "chair"}
    captions = [
        "A man in a room.",
        "A woman in a room.",
        "A person and his mother.",
        "An empty room.",
    ]
    images = []
    annotations = []
    boxes = []
    rng = np.random.default_rng(3)
    for number in range(1, 2 * count + 31):
        name = f"{number:012}.jpg"
        part = "train2017" if number % 4 else "val2017"
        url = f"http://images.cocodataset.org/{part}/{name}"
        images.append({
            "license": 1, "file_name": name, "coco_url": url, "height": 16, "width": 20,
            "date_captured": "2013-11-14 11:18:45", "flickr_url": f"http://example.org/{name}",
            "id": number,
        })  # fmt: skip
        which = number % 2 if number <= 2 * count else 2 + number % 2
        annotations.append({"image_id": number, "id": number, "caption": captions[which]})
        category_ids = [key for key in category_names if rng.random() < 0.7]
        boxes += [
            {"segmentation": [[1, 1, 9 + place, 1, 9 + place, 10]], "area": 9 * (8 + place),
             "iscrowd": 0, "image_id": number, "bbox": [1, 1, 8 + place, 9], "category_id": key,
             "id": 10 * number + place}
            for place, key in enumerate(category_ids)
        ]  # fmt: skip
        _put(folder / "coco" / part / name, number)
    (folder / "coco" / "annotations").mkdir()
    categories = [
        {"supercategory": "x", "id": key, "name": name} for key, name in category_names.items()
    ]
    for part, remainders in (("train2017", (1, 2, 3)), ("val2017", (0,))):
        image_ids = {image["id"] for image in images if image["id"] % 4 in remainders}
        shared = {"info": {"year": 2017}, "licenses": []}
        shared["images"] = [image for image in images if image["id"] in image_ids]
        captions = {
            "annotations": [
                annotation for annotation in annotations if annotation["image_id"] in image_ids
            ]
        }
        instances = {"annotations": [box for box in boxes if box["image_id"] in image_ids]}
        write_json(folder / f"coco/annotations/captions_{part}.json", shared | captions)
        instances["categories"] = categories
        write_json(folder / f"coco/annotations/instances_{part}.json", shared | instances)
    data = [{"image_id": 5, "width": 20, "height": 16, "coco_id": 7, "flickr_id": None, "url": "u"}]
    write_json(folder / "coco" / "image_data.json", data)


def visual_genome(folder, count=110):
    """`objects.json`, `image_data.json`, pictures: `count` of a man and of a woman, with things.

    Further images have a person's box beside, or people of both groups. Boxes of some are small.
    """
    rng = np.random.default_rng(4)
    things = ("base.n.01", "bear.n.01", "dress.n.01", "umbrella.n.01")
    facts, objects = [], []
    for number in range(1, 2 * count + 31):
        synsets = ["man.n.01" if number % 2 else "woman.n.01"]
        if number > 2 * count:
            synsets.append(("person.n.01", "people.n.01", "lady.n.01")[number % 3])
        elif rng.random() < 0.1:
            synsets = ["father.n.01" if number % 2 else "ma.n.01"]
        width, height = (20, 20) if rng.random() < 0.1 else (60, 70)
        synsets += [synset for synset in things if rng.random() < 0.7]
        boxes = [
            {"synsets": [synset], "h": height, "object_id": 10 * number + place,
             "merged_object_ids": [], "names": [synset.partition(".")[0]], "w": width, "y": 1,
             "x": 1}
            for place, synset in enumerate(synsets)
        ]  # fmt: skip
        boxes.append({**boxes[0], "synsets": [], "object_id": 10 * number + 9, "names": ["thing"]})
        part = f"VG_100K{'_2' * (number % 3 == 0)}"
        url = f"http://example.org/{part}/{number}.jpg"
        size = {"width": 100, "url": url, "height": 80}
        facts.append({**size, "image_id": number, "coco_id": None, "flickr_id": None})
        objects.append({"image_id": number, "objects": boxes, "image_url": url})
        _put(folder / "visual_genome" / part / f"{number}.jpg", number)
    write_json(folder / "visual_genome" / "image_data.json", facts)
    write_json(folder / "visual_genome" / "objects.json", objects)


def image_search(folder, count=16):
    """Folders of queries and regions, `faces.csv` as `equipoise faces` writes it, data sets."""
    rows = [["image_id", "query", "region", "face", "faces", "left", "top", "right", "bottom"]]
    queries = ("CEO", "Engineer", "Nurse", "Politician", "School Teacher")
    kinds = [*product(queries, ("WANA", "NA", "EA"), range(count))]
    for number, (query, region, copy) in enumerate(kinds):
        name = f"{query}/{region}/{copy}.jpg"
        face_cells = ["yes", 1, 2, 2, 14, 14] if copy else ["no", 0, "", "", "", ""]
        rows.append([name, query, region, *face_cells])
        _put(folder / "images" / name, number)
    write_csv(folder / "faces.csv", rows)
    for place, name in enumerate(("FFHQ", "WIKI", "IMDB", "LFW", "UTK")):
        for copy in range(3):
            _put(folder / "datasets" / name / f"{copy}.jpg", 3 * place + copy)


def images_of_prompts(folder, count=1):
    """`dalle_2.csv` and pictures: `count` of each prompt that Mandal 2024 asks DALL-E 2."""
    content = lexicon("mandal_2024_prompts").content
    sets = [content["attributes"], *content["targets"].values()]
    rows, texts = [["image_id", "prompt", "path"]], chain.from_iterable(s.values() for s in sets)
    for number, (text, copy) in enumerate(product(chain.from_iterable(texts), range(count))):
        rows.append([f"i{number}", f"{content['prefix']} {text}", f"{number}.png"])
        _put(folder / "images" / f"{number}.png", number, copy, form="PNG")
    write_csv(folder / "images" / "dalle_2.csv", rows)


def people_by_region(folder, count=2):
    """`images.csv` and pictures: `count` of every gender and region of Mandal 2024; `pairs.csv`."""
    corners = ("left", "top", "right", "bottom")
    rows = [["image_id", "file", "gender", "region", *corners]]
    kinds = [*product(("Female", "Male"), REGIONS, range(count))]
    for number, (gender, region, _) in enumerate(kinds):
        rows.append([f"i{number}", f"{number}.jpg", gender, region, 2, 2, 14, 14])
        _put(folder / "people" / "images" / f"{number}.jpg", number)
    write_csv(folder / "people" / "images.csv", rows)
    persons = ("woman", "man", "with", "without")
    pairs = [["image_id", "file", "region", *(f"{p}_{c}" for p in persons for c in corners)]]
    for number in range(4):
        boxes = [0, 0, 8, 16, 8, 0, 16, 16] * 2
        pairs.append([f"p{number}", f"{number}.jpg", REGIONS[number // 2], *boxes])
    write_csv(folder / "people" / "pairs.csv", pairs)


def generated(attribute, values, subjects, count=20, further=()):
    """Return a function that writes `images.parquet` and pictures like an audit of generation.

    The same lies in `further` folders.
    """

    def write(folder):
        kinds = [*product(range(count), subjects, values)]
        rows = [
            {"image_id": f"g{number}", "file": f"{number}.png", "set": f"{subject} {copy}",
             "subject": subject, attribute: value}
            for number, (copy, subject, value) in enumerate(kinds)
        ]  # fmt: skip
        for number in range(len(rows)):
            _put(folder / "sets" / f"{number}.png", number, form="PNG")
        pl.DataFrame(rows).write_parquet(folder / "sets" / "images.parquet")
        for name in further:
            copytree(folder / "sets", folder / name)

    return write


def dollar_street(folder, count=12):
    """`images_v2.csv` and the pictures: `count` of every country, band of income and topic."""
    rows = [["id", "country.name", "country.id", "region.id", "type", "imageRelPath", "topics",
             "place", "income"]]  # fmt: skip
    kinds = [*product(COUNTRIES, INCOMES, TOPICS)] * count
    for number, ((code, country, region), income, topic) in enumerate(kinds):
        path = f"assets/{number:05}/{number:05}.jpg"
        rows.append([f"5d4b{number:05}", country, code, region, "image", path,
                     json.dumps([topic]), f"{country}-{number % 9}", str(income)])  # fmt: skip
        _put(folder / "dataset_dollarstreet" / path, number)
    rows += [[*rows[1][:6], '["hands"]', *rows[1][7:]], ["5d4bx", *rows[1][1:6], "[]", "z", "60"]]
    write_csv(folder / "dataset_dollarstreet" / "images_v2.csv", rows)


def pictures_of_classes(folder, name, classes, count=2):
    """A folder of each class, as Caltech-101 and ImageNet have them."""
    for number, (class_name, copy) in enumerate(product(classes, range(count))):
        _put(folder / name / class_name / f"image_{copy:04}.jpg", number)


def social_counterfactuals(folder, sets=20):
    """Parquet files of sets of four pictures of one occupation, in two parts."""
    values = {"race": ("Black", "White"), "gender": ("female", "male")}
    occupations = ("doctor", "nurse", "farmer", "cook")
    rows = [
        row
        for number in range(sets)
        for row in _counterfactuals(f"photo_{number}", values, occupations[number % 4], number)
    ]
    half = len(rows) // 2
    _write_counterfactuals(folder, rows[:half], rows[half:])


def social_counterfactuals_in_pairs(folder, sets=3, occupations=("doctor", "engineer")):
    """Parquet files of sets of all three pairs of attributes, `sets` of each and occupation."""
    kinds = {"race": ("Black", "White"), "gender": ("female", "male"), "physical": ("old", "young")}
    pairs = (("race", "gender"), ("physical", "gender"), ("physical", "race"))
    rows = [
        row
        for pair in pairs
        for occupation in occupations
        for number in range(sets)
        for row in _counterfactuals(
            "_".join((*pair, occupation, str(number))),
            {kind: kinds[kind] for kind in pair}, occupation, number, len("".join(pair)),
        )
    ]  # fmt: skip
    _write_counterfactuals(folder, rows)


def three_attributes(folder, sets=8, occupations=("doctor", "nurse")):
    """A table of sets that vary three attributes, as an audit of generation writes it."""
    values = {
        "physical": ("old", "young"),
        "gender": ("female", "male"),
        "race": ("Black", "White"),
    }
    rows = []
    for subject, number in product(occupations, range(sets)):
        for combination in product(*values.values()):
            name = f"pictures/{len(rows)}.jpg"
            _put(folder / name, number, len(rows))
            own = dict(zip(values, combination, strict=True))
            rows.append({"image_id": str(len(rows)), "file": name, "subject": subject,
                         "set": f"{subject}_{number}", **own})  # fmt: skip
    pl.DataFrame(rows).write_parquet(folder / "images.parquet")


def social_counterfactuals_and_others(folder):
    """The sets of six occupations, and the data sets that models are tested on before and after."""
    data = folder / "data"
    occupations = ("doctor", "engineer", "nurse", "pilot", "cook", "farmer")
    social_counterfactuals_in_pairs(data, 4, occupations)
    three_attributes(data / "three")
    rows = [
        [f"OO_{number}", "s", "s", occupation, "tool", f"https://example.org/{number}.jpg", gender]
        for number, (occupation, gender, _) in enumerate(
            product(("doctor", "judge", "author"), ("feminine", "masculine"), range(4))
        )
    ]
    names = ["IDX", "Sector", "Specialisation", "Occupation", "Object", "URL",
             "Occupation_perceived_gender"]  # fmt: skip
    (data / "visogender").mkdir()
    write_csv(data / "visogender" / "OO_Visogender_02102023.tsv", [names, *rows], "\t")
    scenes = product(("office", "fashion_show"), ("black", "white"), ("female", "male"),
                     ("old", "young"), range(2))  # fmt: skip
    tags = [f"{'_'.join(row)}|https://example.org/{n}.jpg" for n, (*row, _) in enumerate(scenes)]
    (data / "pata").mkdir()
    (data / "pata" / "pata_fairness.files.lst").write_text("\n".join(tags), encoding="utf-8")
    for number, row in enumerate(rows):
        _put(data / "visogender" / "images" / f"{row[0]}.jpg", 1, number)
    for number in range(len(tags)):
        name = sha256(f"https://example.org/{number}.jpg".encode()).hexdigest()
        _put(data / "pata" / "images" / f"{name}.jpg", 2, number)
    flickr = [
        FLICKR[1]
        | {"filename": f"{n}.jpg", "sentences": [{"raw": f"{n} dogs"}, {"raw": f"{n} cats"}]}
        for n in range(10)
    ]
    for place, entry in enumerate(flickr):
        _put(data / "flickr30k" / "images" / entry["filename"], 3, place)
    cifar(
        data / "cifar-10-batches-bin", CIFAR_NAMES, {"data_batch_1": [0, 1], "test_batch": [1, 0]}
    )
    cifar(data / "cifar-100-binary", CIFAR_100_NAMES, {"train": [0, 1], "test": [1, 0]})
    write_json(data / "flickr30k" / "dataset_flickr30k.json", {"images": flickr})
    folders = ("046.computer-monitor", "090.gorilla")
    pictures_of_classes(data, "256_ObjectCategories", folders)
    words = [[name, name.partition(".")[2].replace("-", " ")] for name in folders]
    write_csv(data / "caltech-256.csv", [["label", "class"], *words])
    pictures_of_classes(data / "imagenet", "val", ("n01440764", "n01443537"))
    class_rows = [["label", "class"], ["n01440764", "tench"], ["n01443537", "goldfish"]]
    write_csv(data / "imagenet" / "names.csv", class_rows)
    pictures_of_classes(data, "laion", ("part",), 6)
    # What `equipoise mitigate` writes, for the plan of the audit that reads it.
    for segment in ("race-gender", "physical-gender", "physical-race"):
        path = folder / "mitigated" / segment / "clip" / "withheld.txt"
        path.parent.mkdir(parents=True)
        path.write_text("doctor\nnurse\n", encoding="utf-8")


def _counterfactuals(name, values, occupation, number, *seeds):
    first, second = values
    for place, (a1, a2) in enumerate(product(*values.values())):
        yield {
            "counterfactual_set": name,
            "image": {"bytes": picture(number, place, *seeds), "path": f"{number}_{place}.jpg"},
            "caption": f"A photo of a {a1} {a2} {occupation}",
            "a1_type": first, "a1": a1, "a2_type": second, "a2": a2, "a1a2": f"{a1} {a2}",
        }  # fmt: skip


def _write_counterfactuals(folder, *parts):
    data = folder / "SocialCounterfactuals" / "data"
    data.mkdir(parents=True)
    for part, rows in enumerate(parts):
        pl.DataFrame(rows).write_parquet(data / f"train-{part:05}-of-{len(parts):05}.parquet")


def domain_net(folder, count=14):
    """Folders of domains and classes with `count` picture, and lists for training and test."""
    lists = {}
    kinds = [*product(DOMAINS, (*THINGS, "aircraft_carrier"), range(count))]
    for number, (domain, class_name, copy) in enumerate(kinds):
        inside = Path(domain, class_name, f"{domain}_{copy:03}.png")
        _put(folder / "DomainNet" / inside, number, form="PNG")
        split = "train" if copy < count // 4 else "test"
        place = (*THINGS, "aircraft_carrier").index(class_name)
        lists.setdefault(f"{domain}_{split}.txt", []).append(f"{inside.as_posix()} {place}\n")
    for name, lines in lists.items():
        (folder / "DomainNet" / name).write_text("".join(lines))


def people_at_work(name, label, count=16):
    """Return a function that writes three tables of `count` drawn faces, and people alone."""
    names = dict(zip(TOOLS, ("Nurse", "Engineer", "CEO", "School Teacher"), strict=True))
    shares = {
        "biased": (0.75, 0.25, 0.25, 0.75), "balanced": (0.5,) * 4, "test": (0.5,) * 4,
        "people": (0.5,) * 4,
    }  # fmt: skip

    def write(folder):
        (folder / name).mkdir()
        for seed, (part, long_hair) in enumerate(shares.items()):
            faces = draw_faces(64 if part == "people" else count, long_hair=long_hair, seed=seed)
            rows = [["image_id", "file", label, "gender", "left", "top", "right", "bottom"]]
            for place, image in enumerate(faces.images):
                file = f"{part}-{place}.png"
                Image.fromarray(np.asarray(image)).save(folder / name / file)
                gender = "woman" if faces.groups[place] == "long hair" else "man"
                box = faces.boxes[place].tolist()
                rows.append([f"{part}{place}", file, names[faces.labels[place]], gender, *box])
            write_csv(folder / name / f"{part}.csv", rows)

    return write


def mistakes(folder):
    """The predictions of the example of two models that are alike in accuracy."""
    example = Path(__file__).resolve().parents[1] / "examples" / "mistakes"
    (folder / "mistakes").mkdir()
    table = (example / "images.csv").read_bytes()
    (folder / "mistakes" / "images.csv").write_bytes(table)


def sprites(folder, n=720):
    """A file of dSprites with n pictures."""
    (folder / "dsprites").mkdir()
    dsprites(folder / "dsprites" / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz", n)
