"""Findings as files, sentences, charts and pages; the gate."""

from equipoise.report.blocks import Page
from equipoise.report.card import card
from equipoise.report.gate import gate, junit
from equipoise.report.gate_rules import GateCheck, GateResult, GateRule
from equipoise.report.rendering import render
from equipoise.report.result import Result
from equipoise.report.store import read, write

__all__ = [
    "GateCheck", "GateResult", "GateRule", "Page", "Result", "card", "gate", "junit", "read",
    "render", "write",
]  # fmt: skip
