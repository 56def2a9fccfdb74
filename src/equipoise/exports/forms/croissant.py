"""Croissant 1.1 with fields of responsible AI: the findings of an audit of a data set."""

from pathlib import PurePath

from equipoise.core import Fields, RunError
from equipoise.core.types import FileFacts
from equipoise.exports import Files, Form, Run
from equipoise.exports.contents import (
    NO_COMPLIANCE,
    as_json,
    limitations,
    sentences,
    timestamp,
    version,
)

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_FORMATS = {
    ".csv": "text/csv", ".tsv": "text/tab-separated-values", ".json": "application/json",
    ".jsonl": "application/jsonlines", ".parquet": "application/x-parquet",
}  # fmt: skip


def write(run: Run) -> Files:
    """Return the metadata of the data set that was audited."""
    if any(finding.audit != "dataset" for finding in run.result.findings):
        raise RunError(
            f"{run.folder}: it isn't an audit of a data set, which this form describes. "
            "To do: audit the labels themselves, with `audit: dataset`"
        )
    name = run.dataset or PurePath(next(iter(run.result.manifest.inputs), "dataset")).stem
    document: Fields = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "@id": name,
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": name,
        "description": f"Labels by group, audited with equipoise {version(run)}.",
        "datePublished": timestamp(run)[:10],
        "distribution": [_file(path, facts) for path, facts in run.result.manifest.inputs.items()],
        "rai:dataBiases": sentences(run),
        "rai:dataLimitations": [*limitations(run), NO_COMPLIANCE],
    }  # fmt: skip
    return {"croissant.json": as_json(document)}


def _file(path: str, facts: FileFacts) -> Fields:
    name = PurePath(path).name
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "encodingFormat": _FORMATS.get(PurePath(path).suffix.lower(), "application/octet-stream"),
        "sha256": facts["sha256"],
    }


FORM = Form("Croissant 1.1 metadata of a data set, with its biases", write)
