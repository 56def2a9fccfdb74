"""What `make check` tests: the files of what changed."""

from pathlib import Path

import pytest

from tools.changed_tests import affected_tests

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/equipoise/core/files.py", "tests/core/test_files.py"),
        ("src/equipoise/data/formats/celeba.py", "tests/data/test_formats.py"),
        ("tests/core/test_errors.py", "tests/core/test_errors.py"),
    ],
)
def test_a_change_has_its_tests(changed, expected):
    tests = affected_tests([changed])
    assert expected in tests
    assert all((ROOT / test).is_file() for test in tests)


def test_simulations_and_pages_are_left_out():
    assert affected_tests(["tests/slow/test_coverage.py", "docs/index.md"]) == affected_tests([])


def test_every_module_of_the_package_has_tests_or_lies_in_a_room_that_has():
    rooms = {path.relative_to(ROOT / "src" / "equipoise").parts[0]
             for path in (ROOT / "src" / "equipoise").rglob("*.py")
             if path.parent != ROOT / "src" / "equipoise"}  # fmt: skip
    assert all((ROOT / "tests" / room).is_dir() for room in rooms)
