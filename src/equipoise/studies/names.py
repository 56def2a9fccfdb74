"""Names of studies in configurations."""

from typing import Annotated

from pydantic import AfterValidator

from equipoise.config.fields import among
from equipoise.studies import STUDIES


def _study(name: str) -> str:
    among("study", name, STUDIES)
    return name


StudyName = Annotated[str, AfterValidator(_study)]
"""A published study."""
