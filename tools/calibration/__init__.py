"""Calibration: what metrics say of embeddings, rankings and scores whose bias is known."""

from tools.calibration.cases import CASES, Case, Draw
from tools.calibration.page import figures, page
from tools.calibration.runner import Calibration, Samples, alarms, calibrate, power, rise
from tools.calibration.worlds import (
    ConceptWorld,
    EmbeddingWorld,
    LabelWorld,
    PreferenceWorld,
    RankingWorld,
    SetWorld,
    WordWorld,
)

__all__ = [
    "CASES",
    "Calibration",
    "Case",
    "ConceptWorld",
    "Draw",
    "EmbeddingWorld",
    "LabelWorld",
    "PreferenceWorld",
    "RankingWorld",
    "Samples",
    "SetWorld",
    "WordWorld",
    "alarms",
    "calibrate",
    "figures",
    "page",
    "power",
    "rise",
]
