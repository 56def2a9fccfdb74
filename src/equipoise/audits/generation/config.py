"""The configuration of an audit of generation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PositiveInt, ValidationInfo, model_validator

from equipoise.audits.config import AuditConfig, group_name
from equipoise.config.fields import (
    ArrayConfig,
    Distinct,
    FilePath,
    Generator,
    GeneratorSection,
    Group,
    Guidance,
    ImageTable,
    ItemsConfig,
    Label,
    Labels,
    Listed,
    Name,
    Names,
    RunConfig,
    Section,
    Share,
    Some,
    Table,
    among,
    given_keys,
)
from equipoise.config.images import PicturesConfig
from equipoise.core import MIN_SIZE, Fields, Strings
from equipoise.counterfactuals import CaptionSets, caption_sets, howard_2024
from equipoise.counterfactuals.captions import ATTRIBUTES_FIRST
from equipoise.counterfactuals.filters import HOWARD_2024, Thresholds
from equipoise.counterfactuals.parts import COARSE
from equipoise.data.formats.reading import read_rows
from equipoise.models.generators import Sampling

_OWN = ("attributes", "prefixes", "combinations", "template", "templates")

Words = Some[Label]
Ends = Annotated[tuple[Share, Share], Field(strict=False)]


def _listed(value: object, info: ValidationInfo) -> object:
    """Take the path of a table for the words of its column `text`."""
    if not isinstance(value, str | Path):
        return value
    rows = read_rows((info.context or {}).get("base", Path()) / value, ("text",), role="subjects")
    return rows.filled("text", "a word in every row")


class CaptionsConfig(Section):
    """Sets of captions: a prefix and a subject with every combination of some attributes.

    Attributes
    ----------
    source : str, optional
        `howard_2024`: those of SocialCounterfactuals, about `subjects` or its own subjects.
    subjects : list of str, or path
        Such as occupations; or a table with a word in each row of its column `text`.
    attributes : mapping of str to list of str
        Type of attribute to its values.
    prefixes : list of str
        What captions start with.
    combinations : list of lists of str, optional
        Types that vary together; all at once unless given.
    template : str
        Where prefix, attributes and subject stand.
    templates : mapping of str to str
        The same for captions with a value that stands elsewhere, by value.
    """

    source: Literal["howard_2024"] | None = None
    subjects: Annotated[Words | None, BeforeValidator(_listed)] = None
    attributes: Mapping[Name, Words] = {}
    prefixes: Words = ("A photo of a",)
    combinations: Listed[Listed[Name]] | None = None
    template: Annotated[str, Field(min_length=1)] = ATTRIBUTES_FIRST
    templates: Mapping[Label, Annotated[str, Field(min_length=1)]] = {}

    @model_validator(mode="after")
    def _check_generation_captions(self) -> Self:
        if self.source is not None:
            for key in given_keys(self, _OWN):
                raise ValueError(f"{key!r} is given, and {self.source} has its own")
        elif not self.subjects or not self.attributes:
            raise ValueError("expected 'subjects' and 'attributes', or a 'source'")
        self.sets()
        return self

    def sets(self) -> CaptionSets:
        """Return the captions.

        Raises
        ------
        InputError
            When words repeat, or a combination names no type of attribute.
        """
        if self.source is not None:
            return howard_2024(self.subjects)
        return caption_sets(
            self.subjects or (),
            self.attributes,
            prefixes=self.prefixes,
            combinations=self.combinations,
            template=self.template,
            templates=self.templates,
        )

    @property
    def types(self) -> Strings:
        """Types of attributes."""
        return ("physical", "race", "gender") if self.source is not None else (*self.attributes,)


class GeneratorConfig(GeneratorSection):
    """The model that makes the images of captions.

    Attributes
    ----------
    candidates : int
        Sets of images of each set of captions.
    shared : list of two numbers, or null
        From which the share of the steps with shared maps of texts is drawn for each candidate;
        null where images of a set share nothing, not even the noise that they start from.
    shared_self : number, or list of two, optional
        The same for maps of images to themselves; none unless given.
    shared_places : int, or null
        Places of the largest map of an image to itself that is shared; null for all.
    guidance : float, or list of two
        Strength of guidance; of two numbers it is drawn between them for each candidate.
    """

    model: Generator
    candidates: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    shared: Ends | None = (0.1, 0.9)
    shared_self: Share | Ends | None = None
    shared_places: PositiveInt | None = COARSE
    guidance: Guidance | Annotated[tuple[Guidance, Guidance], Field(strict=False)] = 7.5

    @model_validator(mode="after")
    def _check_generation_generator(self) -> Self:
        for key in ("shared", "shared_self", "guidance"):
            ends = getattr(self, key)
            if isinstance(ends, tuple) and ends[0] > ends[1]:
                raise ValueError(f"{key}: {[*ends]}; expected the lower number first")
        if self.shared is None and self.shared_self is not None:
            raise ValueError("shared_self: given, and shared is null; expected shares of both")
        _ = self.sampling
        return self

    @property
    def draws(self) -> Fields:
        """Arguments of `request_captions`."""
        keys = ("candidates", "seed", "shared", "shared_self")
        draws: Fields = {key: getattr(self, key) for key in keys}
        guidance = self.guidance if isinstance(self.guidance, tuple) else None
        return draws | {"places": self.shared_places, "guidance": guidance}

    @property
    def sampling(self) -> Sampling:
        """How images are drawn."""
        least = min(self.guidance) if isinstance(self.guidance, tuple) else self.guidance
        return self.sampling_at(least)


class ImagesConfig(ImageTable):
    """Images of sets that exist: in an evidence store, or in a table.

    Attributes
    ----------
    generations : path, optional
        A folder that `equipoise counterfactuals` or an audit wrote.
    table : path or data frame, optional
        CSV, Parquet or JSON lines: a row for each requested image.
    id, set, caption : str
        Columns that name the image and its set, and hold its caption.
    candidate : str, optional
        Column that numbers sets of images of the same captions.
    state, reason : str, optional
        Columns of an image's state, "image" where it exists or a text such as "refused", and the
        reason. Without `state` every row has an image.
    combination : str, optional
        Column of the attributes that vary in the set, joined by "-"; by default those with a
        value.
    subject : str, optional
        Column of the subjects of the sets, to count the kept sets of each.
    path : str, optional
        Column of the image's file; models and the data set of kept sets need it.
    root : path, optional
        Folder that files are relative to; that of the configuration unless given.
    missing, encoding, delimiter
        As of other tables.
    """

    generations: FilePath | None = None
    table: Table | None = None
    set: Name = "set"
    caption: Name = "caption"
    candidate: Name | None = None
    state: Name | None = None
    reason: Name | None = None
    combination: Name | None = None
    subject: Name | None = None

    @model_validator(mode="after")
    def _check_generation_images(self) -> Self:
        if (self.generations is None) == (self.table is None):
            number = "neither is" if self.table is None else "both are"
            raise ValueError(
                f"'generations' or 'table': {number} given; expected a folder of generated images, "
                "or a table of images made elsewhere"
            )
        return self

    @property
    def named(self) -> dict[str, str]:
        """Columns of the table, by the name that the audit uses."""
        keys = ("set", "caption", "candidate", "state", "reason", "combination", "subject", "path")
        return {
            "attributes" if key == "combination" else key: getattr(self, key)
            for key in keys
            if getattr(self, key) is not None
        }


Cosine = Annotated[float, Field(ge=-1, le=1, strict=False)]


def _least(value: object) -> object:
    """Take a number of images or a share of them; 1 could be meant as either."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 2
    if is_count or (isinstance(value, float) and 0 < value <= 1):
        return value
    raise ValueError("expected a number of images from 2, or a share such as 0.75 (1.0: all)")


