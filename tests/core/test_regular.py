import os
import socket
from pathlib import Path

import pytest

from equipoise.core.regular import IrregularFileError, open_regular, read_regular


def test_a_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"bytes")
    (tmp_path / "b").symlink_to("a")
    assert read_regular(tmp_path / "a") == read_regular(str(tmp_path / "b")) == b"bytes"
    with open_regular(tmp_path / "a") as file:
        assert file.read(2) == b"by"


def test_what_is_no_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        for name, kind in {
            "pipe": "a named pipe",
            "link": "a named pipe",
            "socket": "a socket",
            os.devnull: "a device",
            "/dev/zero": "a device",
        }.items():
            with pytest.raises(IrregularFileError) as raised:
                read_regular(name)
            assert raised.value.strerror == f"it is no regular file: {kind}"
            assert raised.value.filename == name


def test_a_pipe_that_somebody_writes_is_none_either(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR)
    os.write(end, b"bytes")
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(IrregularFileError):
        read_regular(pipe)
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    os.close(end)


def test_other_errors_are_as_they_were(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        read_regular(tmp_path / "round")
