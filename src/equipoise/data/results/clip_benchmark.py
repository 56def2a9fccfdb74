"""Results of CLIP_benchmark: one number for a whole data set, of which no group is known."""

from collections.abc import Iterable

from equipoise.core import DataError
from equipoise.data.results import Files, ResultsReader, Sample


def read(files: Files) -> Iterable[Sample]:
    """Refuse the files, and say what to write instead.

    Raises
    ------
    DataError
        Always: without predictions of images nothing compares groups.
    """
    raise DataError(
        "CLIP_benchmark wrote metrics of the whole data set, and no prediction of an image",
        file=str(files[0]),
        expected="a row for each image, with its label, prediction and groups",
        fix="write what run_classification of clip_benchmark.metrics.zeroshot_classification "
        "returns, logits and true classes, as columns beside the images' groups; or let an audit "
        "run the model (model: 'open_clip:…')",
    )


READER = ResultsReader(
    "CLIP_benchmark",
    "a file that ends in .json, or .csv of several",
    r".*\.(json|csv)",
    read,
    mark=r'"task":\s*"(zeroshot|linear)_|\A(?=[^\n]*\bacc1\b)[^\n]*\bpretrained\b',
)
