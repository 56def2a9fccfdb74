"""Two writers at the same time: the second is refused, or writes the same bytes."""

import pytest

from tools.soak.locks import clashes
from tools.soak.work import in_process


@pytest.mark.parametrize("case", ["Extraction", "Embeddings of texts"])
def test_the_bytes_of_two_writers_are_right(case, tmp_path):
    assert in_process(clashes, case, tmp_path)[1] == []
