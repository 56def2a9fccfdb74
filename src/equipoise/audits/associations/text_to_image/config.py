"""The configuration of an audit of text-to-image models."""

from collections.abc import Iterable, Mapping
from itertools import chain, product, repeat
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PositiveInt,
    model_validator,
)

from equipoise.audits.config import AuditConfig, file_names
from equipoise.config.fields import (
    AS_IT_IS,
    ArrayConfig,
    CsvConfig,
    Distinct,
    GeneratorSection,
    Guidance,
    ImageTable,
    Label,
    Labels,
    Listed,
    Models,
    Name,
    OneOrMore,
    RunConfig,
    Section,
    Share,
    Table,
    Templates,
    Text,
    among,
    by_name,
    columns_of,
    distinct,
    matching,
    one_state_each,
    only_one,
    several,
)
from equipoise.config.images import DataSetTable
from equipoise.data.lexicons import PLACE, filled, lexicon
from equipoise.metrics.labels.reference import ReferenceKind

Count = Annotated[int, Field(ge=1, le=100_000)]


def _by_category(value: object) -> object:
    """Take a list of texts, or lists or mappings of names to texts by category, in one form."""
    by_category = {**value} if isinstance(value, Mapping) else {"": value}
    for category, texts in by_category.items():
        if isinstance(texts, list | tuple):
            by_category[category] = by_name(texts, lambda text: [text])
    return by_category


def _one_place(template: str) -> str:
    """Refuse a template without a place for a text, or with several."""
    if template.count(PLACE) != 1:
        raise ValueError(f"expected a text with one '{PLACE}', where a text goes, not {template!r}")
    return template


Template = Annotated[Name, AfterValidator(_one_place)]
Prompt = Annotated[str, matching(r"\S", "a text that is not empty")]
Texts = Mapping[Label, OneOrMore[Prompt]]
ByCategory = Mapping[Label, Texts]


class CountsConfig(Section):
    """How many images are made.

    Attributes
    ----------
    attributes, targets : int
        Of each prompt of an attribute, and of each of a target.
    """

    attributes: Count = 16
    targets: Count = 20


