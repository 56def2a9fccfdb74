"""Every published study runs on small data in the authors' layout, with tiny models."""

from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

import data_sets
import diffusion_checkpoints
from equipoise import audits
from equipoise.audits.config import load_as
from equipoise.cli.app import run as command
from equipoise.cli.augmentation import AugmentConfig, plan_configured
from equipoise.cli.runs import page_of
from equipoise.cli.training import TrainConfig, run_training
from equipoise.core import DataError
from equipoise.data import lexicon
from equipoise.data.formats.reading import read_class_mapping
from equipoise.mitigate import running as mitigation
from equipoise.mitigate.config import Config as Mitigation
from equipoise.mitigate.neurons.config import Config as Neurons
from equipoise.report import read, render
from equipoise.report.blocks import Number, Table
from equipoise.studies import STUDIES
from equipoise.studies.page import CHANCE, source_tables
from equipoise.studies.study import config_path, read_study, study_files

CLIP = "hf:openai/clip-vit-base-patch32"
NETWORKS = {
    "changed-faces": {"Xception": "timm:test_resnet"},
    "cnn-vit": {"ResNet 152": "timm:test_resnet", "ViT B/16": "timm:test_vit"},
}
"""Tiny networks in place of those that `augment` trains."""
WORLDS = {
    "attributes-by-region": (data_sets.people_by_region, "people"),
    "changed-faces": (data_sets.people_at_work("changed-faces", "class"), "changed-faces"),
    "chen-dou": (data_sets.fairface_and_coco, "fairface"),
    "cnn-vit": (data_sets.people_at_work("cnn-vit", "occupation"), "cnn-vit"),
    "dall-eval": (data_sets.dall_eval, "dall_eval"),
    "fairface-retrieval": (data_sets.many_faces, "fairface"),
    "genderbias-vl": (data_sets.genderbias_vl, "genderbias_vl"),
    "hall-coco": (data_sets.coco, "coco"),
    "hall-dollar-street": (data_sets.dollar_street, "dataset_dollarstreet"),
    "hall-vg": (data_sets.visual_genome, "visual_genome"),
    "image-search": (data_sets.image_search, "images"),
    "pairs": (data_sets.pairs, "pairs"),
    "predicted-labels": (data_sets.people_by_region, "people"),
    "skewsize-domainnet": (data_sets.domain_net, "DomainNet"),
    "skewsize-dsprites": (data_sets.sprites, "dsprites"),
    "skewsize-example": (data_sets.mistakes, "mistakes"),
    "skewsize-imagenet": (
        data_sets.generated(
            "background", ("on the road", "blue"), ("lemon", "lion", "sock"), further=("sets-ours",)
        ),
        "sets",
    ),
    "skewsize-vlm": (
        data_sets.generated(
            "gender", ("female", "male"), ("writer", "pilot", "nurse"), further=("sets-ours",)
        ),
        "sets",
    ),
    "skewsize-vlm-sports": (
        data_sets.generated(
            "gender", ("female", "male"), ("golf", "rowing", "diving"), further=("sets-ours",)
        ),
        "sets",
    ),
    "social-counterfactuals": (data_sets.social_counterfactuals_and_others, "data"),
    "text-to-image": (data_sets.images_of_prompts, "images"),
    "visogender-resolution": (data_sets.visogender_of_both, "visogender"),
    "visogender-retrieval": (data_sets.visogender, "visogender"),
}
"""Of each study what writes its data, and the folder that it writes."""
FEW_PLACES = {"fairface-retrieval": {"k": 20, "prefixes": 20}}
"""Of studies of many images, how many of the best of a few count."""
LONG = 150
"""Lists of more words are cut short."""
BLANK = {"regions.csv": "index", "occupations.csv": "salary, share_of_women"}
"""Tables that users fill in, and their empty columns."""


