from equipoise.audits.config import AuditConfig
from equipoise.config.fields import Name, Section, Table


class DataConfig(Section):
    """A table with a yes-or-no rating and the group of each row."""

    table: Table
    id: Name
    rating: Name
    group: Name


class Config(AuditConfig):
    """The config of an audit of ratings."""

    data: DataConfig

    @property
    def model_names(self):
        return ("raters",)
