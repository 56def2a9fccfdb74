"""The studies of SkewSize: printed prompts and words, and planted worlds that decide its claims."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from audits.examples import written_again
from equipoise import audits
from equipoise.audits.generation.config import CaptionsConfig
from equipoise.data import lexicon
from equipoise.report.blocks import Number, Table
from equipoise.report.result import first_screen
from equipoise.report.titles import plain_title
from equipoise.studies.claims import CLAIMS
from equipoise.studies.page import source_tables
from equipoise.studies.study import read_study, study_files

REPLICATES = {"replicates": 100, "permutations": 99}


def config_of(study, part="", *, folder=Path()):
    """Return a configuration that a study writes, read."""
    path = folder / "c.yaml"
    at = path.with_name(f"c-{part}.yaml") if part else path
    return yaml.safe_load(study_files(study, path, None)[at])


def captions_of(study, part, words=None):
    """Return the texts of the captions that a study makes images of."""
    section = config_of(study, part)["captions"]
    if words is not None:
        section["subjects"] = words
    return [*CaptionsConfig.model_validate(section).sets().table["caption"].to_pylist()]


def words_of(study, file):
    """Return the words of a table that a study writes."""
    return pl.read_csv(study_files(study, Path("c.yaml"), None)[Path(file)].encode())["text"]


def test_prompts_of_imagenet_are_the_printed_ones(shared_dir):
    import json

    path = shared_dir / "goldens" / "papers" / "skewsize_2024" / "text_numbers.json"
    printed = json.loads(path.read_text(encoding="utf-8"))["imagenet"]
    captions = captions_of("skewsize-imagenet", "images")
    lower = {caption.lower() for caption in captions}
    # "an" stands before vowels; the printed examples have none.
    words = lexicon("tiny_imagenet").content["classes"]
    assert {example.lower() for example in printed["example_prompts"][1:]} <= lower
    assert "salamander" in printed["example_prompts"][0].lower()
    assert len(words) == printed["classes"]
    backgrounds = config_of("skewsize-imagenet", "images")["captions"]["attributes"]["background"]
    assert {*backgrounds} == {*lexicon("vendrow_2023").content["backgrounds"]}
    assert len(backgrounds) == printed["backgrounds"]
    making = config_of("skewsize-imagenet", "images")
    assert making["generator"]["candidates"] == printed["images_per_pair"]
    assert making["generator"]["shared"] is None
    assert "filters" not in making
    assert len(captions) * printed["images_per_pair"] == printed["images"]


def test_prompts_and_question_about_occupations_are_the_printed_ones(shared_dir):
    import json

    folder = shared_dir / "goldens" / "papers" / "skewsize_2024"
    printed = json.loads((folder / "text_numbers.json").read_text(encoding="utf-8"))["vlm"]
    table = json.loads((folder / "table_3.json").read_text(encoding="utf-8"))
    occupations = words_of("skewsize-vlm", "occupations.csv")
    assert {*table["rows"]} <= {*occupations}
    template = printed["image_template"].replace("{GENDER}", "{}").replace("{OCCUPATION}", "{}")
    captions = captions_of("skewsize-vlm", "images", ["writer", "doctor"])
    expected = {
        template.format(gender, occupation)
        for gender in ("male", "female")
        for occupation in ("writer", "doctor")
    }
    assert {*captions} == expected
    models = config_of("skewsize-vlm")["models"].values()
    assert {model["question"] for model in models} == {printed["question"]}


def test_models_of_imagenet_are_of_the_source_s_architectures():
    timm = pytest.importorskip("timm")
    models = config_of("skewsize-imagenet")["models"]
    names = {model["model"].removeprefix("timm:") for model in models.values()}
    assert names <= {*timm.list_models(pretrained=True)}
    for part in ("inception_v3", "inception_resnet", "50x3_bit", "101x1_bit", "vit_base_patch16"):
        assert any(part in name for name in names)


def drawn(rng, counts):
    """Return labels with exact counts, in a random order."""
    return rng.permutation([label for label, count in counts.items() for _ in range(count)])


def run_study(study, frame, models, folder, part="", target="subject", **changes):
    """Run a study's configuration on a table of predictions with planted labels."""
    values = config_of(study, part)
    frame.write_parquet(folder / "p.parquet")
    values["data"] = {
        key: value for key, value in values["data"].items() if key not in ("images", "unit")
    } | {"table": "p.parquet", "id": "id", "target": target}
    read = ("map", "open_vocabulary", "normalize", "question")
    values["models"] = {
        name: {
            key: value for key, value in values["models"][name].items() if key in read[1:2]
        } | {"table": "p.parquet", "prediction": name} | changes
        for name in models
    }  # fmt: skip
    values |= {"resampling": REPLICATES, "report": {"images": 0}}
    return audits.run(audits.parse_config(values), base=folder)


