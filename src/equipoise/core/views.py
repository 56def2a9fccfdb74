"""Tables and charts of results: shown in notebooks, written as HTML, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.core.errors import InputError
from equipoise.core.types import Json, Strings
from equipoise.core.wording import number, percent, visible
from equipoise.core.writing import write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0b62a8", "#c2570c", "#00806a", "#a63d7f", "#77690a", "#55606b", "#6a4fb3", "#8c3b2e")
VEGA_LITE = "application/vnd.vegalite.v5+json"

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "−": "$-$", "×": r"$\times$", "∞": r"$\infty$", "·": r"$\cdot$", "…": r"\dots{}",
    "“": "``", "”": "''", "’": "'", "\u00a0": "~", "\u202f": r"\,", "≤": r"$\leq$", "<": r"$<$",
    ">": r"$>$", "‖": r"$\parallel$", "▲": r"$\ast$",
    "↓": r"$\downarrow$", "↑": r"$\uparrow$",
})  # fmt: skip


def as_latex(text: str) -> str:
    """Return text as LaTeX that shows it, for any engine with UTF-8 letters."""
    return visible(text).translate(_LATEX)


@dataclass(frozen=True)
class TextTable:
    """A table as people read it; numbers are rounded.

    Attributes
    ----------
    caption : str
    columns : tuple of str
    rows : tuple of tuple of str
    """

    caption: str
    columns: Strings
    rows: tuple[Strings, ...]

    def __str__(self) -> str:
        lines = [tuple(map(visible, line)) for line in (self.columns, *self.rows)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        padded = (
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )
        return "\n".join(line.rstrip() for line in padded)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{_html(cell)}</{tag}>' for cell in cells)}</tr>"

        body = "".join(row(cells, "td") for cells in self.rows)
        return (
            f"<table><caption>{_html(self.caption)}</caption><thead>{row(self.columns, 'th')}"
            f"</thead><tbody>{body}</tbody></table>"
        )

    def to_markdown(self) -> str:
        """Return the table as GitHub Markdown."""
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        return "".join(f"| {' | '.join(map(as_markdown, cells))} |\n" for cells in lines)

    def to_latex(self) -> str:
        r"""Return the table as a LaTeX `tabular`, for the package booktabs.

        Examples
        --------
        >>> print(TextTable("", ("Group", "n"), (("women & men", "12"),)).to_latex())
        \begin{tabular}{ll}
        \toprule
        Group & n \\
        \midrule
        women \& men & 12 \\
        \bottomrule
        \end{tabular}
        """
        lines = [" & ".join(map(as_latex, cells)) + r" \\" for cells in (self.columns, *self.rows)]
        head = [rf"\begin{{tabular}}{{{'l' * len(self.columns)}}}", r"\toprule", lines[0]]
        return "\n".join([*head, r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"])


def _html(text: str) -> str:
    return escape(visible(text))


def as_markdown(text: str) -> str:
    """Return text as Markdown that shows it, without markup of its own."""
    return "".join(
        f"\\{character}" if character in r"\|*_`[]<>" else character for character in visible(text)
    )


@dataclass(frozen=True)
class Mark:
    """A value of a chart with its interval and the band of chance; NaN where there is none."""

    label: str
    value: float
    low: float = math.nan
    high: float = math.nan
    series: str = ""
    chance_low: float = math.nan
    chance_high: float = math.nan


_ROW, _WIDTH, _AXIS = 22, 640, 34


@dataclass(frozen=True)
class Plot:
    """Values with intervals, a row for each label; notebooks show it.

    Attributes
    ----------
    title : str
    marks : tuple of Mark
        Without those whose value is NaN. Marks of several series have a colour each.
    percent : bool
        Whether values are shares.
    """

    title: str
    marks: tuple[Mark, ...]
    percent: bool = False

    @property
    def series(self) -> Strings:
        """Names of the series, in their order."""
        return tuple(dict.fromkeys(mark.series for mark in self.marks))

    def to_dict(self) -> Mapping[str, Json]:
        """Return the chart as a Vega-Lite specification with its data."""
        rows = [
            {key: None if value != value else value for key, value in vars(mark).items()}  # noqa: PLR0124
            for mark in self.marks
        ]
        axis: dict[str, Json] = {"title": None, "format": "%" if self.percent else ".3~g"}
        place: dict[str, Json] = {
            "y": {"field": "label", "type": "nominal", "sort": None, "title": None},
            "yOffset": {"field": "series"},
        }
        color: Json = {
            "field": "series", "type": "nominal", "scale": {"range": [*COLORS]}, "title": None,
            "legend": {"orient": "top"} if len(self.series) > 1 else None,
        }  # fmt: skip

        def span(name: str) -> dict[str, Json]:
            start: Json = {"field": f"{name}low", "type": "quantitative", "axis": axis}
            return {**place, "x": start, "x2": {"field": f"{name}high"}}

        point: Json = {
            "field": "value",
            "type": "quantitative",
            "axis": axis,
            "scale": {"zero": False},
        }
        dot: Json = {"type": "point", "filled": True, "size": 70, "tooltip": True}
        line: Json = {"type": "rule", "strokeWidth": 2}
        layers: list[Json] = [
            {"mark": {"type": "bar", "color": "#d3d8de"}, "encoding": span("chance_")},
            {"mark": line, "encoding": span("") | {"color": color}},
            {"mark": dot, "encoding": place | {"x": point, "color": color}},
        ]
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "title": self.title, "width": 480, "data": {"values": rows}, "layer": layers,
        }  # fmt: skip

    def to_svg(self) -> str:
        """Return the chart as an SVG element that takes the text colour of its page."""
        label_width = min(
            280.0, 18 + 7.2 * max((len(mark.label) for mark in self.marks), default=0)
        )
        ends = [end for mark in self.marks for end in vars(mark).values() if _known(end)]
        low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
        margin = 0.04 * (high - low) or 0.5
        scale = (_WIDTH - label_width - 24) / (high - low + 2 * margin)

        def x(value: float) -> str:
            return f"{label_width + (value - low + margin) * scale:.1f}"

        top = 46 if len(self.series) > 1 else 26
        height = top + _ROW * len(self.marks) + _AXIS
        parts = [_text(0, 14, self.title, weight="bold"), *_legend(self.series)]
        for tick in _ticks(low, high):
            label = percent(tick) if self.percent else number(tick)
            parts += [
                f'<path d="M{x(tick)} {top}V{height - _AXIS}" stroke="currentColor" '
                'stroke-opacity="0.2"/>',
                _text(x(tick), height - _AXIS + 16, label, anchor="middle"),
            ]
        before = ""
        for row, mark in enumerate(self.marks):
            y = top + _ROW * row + _ROW / 2
            color = COLORS[self.series.index(mark.series) % len(COLORS)]
            if mark.label != before:
                parts.append(_text(label_width - 8, y + 4, mark.label, anchor="end"))
            if _known(mark.chance_low):
                width = float(x(mark.chance_high)) - float(x(mark.chance_low))
                parts.append(
                    f'<rect x="{x(mark.chance_low)}" y="{y - 8}" width="{width:.1f}" height="16" '
                    'fill="#8a939c" fill-opacity="0.35"/>'
                )
            if _known(mark.low):
                parts.append(
                    f'<path d="M{x(mark.low)} {y}H{x(mark.high)}" stroke="{color}" '
                    'stroke-width="2.4"/>'
                )
            tip = f"{mark.label}: {percent(mark.value) if self.percent else number(mark.value)}"
            parts.append(
                f'<circle cx="{x(mark.value)}" cy="{y}" r="4.5" fill="{color}">'
                f"<title>{_html(tip)}</title></circle>"
            )
            before = mark.label
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{_html(self.title)}" width="{_WIDTH}" style="max-width:100%;'
            f'font:12px system-ui,sans-serif">{"".join(parts)}</svg>'
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the chart to a file: .svg or .html, or .png and .pdf, which matplotlib draws.

        Raises
        ------
        InputError
            When the name ends otherwise, or matplotlib is needed and isn't installed.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            data = self.to_svg().encode()
        elif suffix == ".html":
            head = f'<!doctype html><meta charset="utf-8"><title>{_html(self.title)}</title>'
            data = f"{head}\n{self.to_svg()}\n".encode()
        elif suffix in (".png", ".pdf"):
            data = self._drawn(suffix.removeprefix("."))
        else:
            raise InputError(f"{path}: a chart is written as .svg, .html, .png or .pdf")
        write(Path(path), data)

    def _drawn(self, file_format: str) -> bytes:
        """Return the chart as matplotlib draws it."""
        try:
            matplotlib = import_module("matplotlib.figure")
        except ImportError as error:
            raise InputError(
                f"a chart as {file_format} needs matplotlib. To do: install it, or write .svg"
            ) from error
        rows = len({mark.label for mark in self.marks})
        figure = matplotlib.Figure(figsize=(6.4, 1.2 + 0.3 * rows), layout="constrained")
        self.draw(figure.subplots())
        file = BytesIO()
        figure.savefig(file, format=file_format, dpi=200)
        return file.getvalue()

    def draw(self, ax: Axes) -> None:
        """Draw the chart into axes of matplotlib: a row for each label, the first at the top."""
        labels = [*dict.fromkeys(mark.label for mark in self.marks)]
        step = 0.6 / max(len(self.series), 1)
        for place, series in enumerate(self.series):
            marks = [mark for mark in self.marks if mark.series == series]
            shift = (place - (len(self.series) - 1) / 2) * step
            rows = [labels.index(mark.label) + shift for mark in marks]
            color = COLORS[place % len(COLORS)]
            for mark, row in zip(marks, rows, strict=True):
                chance, ends = (mark.chance_low, mark.chance_high), (mark.low, mark.high)
                ax.fill_betweenx([row - step / 2, row + step / 2], *chance, color="0.8", zorder=0)
                ax.plot(ends, (row, row), color=color)
            values = [mark.value for mark in marks]
            ax.plot(values, rows, "o", color=color, label=series or None)
        ax.set_yticks(range(len(labels)), [visible(label) for label in labels])
        ax.set_ylim(len(labels) - 0.5, -0.5)
        ax.set_title(visible(self.title))
        if self.percent:
            ax.xaxis.set_major_formatter(lambda value, _: percent(value))
        if len(self.series) > 1:
            ax.legend()

    def _repr_mimebundle_(self, **_: Json) -> dict[str, Json]:
        return {VEGA_LITE: self.to_dict(), "text/html": self.to_svg(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Plot: {self.title}, {len(self.marks)} values>"


def _known(end: Json) -> bool:
    return isinstance(end, float) and math.isfinite(end)


def _text(x: float | str, y: float, text: str, *, anchor: str = "start", weight: str = "") -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor"{bold}>{_html(text)}</text>'


def _legend(series: Sequence[str]) -> list[str]:
    if len(series) < 2:
        return []
    parts, x = [], 0.0
    for place, name in enumerate(series):
        parts.append(f'<circle cx="{x + 5}" cy="31" r="4.5" fill="{COLORS[place % len(COLORS)]}"/>')
        parts.append(_text(x + 14, 35, name))
        x += 30 + 6.6 * len(name)
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two."""
    if high <= low:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * multiple for multiple in (1, 2, 5, 10) if power * multiple >= rough)
    return [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
