"""Examples of audits, whose data a script beside them writes."""

import subprocess
import sys


def written_again(example, folder):
    """Run a copy of an example's script in an empty folder and check the files that it writes.

    Returns
    -------
    list of str
        Names of the files, sorted.
    """
    script = folder / "make.py"
    script.write_bytes((example / script.name).read_bytes())
    subprocess.run([sys.executable, str(script)], check=True)
    names = sorted(path.name for path in folder.iterdir() if path != script)
    for name in names:
        assert (folder / name).read_bytes() == (example / name).read_bytes(), name
    return names