Least = Annotated[int | float, BeforeValidator(_least)]

PERSON = "a {} person"

FILTERS = ("similarity", "content", "attributes")


class SimilarityConfig(RunConfig):
    """Filter of sets by the similarity of images to captions and to each other.

    Attributes
    ----------
    images : ArrayConfig, optional
        Vectors of the images by id, in place of a dual encoder as `model`.
    captions : ArrayConfig, optional
        Vectors in the same space, by the caption itself.
    threshold : float
        Cosine that an image and its caption must exceed.
    pairs : float, optional
        Cosine that any two images of a set must exceed; null: no check.
    """

    of_files = needed = ("images", "captions")
    images: ArrayConfig | None = None
    captions: ArrayConfig | None = None
    threshold: Cosine = 0.2
    pairs: Cosine | None = 0.2


class ContentConfig(RunConfig):
    """Reject sets with an image that a classifier finds unsafe.

    Attributes
    ----------
    scores : ArrayConfig, optional
        Probabilities by image and label, in place of a classifier as `model`.
    unsafe : list of str
        Labels that count as unsafe.
    threshold : float
        Sum of their probabilities from which on an image is rejected.
    """

    of_files = needed = ("scores",)
    scores: ArrayConfig | None = None
    unsafe: Annotated[Labels, Field(min_length=1)]
    threshold: Share = 0.5


