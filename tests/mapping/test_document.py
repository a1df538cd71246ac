"""The generated page of operators."""

from __future__ import annotations

from pathlib import Path

from flaot.mapping.document import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run python -m flaot.mapping.document docs/operators.md"


def test_the_page_says_what_the_descriptors_say() -> None:
    text = page()
    assert "| Conv | native on vector | native on cpu | native on fp16 | native on fp16 |" in text
    assert "| CumSum | on the host | native on cpu | on the host | on the host |" in text
    assert "- Conv: kernel_shape at most 7: the line buffer holds 7 rows" in text
    assert "- Gemm: transA one of false" in text
    assert "| attention | Attention |" in text
