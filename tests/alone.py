"""Python in a process of its own, as a user's: what other tests loaded is not there."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def alone(code, *arguments, **environment):
    """Run code that may import what tests share; return how it ended and what it wrote."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE,
        env=os.environ | environment,
        timeout=300,
    )
