"""Kill runs on a Ray cluster of two local nodes, and one of its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from tools.soak.kills import differences
from tools.soak.models import PAUSE, WORKER_STOP
from tools.soak.table import Row
from tools.soak.work import MEANS, write_pictures

ROOT = Path(__file__).resolve().parents[2]
PART = 16
DONE, ADDRESS = "done ", "address "

CLUSTER = """
import sys
from ray.cluster_utils import Cluster

head = {"num_cpus": 1, "include_dashboard": False, "temp_dir": sys.argv[1]}
nodes = Cluster(initialize_head=True, head_node_args=head)
nodes.add_node(num_cpus=1)
print("address " + nodes.address, flush=True)
sys.stdin.read()
nodes.shutdown()
"""

DRIVER = """
import sys
from pathlib import Path
import ray
from equipoise.core.errors import RunError
from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder

address, photos, store, model, part = sys.argv[1:]
ray.init(address=address, log_to_driver=False)
pictures = pictures_in_folder(Path(photos))
try:
    settings = ExtractionSettings(
        part=int(part), engine="ray",
        progress=lambda _, done, __: print(f"done {done}", flush=True),
    )
    extract_embeddings(pictures, model, Path(store), settings=settings)
except RunError as error:
    sys.exit(f"refused: {error}")
"""


def ray_kills(
    folder: Path, *, kills: int = 3, workers: int = 1, pictures: int = 300, seed: int = 0
) -> list[Row]:
    """Kill runs, then workers of a run, at random moments; compare with an undisturbed run."""
    photos, stop = folder / "ray-photos", folder / "stop-a-worker"
    write_pictures(photos, pictures, broken=(5,))
    moments = np.random.default_rng(seed).integers(1, pictures // 2, kills + workers).tolist()
    whole, one, other = (folder / f"ray-{name}" for name in ("whole", "killed", "worker-killed"))
    with _cluster(folder / "ray", {PAUSE: "0.01", WORKER_STOP: str(stop)}) as address:
        begin = partial(_driver, address, photos)
        _finish(begin(whole))
        codes = [_killed(begin(one), target) for target in sorted(moments[:kills])]
        failures = [f"exit codes {codes}"] * any(code != -signal.SIGKILL for code in codes)
        rows = [_compared("Ray, the run", kills, begin(one), one, whole, failures)]
        failures = []
        for target in moments[kills:]:
            driver = begin(other)
            _reach(driver, target)
            stop.touch()
            _finish(driver)
            failures += ["no worker was killed"] * stop.exists()
        return [*rows, _compared("Ray, a worker", workers, begin(other), other, whole, failures)]


def _compared(
    case: str,
    tried: int,
    last: subprocess.Popen[str],
    store: Path,
    whole: Path,
    failures: list[str],
) -> Row:
    """Wait for the last run of a store, and compare the store with that of an undisturbed run."""
    code = _finish(last)
    wrong = [*failures, *[f"the last run ended with {code}"] * (code != 0)]
    wrong += differences(store, whole)
    return Row("Random kills", case, tried, 0 if wrong else tried, tuple(wrong))


def _killed(driver: subprocess.Popen[str], target: int) -> int:
    _reach(driver, target)
    driver.send_signal(signal.SIGKILL)
    return _finish(driver)


@contextmanager
def _cluster(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Start a cluster with its files in a folder; yield its address, and end it."""
    command = [sys.executable, "-c", CLUSTER, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=_environment() | environment,
    ) as process:  # fmt: skip
        for line in process.stdout or ():
            if line.startswith(ADDRESS):
                break
        else:
            raise RuntimeError("no cluster of Ray was started")
        yield line.removeprefix(ADDRESS).strip()
        process.communicate("")


def _driver(address: str, photos: Path, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DRIVER, address, str(photos), str(store), MEANS, str(PART)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_environment()
    )


def _reach(driver: subprocess.Popen[str], target: int) -> None:
    for line in driver.stdout or ():
        if line.startswith(DONE) and int(line.removeprefix(DONE)) >= target:
            return


def _finish(driver: subprocess.Popen[str]) -> int:
    driver.communicate()
    return driver.returncode


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    return dict(os.environ) | quiet | {"PYTHONPATH": path}
