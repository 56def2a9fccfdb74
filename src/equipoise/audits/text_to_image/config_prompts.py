"""The prompts of an audit of text-to-image models: attributes, targets, and what is put in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from equipoise.audits.config_fields import Name, Section
from equipoise.data.lexicons import lexicon

Texts = Mapping[str, tuple[str, ...]]
ByCategory = Mapping[str, Texts]

_Count = Annotated[int, Field(ge=1, le=100_000)]


def _texts(value: object) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given:
        raise ValueError("expected a text, or a list of texts")
    for one in given:
        if not isinstance(one, str) or not one.strip():
            raise ValueError(f"expected texts that are not empty, not {one!r}")
    if twice := sorted({one for one in given if [*given].count(one) > 1}):
        raise ValueError(f"{twice[0]!r} appears more than once")
    return tuple(given)


def _sets(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping of names to texts")
    return {str(name): _texts(texts) for name, texts in value.items()}


def _targets(value: object) -> object:
    """Take a list of texts, or lists or mappings of names to texts by category, in one form."""
    if isinstance(value, list | tuple):
        return {"": {text: (text,) for text in _texts(value)}}
    if not isinstance(value, Mapping):
        raise ValueError("expected a list of texts, or such lists by category")
    found = {}
    for category, given in value.items():
        if isinstance(given, Mapping):
            found[str(category)] = {str(name): _texts(texts) for name, texts in given.items()}
        else:
            found[str(category)] = {text: (text,) for text in _texts(given)}
    names = [name for texts in found.values() for name in texts]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"the target {twice[0]!r} appears more than once")
    return found


class CountsConfig(Section):
    """How many images are made.

    Attributes
    ----------
    attributes, targets : int
        Of each prompt of an attribute, and of each of a target.
    """

    attributes: _Count = 16
    targets: _Count = 20


class PromptsConfig(Section):
    """What images are asked for.

    Attributes
    ----------
    lexicon : str, optional
        Prompts with a source: attributes, targets by category, `template` and `images` where
        these are not given.
    attributes : mapping of str to list of str
        Texts of each set of attributes, such as "a man" and "a boy".
    targets : list of str, or mapping
        What is neutral of attributes: texts; or by category texts, or names with their texts.
    template : str
        What a text is put into; "{}" stands for it.
    images : mapping
        `attributes` and `targets`: images of each of their prompts.
    """

    lexicon: Literal["mandal_2024_prompts"] | None = None
    attributes: Annotated[Any, BeforeValidator(_sets)] = Field(default_factory=dict)
    targets: Annotated[Any, BeforeValidator(_targets)] = Field(default_factory=dict)
    template: Name | None = None
    images: CountsConfig | None = None

    @model_validator(mode="after")
    def _has_prompts(self) -> PromptsConfig:
        if self.template is not None and self.template.count("{}") != 1:
            raise ValueError(
                f"template: expected a text with one '{{}}', where a text goes, not "
                f"{self.template!r}"
            )
        if not self.target_texts:
            raise ValueError("targets: required, and missing; or name a 'lexicon'")
        clash = sorted({*self.attribute_texts} & {*self.target_names})
        if clash:
            raise ValueError(f"{clash[0]!r} is an attribute and a target; rename one of them")
        return self

    @property
    def attribute_texts(self) -> Texts:
        """Prompts of each set of attributes."""
        given: Texts = self.attributes
        if not given and self.lexicon is not None:
            given = lexicon(self.lexicon).section("attributes")
        return {name: tuple(map(self.filled, texts)) for name, texts in given.items()}

    @property
    def target_texts(self) -> ByCategory:
        """Prompts of each target, by category."""
        given: ByCategory = self.targets
        if not given and self.lexicon is not None:
            by_category = lexicon(self.lexicon).content["targets"]
            given = {
                category: {text: (text,) for texts in sides.values() for text in texts}
                for category, sides in by_category.items()
            }
        return {
            category: {name: tuple(map(self.filled, texts)) for name, texts in named.items()}
            for category, named in given.items()
        }

    @property
    def target_names(self) -> tuple[str, ...]:
        """Targets of all categories."""
        return tuple(name for named in self.target_texts.values() for name in named)

    @property
    def counts(self) -> CountsConfig:
        """Images of each prompt."""
        if self.images is not None:
            return self.images
        if self.lexicon is None:
            return CountsConfig()
        found = lexicon(self.lexicon).content
        return CountsConfig(
            attributes=found["images_per_attribute"], targets=found["images_per_target"]
        )

    @property
    def texts(self) -> Mapping[str, str]:
        """Every prompt, with "attributes" or "targets": what it is asked for as first."""
        found = {text: "attributes" for one in self.attribute_texts.values() for text in one}
        for named in self.target_texts.values():
            for texts in named.values():
                for text in texts:
                    found.setdefault(text, "targets")
        return found

    def filled(self, text: str) -> str:
        """Return a text in the template."""
        template = self.template
        if template is None and self.lexicon is not None:
            template = f"{lexicon(self.lexicon).content['prefix']} {{}}"
        return text if template is None else template.replace("{}", text)
