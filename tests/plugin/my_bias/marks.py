from equipoise.data.json_tables import json_lines
from equipoise.data.results import ResultsReader, Sample


def read(files):
    """Yield the samples of marks, one a line."""
    for file in files:
        for row in json_lines(file.text, str(file)):
            yield Sample(
                id=row["picture"], answer=row["mark"], target=row["right"], metadata=row["about"]
            )


READER = ResultsReader("Marks", "files that end in .marks", r".*\.marks", read)
