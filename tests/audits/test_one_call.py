"""One call from Python audits any kind, and its result is saved, opened, searched and compared."""

import webbrowser
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import yaml
from PIL import Image

import equipoise
from equipoise import audits, report
from equipoise.audits.sections import config_of
from equipoise.core import ConfigError, DataError, InputError, ModelError, RunError
from equipoise.discovery import KINDS
from equipoise.evidence import read_pictures
from equipoise.models import Classifier, load_model
from equipoise.models.modules import as_model

PEOPLE = pl.DataFrame(
    {
        "id": range(120),
        "gender": ["women", "men"] * 60,
        "label": ["yes", "yes", "no", "no"] * 30,
        "pred": ["no", "yes", "no", "no"] * 30,
    }
)
QUICK = {"replicates": 40, "permutations": 100}


class Brightness(torch.nn.Module):
    """Calls an image dark or bright, from a threshold on."""

    classes = ("dark", "bright")

    def __init__(self, threshold):
        super().__init__()
        self.head = torch.nn.Linear(1, 2)
        with torch.no_grad():
            self.head.weight[:] = torch.tensor([[-40.0], [40.0]])
            self.head.bias[:] = torch.tensor([40.0, -40.0]) * threshold

    def forward(self, images):
        if getattr(self, "negative", False):
            images = 1 - images
        return self.head(images.mean((1, 2, 3))[:, None])


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Write pictures in folders of their label and group; women's dark ones are lighter."""
    monkeypatch.chdir(tmp_path)
    for label, grey in (("dark", 60), ("bright", 220)):
        for group in ("women", "men"):
            folder = tmp_path / "photos" / label / group
            folder.mkdir(parents=True)
            for number in range(32):
                lighter = 90 * (label == "dark" and group == "women" and number % 2)
                pixels = np.full((4, 4, 3), grey + lighter + number // 16, np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")
    return tmp_path / "photos"


def seen(photos, threshold):
    return equipoise.audit(
        photos, kind="predictions", levels=["label", "group"], target="label", groups=["group"],
        model=Brightness(threshold), resampling=QUICK,
    )  # fmt: skip


def test_a_module_of_torch_and_a_folder_of_images_are_audited_in_one_call(photos):
    result = seen(photos, 0.5)
    assert result.groups == {"group": {"men": 64, "women": 64}}
    rates = {
        value.group: value.value
        for finding in result.findings
        if finding.metric == "accuracy" and finding.groups == "group"
        for value in finding.by_group
    }
    assert rates == {"men": 1.0, "women": 0.75}
    table = pl.DataFrame(
        [(f"{label}/{group}/{number}.png", label, group)
         for label in ("dark", "bright") for group in ("women", "men") for number in range(32)],
        ["image_id", "label", "group"], orient="row",
    )  # fmt: skip
    quick = equipoise.audit(
        table, target="label", groups="group", model=Brightness(0.5), images=photos
    )
    assert quick.groups == result.groups


def test_several_modules_are_audited_by_name_and_a_class_is_refused(photos):
    table = pl.DataFrame(
        [(f"{label}/{group}/{number}.png", label, group)
         for label in ("dark", "bright") for group in ("women", "men") for number in range(32)],
        ["file", "label", "group"], orient="row",
    )  # fmt: skip
    call = {"target": "label", "groups": "group", "images": photos}
    both = {"ours": Brightness(0.5), "theirs": Brightness(0.7)}
    for result in (
        equipoise.audit(table, model=both, **call),
        equipoise.audit(
            photos, kind="predictions", levels=["label", "group"], target="label",
            groups=["group"], model=both, resampling=QUICK,
        ),
    ):  # fmt: skip
        accuracy = {
            f.model: f.value
            for f in result.findings
            if f.metric == "accuracy" and f.aggregate == "value"
        }
        assert accuracy == {"ours": 0.875, "theirs": 1.0}
    for model in (Brightness, {"ours": Brightness}):
        with pytest.raises(InputError, match=r"Brightness is a class.*Brightness\(\)"):
            equipoise.audit(table, model=model, **call)


def test_a_missing_folder_and_the_first_missing_image_are_named(photos):
    names = [
        f"{label}/{group}/{number}.png"
        for label in ("dark", "bright")
        for group in ("women", "men")
        for number in range(32)
    ]
    table = pl.DataFrame(
        [(name, *name.split("/")[:2]) for name in names], ["photo", "label", "group"], orient="row"
    )  # fmt: skip
    call = {"target": "label", "groups": "group", "model": Brightness(0.5), "id": "photo"}
    with pytest.raises(DataError, match="there is no folder pictures"):
        equipoise.audit(table, images="pictures", **call)
    with pytest.raises(DataError, match=r"no file photos.dark.dark.women.0\.png"):
        equipoise.audit(table, images="photos/dark", **call)
    first = table.with_columns(
        photo=pl.when(pl.col("photo") == names[0]).then(pl.lit("gone.png")).otherwise("photo")
    )
    result = equipoise.audit(first, images="photos", **call)
    assert any("1 of 128 images failed" in note for note in result.manifest.notes)
    gone = table.with_columns(
        photo=pl.when(pl.col("group") == "men")
        .then(pl.lit("x") + pl.col("photo"))
        .otherwise("photo")
    )
    with pytest.raises(DataError, match=r"xbright.men.0\.png"):
        equipoise.audit(gone, images="photos", **call)


@pytest.mark.parametrize("change", ["attribute", "hook", "transform"])
def test_state_that_weights_and_code_do_not_show_makes_another_model(photos, change):
    def shown(negative):
        module = Brightness(0.5)
        if change == "attribute":
            module.negative = negative
        elif change == "transform":
            module.transform = lambda picture: abs(float(negative) - torch.full(
                (3, 4, 4), np.asarray(picture).mean() / 255
            ))  # fmt: skip
        elif negative:
            module.register_forward_pre_hook(lambda _, images: (1 - images[0],))
        result = equipoise.audit(
            photos, kind="predictions", levels=["label", "group"], target="label",
            groups=["group"], model=module, resampling=QUICK,
        )  # fmt: skip
        return next(f.value for f in result.findings if f.metric == "accuracy")

    values = [shown(negative) for negative in (False, True, False)]
    assert values[0] == values[2] != values[1]
    stores = [*(photos.parent / "evidence" / "probabilities").iterdir()]
    assert len([folder for folder in stores if folder.is_dir()]) == 2


def test_a_result_is_saved_opened_searched_and_compared(photos, monkeypatch):
    result, better = seen(photos, 0.5), seen(photos, 0.7)
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    finding = next(f for f in result.findings if f.metric == "accuracy" and f.groups == "group")
    images = result.images(finding)
    assert images.height == 128
    assert {*images["group"]} == {"men", "women"}
    saved = result.save("runs/seen")
    with pytest.raises(RunError, match="seen: the result is this run"):
        saved.save("runs/seen", overwrite=True)
    loaded = equipoise.load("runs/seen")
    assert loaded.groups == result.groups
    assert loaded.images(finding).equals(images)
    reports = [loaded.open(), better.open()]
    assert opened == [path.resolve().as_uri() for path in reports]
    assert all(path.is_file() for path in reports)
    names = {"files.json", "findings.parquet", "images.parquet", "predictions", "report.html"}
    assert names <= {path.name for path in (photos.parent / "runs" / "seen").iterdir()}
    compared = [result.compare(better), loaded.compare(better),
                equipoise.compare("runs/seen", better.save("runs/better"))]  # fmt: skip
    values = [[finding.value for finding in comparison.findings] for comparison in compared]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])
    assert compared[0].save("runs/compared").origin.run.name == "compared"
    with pytest.raises(RunError):
        compared[0].images(finding)
    with pytest.raises(RunError):
        report.Result(result.findings, result.manifest).save("runs/nothing")


