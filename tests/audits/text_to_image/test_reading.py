"""Configurations and tables that are refused, and the examples."""

import numpy as np
import pyarrow as pa
import pytest
import yaml

from diffusion_checkpoints import stable_diffusion
from equipoise import audits
from equipoise.core import ConfigError, DataError, ModelError
from equipoise.planted.scenes.embed import load_clip
from equipoise.studies.study import study_files
from painted import PROMPTS, Painter, Seer, audit_values

TABLE = pa.table({"image_id": ["1", "2"], "prompt": ["a fire", "a fire"], "state": ["x", "y"]})
CLASSES = {"of": "colour", "classes": {"red": ["red"], "blue": ["blue"]}}
SHARE = CLASSES | {"model": "seer"}


def answers(*ids, column="said"):
    return {"table": pa.table({"image_id": [*ids], column: ["red"] * len(ids)})}


ANSWERS = CLASSES | {"said": {"g": answers("1")}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prompts": {"attributes": {"a": ["x"]}}}, "targets: required"),
        ({"prompts": {"targets": {"x": ["a"], "y": ["a"]}}}, "'a' appears more"),
        ({"prompts": PROMPTS | {"template": "a thing"}}, "'{}'"),
        ({"prompts": PROMPTS | {"targets": ["red"]}}, "'red' appears more"),
        ({"generators": {"g": {}}}, "not 0 of them"),
        ({"generators": {"g": {"model": Painter(), "images": {"table": TABLE}}}}, "not 2 of them"),
        ({"generators": {"g": {"images": {"table": TABLE}, "steps": 3}}}, "'steps'"),
        ({"generators": {"g": {"model": Painter(), "height": 30}}}, "height is 30"),
        ({"models": {}}, "models: required"),
        ({"models": {"seer": {}}}, "'images'"),
        ({"associations": {"pairs": [["red", "bleu"]]}}, "associations.pairs[0]"),
        ({"associations": {"clusters": "prompt"}}, "ten prompts"),
        ({"associations": None, "shares": []}, "nothing to measure"),
        ({"shares": [CLASSES]}, "'model' or 'said'"),
        ({"shares": [SHARE, SHARE]}, "shares[1].of"),
        ({"shares": [SHARE | {"classes": {"red": ["red"]}}]}, "at least two"),
        ({"shares": [SHARE | {"no_person": ["x"]}]}, "no_person: expected"),
        ({"shares": [CLASSES | {"said": {"painter": answers("1")},
                                "labelled": answers("1")}]}, "labelled.said: required"),
        ({"gate": [{"metric": "share_mad", "max": 1, "groups": "hue"}]}, "gate[0].groups"),
    ],
)  # fmt: skip
def test_a_configuration_is_refused(changes, words):
    with pytest.raises(ConfigError) as caught:
        audits.parse_config(audit_values(**changes))
    assert words in str(caught.value)


def read(table=TABLE, share=None, **options):
    """An audit of the shares of images in a table."""
    generators = {"g": {"images": {"table": table, **options}}}
    return {"associations": None, "models": {}, "shares": [share or ANSWERS],
            "generators": generators}  # fmt: skip


def external(**cells):
    return read(share=ANSWERS | {"outside": {"table": pa.table(cells)}})


def vectors(rename="", width=4):
    """Vectors of two images and of all prompts; one prompt may have another name."""
    config = audits.parse_config(audit_values())
    texts = [*config.prompts.texts]
    rows = Seer().embed_texts(texts).tolist()
    named = pa.table({"id": [rename or texts[0], *texts[1:]], "vector": rows})
    images = pa.table({"id": ["1", "2"], "vector": [row[:width] for row in rows[:2]]})
    where = {"id": "id", "column": "vector"}
    model = {"texts": {"file": named, **where}, "images": {"g": {"file": images, **where}}}
    return {
        "generators": {"g": {"images": {"table": TABLE}}}, "shares": [], "models": {"seer": model}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "column", "row"),
    [
        (read(TABLE.set_column(1, "prompt", [["a", "b"]])), "prompt", None),
        (read(state="state"), "state", None),
        (read(guidance="state"), "state", 1),
        (read(TABLE.append_column("cfg", [["7.5", None]]), guidance="cfg"), "cfg", 2),
        (read(share=CLASSES | {"said": {"g": answers("9")}}), "image_id", None),
        (read(share=ANSWERS | {"labelled": {"said": "label", "table": pa.table(
            {"image_id": ["9"], "label": ["pink"]})}}), "label", 1),
        (external(target=["moon"], group=["red"], value=["1"]), "target", None),
        (external(target=["fire"], group=["red"], value=["1"]), "value", None),
        (external(target=["fire"] * 2, group=["red"] * 2, value=["1", "2"]), "value", None),
        (external(target=["fire"] * 2, group=["red", "blue"], value=["0"] * 2), "value", None),
        (vectors(rename="another text"), None, None),
        (vectors(width=3), None, None),
    ],
)  # fmt: skip
def test_data_that_cannot_be_used(changes, column, row, tmp_path):
    with pytest.raises(DataError) as caught:
        audits.run(audits.parse_config(audit_values(**changes)), base=tmp_path)
    assert (caught.value.column, caught.value.row) == (column, row)
    assert caught.value.expected


