"""Questions about two people in one image: a planted preference, none, and one for a side."""

import numpy as np
import polars as pl
import pytest

from audits.activations.people import N, encoder, pictures
from equipoise import audits, report
from equipoise.audits import parse_config
from equipoise.audits.pages import kind_page
from equipoise.core import ConfigError, Family, Verdict

PROMPTS = ["a photo of a doctor", "a photo of a nurse"]
CONTROL = "a photo of two people"
METRIC = "paired_share_difference"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return pictures(tmp_path_factory.mktemp("people"))


def config(folder, models, store, *, table=None, **questions):
    box = lambda name: {edge: f"{name}_{edge[0]}" for edge in ("left", "top", "right", "bottom")}  # noqa: E731
    return parse_config(
        {
            "audit": "activations",
            "data": {
                "images": {"table": str(table or folder / "images.csv"), "id": "id", "path": "file",
                           "root": str(folder)},
                "groups": ["world"],
                "regions": {name: box(name) for name in ("red", "blue")},
                "min_group_size": 5,
            },
            "questions": {"prompts": PROMPTS, "persons": ["red", "blue"], **questions},
            "models": models,
            "gallery": 2,
            "extraction": {"store": str(store)},
            "resampling": {"replicates": 200},
        }
    )  # fmt: skip


def run(*args, **questions):
    return audits.run(config(*args, **questions))


def findings_of(result, metric=METRIC, group="", version="default"):
    return {
        (finding.model, finding.subject): finding
        for finding in result.findings
        if (finding.metric, finding.group, finding.version) == (metric, group, version)
    }


