"""The pictures of the documentation, in docs/figures: reports as Chromium shows them.

    python -m tools.figures [NAME ...]

Each is a WebP file of at most 60 kB. Audits run in a temporary copy of the examples. `faces` needs
the extra `people`, `review` the extra `review`, and `fairface` the tables of `predictions.yaml`.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from equipoise.core.writing import write

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
MOST_BYTES = 60_000
PICTURES = ROOT / "src" / "equipoise" / "planted" / "people" / "project" / "pictures"
SCENES = ("airplane", "basketball")


@dataclass(frozen=True)
class Shot:
    """A picture of a report.

    Attributes
    ----------
    commands : tuple of str
        Arguments of `equipoise` that write the run.
    run : str
        The folder of the run.
    top, width, height : int
        Pixels that are cut off above, and the size of the picture.
    """

    commands: tuple[str, ...]
    run: str = "run"
    top: int = 0
    width: int = 1100
    height: int = 560


def _example(name: str, *, top: int = 0, height: int = 560) -> Shot:
    return Shot((f"audit examples/{name}/audit.yaml --out run",), top=top, height=height)


JOBS = "quick examples/jobs/predictions.csv --target occupation --groups gender"
SHOTS = {
    "jobs": Shot((f"{JOBS} --pred old --out run",)),
    "comparison": Shot((
        f"{JOBS} --pred old --out before",
        f"{JOBS} --pred new --out after",
        "compare before after --out run",
    )),
    "study": _example("mistakes", top=1000, height=640),
    "fairface": Shot((f"audit {ROOT / 'examples' / 'predictions.yaml'} --out run",)),
    "faces": Shot(("demo --world people --out people",), run="people/faces", height=640),
    **{
        name: _example(name)
        for name in (
            "answers", "associations", "dataset", "questions", "regression", "retrieval",
            "similarity", "text_to_image",
        )
    },
}  # fmt: skip


def equipoise(*arguments: str, folder: Path) -> str:
    """Run a command and return its output."""
    command = [sys.executable, "-m", "equipoise", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def screenshot(address: str, width: int, height: int) -> Image.Image:
    """Return a page as headless Chromium shows it."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "page.png"
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        size = f"--window-size={width},{height}"
        wait = "--virtual-time-budget=8000"
        chromium = shutil.which("chromium") or "chromium-browser"
        command = [chromium, *options, size, wait, f"--screenshot={picture}", address]
        subprocess.run(command, check=True, capture_output=True)
        return Image.open(io.BytesIO(picture.read_bytes())).convert("RGB")


def save(image: Image.Image, name: str) -> None:
    """Write a picture in the best quality that fits into the largest size."""
    for quality in range(90, 20, -5):
        buffer = io.BytesIO()
        image.save(buffer, "WEBP", quality=quality, method=6)
        if buffer.tell() <= MOST_BYTES:
            write(FIGURES / f"{name}.webp", buffer.getvalue())
            return
    raise SystemExit(f"{name} is larger than {MOST_BYTES:,} bytes")


def report(shot: Shot, folder: Path) -> Image.Image:
    """Return the picture of a report."""
    for command in shot.commands:
        equipoise(*command.split(), folder=folder)
    page = (folder / shot.run / "report.html").as_uri()
    image = screenshot(page, shot.width, shot.top + shot.height)
    return image.crop((0, shot.top, shot.width, shot.top + shot.height))


def people(_: Path) -> Image.Image:
    """Return the pictures of two scenes, side by side."""
    names = [
        f"{scene}_{race}_{gender}.webp"
        for scene in SCENES
        for race in ("black", "white")
        for gender in ("woman", "man")
    ]
    sheet = Image.new("RGB", (4 * 256, 2 * 256))
    for place, name in enumerate(names):
        with Image.open(PICTURES / name) as picture:
            sheet.paste(picture.convert("RGB"), (place % 4 * 256, place // 4 * 256))
    return sheet


@contextmanager
def served(folder: Path, run: str) -> Iterator[str]:
    """Serve the review of a run and yield its address."""
    command = [sys.executable, "-m", "equipoise", "review", run, "--json"]
    with (
        (folder / "address.json").open("w+") as output,
        subprocess.Popen(command, cwd=folder, stdout=output, text=True) as process,
    ):
        try:
            while not (text := (folder / "address.json").read_text("utf-8")):
                time.sleep(0.2)
            yield json.loads(text)["address"]
        finally:
            process.terminate()


def review(folder: Path) -> Image.Image:
    """Return the page with the images behind a finding."""
    subprocess.run([sys.executable, "examples/review/make.py"], cwd=folder, check=True)
    equipoise("audit", "examples/review/audit.yaml", "--out", "run", folder=folder)
    with served(folder, "run") as address:
        return screenshot(address.replace("/?", "/finding/0?"), 1100, 700)


def network(folder: Path) -> Image.Image:
    """Return the report that the recipe of a network writes."""
    recipe = (ROOT / "docs" / "recipes" / "own-model.md").read_text("utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", recipe, re.DOTALL))
    for script in (["examples/review/make.py"], ["-c", code]):
        subprocess.run([sys.executable, *script], cwd=folder, check=True)
    return report(Shot((), run="runs/network"), folder)


OTHERS = {"people": people, "review": review, "own-model": network}


def make(name: str) -> None:
    """Make one picture."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(ROOT / "examples", folder / "examples")
        image = report(SHOTS[name], folder) if name in SHOTS else OTHERS[name](folder)
    save(image, name)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for chosen in sys.argv[1:] or [*SHOTS, *OTHERS]:
        make(chosen)
