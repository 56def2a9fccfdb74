"""What the workloads share: a row of the table, fair timing, peak memory, facts of the machine.

A workload is a module with `rows() -> Iterator[Row]` that ends in::

    if __name__ == "__main__":
        harness.main(rows)
"""

import argparse
import gc
import json
import math
import os
import platform
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "polars", "fairlearn", "torch")

_QUICK = "EQUIPOISE_BENCH_QUICK"
# Seconds after which no further round of a comparison is begun.
_PATIENCE = 60.0
# Seconds that a round of short calls takes, as `timeit` has it: in a shorter one the first calls,
# for which memory and interpreter have to find back from other work, count for too much.
_SHORTEST = 0.2


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes
    ----------
    workload, what, size, peer : str
        Such as "W1", "ISS within a set", "20,000 × 512", "scikit-learn cosine_distances".
    peer_seconds, seconds : float
        Medians of wall time of the peer and of equipoise.
    goal : float or None
        The ratio to reach, or the largest it may be where `over` is given; None where the row only
        shows growth.
    limit_seconds : float or None
        What the machine allows at best, estimated as `limit` says.
    memory_mb : float or None
        Peak extra memory of equipoise.
    note : str
        Such as how a peer's time was extrapolated.
    n : float or None
        The number that grows between rows of one workload, what and peer.
    over : str
        What our time is a multiple of, such as "one pass", where no peer does as much.
    """

    workload: str
    what: str
    size: str
    peer: str
    peer_seconds: float
    seconds: float
    goal: float | None = None
    limit_seconds: float | None = None
    limit: str = ""
    memory_mb: float | None = None
    note: str = ""
    n: float | None = None
    over: str = ""

    @property
    def ratio(self):
        """How many times longer the peer takes; where `over` is given, how many times we do."""
        ratio = self.peer_seconds / self.seconds
        return 1.0 / ratio if self.over else ratio

    @property
    def has_goal(self):
        """Whether there is something to reach."""
        return self.goal is not None

    @property
    def reached(self):
        """Whether the goal is reached; True without one."""
        if self.goal is None:
            return True
        return self.ratio <= self.goal if self.over else self.ratio >= self.goal


def quick():
    """Whether only small sizes are wanted, with one round each."""
    return bool(os.environ.get(_QUICK))


def sizes(*all_sizes):
    """Return the sizes to run: all of them, or the first where it should be quick."""
    return all_sizes[:1] if quick() else all_sizes


def alternate(*calls, repeats=5, blas_threads=1, warm=True):
    """Return median seconds of calls, alternated in this process after one warm-up of each.

    Calls of microseconds are repeated within a round. No round is begun after a minute, so that
    slow peers run once. All get the same number of BLAS threads. With `warm` false there is no
    warm-up and no repeating: the caller has warmed up what is long, by something small.
    """
    times_by_call = [[] for _ in calls]
    with threadpool_limits(blas_threads):
        repetitions = [_fill(call) if warm else 1 for call in calls]
        started = perf_counter()
        for _ in range(1 if quick() else repeats):
            for times, call, number in zip(times_by_call, calls, repetitions, strict=True):
                times.append(_once(call, number))
            if perf_counter() - started > _PATIENCE:
                break
    return [median(times) for times in times_by_call]


def compared(ours, peers, check, *, repeats=5, blas_threads=1, memory=True, **about):
    """Yield a row for each peer: what it gives must agree with ours.

    Parameters
    ----------
    ours : callable
    peers : iterable of (str, callable, float or None)
        What each is called, its call, and the goal.
    check : callable
        Takes what ours and a peer returned, and stops where they differ.
    repeats, blas_threads : int
        See `alternate`.
    memory : bool
        Whether to measure it.
    **about
        Other fields of `Row`.
    """
    expected = ours()
    peak = peak_mb(ours) if memory else None
    for peer, call, goal in peers:
        check(expected, call())
        mine, theirs = alternate(ours, call, repeats=repeats, blas_threads=blas_threads)
        yield Row(peer=peer, peer_seconds=theirs, seconds=mine, goal=goal, memory_mb=peak, **about)


def python(*arguments):
    """Run Python to its end in a process of its own: one BLAS thread, bytecode may be kept."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    command, environment = (
        [sys.executable, *map(str, arguments)],
        environment | {"OMP_NUM_THREADS": "1"},
    )
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603


def audit(folder):
    """Run the command on the config `audit.yaml` of a folder, over its earlier run."""
    run = ("--out", folder / "run", "--overwrite")
    python("-m", "equipoise.cli", "audit", folder / "audit.yaml", *run)