def marks(result):
    return {row["claim"] + row["part"]: row["mark"] for row in result.tables[CLAIMS].to_pylist()}


def table_of(result, start):
    """Return the numbers of a table beside the source, by row and column."""
    blocks = source_tables(result).blocks
    (table,) = (
        block for block in blocks if isinstance(block, Table) and block.caption.startswith(start)
    )
    heads = [column.title.rstrip(" ↑↓") for column in table.columns[1:]]
    return {row[0]: dict(zip(heads, row[1:], strict=True)) for row in table.rows}


SHAPES = ("square", "ellipse", "heart")
COLOURS = ("red", "green", "blue")
STRENGTHS = {"unbiased": 0.0, "mild": 0.15, "medium": 0.5}


def shapes(*, spread=True, n=4000):
    """Predictions of six models: green images of a class are taken for the two others.

    Without `spread`, models err as often on every colour.
    """
    rng = np.random.default_rng(5)
    rows = {"id": [], "shape": [], "colour": [], **{name: [] for name in MODELS}}
    for place, shape in enumerate(SHAPES):
        others = [name for name in SHAPES if name != shape]
        for colour in COLOURS:
            rows["shape"] += [shape] * n
            rows["colour"] += [colour] * n
            for name in MODELS:
                removed, share = bias_of(name)
                wrong = n // 500
                if removed == place and spread:
                    wrong = round(share * n) if colour == "green" else wrong
                elif removed == place:
                    wrong = round(share * n / 3)
                first = wrong // 4 if wrong > 10 else wrong // 2
                rows[name] += [
                    *drawn(rng, {shape: n - wrong, others[0]: first, others[1]: wrong - first})
                ]
    rows["id"] = [f"i{number}" for number in range(len(rows["shape"]))]
    return pl.DataFrame(rows)


MODELS = ("unbiased", "mild", "medium", "without class 0", "without class 1", "without class 2")


def bias_of(model):
    """Return the class that a model is biased for, and how many of its green images it misses."""
    if model in STRENGTHS:
        return (1, STRENGTHS[model]) if model != "unbiased" else (None, 0.0)
    return int(model[-1]), 0.99


def test_shapes_show_their_bias_and_its_strength(tmp_path):
    result = run_study("skewsize-dsprites", shapes(), MODELS, tmp_path, target="shape")
    assert marks(result) == {"S2": "holds", "S3": "holds"}
    numbers = table_of(result, "Table 5")
    for place in range(3):
        row = numbers[f"Class {place}"]
        v, phi = row[f"Cramér's V, class {place}"], row[f"Phi, class {place}"]
        assert phi.value == pytest.approx(np.sqrt(2) * v.value)
        assert phi.value > 0.9
    assert all(
        isinstance(cell, Number)
        for start in ("Table 1", "Table 2", "Table 5")
        for row in table_of(result, start).values()
        for cell in row.values()
    )


