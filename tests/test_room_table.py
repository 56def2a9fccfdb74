"""The table of rooms in docs/contributing.md is that of the import contract."""

from tools.room_table import PAGE, rooms, with_table


def test_the_table_is_of_today():
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text


def test_rooms_are_in_the_order_of_the_contract():
    assert rooms()[0] == "core"
    assert rooms()[-1] == "cli"