class LabelsConfig(ItemsConfig):
    """Labels by people: whether a set shows its attributes.

    Attributes
    ----------
    table : path or data frame
        A row per set of images, or per image.
    id : str
        Column of candidates, such as `doctor#3`, or of images. A set shows an attribute if all its
        labelled images do.
    columns : mapping of str to str
        Type of attribute to the column of its labels.
    yes, no : list of str
        Texts of the cells.
    missing, encoding, delimiter
        As in other tables. A missing label is ignored.
    """

    columns: Annotated[Mapping[Name, Name], Field(min_length=1)]
    yes: Labels = ("yes", "true", "1")
    no: Labels = ("no", "false", "0")


class AttributesConfig(RunConfig):
    """Keep sets in which enough images look like their own value of each attribute.

    Attributes
    ----------
    images : ArrayConfig, optional
        Vectors of the images by id; by default, and without `model`, those of `similarity`.
    texts : ArrayConfig, optional
        Vectors of the texts of all values, by the text itself.
    templates : str or mapping of str to str
        The text of a value, with "{}" where it goes: of all types of attributes, or of each. "a"
        and "an" before it follow its sound.
    thresholds : str or mapping
        Images of a set that must show their attribute: `howard_2024`, or for each type a whole
        number from 2, or a share (1.0: all); may differ by the attributes that vary together.
    labels : LabelsConfig, optional
        Labels of people, to learn the thresholds that `thresholds` lacks.
    """

    of_files = ("images", "texts")
    images: ArrayConfig | None = None
    texts: ArrayConfig | None = None
    templates: Annotated[str, Field(min_length=1)] | Mapping[Name, str] = PERSON
    thresholds: Literal["howard_2024"] | Mapping[Name, Least | Mapping[Name, Least]] | None = None
    labels: LabelsConfig | None = None

    @model_validator(mode="after")
    def _check_generation_attributes(self) -> Self:
        templates = (
            self.templates.values() if isinstance(self.templates, Mapping) else [self.templates]
        )
        for template in templates:
            if template.count("{}") != 1 or template.count("{") != 1:
                raise ValueError(f"templates: {template!r}; expected one '{{}}' for the value")
        if self.thresholds is None and self.labels is None:
            raise ValueError(
                "expected 'thresholds', such as howard_2024, or 'labels' of people to learn them "
                "from"
            )
        return self

    @property
    def fixed(self) -> Thresholds:
        """Thresholds that aren't learned."""
        if self.thresholds == "howard_2024":
            return HOWARD_2024
        return self.thresholds if isinstance(self.thresholds, Mapping) else {}

    @property
    def shared(self) -> bool:
        """Whether images have the vectors of the filter of similarity."""
        return self.model is None and self.images is None

    def template(self, name: str) -> str:
        """Return the template of a type of attribute."""
        if isinstance(self.templates, Mapping):
            return self.templates.get(name, PERSON)
        return self.templates


class FiltersConfig(Section):
    """The filters, in their order. A filter without a section is off.

    Attributes
    ----------
    similarity : SimilarityConfig, optional
    content : ContentConfig, optional
    attributes : AttributesConfig, optional
    """

    similarity: SimilarityConfig | None = None
    content: ContentConfig | None = None
    attributes: AttributesConfig | None = None

    @model_validator(mode="after")
    def _check_generation_filters(self) -> Self:
        attributes, similarity = self.attributes, self.similarity
        if attributes is None or attributes.model is not None:
            return self
        if attributes.images is None and similarity is None:
            raise ValueError("attributes: expected 'model', 'images', or a filter of similarity")
        ran = attributes.images is None and similarity is not None and similarity.model is not None
        if (attributes.texts is None) != ran:
            raise ValueError(
                "attributes.texts: expected vectors of the values' texts where no model makes them"
            )
        return self


