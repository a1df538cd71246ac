"""The real models: every one the spine promises compiles, runs and agrees with onnxruntime; the others are refused by name."""

from __future__ import annotations

import pytest

from flaot.errors import FlaotError
from flaot.hcd.host import features as cpu_features
from tests.models.check import agree, compiled, run
from tests.models.manifest import folder, models

pytestmark = pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")

SUPPORTED = [m for m in models().values() if m.supported]
QUICK_MS = 2.0
"""Models onnxruntime runs within this many milliseconds are compiled in the quick tests too."""


def marked(chip: str) -> list[object]:
    """The models, the long-running ones marked slow."""
    quick = {m.name for m in SUPPORTED if m.row["ort"]["ms_1thread"] <= QUICK_MS}
    return [pytest.param(m.name, id=m.name, marks=[] if m.name in quick and chip == "host" else [pytest.mark.slow]) for m in SUPPORTED]


def test_there_are_28_of_them() -> None:
    assert len(SUPPORTED) == 28
    assert sum(m.row["quant"] == "float16" for m in SUPPORTED) == 3


@pytest.mark.parametrize("name", marked("host"))
def test_agrees_on_host(name: str) -> None:
    model = models()[name]
    agree(model.path, compiled(model.path, "host", model.shapes), model.feeds())


@pytest.mark.skipif("avx2" not in cpu_features(), reason="this CPU has no AVX2")
@pytest.mark.skipif("avx512f" not in cpu_features(), reason="host is the AVX2 chip already")
@pytest.mark.parametrize("name", marked("x86_64_avx2"))
def test_agrees_on_avx2(name: str) -> None:
    model = models()[name]
    agree(model.path, compiled(model.path, "x86_64_avx2", model.shapes), model.feeds())


@pytest.mark.parametrize("name", marked("generic_cpu"))
def test_agrees_on_generic_cpu(name: str) -> None:
    model = models()[name]
    agree(model.path, compiled(model.path, "generic_cpu", model.shapes), model.feeds())


@pytest.mark.slow
@pytest.mark.parametrize("name", [m.name for m in SUPPORTED if m.row["ort"]["ms_1thread"] > QUICK_MS])
def test_two_threads_give_the_bytes_of_one(name: str) -> None:
    model = models()[name]
    plan = compiled(model.path, "host", model.shapes)
    one, two = run(plan, model.feeds()), run(plan, model.feeds(), threads=2)
    assert {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in two.items()}


REFUSED = {
    "neg_match_kws_u8": (3, "/inputlayer/Conv"),
    "neg_superres_ext": (3, "com.microsoft.extensions:DecodeImage"),
    "ddddocr_ocr_dynq": (3, "com.microsoft:DynamicQuantizeLSTM"),
    "tashkeel_bilstm_int8": (3, "com.microsoft:DynamicQuantizeLSTM"),
    "surfaces_gbr_mlp": (5, "ai.onnx.ml"),
    "surfaces_knn_trees": (5, "ai.onnx.ml"),
    "iris_logreg": (5, "ai.onnx.ml"),
    "silero_vad_v6": (5, ""),
}
"""Exit code and a word of the message of what the spine does not promise; a model that starts to compile moves to BEYOND."""

BEYOND = {"kws_m_qdq": 1 / 256, "kws_m_qop": 1 / 256}
"""Models that the spine does not promise and that work all the same, with the step of their quantized output: one is allowed."""


@pytest.mark.parametrize("name", sorted(BEYOND))
def test_agrees_beyond_the_promise(name: str) -> None:
    model = models()[name]
    agree(model.path, compiled(model.path, "host", model.shapes), model.feeds(), step=BEYOND[name])


@pytest.mark.parametrize("name", sorted(set(models()) - {m.name for m in SUPPORTED} - set(BEYOND)))
def test_refused_with_a_reason(name: str) -> None:
    model = models()[name]
    code, word = REFUSED[name]
    with pytest.raises(FlaotError) as refusal:
        compiled(model.path, "host", model.shapes)
    assert refusal.value.exit_code == code
    assert word in str(refusal.value)
