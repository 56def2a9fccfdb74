"""How memory and time of whole audits grow with the rows of the evidence.

    python -m benchmarks.scale [--full] [--only predictions] [--sizes 1000000,3000000] [--keep]

Each audit reads generated evidence, measures, and writes its run, in a process of its own. Without
a choice the sizes take a minute or two; `--full` takes an hour on two cores, and goes to 10 million
rows, of vectors of 32 numbers. `--keep` adds what was measured to the record beside this file, and
writes the tables of docs/benchmarks.md; `--page` writes them from the record.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, process_time

from benchmarks import scale_worlds
from benchmarks.harness import machine, resident_mb, seconds, write
from benchmarks.record import keep_lines, read_lines
from benchmarks.scale_growth import DIMENSION, NARROW, Measured, growths
from benchmarks.scale_page import write_page

RECORD = Path(__file__).with_name("scale.jsonl")
SHORT, FULL = (30_000, 100_000), (100_000, 300_000, 1_000_000)
LARGE = (300_000, 1_000_000, 3_000_000, 10_000_000)


def worlds():
    """Return what generates the evidence of each world, and its dimension."""
    return {
        "predictions": (scale_worlds.predictions, 0),
        "diversity": (scale_worlds.diversity, DIMENSION),
        "associations": (scale_worlds.associations, DIMENSION),
        "retrieval": (scale_worlds.retrieval, DIMENSION),
        "similarity": (scale_worlds.similarity, DIMENSION),
        "concepts": (scale_worlds.concepts, 0),
    }


def main():
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--only", choices=worlds(), action="append", help="a kind of audit")
    parser.add_argument("--full", action="store_true", help="to 10M rows")
    parser.add_argument("--sizes", help="rows, with commas between")
    parser.add_argument("--dimension", type=int, help=f"numbers per vector [{DIMENSION}]")
    parser.add_argument("--keep", action="store_true", help="record, and write the tables")
    parser.add_argument("--page", action="store_true", help="write the tables of the record")
    parser.add_argument("--folder", help="where evidence is generated [a temporary one]")
    parser.add_argument("--audit", nargs=2, type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.audit:
        write(json.dumps(audit(*chosen.audit)))
        return
    for world in () if chosen.page else chosen.only or worlds():
        for dimension, sizes in _series(chosen, world).items():
            measurements = []
            for rows in sizes:
                measurements.append(measured(world, rows, dimension, chosen.folder))
                write(line(measurements[-1]))
                if chosen.keep:
                    record(measurements[-1])
            for quantity, growth in growths(measurements).items():
                write(f"  {world}: {quantity} grows as rows^{growth.power:.2f}; {growth.told}")
    if chosen.keep or chosen.page:
        write_page(recorded())


def _series(chosen, world):
    """Return the sizes to measure by numbers per vector, 0 of evidence without vectors."""
    usual = worlds()[world][1]
    wide = (chosen.dimension or usual) if usual else 0
    if chosen.sizes:
        return {wide: [int(size) for size in chosen.sizes.split(",")]}
    if not chosen.full:
        return {wide: SHORT}
    if not usual:
        return {0: sorted({*FULL, *LARGE})}
    return {wide: FULL} if chosen.dimension else {wide: FULL, NARROW: LARGE}


def measured(world, rows, dimension, folder):
    """Generate evidence and audit it in a process of its own."""
    generate, _ = worlds()[world]
    with tempfile.TemporaryDirectory(dir=folder) as work_folder:
        generate(Path(work_folder), rows, *([dimension] if dimension else []))
        command = [sys.executable, "-m", "benchmarks.scale", "--audit"]
        command += [str(Path(work_folder, "audit.yaml")), str(Path(work_folder, "run"))]
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        output = subprocess.check_output(command, text=True, env=environment)  # noqa: S603
    took, processor = json.loads(output.splitlines()[-1]), machine()["processor"]
    return Measured(world, rows, dimension, **took, processor=processor)


def audit(config, run):
    """Do what `equipoise audit` does, and tell what it took."""
    started, steps = perf_counter(), {}

    def step(name, call):
        before = process_time()
        result = call()
        steps[name] = round(process_time() - before, 3)
        return result

    from equipoise import audits, report
    from equipoise.evidence import new_run

    checked = audits.load_config(config)
    with new_run(run) as folder, ThreadPoolExecutor(1) as executor:
        inputs = step("load", lambda: audits.prepare(checked, base=config.parent))
        saved = executor.submit(audits.save, inputs, folder)
        result = step("measure and save", lambda: audits.run(inputs, base=config.parent))
        step("report", lambda: report.write(result, folder))
        saved.result()
    return {
        "seconds": round(perf_counter() - started, 3),
        "processor_seconds": round(process_time(), 3),
        # What getrusage tells includes the process that this one was forked from.
        "peak_mb": round(resident_mb("VmHWM"), 1),
        "by_step": steps,
    }


def record(measurement):
    """Put a measurement in the place of an earlier one of the same evidence."""
    keep_lines(
        RECORD, [*recorded(), measurement], lambda entry: (entry.world, entry.rows, entry.dimension)
    )


def recorded():
    """Return what was measured before."""
    return [Measured(**values) for values in read_lines(RECORD)]


def line(measurement):
    """Return a measurement as a line for a terminal."""
    wide = f" × {measurement.dimension}" if measurement.dimension else ""
    steps = ", ".join(f"{name} {seconds(value)}" for name, value in measurement.by_step.items())
    return (
        f"{measurement.world:<13} {measurement.rows:>11,}{wide:<6} {measurement.peak_mb:>8,.0f} MB "
        f"{seconds(measurement.seconds):>8}, "
        f"processor {seconds(measurement.processor_seconds):>8} ({steps})"
    )


if __name__ == "__main__":
    main()
