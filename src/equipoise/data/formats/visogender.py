"""VisoGender: tables of image addresses with occupation and perceived gender.

Source: github.com/oxai/visogender, `data/visogender_data`: `OO_*.tsv` (one person and an object)
has `IDX`, `Sector`, `Specialisation`, `Occupation`, `Object`, a column of addresses whose name
starts with "URL", and `Occupation_perceived_gender`; `OP_*.tsv` (two persons) has `Participant` and
`Participant_perceived_gender` in place of `Object`. Files until 14 August 2023 call these columns
`Occupation_Gender` and `Participant_Gender`. Genders are "man" and "woman" until then, "maculine"
and "feminine" in the files of that day, and "masculine" and "feminine" since.
"""

from pathlib import Path

from equipoise.core import DataError
from equipoise.data.formats.reading import data_format, read_rows
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import listed
from equipoise.data.tables import open_table

_ALWAYS = {
    "sector": "Sector",
    "specialisation": "Specialisation",
    "occupation": "Occupation",
    "gender": "Occupation_perceived_gender",
}
_PERSON = {"participant": "Participant", "participant_gender": "Participant_perceived_gender"}
_OBJECT = {"object": "Object"}
_EARLIER = {
    "Occupation_perceived_gender": "Occupation_Gender",
    "Participant_perceived_gender": "Participant_Gender",
}
_GENDERS = {
    "man": "male", "maculine": "male", "masculine": "male",
    "woman": "female", "feminine": "female",
}  # fmt: skip
_NO_ADDRESS = ("NA", "N/A", "na")


@data_format("visogender", file_names="stems")
def read_visogender(path: Path | str) -> ImageSet:
    """Read a table of VisoGender.

    Parameters
    ----------
    path : path
        `OO_Visogender_*.tsv` or `OP_Visogender_*.tsv`.

    Returns
    -------
    ImageSet
        With the columns `sector`, `specialisation`, `occupation`, `gender` (of who has the
        occupation), `url`, and `object`, or `participant` and `participant_gender`. Genders are
        "male" and "female", whichever words the file has; other words stay. Counts:
        "rows", "images", "rows_without_url", which are left out, "repeated_urls": images whose
        address another has too, which stay, and "missing": images by column where it is empty.

    Raises
    ------
    DataError
        When a column is missing, an id is there twice, or no row has an address.
    """
    names = open_table(path).names
    address = next((name for name in names if name.upper().startswith("URL")), None)
    if address is None:
        raise DataError(
            "no column has a name that starts with 'URL'",
            file=str(path),
            expected=f"the columns of VisoGender; there are {listed(names)}",
            fix="give a .tsv file of the data set as it was downloaded",
        )
    facts = _ALWAYS | (_PERSON if "Participant" in names else _OBJECT) | {"url": address}
    for name, column in facts.items():
        if column not in names and _EARLIER.get(column) in names:
            facts[name] = _EARLIER[column]
    rows = read_rows(path, tuple(facts.values()), id="IDX", missing=_NO_ADDRESS)
    ids, urls = rows.filled("IDX"), rows.cells[address]
    rows_with_url = [row for row, url in enumerate(urls) if url is not None]
    if not rows_with_url:
        raise rows.cell_error(address, 0, "the address of an image in at least one row")
    image_records = ImageRecords([ids[row] for row in rows_with_url])
    for name, column in facts.items():
        cells = rows.cells[column]
        if name.endswith("gender"):
            cells = [_gender(cell) for cell in cells]
        image_records.columns[name] = [cells[row] for row in rows_with_url]
    missing = image_records.count_missing()
    del missing["url"]
    return image_set(
        image_records,
        name=rows.name,
        format="VisoGender",
        inputs=rows.inputs,
        counts={
            "rows": len(ids),
            "images": len(rows_with_url),
            "rows_without_url": len(ids) - len(rows_with_url),
            "repeated_urls": len(rows_with_url) - len({*image_records.columns["url"]}),
            "missing": missing,
        },
    )


def _gender(cell: str | None) -> str | None:
    return None if cell is None else _GENDERS.get(cell.strip().casefold(), cell)
