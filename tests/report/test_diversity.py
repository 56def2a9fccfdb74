"""How the report draws the diversity of sets."""

from dataclasses import replace

import pyarrow as pa

from equipoise.report.blocks import Chart, Grid
from equipoise.report.sections.diversity import diversity
from report.synthetic import faces


def intra(*names: str) -> Chart:
    rows = [
        {
            "model": "m", "groups": "region", "within": "", "set_a": name, "set_b": name,
            "distance": 0.3, "low": 0.2, "high": 0.4, "n_a": 120, "n_b": 120,
        }
        for name in names
    ]  # fmt: skip
    section = diversity(replace(faces(), tables={"distances": pa.Table.from_pylist(rows)}))
    assert section is not None
    grid = next(block for block in section.blocks if isinstance(block, Grid))
    return grid.charts[0]


def test_a_long_name_leaves_its_number_of_images_to_the_tip() -> None:
    found = intra("north", "stock (reference)")
    labels = [row["set"] for row in found.data["rows"]]
    assert labels == ["north (n = 120)", "stock (reference)"]
    assert all(row["tip"].endswith("n = 120") for row in found.data["rows"])


def test_the_title_of_the_axis_fits_its_panel() -> None:
    layers = intra("north").spec["layer"]
    titles = [layer["encoding"]["x"].get("axis", {}).get("title") for layer in layers]
    assert "ISS intra" in titles
