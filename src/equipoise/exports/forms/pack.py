"""All forms of a run in one folder."""

from equipoise.core import RunError
from equipoise.exports import FORMS, Files, Form, Run, form_of
from equipoise.exports.contents import NO_COMPLIANCE

_NAME = "pack"


def write(run: Run) -> Files:
    """Return the files of every form that suits the run, and a list of them."""
    files: dict[str, str] = {}
    lines = ["# Exports of a run", "", NO_COMPLIANCE, ""]
    for name in sorted(set(FORMS) - {_NAME}):
        form = form_of(name)
        try:
            form_files = form.write(run)
        except RunError as error:
            lines.append(f"- `{name}`: left out. {error}")
            continue
        files |= {f"{name}/{path}": text for path, text in form_files.items()}
        lines.append(f"- `{name}`: {form.title}")
    return {"README.md": "\n".join(lines) + "\n", **files}


FORM = Form("all forms that suit the run, in a folder", write)