RARE = {"Running shoe", "Negligible", "Small", "Medium", "Large"}
"""Columns about labels that tiny models needn't give, and effects that they needn't have."""
CLAIMS = "Claims of the source"
SAFE = {0: "normal", 1: "nsfw"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny checkpoint of the real class in place of a model that a study names."""
    import model_checkpoints

    folder, labels = tmp_path_factory.mktemp("models"), dict(enumerate(imagenet_names()))
    further = read_study("hall-dollar-street").files["22k.csv"].splitlines()[1:]
    of_22k = [line.partition(',"')[2].rstrip('"') for line in further]
    classes = dict(enumerate([*labels.values(), *of_22k]))
    replacements = {
        "open_clip:": f"open_clip:{model_checkpoints.open_clip(folder / 'open_clip')}",
        "hf:openai/clip": f"hf:{model_checkpoints.clip(folder / 'clip', width=512)}",
        "hf:llava-hf/llava": "python:picture_models:letters",
        "hf:Salesforce/blip2": f"hf:{model_checkpoints.blip_2(folder / 'blip')}",
        "hf:facebook/flava": f"hf:{model_checkpoints.flava(folder / 'flava')}",
        "hf:Falconsai/": f"hf:{model_checkpoints.vit(folder / 'nsfw', labels=SAFE)}",
        "hf:google/vit": f"hf:{model_checkpoints.vit(folder / 'vit', labels=labels)}",
        "timm:": f"timm:{model_checkpoints.timm(folder / 'resnet', classes)}",
        "diffusers:": "python:generator_models:swatches",
        "edited:": f"diffusers:{folder / 'pipeline'}",
        "python:vgg_maps": "python:picture_models:new_rows",
    }
    diffusion_checkpoints.stable_diffusion(folder / "pipeline", clip=folder / "clip", length=64)

    def of(name):
        key = next((key for key in replacements if name.startswith(key)), "")
        file, mark, _ = name.rpartition("#")
        return f"{file}{mark}{replacements.get(key, name)}"

    return of


def imagenet_names():
    from timm.data import ImageNetInfo

    info = ImageNetInfo("imagenet1k")
    return [info.index_to_description(place) for place in range(1000)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of a study, with its data, words and configurations."""
    folders = {}

    def of(name):
        if name not in folders:
            folders[name] = root = tmp_path_factory.mktemp(name)
            write, folder = WORLDS[name]
            if write is not None:
                write(root)
            written = study_files(name, root / "study.yaml", root / folder if write else None)
            for path, text in written.items():
                lines = text.splitlines(keepends=True)
                short = path.suffix == ".csv" and len(lines) > LONG
                path.write_text("".join(lines[: 30 if short else None]), encoding="utf-8")
            for file in {*BLANK} & {path.name for path in written}:
                fill_in(root / file)
            if "train" in read_study(name).configs:
                train(root / "study-train.yaml")
            if "augment" in read_study(name).configs:
                augment(config_path(read_study(name), "augment", root / "study.yaml"))
        return folders[name]

    return of


def fill_in(path):
    """Write made-up figures into the empty columns of a table."""
    table = pl.read_csv(path, infer_schema=False)
    figures = np.random.default_rng(0).random(len(table))
    columns = (pl.Series(name, figures * place) for place, name in
               enumerate(BLANK[path.name].split(", "), 1))  # fmt: skip
    table.with_columns(*columns).write_csv(path)


def train(path):
    """Train a tiny network in place of each of a study, on small images."""
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values["networks"] = dict.fromkeys(values["networks"], "timm:test_resnet")
    values |= {"size": 32, "schedule": {"epochs": 1, "batch": 16}}
    run_training(TrainConfig.model_validate(values), path.parent, lambda *_: None)


def augment(path):
    """Change the configuration of `augment` to tiny networks and few draws, and run it."""
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    networks = NETWORKS[values["study"]]
    values |= {"networks": networks, "size": 32, "schedule": {"epochs": 1, "batch": 16}}
    values["families"] = {
        family: [name for name in members if name in networks]
        for family, members in values["families"].items()
        if {*members} & {*networks}
    }
    values["faces"] = {"columns": {side: side for side in ("left", "top", "right", "bottom")}}
    values |= {"schedules": {}, "repeats": 1, "replicates": 100}
    if "draws" in values:
        values |= {"repeats": 2, "draws": {"attributes": 2, "targets": 1}}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    activations = path.with_name("study-activations.yaml")
    if activations.is_file():
        text = activations.read_text(encoding="utf-8")
        activations.write_text(text.replace("data:", "data:\n  min_group_size: 2"))
    assert command(["augment", str(path), "--out", str(path.with_name("augmented"))]) == 0


def configs(name):
    parts = [*read_study(name).configs]
    files = ["study.yaml", *(f"study-{part}.yaml" for part in parts[1:])]
    return [file for part, file in zip(parts, files, strict=True) if part != "train"]


CONFIGS = [(name, file) for name in STUDIES for file in configs(name)]


@pytest.mark.parametrize(("name", "file"), CONFIGS)
def test_a_study_is_planned_as_it_stands_without_a_model(name, file, world, results):
    values = yaml.safe_load((world(name) / file).read_text(encoding="utf-8"))
    if "faces" in values:
        config = load_as(world(name) / file, AugmentConfig)
        assert config.study == name
        assert {*plan_configured(config, world(name))["images"][0]} >= {"images", "man", "woman"}
        return
    if "concepts" in values:
        assert load_as(world(name) / file, Neurons).study == name
        return
    if "audit" not in values:
        for part in load_as(world(name) / file, Mitigation).by_model().values():
            assert mitigation.plan(part, base=world(name))["withheld"] > 1
        return
    for section in values.get("models", {}).values():
        # Another step of the study makes this model, and a plan needs its folder.
        _, _, folder = str(section.get("model", "")).partition("hf:mitigated/")
        if folder:
            (world(name) / "mitigated" / folder).mkdir(parents=True, exist_ok=True)
    config = audits.load_config(world(name) / file)
    assert config.study == name
    planned = audits.plan(config, base=world(name))
    if planned.runs:
        # What a model answers is known once it has run, and random classes can't be corrected.
        assert planned.tests != 0 or values["shares"]
        return
    (run,) = results(name, file)
    tested = Counter(finding.model for finding in run.findings if finding.tested)
    assert Counter(planned.tests_by_model) == tested


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_runs_and_shows_the_tables_of_its_source(name, results):
    study = read_study(name)
    source = {caption(study, table): table for table in study.tables}
    measured = set()
    for file in configs(name):
        for page_table in chain.from_iterable(map(shown_tables, results(name, file))):
            table = source[page_table.caption]
            printed = study.work.tables[table.of] if table.of else None
            heads = [column.title.rstrip(" ↑↓") for column in page_table.columns[1:]]
            assert heads == [*((printed and printed.columns) or table.columns)]
            cells = " ".join(str(cell) for row in page_table.rows for cell in row)
            for row in printed.rows.values() if printed else ():
                for value in row:
                    text = f"{value:g}".replace("-", "−") if is_number(value) else value
                    assert text is None or f"{printed.origin} {text}" in cells
            for _, *row in page_table.rows:
                measured |= {
                    (page_table.caption, head)
                    for head, cell in zip(heads, row, strict=True)
                    if isinstance(cell, Number)
                }
    # Labels of people are read in tests of forms.
    columns = {
        (title, name)
        for title, table in source.items()
        for name, place in table.columns.items()
        if not str(place.get("table", "")).startswith("labelled_")
    }
    assert measured <= columns
    assert {name for _, name in columns - measured} <= RARE


def caption(study, table):
    """Return the caption of a table on the page."""
    return f"{table.of}: {study.work.tables[table.of].title}" if table.of else table.title


def is_number(value):
    return isinstance(value, int | float)


def further_models(values):
    """Return models that tables name and the configuration leaves to the user."""
    models, first = values["models"], next(iter(values["models"].values()))
    study = read_study(values["study"])
    generators = {name for config in study.parsed_configs for name in config.get("generators", ())}
    names = list[str]()
    for table in study.tables:
        places = (*table.rows.values(), *table.columns.values())
        of_table = [place["model"] for place in places if isinstance(place.get("model"), str)]
        # A table of other models is another configuration's.
        names += of_table if {*of_table} & {*models} else []
    # Those of `neurons` and of generators have configurations of their own.
    elsewhere = {name for name in names if "{column}" in name} | generators
    return {name: {**first} for name in names if name not in {*models} | elsewhere}


@pytest.fixture(scope="module")
def results(world, tiny):
    """Return the results of a configuration with few draws and tiny models; it runs once."""
    return cache(lambda name, file: run_few(world(name), file, tiny))


def run_few(root, file, tiny):
    """Run a configuration with few draws and tiny models, and return its results."""
    values = yaml.safe_load((root / file).read_text(encoding="utf-8"))
    if "faces" in values:
        return [read(root / "augmented")]
    if "concepts" in values:
        few = {"replicates": 100, "shown": 0}
        few |= {"model": tiny(values["model"]), "device": "cpu"}
        (root / file).write_text(yaml.safe_dump(values | few), encoding="utf-8")
        assert command(["neurons", str(root / file)]) == 0
        return [read(root / values["output"] / "report")]
    if "recipes" in values:
        return mitigated(root, file, values, tiny)
    # Tables of generators name these, and not the models that look at the images.
    named_first = "model" in next(iter(values.get("models", {"": {}}).values()))
    if named_first and "generators" not in values:
        values["models"] |= {} if (root / "trained").is_dir() else further_models(values)
    sections = [values.get(key, {}) for key in ("models", "generators", "filters")]
    named = [model for section in sections for model in section.values()]
    for model in [*named, *filter(None, [values.get("generator")])]:
        if not model.get("model", "timm:trained").startswith("timm:trained"):
            model["model"] = tiny(model["model"])
    values["resampling"] = {"replicates": 20, "permutations": 99}
    values["report"] = {"images": 0}
    if "captions" in values:
        few = values["captions"].get("subjects", ["doctor"])
        values["captions"]["subjects"] = few[:3] if isinstance(few, list) else ["baker", "pilot"]
        values["generator"]["candidates"] = 1
        values["min_group_size"] = 2
    if values["study"] in FEW_PLACES:
        values["ranking"] |= FEW_PLACES[values["study"]]
        values["data"]["images"]["sample"] = {"n": 64, "order": "first"}
    if "prompts" in values:
        draw_few(values)
        values["models"] = dict([*values.get("models", {}).items()][-2:])
    (root / file).write_text(yaml.safe_dump(values), encoding="utf-8")
    return [audits.run(audits.load_config(root / file), base=root)]


def draw_few(values):
    """Have generators make few images, each in a step."""
    values["prompts"]["images"] = {"attributes": 1, "targets": 2}
    for generator in values["generators"].values():
        if "model" in generator:
            generator["steps"] = 1
    for share in values.get("shares", ()):
        share.pop("labelled", None)  # a tiny model tells no classes apart


def mitigated(root, file, values, tiny):
    """Run `equipoise mitigate` on a configuration, and return the report of each model."""
    models = {name: tiny(model) for name, model in values["models"].items()}
    (root / file).write_text(yaml.safe_dump(values | {"models": models, "device": "cpu"}))
    assert command(["mitigate", str(root / file)]) == 0
    return [read(root / values["output"] / name / "report") for name in models]


def shown_tables(result):
    assert 'id="study"' in render(result, page_of(result))
    blocks = source_tables(result).blocks
    tables = [block for block in blocks if isinstance(block, Table)]
    return [table for table in tables if table.caption not in (CLAIMS, CHANCE)]


@pytest.mark.parametrize("name", ["changed-faces", "cnn-vit"])
def test_stages_name_parts_that_networks_have(name):
    import timm
    import torch

    values = read_study(name).parsed_configs[0]
    for network, schedule in values["schedules"].items():
        architecture = values["networks"][network].removeprefix("timm:").partition(".")[0]
        with torch.device("meta"):
            parts = dict(timm.create_model(architecture).named_modules())
        for stage in schedule["stages"]:
            if stage["layers"] != "last":
                assert {*stage["layers"]} <= {*parts}


def test_a_folder_with_spaces_and_quotes_is_read_back(tmp_path):
    folder = tmp_path / 'it\'s "data": x'
    text = study_files("hall-vg", tmp_path / "c.yaml", folder)[tmp_path / "c.yaml"]
    assert audits.parse_config(yaml.safe_load(text)).data.images.root == folder


def test_studies_map_imagenet_classes():
    classes = {*imagenet_names()}
    domains = study_files("skewsize-domainnet", Path("c.yaml"), None)[Path("c-imagenet.yaml")]
    tiny = lexicon("tiny_imagenet").content
    assert {*tiny["names"]} <= classes
    assert len(tiny["classes"]) == 200
    assert [*tiny["names"].values()] == [*tiny["numbers"].values()] == tiny["classes"]
    names = imagenet_names()
    assert [names[int(number)] for number in tiny["numbers"]] == [*tiny["names"]]
    for model in yaml.safe_load(domains)["models"].values():
        assert {*model["map"]} <= classes


@pytest.mark.parametrize("subset", ["imagenet-1k", "imagenet-21k-goog", "imagenet-21k-miil"])
def test_the_mappings_of_dollar_street_are_to_classes_of_imagenet(subset, tmp_path):
    from timm.data import ImageNetInfo

    info = ImageNetInfo(subset)
    names = [info.index_to_description(place) for place in range(info.num_classes())]
    for path, text in study_files("hall-dollar-street", tmp_path / "c.yaml", None).items():
        path.write_text(text, encoding="utf-8")
    size = "1k" if subset == "imagenet-1k" else "22k"
    assert {*read_class_mapping(tmp_path / f"{size}.csv").by_class} <= {*names}
    if size == "22k":
        # Of classes of one name the first counts: the fastener, and what covers a building.
        first = {name: info.index_to_label_name(names.index(name)) for name in ("lock", "roof")}
        assert first == {"lock": "n03682487", "roof": "n04105068"}


def test_a_mapping_of_another_form_is_refused(tmp_path):
    for path, text in study_files("hall-dollar-street", tmp_path / "c.yaml", None).items():
        path.write_text(text, encoding="utf-8")
    (tmp_path / "1k.csv").write_text("topic,class\nroofs,tile roof\n")
    with pytest.raises(DataError) as error:
        audits.load_config(tmp_path / "c.yaml")
    assert (error.value.column, Path(error.value.file).name) == ("label", "1k.csv")
    (tmp_path / "1k.csv").write_text("label,class\nroofs,tile roof\nphones,\n")
    with pytest.raises(DataError) as error:
        audits.load_config(tmp_path / "c.yaml")
    assert (error.value.column, error.value.row) == ("class", 2)