def test_shapes_that_err_alike_refute_the_claim(tmp_path):
    result = run_study("skewsize-dsprites", shapes(spread=False), MODELS, tmp_path, target="shape")
    assert marks(result) == {"S2": "doesn't", "S3": "can't tell"}


def test_a_bias_that_falls_with_its_strength_refutes_the_claim(tmp_path):
    exchanged = shapes().rename({"mild": "medium", "medium": "mild"})
    result = run_study("skewsize-dsprites", exchanged, MODELS, tmp_path, target="shape")
    assert marks(result) == {"S2": "holds", "S3": "doesn't"}


def test_equalized_odds_by_the_mean_come_near_the_source(shared_dir, tmp_path):
    """The source's Table 1, with the exchanged columns put back."""
    work = read_study("skewsize-dsprites").work.tables["Table 1"]
    rows, share = [], 0.16
    for shape in SHAPES:
        for colour in COLOURS:
            for number in range(1000):
                row = {"shape": shape, "colour": colour}
                for place, name in enumerate(MODELS[3:]):
                    others = [other for other in SHAPES if other != shape]
                    biased = SHAPES[place] == shape and colour == "green"
                    row[name] = others[number >= share * 1000] if biased else shape
                rows.append(row)
    frame = pl.DataFrame(rows).with_row_index("id").cast({"id": pl.String})
    result = run_study("skewsize-dsprites", frame, MODELS[3:], tmp_path, target="shape")
    numbers = table_of(result, "Table 1")
    ours = numbers["Class 0"]
    expected = {"EO": (0.5, 0.04, 0.21), "DP": (0.333, 0.053, 0.28)}
    for metric, values in expected.items():
        for place, value in enumerate(values):
            assert ours[f"{metric}, class {place}"].value == pytest.approx(value, abs=0.001)
            # The source's columns of class 0 and class 1 are exchanged in this row.
            printed = work.cell("Class 0", f"{metric}, class {(1, 0, 2)[place]}")
            assert ours[f"{metric}, class {place}"].value == pytest.approx(printed, abs=0.02)


def labels_of(rng, n, truth, wrong):
    """Return n labels of a class: shares of wrong labels by name, the others right."""
    counts = {label: round(share * n) for label, share in wrong.items()}
    return drawn(rng, {truth: n - sum(counts.values()), **counts})


def predictions(models, classes, groups, wrong, n, attribute):
    """Return predictions of models; `wrong(model, class, group)` has the shares of wrong labels."""
    rng = np.random.default_rng(7)
    columns = {"subject": [], attribute: [], **{model: [] for model in models}}
    for name in classes:
        for group in groups:
            columns["subject"] += [name] * n
            columns[attribute] += [group] * n
            for model in models:
                columns[model] += [*labels_of(rng, n, name, wrong(model, name, group))]
    frame = pl.DataFrame(columns)
    return frame.with_row_index("id").cast({"id": pl.String})


BACKGROUNDS = ("on the road", "blue", "at dusk", "red")
NETWORKS = ("resnet18", "resnet50-1", "vit_base_16", "inception_v3", "bit_50x3", "bit_101x1")
THINGS = ("sock", *(f"thing {number}" for number in range(11)))


def mistakes_of_networks(model, name, background):
    """Few classes of BiT 101x1 err by background, most of 50x3; the ViT's socks do."""
    place = THINGS.index(name)
    wrong = 0.1 + 0.03 * NETWORKS.index(model) % 0.07
    if model == "vit_base_16" and name == "sock":
        return {"running shoe" if background == "on the road" else "mitten": 0.2}
    if model.startswith("bit_"):
        wrong = 0.24
    elif background == "red":
        wrong += 0.02 * NETWORKS.index(model)
    stereotyped = place < {"bit_50x3": 10, "bit_101x1": 2}.get(model, 3 + NETWORKS.index(model) % 4)
    if stereotyped:
        return {f"wrong {BACKGROUNDS.index(background)}": wrong}
    return {"wrong 0": wrong / 2, "wrong 1": wrong / 2}


