from tools.soak.table import END, START, Row, keep, table

ROWS = [
    Row("Keys", "CLIP", 1200, 1200),
    Row("Damaged files", "CSV", 4, 3, ("old evidence was used",), other=2),
]


def test_rows_are_recorded_and_the_note_is_put_between_the_markers(tmp_path):
    page, path = tmp_path / "page.md", tmp_path / "soak.csv"
    page.write_text(f"before\n\n{START}\nold\n{END}\n\nafter\n")
    keep(ROWS, "Last run: today.", page, path)
    assert page.read_text() == f"before\n\n{START}\nLast run: today.\n{END}\n\nafter\n"
    assert path.read_text().splitlines() == [
        "check,on,tried,as_promised,other_values",
        "Keys,CLIP,1200,1200,",
        "Damaged files,CSV,4,3,2",
    ]
    assert "| Keys | CLIP | 1,200 | 1,200 |" in table(ROWS)
