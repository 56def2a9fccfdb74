"""The audit of retrieval: the groups of the images that queries rank first."""

from equipoise.audits.engines.rankings.audit import Rankings
from equipoise.audits.kind import audit_kind
from equipoise.audits.retrieval.config import Config


@audit_kind("retrieval")
class Retrieval(Rankings[Config]):
    """Audits of retrieval."""