class PromptsConfig(Section):
    """Prompts of attributes and targets.

    Attributes
    ----------
    lexicon : str, optional
        A list of prompts that ships with the package: its attributes, targets and counts where
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
    attributes: Texts = Field(default_factory=dict)
    targets: Annotated[ByCategory, BeforeValidator(_by_category)] = Field(default_factory=dict)
    template: Template | None = None
    images: CountsConfig | None = None

    @model_validator(mode="after")
    def _check_text_to_image_prompts(self) -> Self:
        if not self.target_names:
            raise ValueError("targets: required, and missing; or name a 'lexicon'")
        distinct((*self.attribute_texts, *self.target_names))
        return self

    def with_attributes(self, attributes: Texts) -> Self:
        """Return the prompts with other texts of some sets of attributes."""
        if not attributes:
            return self
        texts = self.attributes or self._content.get("attributes", {})
        return self.model_copy(update={"attributes": {**texts, **attributes}})

    @property
    def _content(self) -> Mapping[str, Any]:
        """The list of prompts; empty without a lexicon."""
        return {} if self.lexicon is None else lexicon(self.lexicon).content

    @property
    def attribute_texts(self) -> Texts:
        """Prompts of each set of attributes."""
        return self._filled(self.attributes or self._content.get("attributes", {}))

    @property
    def words(self) -> Texts:
        """Words of the lexicon for its sets of attributes."""
        words = {} if self.attributes else self._content.get("text_attributes", {})
        return {name: tuple(words[name]) for name in self.attribute_texts if name in words}

    @property
    def sides(self) -> Mapping[str, tuple[str, ...]]:
        """Targets of the lexicon by the set of attributes that it has them go with."""
        targets = dict[str, tuple[str, ...]]()
        for sides in {} if self.targets else self._content.get("targets", {}).values():
            for side, texts in sides.items():
                targets[side] = (*targets.get(side, ()), *texts)
        return targets

    @property
    def target_texts(self) -> ByCategory:
        """Prompts of each target, by category."""
        targets: dict[str, Texts] = {**self.targets}
        if not targets:
            for category, sides in self._content.get("targets", {}).items():
                targets[category] = {text: (text,) for text in chain(*sides.values())}
        return {category: self._filled(texts) for category, texts in targets.items()}

    @property
    def target_names(self) -> tuple[str, ...]:
        """Targets of all categories."""
        return tuple(chain(*self.target_texts.values()))

    @property
    def counts(self) -> CountsConfig:
        """Images of each prompt."""
        content = self._content
        if self.images is not None or not content:
            return self.images or CountsConfig()
        return CountsConfig(
            attributes=content["images_per_attribute"], targets=content["images_per_target"]
        )

    @property
    def owners(self) -> list[tuple[str, str]]:
        """Every prompt with each target and set of attributes that it is of."""
        owners = list[tuple[str, str]]()
        for texts_by_name in (self.attribute_texts, *self.target_texts.values()):
            for name, texts in texts_by_name.items():
                owners += zip(texts, repeat(name))
        return owners

    @property
    def texts(self) -> Mapping[str, str]:
        """Every prompt with its first role, "attributes" or "targets"."""
        roles = dict.fromkeys(chain(*self.attribute_texts.values()), "attributes")
        for texts_by_target in self.target_texts.values():
            for text in chain(*texts_by_target.values()):
                roles.setdefault(text, "targets")
        return roles

    def _filled(self, texts: Texts) -> Texts:
        template = self.template or f"{self._content.get('prefix', '')} {PLACE}".strip()
        return _fill(template, texts)


def _fill(template: str, texts: Texts) -> Texts:
    """Return every text put into a template."""
    return {
        name: tuple(filled(template, text) for text in set_texts)
        for name, set_texts in texts.items()
    }


class ImagesConfig(ImageTable, DataSetTable):
    """Images that were made elsewhere: one row for each requested image.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines.
    format : str, optional
        Of a data set whose file or folder `table` names.
    id, prompt : str
        Columns that name the image, and hold its prompt word for word.
    path : str, optional
        Column of the image's file; needed where a model is to look at the images.
    root : path, optional
        Folder that files are relative to; that of the configuration unless given.
    state : str, optional
        Column of what became of it; every row has an image without it.
    made : list of str
        States of images that exist.
    refused : list of str
        States of images that the model refused to make or show; others failed.
    seed : str, optional
        Column of the noise: images of one seed are resampled together.
    guidance : str, optional
        Column of the strength of guidance: each value is audited by itself.
    missing, encoding, delimiter
        As of other tables.
    """

    prompt: Name = "prompt"
    state: Name | None = None
    made: Labels = ("image",)
    refused: Labels = ("refused",)
    seed: Name | None = None
    guidance: Name | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Required columns other than the id."""
        return columns_of([], self.prompt, self.path, self.state, self.seed, self.guidance)


class GeneratorConfig(GeneratorSection):
    """One model that makes images, or images that it made elsewhere.

    Attributes
    ----------
    guidance : float or list of float
        Strength of guidance; of several, each is audited by itself, and their curve is shown.
    attributes : mapping of str to list of str
        Sets of attributes whose prompts are others with this model, and their texts.
    at_steps : int, "last", or list of these
        Denoising steps before the last at which images and latents are audited, too. The final
        image always is: `last` adds nothing.
    images : mapping, optional
        Images made elsewhere, in place of `model`.
    """

    guidance: OneOrMore[Guidance] = (7.5,)
    attributes: Texts = Field(default_factory=dict)
    at_steps: Annotated[Distinct[PositiveInt | Literal["last"]], BeforeValidator(several)] = ()
    images: ImagesConfig | None = None

    @model_validator(mode="after")
    def _check_text_to_image_generator(self) -> Self:
        only_one(self, "model", "images")
        self.needs_model({*type(self).model_fields} - {"images", "attributes"})
        for guidance in self.guidance if self.model is not None else ():
            self.sampling_at(guidance)
        if late := [step for step in self.passes if step >= self.steps]:
            raise ValueError(
                f"at_steps: expected steps before the last of {self.steps}, or 'last', not "
                f"{late[0]}"
            )
        return self

    @property
    def passes(self) -> tuple[int, ...]:
        """Steps before the last, in ascending order."""
        return tuple(sorted(step for step in self.at_steps if step != "last"))


