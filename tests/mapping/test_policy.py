"""Words of devices, files of routes, and what is wrong with either."""

from __future__ import annotations

import pytest

from flaot.errors import HcdError, UsageError
from flaot.hcd import load_hcd
from flaot.mapping.policy import device_of, policy_of
from tests.mapping.models import chip

NPU = load_hcd("npu_v3")


@pytest.mark.parametrize("word", ["NPU-V3", "npu-v3", "npu_v3", "NPU_V3", "npu"])
def test_words_for_the_chip(word: str) -> None:
    assert device_of(word, NPU, "") == "NPU-V3"


def test_an_unknown_device_or_unit_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="--route Conv=npu_v4: no device 'npu_v4'; did you mean 'npu_v3'"):
        policy_of(NPU, routes=["Conv=npu_v4"])
    with pytest.raises(UsageError, match="NPU-V3 has no unit 'fp61'; did you mean 'fp16'"):
        policy_of(NPU, routes=["Conv=npu.fp61"])
    with pytest.raises(UsageError, match="host has no unit 'fp16'"):
        policy_of(NPU, routes=["Conv=host.fp16"])
    with pytest.raises(UsageError, match="--allow-expand Atention: no such operator; did you mean 'Attention'"):
        policy_of(NPU, allow_expand=["Atention"])
    with pytest.raises(UsageError, match="--route Conv: expected OP=DEVICE"):
        policy_of(NPU, routes=["Conv"])


def test_fallback_comes_from_the_descriptor_unless_given() -> None:
    strict = chip("npu_v3", ("constraints:", "policy: {fallback: error}\nconstraints:"))
    assert policy_of(NPU).fallback == "warn"
    assert policy_of(strict).fallback == "error"
    assert policy_of(strict, fallback="allow").fallback == "allow"


def test_a_device_must_be_left() -> None:
    with pytest.raises(UsageError, match="no device is left"):
        policy_of(NPU, exclude=["host", "npu_v3"])
    with pytest.raises(UsageError, match="no device is left"):
        policy_of(load_hcd("generic_cpu"), exclude=["generic_cpu"])
    with pytest.raises(UsageError, match="--prefer npu: that device is excluded"):
        policy_of(NPU, prefer="npu", exclude=["npu_v3"])


def test_a_file_of_routes_comes_before_the_command_line() -> None:
    policy = policy_of(NPU, routes=["Softmax=npu"], route_file=(b'"/enc*/Gelu": npu_v3.fp16\nSoftmax: host\n', "r.yaml"))
    found = [(r.pattern, r.device, r.unit, r.where) for r in policy.routes]
    assert found == [
        ("/enc*/Gelu", "NPU-V3", "fp16", "r.yaml:1"), ("Softmax", "host", "", "r.yaml:2"), ("Softmax", "NPU-V3", "", "--route Softmax=npu"),
    ]


def test_mistakes_in_a_file_of_routes_name_its_line() -> None:
    with pytest.raises(UsageError, match="r.yaml:2: no device 'npv'"):
        policy_of(NPU, route_file=(b"Conv: host\nRelu: npv\n", "r.yaml"))
    with pytest.raises(UsageError, match="r.yaml:1: expected a device, such as host"):
        policy_of(NPU, route_file=(b"Conv: [host]\n", "r.yaml"))
    with pytest.raises(HcdError, match="r.yaml:2:1: the key 'Conv' for the second time"):
        policy_of(NPU, route_file=(b"Conv: host\nConv: npu\n", "r.yaml"))
