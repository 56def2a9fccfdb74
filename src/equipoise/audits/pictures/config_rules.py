"""The section `rules`: declared choices of what groups, labels and images a data set has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from equipoise.audits.config_fields import FilePath, Label, Labels, Name, Section
from equipoise.audits.pictures.config_terms import (
    EVERY_SIZE,
    NeutralMeans,
    Several,
    Size,
    Terms,
)
from equipoise.audits.pictures.rule_files import (
    class_mapping,
    leave_out_images,
    leave_out_labels,
    leave_out_visual_genome_of,
)
from equipoise.data import (
    BandGroups,
    BoxGroups,
    CaptionGroups,
    CollapseRows,
    IdsFrom,
    LeaveOutUnlabelled,
    Rule,
    ValueGroups,
    continents,
    hall_boxes,
    hall_captions,
    income_bands,
)


class RuleSection(Section):
    """A declared choice: the name of its rule, and its parameters as in `equipoise.data`."""

    makes: ClassVar[Callable[..., Any]]
    rule: str

    def made(self, base: Path) -> Rule:
        """Return the rule; a file is read relative to `base`.

        Raises
        ------
        InputError
            When parameters contradict each other.
        DataError
            When a file cannot be read.
        """
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "rule"}
        if given.get("file") is not None:
            given["file"] = base / given["file"]
        if "size" in given:
            given["size"] = given["size"].size()
        rule: Rule = type(self).makes(**given)
        return rule


class _Declared(RuleSection):
    """A rule that reads no file, so that it can be checked with the configuration."""

    @model_validator(mode="after")
    def _can_be_made(self) -> _Declared:
        self.made(Path())
        return self


class CaptionGroupsRule(_Declared):
    """Groups by terms in any caption, as whole words without case."""

    makes = CaptionGroups
    rule: Literal["caption_groups"]
    attribute: Name
    groups: Terms
    neutral: Labels = ()
    neutral_means: NeutralMeans = "nothing"
    source: str = ""
    version: str = ""


class HallCaptionsRule(_Declared):
    """Perceived gender by captions of COCO, as in Hall et al. 2023."""

    makes = hall_captions
    rule: Literal["hall_captions"]
    parents_and_children: bool = True
    neutral_means: NeutralMeans = "nothing"
    version: str = ""


class BoxGroupsRule(_Declared):
    """Groups by the labels of boxes, under a rule of size."""

    makes = BoxGroups
    rule: Literal["box_groups"]
    attribute: Name
    groups: Terms
    size: Size = EVERY_SIZE
    source: str = ""
    version: str = ""


class HallBoxesRule(_Declared):
    """Perceived gender by boxes of Visual Genome, as in Hall et al. 2023."""

    makes = hall_boxes
    rule: Literal["hall_boxes"]
    size: Size = EVERY_SIZE
    parents_and_children: bool = True
    version: str = ""


class ValueGroupsRule(_Declared):
    """Groups by the values of a column."""

    makes = ValueGroups
    rule: Literal["value_groups"]
    attribute: Name
    column: Name
    groups: Terms
    source: str = ""
    version: str = ""


class ContinentsRule(_Declared):
    """Countries by continent (United Nations, M49)."""

    makes = continents
    rule: Literal["continents"]
    column: Name = "country"
    attribute: Name = "continent"
    version: str = ""


class BandGroupsRule(_Declared):
    """Groups by bands of a number."""

    makes = BandGroups
    rule: Literal["band_groups"]
    attribute: Name
    column: Name
    bounds: Annotated[tuple[float, ...], Field(strict=False, min_length=1)]
    names: Annotated[tuple[Label, ...], Field(strict=False, min_length=1)]
    source: str = ""
    version: str = ""


class IncomeBandsRule(_Declared):
    """Households by monthly income."""

    makes = income_bands
    rule: Literal["income_bands"]
    scheme: Literal["levels", "quartiles"] = "levels"
    column: Name = "income"
    attribute: Name = "income band"
    version: str = ""


class IdsFromRule(_Declared):
    """Images are named by a column."""

    makes = IdsFrom
    rule: Literal["ids_from"]
    column: Name


class LeaveOutImagesRule(RuleSection):
    """Images of some ids are left out: listed, or one a line in a file."""

    makes = leave_out_images
    rule: Literal["leave_out_images"]
    why: Name
    ids: Labels = ()
    file: FilePath | None = None

    @model_validator(mode="after")
    def _one_list(self) -> LeaveOutImagesRule:
        if bool(self.ids) == (self.file is not None):
            given = "both are" if self.ids else "neither is"
            raise ValueError(f"'ids' or 'file': {given} given; expected one of them")
        return self


class LeaveOutLabelsRule(_Declared):
    """Some labels are left out."""

    makes = leave_out_labels
    rule: Literal["leave_out_labels"]
    labels: Several
    why: Name


class LeaveOutUnlabelledRule(_Declared):
    """Images without a label are left out."""

    makes = LeaveOutUnlabelled
    rule: Literal["leave_out_unlabelled"]


class LeaveOutVisualGenomeRule(RuleSection):
    """Images of Visual Genome are left out of COCO, by `image_data.json`."""

    makes = leave_out_visual_genome_of
    rule: Literal["leave_out_visual_genome"]
    file: FilePath


class ClassMappingRule(RuleSection):
    """Labels become the classes of a model, by a file."""

    makes = class_mapping
    rule: Literal["class_mapping"]
    file: FilePath
    name: Name | None = None


class CollapseRowsRule(Section):
    """Rows of one photograph of Dollar Street are one image: how it is read, so before others."""

    rule: Literal["collapse_rows"]
    by: Literal["id", "file"] = "id"

    @property
    def collapse(self) -> CollapseRows:
        """What the reader is told."""
        return CollapseRows(self.by)


RuleConfig = Annotated[
    CaptionGroupsRule
    | HallCaptionsRule
    | BoxGroupsRule
    | HallBoxesRule
    | ValueGroupsRule
    | ContinentsRule
    | BandGroupsRule
    | IncomeBandsRule
    | CollapseRowsRule
    | IdsFromRule
    | LeaveOutImagesRule
    | LeaveOutLabelsRule
    | LeaveOutUnlabelledRule
    | LeaveOutVisualGenomeRule
    | ClassMappingRule,
    Field(discriminator="rule"),
]
"""A rule, told apart by its name."""