class ModelConfig(RunConfig):
    """A model that looks at the images: how to run it, or the vectors that it gave.

    Attributes
    ----------
    images : mapping of str to ArrayConfig
        By generator, the vectors of its images.
    texts : ArrayConfig, optional
        The vectors of texts: every prompt, and those of classes; ids are the texts themselves.
    labelled : mapping of str to ArrayConfig
        By entry of `shares` (its `of`), the vectors of the labelled images.
    scale : float, optional
        What makes a logit of a cosine, for probabilities of classes: the model's own where it is
        run, 100 unless given.
    """

    of_files = ("images", "texts", "labelled")
    needed = ("images", "texts")
    images: Mapping[Label, ArrayConfig] = {}
    texts: ArrayConfig | None = None
    labelled: Mapping[Label, ArrayConfig] = {}
    scale: Annotated[float, Field(gt=0, strict=False)] | None = None


def _distinct_members(sides: Mapping[str, Labels]) -> tuple[str, ...]:
    """Return the members of all sides, each on one."""
    return distinct(tuple(chain.from_iterable(sides.values())))


class AssociationsConfig(Section):
    """Associations in the space of the encoders.

    Attributes
    ----------
    pairs : list of two str each
        Sets of attributes that targets lean between; the first two unless given. The others are
        the further groups of xMCAS.
    encoders : list of str
        Entries of `models`; all that embed images and texts unless given.
    clusters : str
        What is resampled: `seed`, images of one noise together; or `prompt`, for inference over
        prompts, of which each set of attributes then needs ten.
    neutral : list of str
        Targets that are declared neutral, whose mean |MCAS| is the offset k of xMCAS. Or sets of
        attributes whose prompts are taken as targets: k is the size of their mean MCAS. 0 without.
    texts : mapping of str to list of str
        Words of sets of attributes, in place of the prompts of their images: what images and
        prompts of targets are compared with.
    template : str
        What each text is put into before it is embedded; "{}" stands for it.
    declared_sides : mapping of str to list of str
        Targets by the side that they are declared to go with, for summaries by it.
    centre : list of two float, optional
        Similarity and MCAS of the point whose distance from each target is given beside xMCAS.
    ddof : int
        What standard deviations in summaries subtract from the number of targets.
    average : str
        What is averaged over several encoders for diffusion bias and amplification: `cosines`, or
        the `values` of each.
    """

    neutral: Labels = ()
    texts: Texts = Field(default_factory=dict)
    template: Template = PLACE
    declared_sides: Mapping[Label, Labels] = Field(default_factory=dict)
    centre: Annotated[tuple[float, float], Field(strict=False)] | None = None
    ddof: Literal[0, 1] = 1
    average: Literal["cosines", "values"] = "cosines"
    pairs: Listed[Annotated[tuple[Label, Label], Field(strict=False)]] = ()
    encoders: Labels = ()
    clusters: Literal["seed", "prompt"] = "seed"


class AnswersConfig(DataSetTable):
    """Answers about images.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    format : str, optional
        Of a data set whose file or folder `table` names.
    id, said : str
        Columns of the image's name and of the answer about it.
    missing, encoding, delimiter
        As of other tables.
    """

    id: Name = "image_id"
    said: Name = "said"