def run_networks(wrong, folder):
    frame = predictions(NETWORKS, THINGS, BACKGROUNDS, wrong, 300, "background")
    return run_study("skewsize-imagenet", frame, NETWORKS, folder)


def test_networks_that_accuracy_does_not_tell_apart(tmp_path):
    result = run_networks(mistakes_of_networks, tmp_path)
    assert marks(result) == {"S4": "holds", "S5": "holds"}
    socks = table_of(result, "Figure 3")
    assert socks["On the road"]["Running shoe"].value == pytest.approx(0.2)
    assert socks["Blue"]["Running shoe"].value == 0
    assert result.tables["model_profiles"].num_rows == len(NETWORKS)
    assert {*result.tables["model_correlations"]["models"].to_pylist()} == {len(NETWORKS)}


def test_networks_of_another_order_refute_the_claims(tmp_path):
    exchanged = {"bit_50x3": "bit_101x1", "bit_101x1": "bit_50x3"}
    colours = {"on the road": "blue", "blue": "on the road"}

    def wrong(model, name, background):
        of = background if name != "sock" else colours.get(background, background)
        return mistakes_of_networks(exchanged.get(model, model), name, of)

    assert marks(run_networks(wrong, tmp_path)) == {"S4": "doesn't", "S5": "doesn't"}


JOBS = (
    "writer", "biologist", "veterinarian", "nurse", "philosopher", "doctor", "maid", "model",
    "scientist", *(f"job {number}" for number in range(11)),
)  # fmt: skip
ANSWERERS = ("blip2_opt", "blip2_opt_large", "blip2_flan_t5")


def mistakes_of_answerers(model, name, gender):
    """Most jobs of the large model are stereotyped, half of the small one's, few of FlanT5's."""
    place = JOBS.index(name)
    if model == "blip2_flan_t5" and name in ("nurse", "philosopher"):
        return {"doctor": 0.9 if gender == "male" else 0.05}
    share = 0.0
    if model == "blip2_flan_t5":
        share = 0.1 if place < 3 else 0.0
    elif model == "blip2_opt":
        share = 0.36 if place < 5 else 0.16 if place < 10 else 0.0
    elif place < 15:
        share = 0.36
    if share:
        return {"doctor" if gender == "male" and name != "doctor" else "maid 2": share}
    return {"clerk": 0.1, "guard": 0.1}


def run_answerers(study, wrong, folder):
    frame = predictions(ANSWERERS, JOBS, ("female", "male"), wrong, 200, "gender")
    text = [pl.format("A {}.", name).alias(name) for name in ANSWERERS]
    return run_study(
        study, frame.with_columns(text), ANSWERERS, folder, normalize={}, open_vocabulary=True
    )


@pytest.mark.parametrize("study", ["skewsize-vlm", "skewsize-vlm-sports"])
def test_answerers_in_the_order_of_the_source(study, tmp_path):
    result = run_answerers(study, mistakes_of_answerers, tmp_path)
    of_study = {"S6": "holds"} if study == "skewsize-vlm" else {}
    assert marks(result) == {**of_study, "S7": "holds", "S8": "holds"}
    if of_study:
        numbers = table_of(result, "Table 7")
        assert all(isinstance(cell, Number) for row in numbers.values() for cell in row.values())


def test_answerers_of_the_opposite_order_refute_the_claims(tmp_path):
    exchanged = dict(zip(ANSWERERS, ANSWERERS[:1] + ANSWERERS[:0:-1], strict=True))

    def wrong(model, name, gender):
        return mistakes_of_answerers(exchanged[model], name, gender)

    result = run_answerers("skewsize-vlm", wrong, tmp_path)
    assert marks(result) == {"S6": "doesn't", "S7": "doesn't", "S8": "doesn't"}


DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")