def outside(target, group):
    return external(target=target, group=group, value=["1"] * len(target))


@pytest.mark.parametrize(
    ("changes", "column", "row", "near"),
    [
        (outside(["fire", "fire"], ["red", "bleu"]), "group", 2, "blue"),
        (outside(["fire", "fire", "moon"], ["red", "no such class", "red"]), "group", 2, None),
        (outside(["fire", "fire", "Sea", "Sea"], ["red", "blue"] * 2), "target", 3, "sea"),
    ],
)
def test_a_misspelt_name_of_outside_shares_is_refused(changes, column, row, near, tmp_path):
    with pytest.raises(DataError) as caught:
        audits.run(audits.parse_config(audit_values(**changes)), base=tmp_path)
    assert (caught.value.column, caught.value.row) == (column, row)
    assert (f"did you mean {near!r}?" in caught.value.problem) == (near is not None)


def test_images_of_other_prompts_are_counted(tmp_path):
    mistyped = TABLE.set_column(1, "prompt", [["a fire", "a fyre"]])
    result = audits.run(audits.parse_config(audit_values(**read(mistyped))), base=tmp_path)
    assert any(note.startswith("g: 1 of 2 images have a prompt") for note in result.manifest.notes)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"generators": {"g": {"images": {"table": TABLE}}}}, "'path'"),
        ({"shares": [SHARE | {"labelled": answers("9", column="label")}]}, "'labelled.path'"),
    ],
)
def test_models_need_the_pictures(changes, key, tmp_path):
    with pytest.raises(ConfigError, match=key):
        audits.run(audits.parse_config(audit_values(**changes)), base=tmp_path)


def study(folder):
    """Return the config of the study of Stable Diffusion 1.5."""
    (text,) = (
        text
        for path, text in study_files("text-to-image", folder / "audit.yaml", None).items()
        if path.name == "audit-available.yaml"
    )
    return yaml.safe_load(text)


def test_the_study_of_stable_diffusion_asks_the_prompts_of_its_source(tmp_path):
    config = audits.parse_config(study(tmp_path))
    prompts = config.prompts
    assert {name: len(texts) for name, texts in prompts.attribute_texts.items()} == {
        "men": 4, "women": 4, "non_binary": 3
    }  # fmt: skip
    assert prompts.target_texts["sports"]["a gymnast"] == ("an image of a gymnast",)
    planned = audits.plan(config, base=tmp_path)
    items = [run["items"] for run in planned.runs if run["model"] == "stable_diffusion_1_5"]
    assert items == [11 * 16, 28 * 20]
    assert planned.tests == 28


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_study_of_stable_diffusion_runs_with_a_small_pipeline(tmp_path):
    values = study(tmp_path)
    # The planted pipeline reads 16 tokens of its own words; Stable Diffusion reads 77.
    tiny = stable_diffusion(tmp_path / "tiny", length=77)
    values["generators"]["stable_diffusion_1_5"] |= {"model": f"diffusers:{tiny}", "steps": 2}
    values["prompts"]["images"] = {"attributes": 1, "targets": 1}
    values["models"] = {"large_14": {"model": load_clip("biased")}}
    values["resampling"]["replicates"] = 20
    result = audits.run(audits.parse_config(values), base=tmp_path)
    scores = [f for f in result.findings if f.metric == "mcas"]
    assert {f.version for f in scores} == {"large_14, guidance 7.5"}
    assert len(scores) == 28 + 11
    assert np.isfinite([f.value for f in scores]).all()
    assert {*result.manifest.models} == {"stable_diffusion_1_5", "large_14"}


def test_a_plan_refuses_a_generator_that_is_not_there(tmp_path):
    values = audit_values(generators={"g": {"model": "diffusers:../no"}})
    messages = []
    for run in (audits.plan, audits.prepare):
        with pytest.raises(ModelError, match="There is no folder") as raised:
            run(audits.parse_config(values), base=tmp_path)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
