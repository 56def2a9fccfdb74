"""A file of the user is kept; a file of equipoise is replaced with --overwrite only."""

import os

import pytest

from equipoise import audits
from equipoise.cli.outputs import JUNIT, REPORT

NEW = {
    "new": ("new", "FILE"),
    "new of another kind": ("new", "FILE", "--audit", "retrieval"),
    "new of a study": ("new", "FILE", "--study", "predicted-labels"),
    "counterfactuals new": ("counterfactuals", "new", "FILE"),
}
REPLACED = {
    "report": (("report", "r", "--out", "FILE"), REPORT),
    "check of a run": (("check", "r", "--junit", "FILE"), JUNIT),
    "check of a configuration": (("check", "c.yaml", "--junit", "FILE"), JUNIT),
}
FOLDERS = {
    "audit": ("audit", "c.yaml", "--out", "FILE"),
    "compare": ("compare", "r", "--out", "FILE"),
    "demo": ("demo", "--out", "FILE"),
    "demo of scenes": ("demo", "--world", "scenes", "--out", "FILE"),
    "augment": ("augment", "--out", "FILE"),
}


def named(arguments, name):
    return [name if one == "FILE" else one for one in arguments]


@pytest.fixture
def run(command, project):
    """A run `r`."""
    assert command("audit", "c.yaml", "--out", "r")[0] == 0


@pytest.fixture
def unmeasured(monkeypatch):
    for name in ("run", "demo", "demo_scenes", "compare"):
        monkeypatch.setattr(audits, name, lambda *_, **__: pytest.fail("measured"))
    monkeypatch.setattr("equipoise.report.render", lambda *_: pytest.fail("rendered"))
    run_drawn = "equipoise.cli.augmentation.run_drawn"
    monkeypatch.setattr(run_drawn, lambda *_, **__: pytest.fail("trained"))


EVERY = NEW | {name: arguments for name, (arguments, _) in REPLACED.items()}


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("arguments", EVERY.values(), ids=EVERY)
def test_a_file_of_the_user_is_kept(request, command, project, arguments):
    request.getfixturevalue("unmeasured")
    thesis = project / "thesis"
    thesis.write_text("mine")
    (project / "link").symlink_to("thesis")
    (project / "dangling").symlink_to("nowhere")
    flags = ((),) if arguments in NEW.values() else ((), ("--overwrite",))
    for name in ("thesis", "link", "dangling", "r"):
        for more in flags:
            code, out, err = command(*named(arguments, name), *more)
            assert (code, out) == (2, "")
            assert err.startswith(f"error: {name}: exists already")
    assert thesis.read_text() == "mine"
    assert (project / "dangling").is_symlink()
    assert not [path for path in project.iterdir() if path.name.endswith(".partial")]


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(("arguments", "kind"), REPLACED.values(), ids=REPLACED)
def test_a_file_of_its_own_kind_is_replaced_with_overwrite(command, project, arguments, kind):
    path = project / "deep" / "file"
    call = named(arguments, "deep/file")
    assert command(*call)[0] != 2
    assert kind.matches(path)
    first = path.read_bytes()
    path.write_bytes(first + b"\n")
    assert command(*call)[0] == 2
    assert path.read_bytes() == first + b"\n"
    assert command(*call, "--overwrite")[0] != 2
    assert path.read_bytes() == first


@pytest.mark.usefixtures("run", "unmeasured")
@pytest.mark.parametrize("arguments", [*EVERY.values(), *FOLDERS.values()], ids=[*EVERY, *FOLDERS])
def test_a_name_that_is_no_text_is_refused_before_anything_is_measured(command, project, arguments):
    before = sorted(project.rglob("*"))
    code, out, err = command(*named(arguments, os.fsdecode(b"caf\xe9")))
    assert (code, out) == (2, "")
    assert "To do: choose another" in err
    assert sorted(project.rglob("*")) == before
