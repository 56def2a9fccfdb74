from tools.soak.table import END, START, Row, keep, table

ROWS = [Row("Keys", "CLIP", 1200, 1200), Row("Keys", "timm", 4, 3, ("old evidence was used",))]


def test_the_table_is_put_between_the_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{START}\nold\n{END}\n\nafter\n")
    keep(ROWS, "Last run: today.", page)
    assert page.read_text() == (
        f"before\n\n{START}\nLast run: today.\n\n{table(ROWS)}\n{END}\n\nafter\n"
    )
    assert "| Keys | CLIP | 1,200 | 1,200 |" in table(ROWS)
