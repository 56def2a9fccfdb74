"""Pictures of a result: embedded, capped, escaped, and nothing but pictures."""

import base64
import re
from dataclasses import replace

import pyarrow as pa

from equipoise.report import render
from equipoise.report.appendix import MOST, MOST_BYTES, MOST_OF_GROUP, gallery
from equipoise.report.blocks import Gallery, Heading
from report.synthetic import faces

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JPEG = b"\xff\xd8\xff\xe0" + b"0" * 40
SCHEMA = pa.schema(
    [("section", pa.string()), ("group", pa.string()), ("caption", pa.string()),
     ("image", pa.binary())]
)  # fmt: skip


def with_pictures(*rows):
    result = faces()
    filled = [{"section": "Maps", "group": "men", "caption": "one", "image": PNG} | r for r in rows]
    table = pa.Table.from_pylist(filled, SCHEMA)
    return replace(result, tables={**result.tables, "gallery": table})


def blocks(result):
    section = gallery(result)
    assert section is not None
    return [*section.blocks]


def test_pictures_stand_under_their_section_and_group():
    heading, men, women = blocks(with_pictures({}, {"group": "women", "image": JPEG}))
    assert heading == Heading("Maps")
    assert (men.title, women.title) == ("men", "women")
    assert men.pictures[0].source == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert women.pictures[0].source.startswith("data:image/jpeg;base64,/9j/")


def test_the_page_embeds_them_and_its_policy_allows_nothing_else():
    page = render(with_pictures({"caption": "<img src=x onerror=alert(1)>\u202e & more"}))
    (source,) = re.findall(r'<figure><img src="([^"]*)"', page)
    assert source.startswith("data:image/png;base64,")
    assert "<img src=x onerror" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;\\u202e &amp; more" in page
    assert "img-src data:;" in page


def test_broken_and_large_pictures_are_left_out():
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    large = PNG + b"0" * MOST_BYTES
    page_blocks = blocks(with_pictures({"image": svg}, {"image": large}, {"image": None}, {}))
    assert [
        (len(block.pictures), block.total) for block in page_blocks if isinstance(block, Gallery)
    ] == [(1, 4)]


def test_a_group_and_a_page_have_a_maximum_of_pictures():
    rows = [{"group": f"g{index % 9}", "caption": str(index)} for index in range(9 * 20)]
    galleries = [block for block in blocks(with_pictures(*rows)) if isinstance(block, Gallery)]
    assert {len(gallery.pictures) for gallery in galleries} == {MOST_OF_GROUP}
    assert sum(len(gallery.pictures) for gallery in galleries) == MOST
    assert {gallery.total for gallery in galleries} == {20}
    page = render(with_pictures(*rows))
    assert page.count("<figure><img ") == MOST
    assert "12 of 20 pictures are shown here; all are in" in page