def of_domains(*, unequal, n_classes=150):
    """Predictions of a model for many classes in six domains.

    Labels of wrong predictions depend on the domain, more or less by class. `unequal`: only how
    often a class is right depends on it.
    """
    rng, n_domains = np.random.default_rng(0), len(DOMAINS)
    columns = {"class": [], "domain": [], "six domains": []}
    for place in range(n_classes):
        strength = rng.random()
        accuracy = np.clip(0.55 - 0.13 * strength + rng.normal(0, 0.12), 0.25, 0.72)
        by_domain = np.full(n_domains, accuracy)
        high, low = rng.permutation(n_domains)[:2]
        if unequal:
            by_domain[low] -= 0.5 * strength
        else:
            by_domain[high] += 0.02 + 0.07 * strength + abs(rng.normal(0, 0.06))
            by_domain[low] -= abs(rng.normal(0, 0.08))
        for index, domain in enumerate(DOMAINS):
            n = int(rng.integers(30, 170))
            right = round(float(np.clip(by_domain[index], 0.05, 0.98)) * n)
            planted = 0 if unequal else min(n - right, round(n * (0.04 + 0.2 * strength)))
            wrong = [place + 1 + index] * planted
            wrong += [place + 7 + number % 2 for number in range(n - right - planted)]
            columns["class"] += [f"class {place}"] * n
            columns["domain"] += [domain] * n
            columns["six domains"] += [f"class {place}"] * right
            columns["six domains"] += [f"class {label % n_classes}" for label in wrong]
    return pl.DataFrame(columns).with_row_index("id").cast({"id": pl.String})


@pytest.mark.parametrize(("unequal", "mark"), [(False, "holds"), (True, "doesn't")])
def test_effect_sizes_of_domains_beside_other_metrics(unequal, mark, tmp_path):
    frame = of_domains(unequal=unequal)
    result = run_study("skewsize-domainnet", frame, ["six domains"], tmp_path, target="class")
    assert marks(result) == {"S9": mark}
    numbers = table_of(result, "Appendix C, correlations")
    rows = {row["y"]: row for row in result.tables["correlations"].to_pylist()}
    for name, other in (("Accuracy", "accuracy"), ("EO", "equalized_odds"), ("GAP", "gap")):
        assert numbers[name]["r"].value == rows[other]["pearson"]
        assert numbers[name]["p"].value == rows[other]["pearson_p"]
    assert isinstance(table_of(result, "Appendix C:")["SkewSize"]["Value"], Number)


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mistakes"


def test_the_motivating_example(tmp_path):
    assert written_again(EXAMPLE, tmp_path) == ["images.csv"]
    result = audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)
    assert marks(result) == {"S1": "holds"}
    leading = next(c for c in result.conclusions if c.model == "stereotyped")
    finding = result.findings[leading.finding]
    assert finding.metric == "cramers_v"
    assert "“nurse” (90 of 300)" in finding.direction
    assert "“surgeon” (90 of 300)" in finding.direction


def test_even_mistakes_refute_the_motivating_example(tmp_path):
    frame = pl.read_csv(EXAMPLE / "images.csv").with_columns(stereotyped=pl.col("even"))
    frame.write_csv(tmp_path / "images.csv")
    config = audits.load_config(EXAMPLE / "audit.yaml")
    result = audits.run(config, base=tmp_path)
    assert marks(result) == {"S1": "doesn't"}


def test_the_comparison_of_the_motivating_example_names_labels():
    config = audits.load_config(EXAMPLE / "audit.yaml")
    compared = audits.compare({"": (config, audits.prepare(config, base=EXAMPLE).data)})
    leading = compared.findings[compared.conclusions[0].finding]
    assert leading.metric == "effect_size_mean"
    assert all(label in leading.beside for label in ("stereotyped", "“nurse”", "“surgeon”"))
    # The title leaves the labels to the statement under it, and is whole.
    spans = plain_title(first_screen(compared, compared.shown_page))
    assert not "".join(span.text for span in spans).endswith("…")
