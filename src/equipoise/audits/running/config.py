"""The sections that name a model to run, what it reads, and where its outputs are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)

from equipoise.audits.config_arrays import ItemsConfig
from equipoise.audits.config_fields import Name, Section, Share, distinct
from equipoise.audits.config_problems import nearest
from equipoise.data import TEMPLATES

PREFIXES = ("hf", "open_clip", "timm", "onnx", "python", "equipoise", "edited")
"""What the name of a model begins with: the library that loads it."""


def _device(value: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        return value
    raise ValueError("expected auto, cpu, cuda or cuda:1")


def _templates(value: object) -> str | tuple[str, ...]:
    """Take the name of a list of templates, or templates."""
    if isinstance(value, str) and "{}" not in value:
        if value in TEMPLATES:
            return value
        raise ValueError(
            f"no list of templates is called {value!r}. Allowed: {', '.join(TEMPLATES)}, or texts "
            f"with one '{{}}' each{nearest(value, TEMPLATES)}"
        )
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given:
        raise ValueError("expected the name of a list of templates, or a list of texts")
    for one in given:
        if not isinstance(one, str) or not one.count("{}") == one.count("{") == one.count("}") == 1:
            raise ValueError(
                f"expected texts with one '{{}}' each, where the word goes, not {one!r}"
            )
    return distinct(tuple(given))


Device = Annotated[str, AfterValidator(_device)]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


def _model(value: object) -> object:
    """Take a name, `prefix:rest`, or a loaded model, which says what it is."""
    if hasattr(value, "info"):
        return value
    prefix, colon, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon and rest and prefix in PREFIXES and "\0" not in rest:
        return value
    raise ValueError(
        f"expected a name such as 'hf:openai/clip-vit-base-patch32', with one of "
        f"{', '.join(f'{one}:' for one in PREFIXES)}{nearest(prefix, PREFIXES) if prefix else ''}"
    )


def _model_as_text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else f"(loaded) {_called(value)}"


def _called(model: Any) -> str:
    return model if isinstance(model, str) else str(model.info.name)


Model = Annotated[Any, BeforeValidator(_model), PlainSerializer(_model_as_text)]
"""Name of a model, or a model."""


def _templates_as_json(value: str | tuple[str, ...]) -> str | list[str]:
    return value if isinstance(value, str) else [*value]


Templates = Annotated[
    str | tuple[str, ...], PlainValidator(_templates), PlainSerializer(_templates_as_json)
]
"""Name of a list of templates, or templates: texts in which "{}" stands for the name."""

AS_IT_IS: tuple[str, ...] = ("{}",)
"""The one template that leaves a text as it is."""


class ExtractionConfig(Section):
    """How models are run, and where what they say is kept.

    Attributes
    ----------
    store : path
        Folder of the evidence; a relative one lies beside the configuration.
    engine : str
        `native`, or `ray` for the cluster that RAY_ADDRESS names.
    part : int, optional
        Images in a file of evidence: what is done again when a run is stopped. 256 unless given,
        and 32 of answers to questions.
    max_failures : float
        Largest share of images that cannot be read or on which the model fails.
    device, dtype, backend : str
        For every model that does not say otherwise itself.
    """

    store: Annotated[Path, Field(strict=False)] = Path("evidence")
    engine: Literal["native", "ray"] = "native"
    part: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_failures: Share = 0.05
    device: Device = "auto"
    dtype: Dtype = "auto"
    backend: Name = "auto"


class RunConfig(Section):
    """A model to run.

    Attributes
    ----------
    model : str or model, optional
        `hf:`, `open_clip:`, `timm:`, `onnx:`, `python:` or `equipoise:`, and what to load; a
        folder or file that lies beside the configuration may be given relative to it. From Python
        also a loaded model.
    revision : str, optional
        Branch, tag or commit of a hub's repository.
    device, dtype, backend : str, optional
        Those of `extraction` unless given.
    allow_pickle, trust_remote_code : bool
        Whether files may be read that can run code. Only for those you trust.
    """

    model: Model | None = None
    revision: Name | None = None
    device: Device | None = None
    dtype: Dtype | None = None
    backend: Name | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _options_are_of_a_model(self) -> RunConfig:
        self.needs_model(RunConfig.model_fields)
        return self

    @property
    def called(self) -> str:
        """How messages call the model: as it is named, or as a loaded one says it is."""
        return _called(self.model)

    def needs_model(self, keys: Iterable[str]) -> None:
        """Refuse keys about a model to run where none is given.

        Parameters
        ----------
        keys : iterable of str
            A key that has its default value counts as not given, for a resolved configuration
            reads back as the same.

        Raises
        ------
        ValueError
            Naming the first of them.
        """
        every = type(self).model_fields
        given = [
            key
            for key in keys
            if getattr(self, key) != every[key].get_default(call_default_factory=True)
        ]
        if self.model is None and given:
            raise ValueError(f"{given[0]!r} is about a model to run, and no 'model' is given")

    def excludes(self, others: Mapping[str, Any]) -> None:
        """Refuse a section that names a model to run and files of what one said.

        Parameters
        ----------
        others : mapping of str to object
            Keys that stand in place of `model`, with what was given.

        Raises
        ------
        ValueError
            Naming both keys.
        """
        both = [key for key, value in others.items() if value]
        if self.model is not None and both:
            raise ValueError(
                f"'model' and {both[0]!r} are given; expected 'model' to run it, or {both[0]!r} "
                "to read what it said before"
            )


class TextsConfig(ItemsConfig):
    """A table of texts that a model can embed.

    Attributes
    ----------
    text : str, optional
        Column of the text; the id unless given.
    templates : str or list of str, optional
        Name of a list of templates, or templates such as "a photo of a {}.": the unit vectors of
        one text in all of them are averaged. The text as it is unless given.
    """

    text: Name | None = None
    templates: Templates = AS_IT_IS