def predictions(rows, classes, groups):
    """Labels, predictions of which three in four are right, and groups.

    Each class is confused with five others.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, rows)
    wrong = (truth + rng.integers(1, 6, rows)) % classes
    label = np.where(rng.random(rows) < 0.25, wrong, truth)
    return truth, label, rng.integers(0, groups, rows)


def unit(vectors):
    """Return vectors of length 1 in float64: in float32 their lengths are off by 1e-8."""
    double = vectors.astype(np.float64)
    return np.asarray(double / np.linalg.norm(double, axis=1, keepdims=True))


def timed(call, **options):
    """Return the median seconds of one call; see `alternate`."""
    return alternate(call, **options)[0]


def _fill(call):
    """Warm up, and return how many calls fill the shortest time that can be told."""
    took = _once(call, 1)
    if took < _SHORTEST:
        took = _once(call, 1)
    return max(1, math.ceil(_SHORTEST / max(took, 1e-9)))


def _once(call, number):
    gc.collect()
    started = perf_counter()
    for _ in range(number):
        call()
    return (perf_counter() - started) / number


def read_seconds(bytes_read):
    """Return the least seconds in which this machine reads that many bytes from memory."""
    return bytes_read * _seconds_per_byte()


@cache
def _seconds_per_byte():
    array = np.ones(1 << 25)
    return timed(array.sum) / array.nbytes


def peak_mb(call):
    """Return the peak extra resident memory of a call in a fresh forked process, in 10^6 bytes.

    Call it once before, so that compiling and importing are not counted. Not for calls that use
    polars, whose threads do not survive a fork. None off Linux.
    """
    if not Path("/proc/self/clear_refs").exists():
        return None
    gc.collect()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            Path("/proc/self/clear_refs").write_text("5")  # The peak starts from now.
            before = resident_mb("VmRSS")
            call()
            os.write(writer, repr(resident_mb("VmHWM") - before).encode())
            code = 0
        except BaseException:  # noqa: BLE001 - the forked process must end here, whatever happens
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        output = pipe.read()
    os.waitpid(child, 0)
    return max(float(output), 0.0) if output else None


def resident_mb(field):
    """Return a memory field of this process in 10^6 bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return kib * 1024 / 1e6


def machine():
    """Return what the numbers depend on: processor, cores, memory, system, library versions."""
    facts = {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "system": f"{platform.system()}, Python {platform.python_version()}",
    }
    return facts | {"libraries": ", ".join([*_versions(), *_kernels()])}


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    parts = (
        fields.get("model name", ""),
        *(f"{k} {fields.get(k)}" for k in ("cpu family", "model")),
    )
    return ", ".join(parts)


def _kernels():
    """Yield the processors for which numpy's library of linear algebra multiplies matrices."""
    for library in threadpool_info():
        if library["user_api"] == "blas" and "numpy" in library["filepath"]:
            yield f"{library['internal_api']} for {library.get('architecture', 'any')}"


def _versions():
    for name in LIBRARIES:
        try:
            yield f"{name} {version(name)}"
        except ModuleNotFoundError:  # PackageNotFoundError is one
            yield f"{name} not installed"


def exponents(rows):
    """Return p of seconds ~ n^p, of equipoise and the peer, by workload, what and peer.

    Least squares on logarithms, where a comparison was made at two sizes or more.
    """
    series = {}
    for row in rows:
        if row.n is not None:
            series.setdefault((row.workload, row.what, row.peer), []).append(row)
    return {
        key: (_slope(members, "seconds"), _slope(members, "peer_seconds"))
        for key, members in series.items()
        if len({row.n for row in members}) > 1
    }


def _slope(rows, field):
    points = np.log([(row.n, getattr(row, field)) for row in rows])
    return float(np.polyfit(*points.T, 1)[0])


def main(rows):
    """Run a workload by itself: a line for each row, or JSON lines with --json."""
    parser = argparse.ArgumentParser(description="Time one workload.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round each")
    parser.add_argument("--json", action="store_true", help="print rows as JSON lines")
    chosen = parser.parse_args()
    if chosen.quick:
        os.environ[_QUICK] = "1"
    for row in rows():
        write(json.dumps(asdict(row)) if chosen.json else line(row))


def line(row):
    """Return a row as a line for a terminal."""
    goal = f"(goal {goal_of(row)}: {'yes' if row.reached else 'NO'})" if row.has_goal else ""
    limit = "" if not row.limit_seconds else f"{row.seconds / row.limit_seconds:.1f}× limit"
    memory = "" if row.memory_mb is None else f"{row.memory_mb:,.0f} MB"
    label = f"{row.workload} {row.what}, {row.size}"
    times = f"{seconds(row.seconds):>8} {seconds(row.peer_seconds):>8} {ratio_of(row):>8}"
    return (
        f"{label:<72} {row.peer:<34} {times} {goal:<20} {limit:<12} {memory:<9} {row.note}".strip()
    )


def seconds(value):
    """Return seconds with three digits and a unit."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= size:
            return f"{_three(value / size)} {unit}"
    return f"{_three(value / 1e-9)} ns"


def ratio_of(row):
    """Return a row's ratio, and what it is a multiple of."""
    return f"{times_of(row.ratio)} {row.over}".strip()


def goal_of(row):
    """Return what a row is to reach, such as "20×" or "≤ 1.6×"; "" without a goal."""
    if row.goal is None:
        return ""
    return f"≤ {row.goal:,g}×" if row.over else f"{row.goal:,g}×"


def times_of(ratio):
    """Return a ratio with three digits."""
    return f"{_three(ratio)}×"


def _three(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write(text):
    """Write a line now."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
