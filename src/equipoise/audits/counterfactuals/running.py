"""What is run before an audit of counterfactual sets: that of retrieval, on neutral prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.audits.retrieval import running as retrieval
from equipoise.audits.retrieval.config import QueriesConfig
from equipoise.core.errors import ConfigError, InputError
from equipoise.data import load_items

if TYPE_CHECKING:
    from equipoise.audits.counterfactuals.config import Config
    from equipoise.audits.pictures.config import PicturesConfig
    from equipoise.audits.running.prepared import Prepared
    from equipoise.audits.running.runner import Runner


def prepare(config: Config, runner: Runner) -> Prepared:
    """Run the models that are named, see `equipoise.audits.retrieval.running.prepare`.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, a model is of another kind, or prefixes make a
        prompt twice.
    """

    def prompts(images: PicturesConfig) -> QueriesConfig:
        return _neutral(config, images, runner)

    return retrieval.prepare(config, runner, prompts)


def _neutral(config: Config, images: PicturesConfig, runner: Runner) -> QueriesConfig:
    """Return the neutral prompts of every subject of the images, by subject."""
    from equipoise.counterfactuals.neutral import neutral_prompts

    column = config.data.subject
    items = load_items(images.source(runner.base, (column,)), what="images")
    subjects = sorted({str(one) for one in items.columns[column] if one is not None})
    if not subjects:
        raise ConfigError(
            f"data.subject: no image has a {column!r}; name the column of what images show"
        )
    try:
        table = neutral_prompts(subjects, config.openings)
    except InputError as error:
        raise ConfigError(f"prefixes: {error}") from None
    return QueriesConfig(table=table, id="prompt", subject="subject")
