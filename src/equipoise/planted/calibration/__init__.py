"""Calibration: what metrics say of embeddings, rankings and scores whose bias is known."""

from equipoise.planted.calibration.cases import CASES, Case
from equipoise.planted.calibration.concepts import ConceptWorld
from equipoise.planted.calibration.curves import figures
from equipoise.planted.calibration.embeddings import EmbeddingWorld, SetWorld
from equipoise.planted.calibration.labels import LabelWorld, WordWorld
from equipoise.planted.calibration.measures import Draw
from equipoise.planted.calibration.page import page
from equipoise.planted.calibration.rankings import PreferenceWorld, RankingWorld
from equipoise.planted.calibration.runner import alarms, power, rise
from equipoise.planted.calibration.suite import Calibration, Samples, calibrate

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
