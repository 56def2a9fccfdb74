"""The table by group for a page in Markdown."""

from equipoise.exports import Files, Form, Run


def write(run: Run) -> Files:
    """Return the table in Markdown."""
    return {"groups.md": run.result.table().to_markdown() + "\n"}


FORM = Form("the table by group in Markdown", write)