class LabelledConfig(ImageTable):
    """Labelled images, to count the errors of a classifier.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    id, label : str
        Columns of the image's name and its class.
    said : str, optional
        Column of the answer about it, where no model runs.
    path : str, optional
        Column of the image's file, where a model is to look at it.
    root : path, optional
        Folder that files are relative to.
    missing, encoding, delimiter
        As of other tables.
    """

    label: Name = "label"
    said: Name | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Required columns other than the id."""
        return columns_of([], self.label, self.said, self.path)


class OutsideSharesConfig(CsvConfig):
    """Shares of the world outside, such as labour statistics.

    Attributes
    ----------
    table : path or data frame
        One row per target and class.
    target, group, value : str
        Columns of the target's name, the class and its share or count.
    kind : "census" or "sample", optional
        Whether the numbers are exact, or counts of a sample. Without it, shares, percentages and
        ratios below 10 are exact, and other whole numbers are counts of a sample.
    name : str
        What the shares are, for the report.
    missing, encoding, delimiter
        As of other tables.
    """

    table: Table
    target: Name = "target"
    group: Name = "group"
    value: Name = "value"
    kind: ReferenceKind | None = None
    name: str = "outside shares"


class SharesConfig(Section):
    """One question about images of neutral prompts: which classes they show.

    Attributes
    ----------
    of : str
        What the classes are of, such as "perceived gender".
    classes : mapping of str to list of str
        The classes. Of each, the texts of a zero-shot classifier, or the answers that mean it.
    model : str, optional
        Entry of `models` that is asked: a dual encoder, or a model that answers `question`.
    question : str, optional
        What a model that answers is asked about each image.
    templates : str or list of str
        What the texts of a zero-shot classifier are put into.
    least : float
        Images whose likeliest class has a smaller probability are "unknown".
    said : mapping of str to mapping
        By generator, answers about its images, in place of `model`.
    no_person : list of str
        Classes of images without anybody: they are no part of the shares, and counted.
    unknown, refused : list of str
        Answers that are none, and refusals of the model that is asked.
    labelled : mapping, optional
        Images whose class is known; nothing is corrected without them.
    outside : mapping or "uniform", optional
        Shares to compare with.
    max_condition : float
        Condition number of the confusion matrix above which nothing is estimated.
    min_labelled : int
        Labelled images that each class needs.
    """

    of: Name
    classes: Texts
    model: Label | None = None
    question: Name | None = None
    templates: Templates = AS_IT_IS
    least: Share = 0.0
    said: Mapping[Label, AnswersConfig] = {}
    no_person: Labels = ()
    unknown: Labels = ("unknown",)
    refused: Labels = ()
    labelled: LabelledConfig | None = None
    outside: OutsideSharesConfig | Literal["uniform"] | None = None
    max_condition: Annotated[float, Field(gt=1, strict=False)] = 20.0
    min_labelled: PositiveInt = 10

    @model_validator(mode="after")
    def _check_text_to_image_shares(self) -> Self:
        without = self.labelled is not None and self.labelled.said is None
        refused = {
            "'model' or 'said': expected one of them": (self.model is None) == (not self.said),
            "labelled.said: required, and missing: the answers about these images": self.said
            and without,
            f"no_person: expected some of {[*self.classes]}": {*self.no_person} - {*self.classes},
            "classes: expected at least two, not counting 'no_person'": len(self.compared) < 2,
        }
        for message, wrong in refused.items():
            if wrong:
                raise ValueError(message)
        one_state_each((), self.unknown, self.refused)
        return self

    @property
    def zero_shot(self) -> bool:
        """Whether a dual encoder classifies the images."""
        return self.model is not None and self.question is None

    @property
    def source(self) -> str:
        """The source of the classes: the zero-shot classifier, or "answers"."""
        return self.model or "" if self.zero_shot else "answers"

    @property
    def compared(self) -> tuple[str, ...]:
        """Classes that are compared."""
        return tuple(name for name in self.classes if name not in self.no_person)


class Config(AuditConfig):
    """The configuration of an audit of text-to-image models; see docs/audits/text_to_image.md.

    Attributes
    ----------
    prompts : PromptsConfig
    generators : mapping of str to GeneratorConfig
        Side by side.
    models : mapping of str to ModelConfig
        Those that look at the images.
    associations : AssociationsConfig, optional
        Null to measure none.
    shares : list of SharesConfig
    """

    audit: Literal["text_to_image"]
    prompts: PromptsConfig
    generators: Models[GeneratorConfig]
    models: Mapping[Text, ModelConfig] = {}
    associations: AssociationsConfig | None = AssociationsConfig()
    shares: Listed[SharesConfig] = ()

    @model_validator(mode="after")
    def _check_text_to_image(self) -> Self:
        file_names(self.generators)
        if self.pairs and not self.models:
            raise ValueError(
                "models: required, and missing: a model that embeds the images and prompts"
            )
        if not self.pairs and not self.shares:
            raise ValueError(
                "nothing to measure: expected two sets of prompts.attributes, or an entry of shares"
            )
        for index, pair in enumerate(self.pairs):
            among(f"associations.pairs[{index}]", distinct(pair), self.prompts.attribute_texts)
        for name, generator in self.generators.items():
            sets = self.prompts.attribute_texts
            among(f"generators.{name}.attributes", generator.attributes, sets)
        if self.associations is not None:
            self._check_associations(self.associations)
        self._check_names()
        return self

    def _check_associations(self, section: AssociationsConfig) -> None:
        sets, targets = self.prompts.attribute_texts, self.prompts.target_names
        among("associations.encoders", section.encoders, self.models)
        among("associations.texts", section.texts, sets)
        further = [name for name in sets if name not in chain.from_iterable(self.pairs)]
        allowed = further if {*section.neutral} & {*further} else (*targets, *further)
        among("associations.neutral", section.neutral, allowed)
        among("associations.declared_sides", _distinct_members(section.declared_sides), targets)
        for generator, name in product(self.generators, sets if self.over_prompts else ()):
            prompts = self.prompts_of(generator).attribute_texts[name]
            texts = self.compared_texts(generator)[name]
            for kind, n in (("prompts", len(prompts)), ("texts", len(texts))):
                if n < 10:
                    raise ValueError(
                        f"associations.clusters: prompt needs ten {kind} of each set of "
                        f"attributes, and {name!r} has {n}"
                    )

    def _check_names(self) -> None:
        share_names: list[str] = []
        for index, share in enumerate(self.shares):
            among(f"shares[{index}].model", share.model, self.models)
            among(f"shares[{index}].said", share.said, self.generators)
            if share.of in share_names:
                raise ValueError(f"shares[{index}].of: {share.of!r} is there twice")
            share_names.append(share.of)
        for name, model in self.models.items():
            among(f"models.{name}.images", model.images, self.generators)
            among(f"models.{name}.labelled", model.labelled, share_names)

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of the generators."""
        return (*self.generators,)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the pairs and of the shares, for the gate."""
        return (*(" against ".join(pair) for pair in self.pairs), *(s.of for s in self.shares))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Sets of attributes that targets lean between."""
        names = (*self.prompts.attribute_texts,)
        if self.associations is None or len(names) < 2:
            return ()
        return self.associations.pairs or ((names[0], names[1]),)

    def prompts_of(self, generator: str) -> PromptsConfig:
        """Return the prompts of a model's images."""
        return self.prompts.with_attributes(self.generators[generator].attributes)

    @property
    def words(self) -> Texts:
        """Words of sets of attributes, which stand in place of the prompts of their images."""
        declared = {} if self.associations is None else self.associations.texts
        return {**self.prompts.words, **declared}

    @property
    def declared_sides(self) -> Mapping[str, tuple[str, ...]]:
        """Targets by the side that they are declared to go with."""
        declared = {} if self.associations is None else self.associations.declared_sides
        return declared or self.prompts.sides

    @property
    def texts(self) -> Mapping[str, str]:
        """Every text of associations as encoders embed it, with the text itself.

        Prompts of attributes come first, then those of targets and words.
        """
        attributes = (self.prompts_of(name).attribute_texts for name in self.generators)
        sets = [*attributes, *self.prompts.target_texts.values(), self.words]
        texts = [*chain.from_iterable(chain.from_iterable(texts.values()) for texts in sets)]
        return dict(zip(self.embedded(texts), texts, strict=True))

    def embedded(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return texts as encoders embed them for associations."""
        template = PLACE if self.associations is None else self.associations.template
        return tuple(filled(template, text) for text in texts)

    def compared_texts(self, generator: str) -> Texts:
        """Return the texts of each set of attributes: words, or the prompts of its images."""
        return {**self.prompts_of(generator).attribute_texts, **self.words}

    @property
    def over_prompts(self) -> bool:
        """Whether prompts are resampled, and not seeds."""
        return self.associations is not None and self.associations.clusters == "prompt"

    @property
    def encoders(self) -> tuple[str, ...]:
        """Models that embed images and prompts for associations."""
        if not self.pairs or self.associations is None:
            return ()
        answers = {share.model for share in self.shares if share.question is not None}
        return self.associations.encoders or tuple(n for n in self.models if n not in answers)
