"""Tables and data sets in, one checked and joined form out."""

from equipoise.data.formats.celeba import read_celeba
from equipoise.data.formats.coco import read_coco, read_coco_captions, read_coco_instances
from equipoise.data.formats.dollar_street import CollapseRows, read_dollar_street
from equipoise.data.formats.fairface import read_fairface
from equipoise.data.formats.huggingface import read_huggingface
from equipoise.data.formats.pata import read_pata
from equipoise.data.formats.reading import (
    FORMATS,
    DataFormat,
    RowPictures,
    data_format,
    find_format,
    read_plain,
)
from equipoise.data.formats.social_counterfactuals import read_social_counterfactuals
from equipoise.data.formats.visogender import read_visogender
from equipoise.data.formats.visual_genome import read_visual_genome, read_visual_genome_images
from equipoise.data.groups import (
    ALL_BOXES,
    AT_LEAST_600_PIXELS,
    LARGE_BOXES,
    BandGroups,
    BoxGroups,
    BoxSize,
    CaptionGroups,
    ValueGroups,
    continents,
    hall_boxes,
    hall_captions,
    income_bands,
)
from equipoise.data.image_set import (
    Gathered,
    ImageSet,
    Rule,
    Step,
    image_set,
)
from equipoise.data.image_steps import (
    ClassMapping,
    CropBoxes,
    IdsFrom,
    LeaveOutImages,
    LeaveOutLabels,
    LeaveOutUnlabelled,
    combine,
    leave_out_visual_genome,
    read_class_mapping,
)
from equipoise.data.labels import Items, ItemSource, LabelSource, load_items
from equipoise.data.lexicons import (
    LEXICONS,
    TEMPLATES,
    Lexicon,
    Templates,
    filled,
    lexicon,
    synset_text,
    templates,
)
from equipoise.data.matrices import ArraySource, Matrix, Vectors, load_matrix, load_vectors
from equipoise.data.outputs import Choices, Coded, Outputs
from equipoise.data.predictions import (
    ModelPredictions,
    PredictionData,
    Predictions,
    PredictionSource,
    join_predictions,
    load_predictions,
    read_predictions,
)
from equipoise.data.resolver import Normalization, Reading
from equipoise.data.tables import Table, read_table

__all__ = [
    "ALL_BOXES",
    "AT_LEAST_600_PIXELS",
    "FORMATS",
    "LARGE_BOXES",
    "LEXICONS",
    "TEMPLATES",
    "ArraySource",
    "BandGroups",
    "BoxGroups",
    "BoxSize",
    "CaptionGroups",
    "Choices",
    "ClassMapping",
    "Coded",
    "CollapseRows",
    "CropBoxes",
    "DataFormat",
    "Gathered",
    "IdsFrom",
    "ImageSet",
    "ItemSource",
    "Items",
    "LabelSource",
    "LeaveOutImages",
    "LeaveOutLabels",
    "LeaveOutUnlabelled",
    "Lexicon",
    "Matrix",
    "ModelPredictions",
    "Normalization",
    "Outputs",
    "PredictionData",
    "PredictionSource",
    "Predictions",
    "Reading",
    "RowPictures",
    "Rule",
    "Step",
    "Table",
    "Templates",
    "ValueGroups",
    "Vectors",
    "combine",
    "continents",
    "data_format",
    "filled",
    "find_format",
    "hall_boxes",
    "hall_captions",
    "image_set",
    "income_bands",
    "join_predictions",
    "leave_out_visual_genome",
    "lexicon",
    "load_items",
    "load_matrix",
    "load_predictions",
    "load_vectors",
    "read_celeba",
    "read_class_mapping",
    "read_coco",
    "read_coco_captions",
    "read_coco_instances",
    "read_dollar_street",
    "read_fairface",
    "read_huggingface",
    "read_pata",
    "read_plain",
    "read_predictions",
    "read_social_counterfactuals",
    "read_table",
    "read_visogender",
    "read_visual_genome",
    "read_visual_genome_images",
    "synset_text",
    "templates",
]
