"""Verdicts that must come out as told: limits, element types, attention, operator tables, routes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from flaot.errors import FlaotError, ProblemList, UnsupportedError, UsageError
from flaot.ir.graph import HOST
from flaot.ir.types import DType
from flaot.mapping.legalize import legalize_cpu
from flaot.mapping.policy import policy_of
from tests.mapping.models import chip
from tests.mapping.nets import attention, conv, graph_of, model, op, verdicts

SQUARE = np.ones((16, 16), np.float32)


def kinds(data: bytes, hcd: object, **policy: object) -> dict[str, str]:
    return {name: v.kind for name, v in verdicts(data, hcd, **policy).items()}


def refusal(data: bytes, hcd: object, **policy: object) -> str:
    with pytest.raises(FlaotError) as e:
        verdicts(data, hcd, **policy)
    assert e.value.exit_code == 5
    return str(e.value)


RANK_7 = model([op("Relu", "x", "y", "relu7")], (1,) * 7)
SEQUENCE = model([op("MatMul", "x w", "y", "proj")], (1, 9000, 16), w=SQUARE)
TOKENS = model(
    [op("Gather", "table x", "y", "embed")], (1, 9000), TensorProto.INT64, out=TensorProto.FLOAT, table=np.ones((10, 4), np.float32)
)
FLOAT64 = model([op("Relu", "x", "y", "relu64")], dtype=TensorProto.DOUBLE)

LIMITS = {
    "batch": (conv(batch=600), "node 'conv1' (Conv): a batch of 600; NPU-V3 allows max_batch_size 512 (npu_v3.hcd:10)"),
    "rank": (RANK_7, "node 'relu7' (Relu): a tensor of rank 7; NPU-V3 allows max_rank 6 (npu_v3.hcd:9)"),
    "sequence": (SEQUENCE, "node 'proj' (MatMul): a sequence of 9000; NPU-V3 allows max_sequence_length 8192 (npu_v3.hcd:10)"),
    "tokens": (TOKENS, "node 'embed' (Gather): a sequence of 9000; NPU-V3 allows max_sequence_length 8192 (npu_v3.hcd:10)"),
    "float64": (FLOAT64, "float64 values, which are never narrowed; NPU-V3 lists supported_dtypes int8, float16, bfloat16 (npu_v3.hcd:9)"),
}


@pytest.mark.parametrize("fallback", ["warn", "error"])
@pytest.mark.parametrize("case", LIMITS)
def test_a_broken_limit_is_refused_by_name_and_line(case: str, fallback: str) -> None:
    data, sentence = LIMITS[case]
    message = refusal(data, "npu_v3", fallback=fallback)
    assert sentence in message
    assert "let the host run it with --fallback allow" in message


@pytest.mark.parametrize("case", LIMITS)
def test_the_host_takes_what_breaks_a_limit_where_all_fallback_is_allowed(case: str) -> None:
    data, sentence = LIMITS[case]
    found = verdicts(data, "npu_v3", fallback="allow")
    first = next(v for v in found.values() if v.kind == "fallback")
    assert first.reason in sentence
    assert [o.place for o in first.options] == [HOST]


def test_what_is_within_the_limits_is_native() -> None:
    assert kinds(conv(batch=512), "npu_v3") == {"conv1": "native", "relu1": "native"}
    signal = model([op("Conv", "x w", "y", "signal")], (1, 1, 9000), w=np.ones((4, 1, 3), np.float32))
    assert kinds(signal, "npu_v3") == {"signal": "native"}  # the length of a signal is no sequence


def test_every_refused_node_is_listed() -> None:
    two = model([op("Relu", "x", "a", "one"), op("Sigmoid", "a", "y", "two")], (1,) * 7)
    with pytest.raises(ProblemList) as e:
        verdicts(two, "npu_v3")
    assert [p.where for p in e.value.problems] == ["node 'one' (Relu)", "node 'two' (Sigmoid)"]


# -- attention -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", ["error", "warn", "allow"])
def test_twelve_heads_are_refused_whatever_may_fall_back(fallback: str) -> None:
    message = refusal(attention(12), "npu_v2", fallback=fallback)
    assert "node 'att' (Attention): 12 heads; the unit attention of NPU-V2 lists 1, 2, 4, 8 (npu_v2.hcd:5)" in message
    assert "--allow-expand Attention" in message and "--route Attention=host" in message


def test_twelve_heads_are_allowed_by_name() -> None:
    found = verdicts(attention(12), "npu_v2", allow_expand=["Attention"])["att"]
    assert (found.kind, found.op, found.options[0].place.unit) == ("expanded", "Attention", "fp16")
    assert found.origin == "npu_v2.hcd:5"
    assert kinds(attention(12), "npu_v2", routes=["Attention=host"]) == {"att": "fallback"}


def test_eight_heads_run_on_the_attention_unit() -> None:
    found = verdicts(attention(8), "npu_v2")["att"]
    assert (found.kind, found.options[0].place.unit, found.options[0].place.dtype) == ("native", "attention", DType.float16)


def test_a_longer_sequence_than_the_attention_unit_takes_is_refused() -> None:
    assert "a sequence of 2049; the unit attention of NPU-V2 allows max_sequence_length 2048" in refusal(attention(8, 2049), "npu_v2")


def test_one_figure_of_the_descriptor_moves_the_verdict() -> None:
    assert kinds(attention(12), chip("npu_v2", ("[1, 2, 4, 8]", "[1, 2, 4, 8, 12]"))) == {"att": "native"}
    assert "a batch of 32; NPU-V3 allows max_batch_size 16" in refusal(conv(batch=32), chip("npu_v3", ("size: 512", "size: 16")))


def test_a_chip_without_an_attention_unit_expands_attention() -> None:
    assert kinds(attention(12), chip("npu_v2", ("enabled: true", "enabled: false"))) == {"att": "expanded"}


# -- element types ---------------------------------------------------------------------------------------------------------


def test_a_removed_dtype_is_not_used() -> None:
    no_int8 = chip("npu_v3", ("float16, int8, bfloat16", "float16, bfloat16"), ("  int8: {count: 512, peak_tops: 51.2}\n", ""))
    moved = model([op("Transpose", "x", "y", "turn", perm=[0, 2, 3, 1])], dtype=TensorProto.INT8)
    assert kinds(moved, "npu_v3") == {"turn": "native"}
    found = verdicts(moved, no_int8)["turn"]
    assert (found.kind, found.origin) == ("fallback", "npu_v3.hcd:8")
    assert found.reason == "int8 values; NPU-V3 lists supported_dtypes float16, bfloat16"


def test_the_most_exact_type_comes_first_and_emulation_says_so() -> None:
    emulated = chip("npu_v3", ("memory_alignment_bytes: 256", "memory_alignment_bytes: 256, bfloat16_emulation: true"))
    assert [o.place.dtype for o in verdicts(conv(), "npu_v3")["conv1"].options[:-1]] == [DType.float16]
    found = verdicts(conv(), emulated)["conv1"]
    assert [(o.place.dtype, o.emulated) for o in found.options[:-1]] == [(DType.float16, False), (DType.bfloat16, True)]
    assert found.answer.note(found.options[1].place) == "bfloat16 is emulated by way of float32 on unit fp16 (npu_v3.hcd:10)"


def test_high_precision_is_refused_rather_than_degraded() -> None:
    message = refusal(conv(relu=False), "npu_v3", precision="high")
    assert "node 'conv1' (Conv): the unit fp16 of NPU-V3 computes float32 in float16; --precision high keeps float32" in message
    assert "npu_v3.hcd:3" in message
    exact = chip("npu_v3", ("  fp16: {", "  fp32: {"), ("[float16, int8, bfloat16]", "[float32, float16, int8]"))
    assert verdicts(conv(), exact, precision="high")["conv1"].options[0].place.dtype is DType.float32


# -- operator tables -------------------------------------------------------------------------------------------------------


def test_what_a_table_does_not_list_is_denied() -> None:
    gelu = model([op("Sin", "x", "y", "wave")])
    found = verdicts(gelu, "edge_dsp")["wave"]
    assert (found.kind, found.reason, found.origin) == ("fallback", "Edge-DSP does not list Sin among its operators", "edge_dsp.hcd:26")
    assert "edge_dsp.hcd:26" in refusal(gelu, "edge_dsp", fallback="error")


ATTRIBUTES = {
    "kernel": (conv(9), "kernel_shape is [9, 9]; at most 7 is allowed: the line buffer holds 7 rows"),
    "strides": (conv(strides=[1, 3]), "strides is [1, 3]; at most 2 is allowed"),
    "dilations": (conv(dilations=[2, 2]), "dilations is [2, 2]; allowed are 1: addresses are generated for dense windows only"),
    "weights": (
        model([op("Conv", "x x", "y", "conv1")], (3, 3, 5, 5)), "input W is not constant; it must be: weights are packed when compiling",
    ),
}


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_attribute_limits_of_a_table(case: str) -> None:
    data, sentence = ATTRIBUTES[case]
    found = verdicts(data, "edge_dsp")["conv1"]
    assert (found.kind, found.reason) == ("fallback", sentence)
    assert kinds(conv(7, strides=[2, 2]), "edge_dsp") == {"conv1": "native", "relu1": "native"}


def test_an_unlisted_operator_is_expanded_into_listed_ones() -> None:
    found = verdicts(model([op("Softmax", "x", "y", "soft", axis=-1)]), "edge_dsp")["soft"]
    assert (found.kind, found.op, found.options[0].place.unit) == ("expanded", "Softmax", "vector")
    assert "the exponential of a whole row does not fit the vector registers" in found.reason
    without = chip("edge_dsp", ("  Exp: {units: [vector]}\n", ""))
    assert verdicts(model([op("Softmax", "x", "y", "soft", axis=-1)]), without)["soft"].kind == "fallback"


def test_axes_count_from_the_back_too() -> None:
    denied = "{supported: false, reason: the exponential of a whole row does not fit the vector registers}"
    last = chip("edge_dsp", (denied, "{units: [vector], requires: [{attribute: axis, one_of: [-1]}]}"))
    assert kinds(model([op("Softmax", "x", "y", "soft", axis=3)]), last) == {"soft": "native"}
    found = verdicts(model([op("Softmax", "x", "y", "soft", axis=1)]), last, fallback="warn")["soft"]
    assert found.kind == "expanded" and found.reason.endswith("axis is 1; allowed are -1")


def test_conditions_hold_only_where_their_case_does() -> None:
    when = "      - {attribute: kernel_shape, at_most: 3, when: {attribute: group, at_least: 2}, reason: small windows by channel}\n"
    limited = chip("edge_dsp", ("      - {attribute: strides, at_most: 2}\n", when))
    assert kinds(conv(5), limited)["conv1"] == "native"
    found = verdicts(conv(5, channels=4, group=4), limited)["conv1"]
    assert found.reason == "kernel_shape is [5, 5]; at most 3 is allowed: small windows by channel"


# -- routes ----------------------------------------------------------------------------------------------------------------


def test_routes_by_operator_name_and_pattern() -> None:
    assert kinds(conv(), "npu_v3", routes=["Relu=host"]) == {"conv1": "native", "relu1": "fallback"}
    assert kinds(conv(), "npu_v3", routes=["conv?=host"]) == {"conv1": "fallback", "relu1": "native"}
    both = verdicts(conv(), "npu_v3", routes=["relu1=NPU-V3.fp16", "Relu=host"])["relu1"]
    assert (both.kind, [str(o.place) for o in both.options]) == ("native", ["NPU-V3.fp16"])  # by name wins, and the host is no option


def test_a_route_to_a_chip_that_cannot_is_refused() -> None:
    sums = model([op("CumSum", "x axis", "y", "sum")], axis=np.array(1))
    assert kinds(sums, "npu_v3") == {"sum": "fallback"}
    message = refusal(sums, "npu_v3", routes=["CumSum=npu_v3"])
    assert "node 'sum' (CumSum): routed to NPU-V3 by --route CumSum=npu_v3, which cannot run it: no unit of NPU-V3 runs CumSum" in message
    assert "the unit int8 does not run Conv (npu_v3.hcd:4)" in refusal(conv(), "npu_v3", routes=["Conv=npu_v3.int8"])


def test_a_route_to_a_chip_may_expand() -> None:
    soft = model([op("Softmax", "x", "y", "soft", axis=-1)])
    found = verdicts(soft, "edge_dsp", routes=["soft=edge_dsp"])["soft"]
    assert (found.kind, [o.place.device for o in found.options]) == ("expanded", ["Edge-DSP"])
    assert "routed to Edge-DSP" in refusal(soft, "edge_dsp", routes=["soft=edge_dsp.vector"])


def test_preferred_and_excluded_devices() -> None:
    preferred = verdicts(conv(), "npu_v3", prefer="host")["conv1"].options
    assert [(o.place.device, o.penalty > 0) for o in preferred] == [("NPU-V3", True), ("host", False)]
    assert kinds(conv(), "npu_v3", exclude=["npu_v3"]) == {"conv1": "fallback", "relu1": "fallback"}
    assert {o.place.device for o in verdicts(conv(), "npu_v3", exclude=["host"])["conv1"].options} == {"NPU-V3"}
    sums = model([op("CumSum", "x axis", "y", "sum")], axis=np.array(1))
    assert "the host, which could run it, is excluded" in refusal(sums, "npu_v3", exclude=["host"])


def test_a_route_that_names_nothing_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="--route conv2=host: the model has no node or operator 'conv2'; did you mean 'conv1'"):
        verdicts(conv(), "npu_v3", routes=["conv2=host"])


# -- CPUs ------------------------------------------------------------------------------------------------------------------


def on_cpu(data: bytes, hcd: object) -> dict[str, str]:
    graph = graph_of(data)
    found = legalize_cpu(graph, hcd, policy_of(hcd))  # type: ignore[arg-type]
    return {name: found[n.id].kind for n in graph.nodes() for name in n.origin}


def test_a_cpu_runs_everything_unless_its_descriptor_limits_it() -> None:
    plain = chip("generic_cpu")
    assert on_cpu(conv(batch=600), plain) == {"conv1": "native", "relu1": "native"}
    assert on_cpu(attention(12), plain) == {"att": "expanded"}
    small = chip("generic_cpu", ("constraints: {", "constraints: {max_batch_size: 4, "))
    with pytest.raises(UnsupportedError, match=r"generic_cpu allows max_batch_size 4 \(generic_cpu.hcd:7\); split the batch$"):
        on_cpu(conv(batch=600, relu=False), small)
    table = "operators: {Conv: {}, Sub: {}, Div: {}, ReduceMax: {}, ReduceSum: {}, Exp: {}}\n"
    listed = chip("generic_cpu", ("constraints:", table + "constraints:"))
    with pytest.raises(UnsupportedError, match="generic_cpu does not list Relu among its operators") as e:
        on_cpu(conv(), listed)
    assert "fallback" not in str(e.value)
    assert on_cpu(model([op("Softmax", "x", "y", "soft", axis=-1)]), listed) == {"soft": "expanded"}