def test_a_loaded_result_is_saved_elsewhere_as_a_whole_run(photos):
    seen(photos, 0.5).save("runs/seen")
    loaded = equipoise.load("runs/seen")
    Path("runs/seen/labels").mkdir()
    Path("runs/seen/labels/answers.json").write_text("{}")
    copied = loaded.save("elsewhere/deep/er/copy")
    old, new = Path("runs/seen"), Path("elsewhere/deep/er/copy")
    files = [
        {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
        for run in (old, new)
    ]
    assert files[0] - {"lock"} == files[1] - {"lock"}
    assert (new / "findings.parquet").read_bytes() == (old / "findings.parquet").read_bytes()
    assert (new / copied.manifest.base).resolve() == (old / loaded.manifest.base).resolve()
    pictures = [read_pictures(run) for run in (old, new)]
    assert pictures[0].source.read(3) == pictures[1].source.read(3)
    finding = next(f for f in loaded.findings if f.metric == "accuracy" and f.groups == "group")
    assert copied.images(finding).equals(loaded.images(finding))
    compared = copied.compare(seen(photos, 0.7))
    assert {f.metric for f in compared.findings} >= {"accuracy"}
    with pytest.raises(RunError, match="copy"):
        loaded.save(new)
    loaded.save(new, overwrite=True)
    assert (new / "findings.parquet").read_bytes() == (old / "findings.parquet").read_bytes()


@pytest.mark.parametrize(("most", "listed"), [(120, True), (119, False)])
def test_a_run_without_files_lists_images_up_to_a_number(tmp_path, monkeypatch, most, listed):
    monkeypatch.setattr("equipoise.audits.saving.MOST_LISTED", most)
    result = equipoise.audit(PEOPLE, target="label", pred="pred", groups="gender")
    finding = result.findings[0]
    images = result.images(finding)
    result.save(tmp_path / "run")
    loaded = equipoise.load(tmp_path / "run")
    if listed:
        assert loaded.images(finding).equals(images)
    else:
        with pytest.raises(RunError, match="run"):
            loaded.images(finding)


def test_modules_without_classes_or_sizes_are_refused(photos):
    with pytest.raises(ModelError, match="classes"):
        as_model(torch.nn.Linear(1, 2))
    model = as_model(Brightness(0.5))
    assert isinstance(model, Classifier)
    small, large = np.zeros((2, 2, 3), np.uint8), np.full((4, 4, 3), 255, np.uint8)
    with pytest.raises(ModelError, match="transform"):
        model.predict_proba([small, large])
    module = Brightness(0.5)
    module.transform = lambda picture: torch.full((3, 2, 2), np.asarray(picture).mean() / 255)
    module.train()
    probabilities = as_model(module).predict_proba([small, large])
    np.testing.assert_array_equal(probabilities.argmax(1), [0, 1])
    assert module.training
    assert as_model(module).features([small, large]).tolist() == [[0.0], [1.0]]
    assert (
        as_model(Brightness(0.5)).info.key == model.info.key != as_model(Brightness(0.6)).info.key
    )
    module.classes = ("dark", "bright", "other")
    with pytest.raises(ModelError, match="3 classes"):
        as_model(module).predict_proba([small])


def test_a_factory_of_a_module_may_take_a_device_or_nothing(tmp_path, monkeypatch):
    (tmp_path / "shades_of.py").write_text(
        "import torch\n\n\n"
        "class Shade(torch.nn.Module):\n"
        "    classes = ('dark', 'bright')\n\n"
        "    def forward(self, images):\n"
        "        bright = images.mean((1, 2, 3))\n"
        "        return torch.stack([1 - bright, bright], 1)\n\n\n"
        "def on(device):\n"
        "    return Shade().to(device)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for factory in ("Shade", "on"):
        model = load_model(f"python:shades_of:{factory}", device="cpu")
        assert model.predict_proba([np.zeros((2, 2, 3), np.uint8)]).argmax() == 0


def test_a_config_is_audited_as_a_path_as_a_mapping_and_by_its_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("people.csv")
    settings = {"groups": ["gender"], "labels": ["label"]}
    config = {"audit": "dataset", "data": {"images": {"table": "people.csv"}, **settings}}
    (tmp_path / "audit.yaml").write_text(yaml.safe_dump(config))
    results = [
        equipoise.audit("audit.yaml"),
        equipoise.audit(config),
        equipoise.audit("people.csv", kind="dataset", **settings),
        equipoise.audit(PEOPLE, kind="dataset", **settings),
        equipoise.audit(config["data"], kind="dataset"),
        audits.run(audits.parse_config(config)),
    ]
    numbers = [[(f.metric, f.value, f.p_value) for f in result.findings] for result in results]
    assert len(numbers[0]) > 0
    for other in numbers[1:]:
        np.testing.assert_equal(other, numbers[0])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_sections_as_keywords(kind):
    template = (files(KINDS[kind].value) / "template.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(template)
    rest = {key: value for key, value in config.items() if key not in ("audit", "data")}
    assert config_of(kind, config.get("data"), rest) == config
    if isinstance(config.get("data"), dict) and kind != "associations":
        flat = {**config["data"], **rest}
        assert config_of(kind, None, flat) == config


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"data": PEOPLE, "kind": "datset"}, InputError, "dataset"),
        ({"data": PEOPLE, "kind": "dataset", "gruops": ["gender"]}, ConfigError, "gruops"),
        ({"data": PEOPLE, "groups": "gender"}, InputError, "target"),
        ({"data": PEOPLE, "target": "label", "groups": "gender", "labels": []}, InputError,
         "labels"),
        ({"data": {"audit": "dataset"}, "target": "label"}, InputError, "target"),
        ({"data": "no.yaml"}, ConfigError, "no.yaml"),
        ({}, InputError, "data"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(arguments, error, named):
    with pytest.raises(error, match=named):
        equipoise.audit(**arguments)


def test_a_key_of_a_config_needs_a_kind_which_the_error_shows():
    with pytest.raises(InputError, match=r"^metrics: .*kind='predictions'.*models="):
        equipoise.audit(PEOPLE, target="label", pred="pred", groups="gender", metrics=["tpr"])
    result = equipoise.audit(
        PEOPLE, kind="predictions", id="id", target="label", groups=["gender"],
        models={"m": {"table": PEOPLE, "prediction": "pred"}}, metrics=["tpr"], resampling=QUICK,
    )  # fmt: skip
    assert {finding.metric for finding in result.findings} == {"true_positive_rate"}


def test_the_notes_of_a_result_say_how_a_table_was_read():
    result = equipoise.audit(
        PEOPLE.with_columns(n=pl.lit(1)), target="label", pred="pred", groups="gender"
    )
    guessed = "guessed from the table: "
    guesses = [note for note in result.manifest.notes if note.startswith(guessed)]
    assert f"{guessed}id: id" in guesses
    assert f"{guessed}n: not read as counts, as rows have ids" in guesses


def test_counts_stand_for_rows_where_the_other_columns_are_named():
    columns = ["label", "pred", "gender"]
    counted = PEOPLE.group_by(columns, maintain_order=True).len("n")
    of_counts, of_rows = (
        equipoise.audit(table, target="label", pred="pred", groups="gender")
        for table in (counted, PEOPLE.select(columns))
    )
    assert len(counted) < len(PEOPLE)
    numbers = [
        [
            (finding.metric, finding.aggregate, finding.subject, finding.value, finding.n)
            for finding in findings
        ]
        for findings in (of_counts.findings, of_rows.findings)
    ]
    assert repr(numbers[0]) == repr(numbers[1])


def test_a_printed_disparity_has_its_size_interval_and_p():
    result = equipoise.audit(PEOPLE, target="label", pred="pred", groups="gender")
    conclusion = result.conclusions[0]
    size, low, high = (100 * getattr(conclusion, name) for name in ("size", "low", "high"))
    line = repr(result).splitlines()[2]
    assert f"{size:.1f} points ({low:.1f} to {high:.1f})" in line
    assert " · p " in line


def test_errors_of_a_table_name_the_arguments_of_python():
    frame = PEOPLE.with_columns(score=pl.int_range(pl.len()) / 7)
    with pytest.raises(ConfigError, match=r"no images\. To do: name their folder \(images=\)"):
        equipoise.audit(frame, target="label", groups="gender", model=Brightness(0.5))
    words = frame.with_columns(label=pl.col("label").replace_strict({"no": "cat", "yes": "dog"}))
    with pytest.raises(DataError, match="positive=") as caught:
        equipoise.audit(words, target="label", groups="gender", score="score")
    assert "--" not in f"{caught.value} {caught.value.fix}"
    assert "positive=" in caught.value.fix


def test_arguments_of_a_table_are_refused_with_a_kind():
    with pytest.raises(InputError, match=r"^pred: expected without a kind.*models="):
        equipoise.audit(
            PEOPLE, kind="predictions", id="id", target="label", groups=["gender"], pred="pred"
        )


def test_what_cannot_be_compared_is_named():
    predictions = equipoise.audit(PEOPLE, target="label", pred="pred", groups="gender")
    labels = equipoise.audit(PEOPLE, kind="dataset", groups=["gender"], labels=["label"])
    with pytest.raises(DataError, match="different kinds") as caught:
        predictions.compare(labels)
    assert "first: predictions, second: dataset" in caught.value.problem
    assert "`audit:`" in caught.value.fix
    for nothing in (None, 3):
        with pytest.raises(InputError, match=rf"^{nothing}: expected a result"):
            equipoise.compare(nothing)
        with pytest.raises(InputError, match=rf"^{nothing}: expected a result"):
            predictions.compare(nothing)
