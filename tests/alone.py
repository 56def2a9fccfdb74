"""Python in a process of its own, as a user's: what other tests loaded is not there."""

import os
import subprocess
import sys
from pathlib import Path

import equipoise

PATHS = (Path(__file__).parent, Path(equipoise.__file__).parents[1])


def environment(**more):
    """Return environment variables that let Python import this package and the shared tests."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, PATHS))} | more


def alone(code, *arguments, **more):
    """Run code in a process of its own; return how it ended and what it wrote."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(**more),
    )
