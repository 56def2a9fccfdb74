"""The build shows the packages of the import contract on docs/contributing.md."""

from tools.room_table import ROOT, rooms, table, with_table


def test_the_page_has_a_place_for_the_table():
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    assert table() in with_table(text)
    assert with_table(text).replace(table() + "\n", "") == text


def test_rooms_are_in_the_order_of_the_contract():
    assert rooms()[0] == "core"
    assert rooms()[-1] == "cli"
    assert all(f"| `{room}` | " in table() for room in rooms())
