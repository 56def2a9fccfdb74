"""`equipoise causes`, the pages on causes, and the coding form."""

import errno
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import polars as pl
import pytest

from cause_worlds import KINDS, World, ranked_first
from equipoise.cli.app import run as command
from equipoise.core import ConfigError, DataError, RunError
from equipoise.report import read
from equipoise.review import add_labels, causes, coding, disparities, read_labels
from equipoise.review.server import application
from review.browser import HOST, TOKEN, Links, ask

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "review"
ORIGIN = f"http://{HOST}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("causes")
    World("paintings", 300, seed=1).audited(folder)
    return folder


@pytest.fixture
def app(folder):
    return application(folder / "run", HOST, TOKEN, codes=["child's drawing"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_planted_cause_ranks_first(kind, tmp_path):
    assert ranked_first(kind, tmp_path, seed=0)


@pytest.fixture
def called(capsys):
    """Run a command; return its output."""

    def call(*arguments, code=0):
        capsys.readouterr()
        assert command([*map(str, arguments)]) == code, capsys.readouterr().err
        return capsys.readouterr().out

    return call


def test_the_command_prints_a_ranking_and_keeps_it(called, folder):
    run = folder / "run"
    named = ["causes", run, "--cause", "medium", "--cause", "camera", "--cause", "resolution"]
    assert "Explained by: medium." in called(*named)
    again = json.loads(called(*named, "--json"))
    assert again["causes"][0]["cause"] == "medium"
    assert again["group"] == "women"
    assert causes.read_rankings(run).filter(metric=again["metric"]).height == len(again["causes"])
    assert f"labels/{causes.FILE}" in read(run).manifest.inputs


def test_causes_of_predicted_groups_are_noted(called, folder, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    named = ["causes", run, "--cause", "medium"]
    before = called(*named).splitlines()
    manifest = json.loads((run / "manifest.json").read_text())
    attribute = manifest["resolved"]["data"]["groups"][0][0]
    manifest["resolved"]["group_sources"] = {attribute: {"source": "machine"}}
    (run / "manifest.json").write_text(json.dumps(manifest))
    noted = called(*named).splitlines()
    assert [line for line in noted if "model predicted" in line]
    assert [line for line in noted if "model predicted" not in line] == before


def test_clusters_are_tested_over_groups(called, tmp_path):
    World("a sub-type", 400).audited(tmp_path)
    vectors = ["--embeddings", tmp_path / "vectors.npy", "--ids", tmp_path / "ids.txt"]
    output = json.loads(called("causes", tmp_path / "run", *vectors, "--clusters", "2", "--json"))
    assert output["clusters"]["p_value"] < 0.01
    page = ask(application(tmp_path / "run", HOST, TOKEN), "/causes")[2].decode()
    assert page.count('alt="image with cluster') == 8
    row = next(cause for cause in output["causes"] if cause["cause"] == "cluster")
    # The sub-type that men lack has no common support.
    assert row["without_support"] > 50
    assert "men: 0.0 %" in row["evidence"] or " men: 100.0 %" in row["evidence"]


def test_columns_of_another_table_are_causes(called, folder, tmp_path):
    medium = pl.read_csv(folder / "images.csv").select(image_id="id", probe="medium")
    medium.write_csv(tmp_path / "probe.csv")
    table = ["--table", tmp_path / "probe.csv", "--cause", "probe"]
    output = json.loads(called("causes", folder / "run", *table, "--json"))
    assert next(cause for cause in output["causes"] if cause["explains"])["cause"] == "probe"


def test_the_example_finds_its_cause(called, tmp_path, monkeypatch):
    for name in ("make.py", "audit.yaml"):
        (tmp_path / name).write_bytes((EXAMPLE / name).read_bytes())
    subprocess.run([sys.executable, str(tmp_path / "make.py")], check=True)
    monkeypatch.chdir(tmp_path)
    called("audit", "audit.yaml", "--out", "run")
    (line,) = (line for line in EXAMPLE.joinpath("audit.yaml").read_text().splitlines()
               if "equipoise causes" in line)  # fmt: skip
    output = json.loads(called(*line.split("equipoise ")[1].split(), "--json"))
    assert [cause["cause"] for cause in output["causes"] if cause["explains"]] == ["water"]
    assert output["group"] == "Asia"
    printed = called(*line.split("equipoise ")[1].split())
    page = (EXAMPLE.parent.parent / "docs" / "review.md").read_text(encoding="utf-8")
    assert printed.strip() in page


def test_the_worst_group_of_false_alarms_has_the_most(tmp_path):
    run = World("paintings", 400).audited(tmp_path)
    for metric in ("true_positive_rate", "false_positive_rate"):
        assert disparities.find_disparity(run, metric=metric, subject="cup").group == "women"


def test_a_disparity_that_may_be_chance_needs_no_cause(called, tmp_path):
    run = World("small objects", 300, planted=False).audited(tmp_path)
    output = called("causes", run, "--finding", "accuracy", "--cause", "camera")
    assert "no difference to explain" in output


def test_concreteness_is_correlated_with_disparities(folder, tmp_path):
    norms = pl.DataFrame({"Word": ["Cup", "bowl", "idea"], "Conc.M": [5.0, 4.5, 1.6]})
    norms.write_csv(tmp_path / "norms.csv")
    finding = disparities.find_disparity(folder / "run", metric="true_positive_rate").finding
    concreteness = causes.concreteness(folder / "run", finding, tmp_path / "norms.csv")
    assert concreteness.correlation.metric == "correlation"
    assert concreteness.correlation.reason
    assert (concreteness.ratings, concreteness.unrated) == ({"bowl": 4.5, "cup": 5.0}, ())
    norms.rename({"Conc.M": "mean"}).write_csv(tmp_path / "norms.csv")
    with pytest.raises(DataError):
        causes.concreteness(folder / "run", finding, tmp_path / "norms.csv")


@pytest.mark.parametrize(
    "wrong",
    [
        ["--cause", "weather"],
        ["--finding", "ndkl"],
        ["--subject", "plate"],
        ["--group", "children", "--cause", "medium"],
        [],
        ["--cause", "medium", "--table", "images.csv"],
    ],
)
def test_wrong_options_are_refused(called, wrong, folder, tmp_path, monkeypatch):
    World("model bias", 80).audited(tmp_path)
    (tmp_path / "run" / "labels" / "labels.parquet").unlink()
    monkeypatch.chdir(folder)
    called("causes", tmp_path / "run", *wrong, code=2)


def test_the_label_and_the_prediction_are_no_causes(called, folder, tmp_path):
    disparity = disparities.find_disparity(folder / "run")
    renamed = {"cup": "c", "bowl": "b"}
    predicted = disparity.images.table["prediction"]
    table = pl.DataFrame({
        "image_id": disparity.ids.tolist(), "said": predicted.replace(renamed),
        "label": pl.Series(disparity.labels.tolist(), dtype=pl.String).replace(renamed),
        "shop": ["old", "new"] * (len(predicted) // 2),
    })  # fmt: skip
    table.write_csv(tmp_path / "copies.csv")
    options = [folder / "run", "--table", tmp_path / "copies.csv", "--cause"]
    for name in ("said", "label"):
        called("causes", *options, name, code=2)
    called("causes", *options, "shop")


def test_a_damaged_ranking_is_an_error(tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / causes.FILE).write_text("no table")
    with pytest.raises(RunError):
        causes.read_rankings(tmp_path)


def test_a_sample_drawn_by_stratum_is_weighted(called, tmp_path):
    World("wrong labels", 400, seed=3).audited(tmp_path)
    run = tmp_path / "run"
    page = [
        "label",
        "sample",
        run,
        "--question",
        "good",
        "--size",
        "80",
        "--images",
        tmp_path / "photos",
    ]
    called(*page, "--out", tmp_path / "label.html")
    labels = read_labels(run).filter(question="right").head(80)
    good = labels.with_columns(question=pl.lit("good"))
    add_labels(run, good)
    disparity = disparities.find_disparity(run)
    candidates = causes.gather(run, disparity, causes.Sources())
    weights = candidates.weights["good"]
    has = np.array([answer is not None for answer in candidates.values["good"]])
    assert (weights[~has] == 0).all()
    for group in ("women", "men"):
        in_group = np.array(disparity.groups.names)[disparity.groups.codes] == group
        if (weights[in_group] > 0).any():
            assert weights[in_group].sum() <= in_group.sum() + 1e-6
    assert "wrong label" not in candidates.weights


def form(page):
    """Return the image of a form and the names of its codes."""
    text = page.decode()
    image = text.split('name="image" value="')[1].split('"')[0]
    return image, text


def post(app, path, body, **headers):
    return ask(app, path, method="POST", body=urlencode(body, doseq=True), **headers)


def test_coders_see_neither_group_nor_prediction(app, folder):
    place, names = 0, pl.read_csv(folder / "images.csv")
    _, _, page = ask(app, f"/code/{place}?coder=ann")
    _, text = form(page)
    assert "child&#39;s drawing" in text
    for hidden in ("women", "men<", *names["id"].head(300).to_list(), "cup"):
        assert hidden not in text


def test_codes_are_kept_counted_and_shown(app, folder):
    run = folder / "run"
    status, _, page = ask(app, "/causes")
    assert status == 200
    assert "/causes/0" in Links(page).links
    coded_images = []
    for turn in range(12):
        image, _ = form(ask(app, "/code/0?coder=ann")[2])
        coded_images.append(image)
        codes = ["indiscernible", "child's drawing"] if turn % 3 == 0 else []
        body = {"image": image, "coder": "ann", "code": codes, "medium": "drawing"}
        status, headers, _ = post(app, "/code/0", body, origin=ORIGIN)
        assert (status, headers["location"]) == (303, "/code/0?coder=ann")
    assert len({*coded_images}) == 12
    labels = read_labels(run)
    answers = labels.filter(question="cause: bowl")["answer"].value_counts()
    assert dict(answers.iter_rows()) == {"none": 8, "indiscernible + child's drawing": 4}
    assert labels.filter(question="medium", answer="drawing").height == 12
    table = pl.read_csv(folder / "images.csv").select(image_id="id", group="group")
    counts = [*coding.count_codes(labels, "bowl", table)]
    assert sum(count.images for count in counts if count.code == "indiscernible") == 4
    assert sum(count.coded for count in counts if count.code == "indiscernible") == 12
    assert all(count.low <= count.share <= count.high and count.remedy for count in counts)
    _, _, page = ask(app, "/causes/0")
    assert b"indiscernible" in page
    assert b"resolution" in page
    # The same seed gives another coder the same order.
    assert form(ask(app, "/code/0?coder=bo")[2])[0] == coded_images[0]
    # An answer given again replaces the first.
    post(app, "/code/0", {"image": coded_images[0], "coder": "ann"}, origin=ORIGIN)
    assert read_labels(run).filter(question="cause: bowl").height == 12
    # Codes are candidate causes.
    disparity = disparities.find_disparity(run, metric="true_positive_rate", subject="bowl")
    assert "indiscernible" in causes.gather(run, disparity, causes.Sources()).values


@pytest.mark.parametrize(
    "wrong",
    [
        {"image": "999999"}, {"image": "../../etc/passwd"}, {"image": ""}, {"code": "other"},
        {"coder": ""}, {"coder": "x" * 100}, {"coder": "settled"}, {"coder": "SETTLED "},
        {"coder": "a\x00b"}, {"coder": "\u202eeve"}, {"medium": "film"}, {"code": ["none"]},
        {"note": "x" * 30_000},
    ],
)  # fmt: skip
def test_answers_that_the_form_cannot_give_are_refused(wrong, app, folder):
    image, _ = form(ask(app, "/code/0?coder=eve")[2])
    before = read_labels(folder / "run").height
    body = {"image": image, "coder": "eve", "code": ["indiscernible"]} | wrong
    assert post(app, "/code/0", body, origin=ORIGIN)[0] == 403
    assert read_labels(folder / "run").height == before


@pytest.mark.parametrize("name", ["%ED%A0%80", "set%E2%80%8Dtled", "x" * 81, "a%00b"])
def test_a_name_that_is_refused_is_explained(name, app, folder):
    status, _, page = ask(app, f"/code/0?coder={name}")
    assert status == 403
    assert b"Expected: a name" in page
    image, _ = form(ask(app, "/code/0?coder=eve")[2])
    before = read_labels(folder / "run").height
    status, _, page = ask(
        app, "/code/0", method="POST", origin=ORIGIN, body=f"coder={name}&image={image}"
    )
    assert status == 403
    assert b"Expected: a name" in page
    assert read_labels(folder / "run").height == before


@pytest.mark.parametrize(
    ("number", "status"), [(errno.ENOSPC, 507), (errno.EROFS, 500), (errno.EIO, 500)]
)
def test_an_answer_that_cannot_be_written_is_said_and_not_kept(
    number, status, app, folder, monkeypatch
):
    image, _ = form(ask(app, "/code/0?coder=zoe")[2])
    before = {path: path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()}

    def full(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        answer = {"image": image, "coder": "zoe"}
        code, headers, page = post(app, "/code/0", answer, origin=ORIGIN)
    assert code == status
    assert "script-src 'self'" in headers["content-security-policy"]
    assert b"not kept" in page
    assert os.strerror(number).encode() in page
    assert b".partial" not in page
    after = {path: path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()}
    assert after == before
    assert post(app, "/code/0", answer, origin=ORIGIN)[0] == 303


def test_labels_that_cannot_be_read_are_said(app, folder):
    path = folder / "run" / "labels" / "labels.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    try:
        status, _, page = ask(app, "/causes")
    finally:
        path.write_bytes(content)
    assert status == 500
    assert str(path).encode() in page


def test_a_client_that_leaves_has_no_traceback(app, folder):
    before = read_labels(folder / "run").height
    image, _ = form(ask(app, "/code/0?coder=eve")[2])
    body = urlencode({"image": image, "coder": "eve"})
    assert ask(app, "/code/0", method="POST", origin=ORIGIN, body=body, leaves=True)[0] == 400
    assert read_labels(folder / "run").height == before


def test_foreign_forms_are_refused(app, folder):
    image, _ = form(ask(app, "/code/0?coder=eve")[2])
    body, before = {"image": image, "coder": "eve"}, read_labels(folder / "run").height
    for origin in (None, "null", "http://example.org", "http://127.0.0.1:1"):
        assert post(app, "/code/0", body, origin=origin)[0] == 403
    assert post(app, "/code/0", body, origin=ORIGIN, cookie="")[0] == 403
    assert post(app, "/code/0", body, origin=ORIGIN, host="example.org")[0] == 403
    for path in ("/code/99", "/causes", "/"):
        assert post(app, path, body, origin=ORIGIN)[0] in (403, 405)
    assert ask(app, "/code/99")[0] == ask(app, "/causes/99")[0] == 403
    assert ask(app, "/code/0?coder=eve&image=999999")[0] == 403
    assert read_labels(folder / "run").height == before


@pytest.mark.parametrize("code", ["", "none", "indiscernible", "a + b"])
def test_ambiguous_codes_are_refused(code, folder):
    with pytest.raises(ConfigError):
        application(folder / "run", HOST, TOKEN, codes=[code])


def test_most_coders_decide():
    rows = [
        ("1", ["indiscernible"]), ("1", ["indiscernible", "incorrect label"]),
        ("2", ["incorrect label"]), ("2", []),
    ]  # fmt: skip
    labels = pl.concat(
        coding.answered(image, "cause: cup", coding.answer_of(codes), f"coder {place}")
        for place, (image, codes) in enumerate(rows)
    )
    table = coding.code_table(labels, "cup")
    assert table["indiscernible"].to_list() == [True, False]
    assert table["incorrect label"].to_list() == [False, False]


def test_a_concept_has_causes_of_its_scores_in_the_groups_of_a_version(called, tmp_path):
    """Numbers as outcomes: scores of images with a concept, which fall with the medium."""
    rng, n = np.random.default_rng(4), 500
    women = rng.random(n) < 0.5
    drawing = rng.random(n) < np.where(women, 0.6, 0.1)
    ids = [f"{row:03d}.png" for row in range(n)]
    (tmp_path / "photos").mkdir()
    for name in ids:
        (tmp_path / "photos" / name).write_bytes(b"")
    scores = rng.normal(size=(n, 2))
    labels = rng.random((n, 2)) < 0.5
    scores += np.where(labels, 2.0 - 1.5 * drawing[:, None], 0.0)
    medium = np.where(drawing, "drawing", "photograph")
    # A version takes images of small boxes out of the women, and measures others than the baseline.
    small = rng.random(n) < 0.3
    large_women = np.where(women, np.where(small, None, "women"), "men")
    images = {
        "id": ids, "gender": np.where(women, "women", "men"), "medium": medium,
        "gender (large)": large_women.tolist(),
    }  # fmt: skip
    pl.DataFrame(images).write_csv(tmp_path / "images.csv")
    names = ("chef", "nurse")
    for file, values in (("labels.csv", labels.astype(int)), ("scores.csv", scores)):
        columns = dict(zip(names, values.T, strict=True))
        pl.DataFrame({"id": ids, **columns}).write_csv(tmp_path / file)
    pictures = {"table": tmp_path / "images.csv", "id": "id", "path": "id"}
    config = {
        "audit": "concepts",
        "data": {
            "images": {**pictures, "root": tmp_path / "photos"}, "groups": ["gender"],
            "labels": {"file": tmp_path / "labels.csv", "id": "id"},
        },
        "models": {"ours": {"file": tmp_path / "scores.csv", "id": "id"}},
        "metrics": ["average_precision"],
        "choices": {"min_positives": 20},
        "versions": {
            "large": {"columns": {"gender": "gender (large)"}},
            "observed": {"prevalence": "observed"},
        },
        "resampling": {"permutations": 100},
    }  # fmt: skip
    (tmp_path / "audit.yaml").write_text(json.dumps(config, default=str))
    called("audit", tmp_path / "audit.yaml", "--out", tmp_path / "run")
    options = ("--subject", "nurse", "--cause", "medium", "--json")
    output = json.loads(called("causes", tmp_path / "run", *options))
    (row,) = output["causes"]
    positives = labels[:, 1]
    gap = scores[positives & women, 1].mean() - scores[positives & ~women, 1].mean()
    assert row["disparity"] == pytest.approx(gap, abs=1e-5)
    assert row["explains"]
    app = application(tmp_path / "run", HOST, TOKEN)
    assert ask(app, "/code/1?coder=ann")[0] == 200
    assert b"medium: drawing" in ask(app, "/causes/1")[2]
    shown, ranked = positives & ~(women & small), {}
    for version in ("large", "observed"):
        output = json.loads(called("causes", tmp_path / "run", "--version", version, *options))
        ranked[version] = output["causes"][0]["disparity"]
        assert output["version"] == version
    gap_of_large = scores[shown & women, 1].mean() - scores[shown & ~women, 1].mean()
    assert abs(gap_of_large - gap) > 1e-3
    assert ranked == pytest.approx({"large": gap_of_large, "observed": gap}, abs=1e-5)
    assert len(causes.read_rankings(tmp_path / "run")) == 3


def test_concreteness_is_that_of_the_words_of_synsets_and_first_synonyms(called, tmp_path):
    """Of the finding's version; subjects that the norms lack are counted."""
    rng, n = np.random.default_rng(5), 600
    ids, women = [f"{row}.png" for row in range(n)], rng.random(n) < 0.5
    names = ["background.n.02", "telephone, phone", "Hot_dog.n.01", "glorp.n.01", "measure.n.01"]
    labels = rng.random((n, len(names))) < 0.4
    scores = rng.normal(size=labels.shape) + labels * (0.5 + 0.4 * np.arange(len(names)))
    scores -= 0.5 * labels * women[:, None] * np.arange(len(names))
    swapped = np.where(women ^ (rng.random(n) < 0.5), "women", "men")
    images = {"id": ids, "gender": np.where(women, "women", "men"), "mixed": swapped}
    norms = pl.DataFrame({
        "Word": ["background", "telephone", "hot dog", "measure", "phone"],
        "Conc.M": [3.26, 4.9, 4.85, 3.59, 1.0],
    })  # fmt: skip
    norms.write_csv(tmp_path / "norms.csv")
    tables = {
        "images": pl.DataFrame(images),
        "labels": pl.DataFrame({"id": ids} | dict(zip(names, labels.astype(int).T, strict=True))),
        "scores": pl.DataFrame({"id": ids} | dict(zip(names, scores.T, strict=True))),
    }
    for name, table in tables.items():
        table.write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "photos").mkdir()
    for name in ids:
        (tmp_path / "photos" / name).write_bytes(b"")
    config = {
        "audit": "concepts",
        "data": {
            "images": {"table": "images.csv", "id": "id", "path": "id", "root": "photos"},
            "groups": ["gender"],
            "labels": {"file": "labels.csv", "id": "id"},
        },
        "models": {"ours": {"file": "scores.csv", "id": "id"}},
        "metrics": ["average_precision", "auroc"],
        "choices": {"min_positives": 20},
        "versions": {"mixed": {"columns": {"gender": "mixed"}}},
        "resampling": {"permutations": 100},
    }  # fmt: skip
    (tmp_path / "audit.yaml").write_text(json.dumps(config))
    called("audit", tmp_path / "audit.yaml", "--out", tmp_path / "run")
    run = tmp_path / "run"
    ratings = {
        "Hot_dog.n.01": 4.85, "background.n.02": 3.26, "measure.n.01": 3.59,
        "telephone, phone": 4.9,
    }  # fmt: skip
    correlations = set()
    for version in ("baseline", "mixed"):
        finding = disparities.find_disparity(run, subject="measure.n.01", version=version).finding
        concreteness = causes.concreteness(run, finding, tmp_path / "norms.csv")
        assert dict(concreteness.ratings) == ratings
        assert concreteness.unrated == ("glorp.n.01",)
        sizes = {
            other.subject: other.value
            for other in read(run).findings
            if (other.version, other.metric) == (version, finding.metric)
            and other.aggregate == "difference"
        }
        expected = np.corrcoef([*ratings.values()], [sizes[name] for name in ratings])[0, 1]
        assert concreteness.correlation.value == pytest.approx(expected)
        correlations.add(concreteness.correlation.value)
    assert len(correlations) == 2
    options = ("--subject", "measure.n.01", "--cause", "mixed", "--concreteness")
    printed = called("causes", run, *options, tmp_path / "norms.csv")
    assert "3.59 of 5" in printed
    assert "1 of 5 subjects: glorp.n.01" in printed


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([], (None, None)),
        ([("0000.png", "1"), ("0000.png", "2")], ("image_id", None)),
        ([("0000.png", "1"), ("", "2")], ("image_id", 2)),
        ([("0000.png", "1"), ("0001.png", "inf")], ("size", 2)),
    ],
)
def test_a_table_of_causes_is_checked(folder, tmp_path, rows, place):
    table = tmp_path / "sizes.csv"
    table.write_text("image_id,size\n" + "".join(f"{image_id},{size}\n" for image_id, size in rows))
    disparity = disparities.find_disparity(folder / "run")
    with pytest.raises(DataError) as raised:
        causes.gather(folder / "run", disparity, causes.Sources(names=("size",), table=table))
    assert (raised.value.file, raised.value.column, raised.value.row) == (str(table), *place)


def test_causes_without_an_image_of_the_finding_are_refused(folder, tmp_path):
    table = tmp_path / "sizes.csv"
    table.write_text("image_id,size\n0000.png,nan\nother.png,2\n")
    disparity = disparities.find_disparity(folder / "run")
    with pytest.raises(ConfigError):
        causes.gather(folder / "run", disparity, causes.Sources(names=("size",), table=table))
    # Labels of other images don't stop a ranking.
    run, at = World("paintings", 300, seed=1).audited(tmp_path), datetime(2026, 11, 28, tzinfo=UTC)
    disparity = disparities.find_disparity(run, metric="true_positive_rate", subject="cup")
    other = disparity.ids[~disparity.about][0]
    row = {"image_id": other, "question": "good", "answer": "yes", "labeller": "ann", "at": at}
    (run / "labels" / "labels.parquet").unlink()
    add_labels(run, pl.DataFrame([row]))
    candidates = causes.gather(run, disparity, causes.Sources(names=("camera",)))
    assert "good" not in candidates.values
    assert causes.rank(disparity, candidates).table["cause"].to_list() == ["camera"]


def test_means_of_a_cause_leave_missing_numbers_out(folder, tmp_path):
    table = tmp_path / "sizes.csv"
    cells = "".join(f"{row:04d}.png,{'nan' if row % 3 else row}\n" for row in range(300))
    table.write_text(f"image_id,size\n{cells}")
    disparity = disparities.find_disparity(folder / "run")
    sources = causes.Sources(names=("size",), table=table)
    candidates = causes.gather(folder / "run", disparity, sources)
    assert candidates.values["size"].null_count() == 200
    assert not candidates.values["size"].is_nan().any()
