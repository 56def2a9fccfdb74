"""Tables and data sets as checked arrays and groups."""

from equipoise.data.captions import count_captions
from equipoise.data.formats.celeba import read_celeba
from equipoise.data.formats.cifar import read_cifar
from equipoise.data.formats.coco import read_coco, read_coco_captions, read_coco_instances
from equipoise.data.formats.dall_eval import read_dall_eval
from equipoise.data.formats.dollar_street import CollapseRows, read_dollar_street
from equipoise.data.formats.domainnet import read_domainnet
from equipoise.data.formats.dsprites import read_dsprites
from equipoise.data.formats.fairface import read_fairface
from equipoise.data.formats.flickr30k import read_flickr30k
from equipoise.data.formats.genderbias_vl import read_genderbias_vl, read_genderbias_vl_results
from equipoise.data.formats.huggingface import read_huggingface
from equipoise.data.formats.pairs import read_pairs
from equipoise.data.formats.pata import read_pata
from equipoise.data.formats.reading import (
    FORMATS,
    DataFormat,
    RowPictures,
    data_format,
    find_format,
    read_class_mapping,
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
    ClassMapping,
    CropBoxes,
    IdsFrom,
    ImageRecords,
    ImageSet,
    LeaveOutImages,
    LeaveOutLabels,
    LeaveOutUnlabelled,
    RandomSplit,
    Rule,
    Sample,
    Step,
    combine,
    image_set,
    leave_out_visual_genome,
)
from equipoise.data.labels import (
    Choices,
    Coded,
    Items,
    ItemSource,
    LabelSource,
    Outputs,
    load_items,
)
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
    "IdsFrom",
    "ImageRecords",
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
    "RandomSplit",
    "Reading",
    "RowPictures",
    "Rule",
    "Sample",
    "Step",
    "Table",
    "Templates",
    "ValueGroups",
    "Vectors",
    "combine",
    "continents",
    "count_captions",
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
    "read_cifar",
    "read_class_mapping",
    "read_coco",
    "read_coco_captions",
    "read_coco_instances",
    "read_dall_eval",
    "read_dollar_street",
    "read_domainnet",
    "read_dsprites",
    "read_fairface",
    "read_flickr30k",
    "read_genderbias_vl",
    "read_genderbias_vl_results",
    "read_huggingface",
    "read_pairs",
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
