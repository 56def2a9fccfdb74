"""PATA (Protected Attribute Tag Association): addresses of images by scene, race, gender and age.

Source: github.com/pata-fairness/pata_dataset: each line of `pata_fairness.files.lst` is
"scene_race_gender_age|address", with underscores inside some scenes; `pata_fairness.captions.json`
is a list of scenes with `short` (the scene), `long`, and captions under `pos` and `neg` by
`races`, `gender` and `age`.
"""

from pathlib import Path

from equipoise.core import DataError
from equipoise.data.files import read_text
from equipoise.data.formats.reading import data_format
from equipoise.data.image_set import Gathered, ImageSet, image_set
from equipoise.data.problems import show

_COLUMNS = ("scene", "race", "gender", "age", "url")


@data_format("pata", file_column="url", file_names="addresses")
def read_pata(path: Path | str) -> ImageSet:
    """Read `pata_fairness.files.lst`.

    Parameters
    ----------
    path : path

    Returns
    -------
    ImageSet
        With the columns `scene`, `race`, `gender`, `age` and `url`; ids are the lines. Counts:
        "lines", "images", "repeated_lines", which are one image, and "repeated_urls": images
        whose address another has with other tags.

    Raises
    ------
    DataError
        When a line has no address or not four tags.
    """
    (text, digest), file = read_text(path, ".lst", "lines of tags and an address"), str(path)
    lines = [(row, line.strip()) for row, line in enumerate(text.split("\n"), 1) if line.strip()]
    found: dict[str, list[str]] = {}
    for row, line in lines:
        tags, _, url = line.partition("|")
        # From the right, since "fashion_show" is one scene.
        found[line] = [*tags.rsplit("_", 3), url.strip()]
        if len(found[line]) != len(_COLUMNS) or not all(found[line]):
            raise DataError(
                f"the line is {show(line)}",
                file=file,
                row=row,
                expected="'scene_race_gender_age|address'",
                fix="correct the line, or download the file again",
            )
    cells = [*found.values()]
    return image_set(
        Gathered(
            [*found], {name: [own[place] for own in cells] for place, name in enumerate(_COLUMNS)}
        ),
        name=file,
        format="PATA",
        inputs={file: {**digest, "rows": len(lines)}},
        counts={
            "lines": len(lines),
            "images": len(found),
            "repeated_lines": len(lines) - len(found),
            "repeated_urls": len(found) - len({url for *_, url in cells}),
        },
    )
