"""Images of a mitigation: those that cannot be used are told before a model is loaded."""

import csv

import pytest
from PIL import Image

from equipoise.cli.app import run as command

CONFIG = """
model: "open_clip:no-model/tag"
images: {table: sets.csv, root: photos, attributes: [hue]}
prompts: {table: prompts.csv}
recipes: {ensemble: {recipe: prompt_ensemble}}
zero_shot:
  named: {table: sets.csv, root: photos, label: subject, templates: ["a {}"]}
retrieval:
  said: {table: pairs.csv}
withheld: 0.5
validation: 0
output: mitigated
"""


@pytest.fixture
def project(tmp_path):
    """Two subjects in two sets each of two images, listed from the last id to the first."""
    (tmp_path / "photos").mkdir()
    rows = []
    for number in reversed(range(8)):
        Image.new("RGB", (9, 7), (20 * number, 0, 0)).save(tmp_path / "photos" / f"{number}.png")
        subject, hue = "ab"[number // 4], ("red", "blue")[number % 2]
        rows.append(
            {"image_id": f"i{number}", "path": f"{number}.png", "subject": subject,
             "set": f"s{number // 2}", "caption": f"a {hue} {subject}", "hue": hue}
        )  # fmt: skip
    write(tmp_path / "sets.csv", rows)
    write(tmp_path / "prompts.csv", [{"subject": one, "prompt": f"a {one}"} for one in "ab"])
    pairs = [{"image_id": "p", "path": "photos/0.png", "caption": "a red a"}]
    write(tmp_path / "pairs.csv", pairs)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "cannot be decoded: the file is empty"),
        (b"no image", "cannot be decoded: it is no picture of a known format"),
    ],
)  # fmt: skip
def test_an_image_that_cannot_be_used_is_told_before_a_model_is_loaded(
    project, content, why, capsys
):
    broken = project / "photos" / "5.png"
    broken.unlink()
    if content is not None:
        broken.write_bytes(content)
    assert command(["mitigate", str(project / "c.yaml")]) == 2
    assert capsys.readouterr().err.startswith(
        f"error: {project / 'sets.csv'}, column 'path', row 3: the image {broken} {why}"
    )
    assert not (project / "mitigated").exists()
