"""A run written and read back; what is not a run is refused in clear words."""

import errno
import json
import os
import re
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core import RunError
from equipoise.core.finding import findings_to_table
from equipoise.evidence.rundir import write_list
from equipoise.report import read, write
from report.synthetic import NAN, comparison, faces, finding


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write(faces(), folder)
    return folder


def test_read_returns_the_written_result(tmp_path):
    result = comparison()
    write(result, tmp_path)
    again = read(tmp_path)
    # NaN differs from itself, so findings are compared by what they look like.
    assert repr(again.findings) == repr(result.findings)
    assert (tmp_path / again.manifest.base).resolve() == Path(result.manifest.base)
    same_base = replace(again.manifest, base=result.manifest.base)
    assert asdict(same_base) == asdict(result.manifest)
    assert {n: t.to_pylist().__repr__() for n, t in again.tables.items()} == {
        n: t.to_pylist().__repr__() for n, t in result.tables.items()
    }


def test_json_writes_nan_as_null_and_infinity_as_a_word_with_the_reason(tmp_path):
    undefined = finding(
        value=NAN, ci_low=float("-inf"), ci_high=float("inf"), reason="too few rows"
    )
    write(replace(faces(), findings=(undefined,), conclusions=()), tmp_path)
    row = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))[0]
    assert (row["value"], row["ci_low"], row["ci_high"]) == (None, "-Infinity", "Infinity")
    assert row["reason"] == "too few rows"


def test_not_a_run(tmp_path):
    with pytest.raises(RunError, match=r": not a run; it has no manifest\.json\. To do: give the"):
        read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "null",
        pytest.param("[" * 100_000, id="nested too deep"),
        '{"schema_version": 1}',
        "\udc80",
    ],
)
def test_broken_manifest(run, content):
    (run / "manifest.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunError, match=r"manifest\.json: .*To do: run the audit again"):
        read(run)


@pytest.mark.parametrize("name", ["findings.parquet", "tables/group_sizes.parquet"])
def test_a_flipped_bit_of_a_table_is_noticed(name, run):
    content = (run / name).read_bytes()
    chunk = pq.read_metadata(run / name).row_group(0).column(0)
    end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
    (run / name).write_bytes(
        content[: end - 2] + bytes([content[end - 2] ^ 1]) + content[end - 1 :]
    )
    with pytest.raises(RunError, match=name):
        read(run)


@pytest.mark.parametrize("change", ["a column lacks", "a column has another type"])
def test_findings_of_other_columns(run, change):
    table = findings_to_table(faces().findings)
    place = table.column_names.index("direction")
    texts = pa.array([""] * len(table))
    changed = {
        "a column lacks": table.drop_columns(["value"]),
        "a column has another type": table.set_column(place, "direction", texts),
    }
    pq.write_table(changed[change], run / "findings.parquet")
    with pytest.raises(RunError, match="it isn't a table of findings"):
        read(run)


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    opened = Path.open

    def full(path, *args, **kwargs):
        if ".json." in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(RunError) as raised:
        write(faces(), tmp_path)
    assert raised.value.__cause__.errno == errno.ENOSPC
    assert str(raised.value).startswith(str(tmp_path / "findings.json"))


@pytest.mark.parametrize("name", ["findings.parquet", "conclusions.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "short", "empty object"])
def test_a_damaged_file_is_named_without_a_library_s_words(run, name, damage):
    (run / "conclusions.json").write_text("[]")
    if damage == "missing":
        (run / name).unlink()
    else:
        (run / name).write_text("[{}]" if damage == "empty object" else "PAR")
    with pytest.raises(RunError, match="To do") as caught:
        read(run)
    assert name in str(caught.value)
    assert not re.search(r"(?i)errno|<buffer>|parquet magic|'verdict'|detail", str(caught.value))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_an_error_of_the_system_is_said_in_words(run, code, monkeypatch):
    def failing(path, *_):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr("equipoise.report.store.read_json_file", failing)
    with pytest.raises(RunError) as caught:
        read(run)
    assert os.strerror(code).lower() in str(caught.value)
    assert "Errno" not in str(caught.value)
    assert ("right to read it" in str(caught.value)) == (code == errno.EACCES)


def test_a_run_without_a_table_that_it_lists_is_refused(run):
    write_list(run)
    read(run)
    table = next((run / "tables").iterdir())
    table.unlink()
    with pytest.raises(RunError, match=re.escape(str(table))):
        read(run)