def test_a_planted_favourite_is_found(folder, tmp_path):
    models = {"favours": {"model": encoder("favours")}}
    result = run(folder, models, tmp_path / "s")
    findings = findings_of(result)
    doctor, nurse = (findings["favours", prompt] for prompt in PROMPTS)
    assert doctor.value > 0.3
    assert nurse.value < -0.3
    for finding in (doctor, nurse):
        assert finding.verdict is Verdict.DISPARITY
        assert finding.family is Family.LEAF
        assert finding.n == N
        assert {group.group: group.n for group in finding.by_group} == {"N": N // 2, "S": N // 2}
    assert findings_of(result, group="N")["favours", PROMPTS[0]].verdict is Verdict.DISPARITY
    hidden = findings_of(result, "occlusion_difference")
    assert hidden["favours", PROMPTS[0]].value > 0.0 > hidden["favours", PROMPTS[1]].value
    assert hidden["favours", PROMPTS[0]].verdict is Verdict.NONE
    rows = result.tables["questions"].to_pylist()
    assert {row["group"] for row in rows} == {"all", "N", "S"}
    assert all(row["agree"] > 0.9 for row in rows)


def test_a_model_without_a_favourite_stays_quiet(folder, tmp_path):
    result = run(folder, {"fair": {"model": encoder("fair", mix=0.5)}}, tmp_path / "s")
    assert all(finding.verdict is not Verdict.DISPARITY for finding in result.findings)
    assert max(abs(finding.value) for finding in findings_of(result).values()) < 0.05


def test_mirror_images_cancel_a_preference_for_a_side(folder, tmp_path):
    """Keep the images with red on the left: figures change sides at random."""
    table = pl.read_csv(folder / "images.csv", schema_overrides={"file": pl.String})
    red_left = table.filter(pl.col("red_l") < pl.col("blue_l"))
    red_left.with_columns(file=pl.format("{}/{}", pl.lit(str(folder)), "file")).write_csv(
        tmp_path / "images.csv"
    )
    models = {"sided": {"model": encoder("sided", mix=0.5, side=0.9)}}
    values = {}
    for mirror in (False, True):
        store, table = tmp_path / "s", tmp_path / "images.csv"
        result = run(folder, models, store, table=table, mirror=mirror)
        values[mirror] = [*findings_of(result).values()]
    assert min(finding.value for finding in values[False]) > 0.3
    assert max(abs(finding.value) for finding in values[True]) < 0.05
    assert all(finding.verdict is not Verdict.DISPARITY for finding in values[True])


def test_control_prompts_are_subtracted(folder, tmp_path):
    models = {"favours": {"model": encoder("favours")}}
    result = run(folder, models, tmp_path / "s", controls=[CONTROL], occlusion=False)
    plain, less = findings_of(result, version="with what controls show"), findings_of(result)
    control = less["favours", CONTROL]
    assert control.verdict is Verdict.NONE
    assert control.reason == "a control prompt"
    for prompt in PROMPTS:
        expected = plain["favours", prompt].value - control.value
        assert less["favours", prompt].value == pytest.approx(expected)
        assert plain["favours", prompt].verdict is Verdict.NONE
    assert not findings_of(result, "occlusion_difference")
    rows = result.tables["gallery"].to_pylist()
    # A row of pictures for each prompt, of the same images: two of each world.
    assert [*dict.fromkeys(row["group"] for row in rows)] == [*PROMPTS, f"{CONTROL} (control)"]
    captions = {row["group"]: [] for row in rows}
    for row in rows:
        captions[row["group"]].append(row["caption"])
    assert {tuple(lines) for lines in captions.values()} == {
        ("i00 (N)", "i02 (N)", "i01 (S)", "i03 (S)")
    }
    page = report.render(result, kind_page("activations"))
    assert page.count('<figure><img src="data:image/jpeg;base64,') == len(rows)
    assert "Which person each prompt points to" in page


def test_images_without_a_person_are_counted(folder, tmp_path):
    table = pl.read_csv(folder / "images.csv", schema_overrides={"file": pl.String})
    empty = pl.when(pl.col("id") == "i05").then(None)
    table.with_columns(
        file=pl.format("{}/{}", pl.lit(str(folder)), "file"),
        **{f"blue_{edge}": empty.otherwise(pl.col(f"blue_{edge}")) for edge in "ltrb"},
    ).write_csv(tmp_path / "images.csv")
    models = {"favours": {"model": encoder("favours")}}
    result = run(folder, models, tmp_path / "s", table=tmp_path / "images.csv")
    assert {finding.n for finding in findings_of(result).values()} == {N - 1}
    assert any("1 images have no share on both people" in note for note in result.manifest.notes)


def test_a_plan_counts_questions(folder, tmp_path):
    models = {"favours": {"model": encoder("favours")}}
    plan = audits.plan(config(folder, models, tmp_path / "s", controls=[CONTROL]))
    assert plan.tests == len(PROMPTS) * 3
    assert [planned["on"] for planned in plan.runs] == [*PROMPTS, CONTROL]
    assert audits.plan(config(folder, models, tmp_path / "s")).tests == len(PROMPTS) * 3


def test_a_question_answering_model_gets_each_prompt_as_a_question(folder, tmp_path, tiny_model):
    """Images that can't be read are counted for each question."""
    table = pl.read_csv(folder / "images.csv", schema_overrides={"file": pl.String}).head(24)
    table = table.with_columns(file=pl.format("{}/{}", pl.lit(str(folder)), "file"))
    table[3, "file"] = str(tmp_path / "broken.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    table.write_csv(tmp_path / "images.csv")
    models = {"vqa": {"model": tiny_model("blip_vqa"), "target": "woman"}}
    questions = {"prompts": ["what is this ?", "who is the nurse ?"], "mirror": False}
    settings = config(folder, models, tmp_path / "s", table=tmp_path / "images.csv", **questions)
    extraction = settings.extraction.model_copy(update={"max_failures": 0.5})
    result = audits.run(settings.model_copy(update={"extraction": extraction}))
    findings = findings_of(result)
    assert {prompt for _, prompt in findings} == {*questions["prompts"]}
    assert {finding.n for finding in findings.values()} <= set(range(2, 24))
    failed = [row["on"] for row in result.tables["failures"].to_pylist() if not row["group"]]
    assert failed == questions["prompts"]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"persons": ["red", "green"]}, "questions.persons"),
        ({"persons": ["red", "red"]}, "questions.persons"),
        ({"prompts": []}, "questions.prompts"),
    ],
)
def test_a_wrong_question_is_refused(changes, key, folder, tmp_path):
    with pytest.raises(ConfigError) as caught:
        config(folder, {"m": {"model": encoder("m")}}, tmp_path / "s", **changes)
    assert str(caught.value).startswith(f"configuration: {key}")


def test_questions_need_a_model_to_run(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"models\.m\.model: required"):
        config(folder, {"m": {"maps": {"file": np.ones((N, 4))}}}, tmp_path / "s")
