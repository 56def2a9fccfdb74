"""The audit of retrieval: the groups of the images that queries rank first."""

from equipoise.audits.kind import audit_kind
from equipoise.audits.rankings.measuring import Rankings
from equipoise.audits.rankings.retrieval.config import Config


@audit_kind("retrieval")
class Retrieval(Rankings[Config]):
    """Audits of retrieval."""