class QualityConfig(RunConfig):
    """Quality of the images, by the features and probabilities of a model.

    Attributes
    ----------
    model : str or model
        A classifier, such as an Inception network, or a dual encoder, which has no probabilities.
    reference : PicturesConfig, optional
        Images that the features are compared with.
    """

    reference: PicturesConfig | None = None

    @model_validator(mode="after")
    def _check_generation_quality(self) -> Self:
        if self.model is None:
            raise ValueError("model: required, and missing: a classifier, or a dual encoder")
        return self


class Config(AuditConfig):
    """The configuration of an audit of generation; see docs/audits/generation.md for every key.

    Attributes
    ----------
    captions : CaptionsConfig, optional
        Captions of the images that `generator` makes.
    generator : GeneratorConfig, optional
    images : ImagesConfig, optional
        Images that exist, in place of both.
    attributes : list of str
        Types of attributes that vary within sets: columns of `images`.
    groups : list of str or list of str
        Attributes to compare by; a list within the list: the intersections. By default, each
        attribute.
    filters : FiltersConfig
    quality : QualityConfig, optional
    min_group_size : int
        Groups of fewer images are shown, and not compared.
    name : str, optional
        Model name in findings; by default the generator's name, or "images".
    gallery : int
        Sets that the report shows of the kept ones, and of those rejected at each stage.
    blur : "all", optional
        Whether these pictures are blurred.
    write_sets : bool or "social_counterfactuals"
        Whether the kept sets are written as a data set, in the store; and whether in the layout of
        the released SocialCounterfactuals.
    """

    models_key: ClassVar[str] = "filters"

    audit: Literal["generation"]
    captions: CaptionsConfig | None = None
    generator: GeneratorConfig | None = None
    images: ImagesConfig | None = None
    attributes: Names = ()
    groups: Distinct[Group] = ()
    filters: FiltersConfig = FiltersConfig()
    quality: QualityConfig | None = None
    min_group_size: PositiveInt = MIN_SIZE
    name: Label | None = None
    gallery: Annotated[int, Field(ge=0, le=100)] = 3
    blur: Literal["all"] | None = None
    write_sets: bool | Literal["social_counterfactuals"] = True

    @model_validator(mode="after")
    def _check_generation(self) -> Self:
        source_keys = [key for key in ("captions", "generator") if getattr(self, key) is not None]
        if self.images is None and len(source_keys) < 2:
            missing = "generator" if source_keys == ["captions"] else "captions"
            raise ValueError(f"{missing}: required, and missing, where there are no 'images'")
        if self.images is not None and source_keys:
            raise ValueError(
                "images: given together with captions or a generator; expected one source"
            )
        if (self.images is None) == bool(self.attributes):
            raise ValueError("attributes: required with 'images': columns that vary within sets")
        images = self.images
        if images is not None and images.table is not None and images.path is None and self.models:
            key = self.model_key(next(iter(self.models)))
            raise ValueError(f"images.path: required, and missing: {key} runs on the images")
        self._check_names()
        return self

    def _check_names(self) -> None:
        types = self.types
        for index, group in enumerate(self.groups):
            among(f"groups[{index}]", group, types)
        checked = self.filters.attributes
        if checked is not None:
            columns = None if checked.labels is None else checked.labels.columns
            among("filters.attributes.labels.columns", columns, types)
            templates = checked.templates if isinstance(checked.templates, Mapping) else ()
            among("filters.attributes.templates", templates, types)
        for index, rule in enumerate(self.gate):
            names = [group_name(attributes) for attributes in self.compared]
            among(f"gate[{index}].groups", group_name(rule.groups or ()) or None, names)

    @property
    def types(self) -> Strings:
        """Types of attributes that vary within sets."""
        return self.captions.types if self.captions is not None else self.attributes

    @property
    def compared(self) -> tuple[Strings, ...]:
        """Attributes to compare by."""
        return self.groups or tuple((name,) for name in self.types)

    @property
    def models(self) -> dict[str, RunConfig]:
        """The filters that run a model, by their name, and the quality."""
        sections = {name: getattr(self.filters, name) for name in FILTERS}
        sections["quality"] = self.quality
        return {name: section for name, section in sections.items() if section and section.model}

    def model_key(self, name: str) -> str:
        """Return the key that names a model."""
        return "quality.model" if name == "quality" else super().model_key(name)

    @property
    def called(self) -> str:
        """Model name in findings."""
        if self.name is not None:
            return self.name
        return "images" if self.generator is None else self.generator.called
