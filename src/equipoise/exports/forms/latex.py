"""The table by group for a paper."""

from equipoise.exports import Files, Form, Run


def write(run: Run) -> Files:
    """Return the table in LaTeX."""
    return {"groups.tex": run.result.table().to_latex() + "\n"}


FORM = Form("the table by group in LaTeX", write)
