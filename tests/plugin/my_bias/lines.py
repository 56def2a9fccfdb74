from equipoise.data import ImageRecords, data_format, image_set


@data_format("lines", file_column="file")
def read_lines(path):
    """Read lines of an id, a gender and a label, apart by a space."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    columns = {
        "gender": [gender for _, gender, _ in rows],
        "label": [label for _, _, label in rows],
        "file": [f"{name}.png" for name, _, _ in rows],
    }
    images = ImageRecords([name for name, _, _ in rows], columns)
    return image_set(images, name=str(path), format="lines", inputs={}, counts={})
