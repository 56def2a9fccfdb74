"""Tables of how audits grow: all measurements, their fits, and a short table in the page."""

from benchmarks.harness import seconds
from benchmarks.pages import DOCS, PAGE, digits, with_block, write_csv
from benchmarks.scale_growth import growths

ROWS, FITS = DOCS / "benchmarks" / "scale.csv", DOCS / "benchmarks" / "scale-growth.csv"
SHOWN = 1_000_000
HEAD = ("audit", "rows", "dimension", "processor", "peak_mb", "processor_seconds", "load_seconds")
FIT = ("audit", "dimension", "quantity", "power", "line_misses_by", "straight")


def write_page(measurements):
    """Write the tables, and the short one into docs/benchmarks.md."""
    write_csv(ROWS, HEAD, rows(measurements))
    write_csv(FITS, FIT, fits(measurements))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_block(text, "scale", table(measurements)), encoding="utf-8")


def rows(measurements):
    """Yield the rows of the table of all measurements."""
    for measurement in measurements:
        times = measurement.processor_seconds, measurement.by_step["load"]
        yield (
            measurement.world, measurement.rows, measurement.dimension or "",
            measurement.processor, *map(digits, (measurement.peak_mb, *times)),
        )  # fmt: skip


def fits(measurements):
    """Yield how each series grows: the power of the rows, and what a straight line misses by."""
    for (world, dimension, _), members in series(measurements).items():
        for quantity, growth in growths(members).items():
            numbers = f"{growth.power:.2f}", f"{growth.off:.2f}"
            yield world, dimension or "", quantity, *numbers, growth.straight


def table(measurements):
    """Return a Markdown table of the audits of a million rows."""
    lines = ["| audit | peak memory | processor time |", "|---|--:|--:|"]
    for measurement in measurements:
        if measurement.rows == SHOWN:
            wide = f", {measurement.dimension} numbers" if measurement.dimension else ""
            time = seconds(measurement.processor_seconds)
            lines.append(f"| {measurement.world}{wide} | {measurement.peak_mb:,.0f} MB | {time} |")
    return "\n".join(lines)


def series(measurements):
    """Return measurements of one kind of audit, dimension and processor together."""
    lines = {}
    for measurement in measurements:
        lines.setdefault(
            (measurement.world, measurement.dimension, measurement.processor), []
        ).append(measurement)
    # A size alone shows no growth.
    return {about: members for about, members in lines.items() if len(members) > 1}
