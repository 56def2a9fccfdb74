"""The audit of diversity: findings are the metrics of the sets; unusual input is counted."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy

from equipoise import audits, report
from equipoise.audits.diversity.page import PAGE
from equipoise.core import ConfigError, DataError, Verdict
from equipoise.metrics import iss_cross, iss_intra
from equipoise.metrics.vectors.diversity import principal_components
from equipoise.metrics.vectors.image_components import image_components
from page_text import check_snapshot, page_text

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "diversity"
COUNTS = {"north": 40, "south": 40, "west": 4}


def vectors(seed=1, spread=0.5):
    """The south is more diverse."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((sum(COUNTS.values()), 6))
    noise[COUNTS["north"] :] *= 2.0
    return np.r_[2.0, np.zeros(5)] + spread * noise


def table():
    regions = [name for name, n in COUNTS.items() for _ in range(n)]
    return pl.DataFrame(
        {
            "image": [f"i{k:03d}" for k in range(len(regions))],
            "region": regions,
            "query": ["a", "b"] * (len(regions) // 2),
        }
    )


def config(**changes):
    values = {
        "audit": "diversity",
        "data": {"images": {"table": table(), "id": "image"}, "sets": ["region"]},
        "models": {"m": {"file": vectors()}},
        "resampling": {"permutations": 200, "seed": 3},
    }
    for key, value in changes.items():
        values[key] = values.get(key, {}) | value if isinstance(value, dict) else value
    return audits.parse_config(values)


def run(**changes):
    return audits.run(config(**changes))


def by_metric(result):
    return {(f.metric, f.subject): f for f in result.findings}


def test_values_of_within_are_measured_separately():
    result = run(
        data={
            "images": {"table": table(), "id": "image"}, "sets": ["region"], "within": "query",
        },
    )  # fmt: skip
    findings = by_metric(result)
    rows, query = vectors()[:80], np.array(["a", "b"] * 40)
    north = rows[:40][query[:40] == "a"]
    assert findings["iss_intra", "a: north"].value == iss_intra(north).value
    assert {s for m, s in findings if m == "iss_cross"} == {"a", "b"}
    assert {row["within"] for row in result.tables["distances"].to_pylist()} == {"a", "b"}


def test_embeddings_that_cannot_be_used_are_counted():
    rows = vectors()
    rows[3], rows[5, 2] = 0.0, np.nan
    (planned,) = audits.plan(config(models={"m": {"file": rows}})).details["models"]
    assert (planned["zero"], planned["not_finite"], planned["usable"]) == (1, 1, 82)


@pytest.mark.parametrize("column", ["region", "query"])
def test_images_without_a_value_are_in_no_set(column):
    masked = pl.when(pl.col("image") == "i000").then(None).otherwise(pl.col(column))
    images = {"table": table().with_columns(masked.alias(column)), "id": "image"}
    result = run(data={"images": images, "sets": ["region"], "within": "query"})
    findings = by_metric(result)
    assert findings["iss_intra", "a: north"].n == 19
    assert sum("in no set" in n or "in no group" in n for n in result.manifest.notes) == 1


def test_a_reference_stands_beside_the_sets():
    near = vectors(9)[:30]
    names = pl.DataFrame({"image": [f"r{k}" for k in range(30)]})
    result = run(
        references={
            "stock": {"images": {"table": names, "id": "image"}, "models": {"m": {"file": near}}}
        }
    )
    findings = by_metric(result)
    distance = findings["mean_distance", "north × stock (reference)"]
    sets = {"a": vectors()[:40], "b": near}
    assert distance.value == pytest.approx(iss_cross(sets, resampling=None).value, rel=1e-12)
    assert distance.ci_low < distance.value < distance.ci_high
    assert distance.verdict == Verdict.NONE
    # The reference takes no part in what the sets are compared by.
    assert findings["iss_cross", ""].value == by_metric(run())["iss_cross", ""].value
    assert "stock (reference)" in result.tables["distances"].column("set_a").to_pylist()


@pytest.mark.parametrize("step", [audits.plan, audits.run])
@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"data": {"min_set_size": 41}}, "lower data.min_set_size"),
        ({"vectors": {"components": 7}}, "lower vectors.components to 6"),
    ],
)
def test_a_plan_refuses_the_same_configs_as_its_audit(step, changes, fix):
    with pytest.raises(DataError) as caught:
        step(config(**changes))
    assert fix in str(caught.value.fix)
    assert caught.value.file == "images (data frame)"


def test_components_are_projected_on_before():
    result = run(vectors={"components": 2})
    findings = by_metric(result)
    rows = vectors()
    sets = {"north": rows[:40], "south": rows[40:80]}
    expected = iss_cross(principal_components(sets, 2), resampling=None).value
    assert findings["iss_cross", ""].value == pytest.approx(expected, rel=1e-12)
    assert findings["iss_cross", ""].parameters["components"] == 2


def test_the_example_shows_the_planted_differences():
    config = audits.load_config(EXAMPLE / "audit.yaml")
    result = audits.run(config, base=EXAMPLE)
    findings = by_metric(result)
    for other in ("India", "Nigeria"):
        difference = findings["iss_difference", f"wedding: {other} − United States"]
        assert difference.verdict == Verdict.DISPARITY
        assert difference.direction.startswith("images of United States")
    street = [f for (metric, subject), f in findings.items() if subject.startswith("street")]
    assert not [f for f in street if f.verdict == Verdict.DISPARITY]
    check_snapshot(Path(__file__).parent / "page.txt", page_text(report.render(result, PAGE)))


def classes(n, seed=5):
    rows = np.random.default_rng(seed).random((n, 4))
    return rows / rows.sum(axis=1, keepdims=True)


