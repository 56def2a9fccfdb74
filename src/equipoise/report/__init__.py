"""Results as files and as a page; the gate."""

from equipoise.report.blocks import Page
from equipoise.report.gate import GateCheck, GateResult, GateRule, gate, junit
from equipoise.report.rendering import render
from equipoise.report.store import read, write

__all__ = [
    "GateCheck", "GateResult", "GateRule", "Page", "gate", "junit", "read", "render", "write",
]  # fmt: skip