def quality_config(**changes):
    """Images of one set, held against two references, with probabilities from a file."""
    references = {}
    for name, rows in {"near": vectors(9)[:60], "far": vectors(9)[:60] + 4}.items():
        names = pl.DataFrame({"image": [f"{name}{k}" for k in range(len(rows))]})
        references[name] = {"images": {"table": names, "id": "image"},
                            "models": {"m": {"file": rows}}}  # fmt: skip
    values = {
        "models": {"m": {"file": vectors(), "probabilities": {"file": classes(84)}}},
        "references": references,
        "metrics": {"frechet_distance": True, "inception_score": True},
    }  # fmt: skip
    return config(**values | changes)


def test_the_quality_of_all_images_and_of_each_set_against_two_references():
    result = audits.run(quality_config())
    findings = by_metric(result)
    references = {"near": vectors(9)[:60], "far": vectors(9)[:60] + 4}
    for subject, rows in {"all images": vectors(), "north": vectors()[:40]}.items():
        for name, reference in references.items():
            finding = findings["frechet_distance", f"{subject} × {name} (reference)"]
            # The vectors as they are, not of length 1.
            both = [rows, reference]
            (mean, other), (cov, other_cov) = (
                [part.mean(axis=0) for part in both], [np.cov(part.T) for part in both],
            )  # fmt: skip
            root = scipy.linalg.sqrtm(cov @ other_cov).real
            expected = ((mean - other) ** 2).sum() + np.trace(cov + other_cov - 2 * root)
            assert finding.value == pytest.approx(expected, rel=1e-6)
            assert finding.ci_low < finding.value < finding.ci_high
            assert finding.n == len(rows) + 60
            assert finding.verdict == Verdict.NONE
    near, far = (
        findings["frechet_distance", f"all images × {name} (reference)"] for name in references
    )
    # Halves of either reference are as near to each other, wherever it lies.
    assert far.value > 9 * far.chance_high
    assert near.chance == pytest.approx(far.chance)
    probabilities = classes(84)
    divergence = scipy.stats.entropy(probabilities, probabilities.mean(axis=0)[None], axis=1)
    score = findings["inception_score", "all images"]
    assert score.value == pytest.approx(np.exp(divergence.mean()))
    assert score.n == 84
    assert "Quality of the images" in report.render(result, PAGE)


def test_quality_needs_no_second_set_and_is_off_unless_asked_for():
    images = {"table": table().with_columns(region=pl.lit("here")), "id": "image"}
    result = audits.run(quality_config(data={"images": images}))
    assert ("inception_score", "all images") in by_metric(result)
    assert not {f.metric for f in run().findings} & {"frechet_distance", "inception_score"}


@pytest.mark.parametrize(
    ("model", "quality"),
    [({"file": vectors()}, False), ({"model": "timm:test_resnet"}, True)],
    ids=["without quality", "of a model that is run"],
)
def test_probabilities_that_nothing_reads_are_refused(model, quality):
    model = model | {"probabilities": {"file": classes(84)}}
    with pytest.raises(ConfigError, match=r"models\.m\.probabilities"):
        audits.parse_config({
            "audit": "diversity", "models": {"m": model}, "metrics": {"inception_score": quality},
            "data": {"images": {"folder": "photos"}, "sets": ["region"]},
        })  # fmt: skip


def test_all_sets_together_are_one_set():
    result = run()
    [together] = [f for f in result.findings if f.version == "all sets together"]
    assert together.value == iss_intra(vectors()[:80]).value
    projected = run(vectors={"components": 3})
    [together] = [f for f in projected.findings if f.version == "all sets together"]
    sets = principal_components({"north": vectors()[:40], "south": vectors()[40:80]}, 3)
    assert together.value == pytest.approx(iss_intra(np.concatenate([*sets.values()])).value)


def test_references_have_a_diversity_of_their_own():
    other = pl.DataFrame({"image": [f"r{n}" for n in range(20)]})
    rows = vectors(seed=9)[:20]
    references = {
        "other": {"images": {"table": other, "id": "image"}, "models": {"m": {"file": rows}}}
    }
    result = run(references=references, metrics={"iss_intra": {"include_self": True}})
    finding = by_metric(result)["iss_intra", "other (reference)"]
    assert finding.value == iss_intra(rows, include_self=True).value
    assert any("1/n" in note for note in result.manifest.notes)


def test_a_pca_of_each_image_is_that_of_scikit_learn():
    from sklearn.decomposition import PCA

    rows = np.random.default_rng(3).standard_normal((5, 24))
    reduced = image_components(rows, 4).reshape(5, 4, 4)
    for vector, components in zip(rows, reduced, strict=True):
        expected = PCA(svd_solver="full").fit_transform(vector.reshape(4, 6))
        # Axes have either sign: here the row with the largest size is positive.
        assert np.abs(components) == pytest.approx(np.abs(expected))
        largest = np.abs(components[:, :3]).argmax(axis=0)
        assert (components[largest, range(3)] > 0).all()


def test_a_pca_of_each_image_takes_the_place_of_its_vector():
    result = run(vectors={"image_pca": 3})
    finding = by_metric(result)["iss_intra", "north"]
    assert finding.value == iss_intra(image_components(vectors()[:40], 3)).value
    assert any("image_pca" in note for note in result.manifest.notes)
    same = vectors()
    same[0] = 1.0
    (planned,) = audits.plan(
        config(vectors={"image_pca": 3}, models={"m": {"file": same}})
    ).details["models"]
    assert (planned["zero"], planned["dimension"]) == (1, 6)
    with pytest.raises(DataError) as error:
        run(vectors={"image_pca": 4})
    assert "image_pca" in str(error.value)
