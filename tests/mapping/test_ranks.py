"""No kernel on a chip is handed a tensor of more axes than ``tensor.max_rank`` allows, whatever axes the model's tensors have."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.errors import UnsupportedError
from flaot.hcd import Hcd, load
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from tests.mapping.nets import model, op

INDICES = np.zeros((5, 3), np.int64)
HALVES = np.ones(4, np.float32)

CASES = {
    "GroupNormalization": (model([op("GroupNormalization", "x s s", "y", "n", num_groups=2)], (1, 4, 3, 3), opset=21, s=HALVES), 4, 5),
    "GatherND": (model([op("GatherND", "x i", "y", "n")], (4, 3, 3), i=INDICES), 3, 5),
    "ScatterND": (model([op("ScatterND", "x i u", "y", "n")], (4, 3, 3), i=INDICES[:1], u=np.ones(1, np.float32)), 3, 4),
    "Einsum": (model([op("Einsum", "x w w", "y", "n", equation="abc,bd,ce->ade")], (4, 3, 3), w=np.ones((3, 2), np.float32)), 3, 5),
}
"""Operator -> a model of it alone, the most axes its tensors have, and those the tensors of its kernel have."""


def chip(rank: int, *operators: str) -> Hcd:
    listed = "\n".join(f"  {name}: {{units: [fp16]}}" for name in operators)
    return load(f"""hcd_version: 1
chip: {{name: Flat, vendor: Me, version: 1.0.0, device_type: npu_v3}}
clock_mhz: 500
compute_units: {{fp16: {{count: 1, peak_gflops: 16, supported_layouts: [NCHW]}}}}
memory: {{on_chip_cache: {{size_kb: 64, bandwidth_gb_per_s: 16}}, off_chip_memory: {{size_mb: 64, bandwidth_gb_per_s: 4}}}}
tensor: {{max_rank: {rank}, supported_dtypes: [float16], default_layout: NCHW}}
operators:
{listed}
""".encode(), "flat.hcd")


def on(data: bytes, hcd: Hcd, fallback: str = "warn") -> Compiled:
    return compile_model(data, hcd, Options(policy=policy_of(hcd, fallback=fallback, prefer="Flat")))


def deepest(done: Compiled) -> int:
    """Most axes a tensor of a step on the chip has; 0 where there is none."""
    return max((len(v.dims) for s in done.program.steps if s.device for v in (*s.inputs, *s.outputs)), default=0)


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_of_more_axes_than_allowed_is_left_to_the_host(name: str) -> None:
    data, rank, axes = CASES[name]
    sentence = f"{name} is computed on tensors of rank {axes}; Flat allows max_rank {axes - 1}"
    done = on(data, chip(axes - 1, name))
    (taken,) = done.record.decisions
    assert (taken.device, taken.reason, taken.origin) == ("host", sentence, "flat.hcd:6")
    assert deepest(done) <= rank
    with pytest.raises(UnsupportedError, match=rf"node 'n' \({name}\): {sentence} \(flat\.hcd:6\)"):
        on(data, chip(axes - 1, name), "error")


@pytest.mark.parametrize("name", CASES)
def test_the_chip_runs_it_with_an_axis_more(name: str) -> None:
    data, _, axes = CASES[name]
    done = on(data, chip(axes, name))
    assert {d.device for d in done.record.decisions} == {"Flat"}
    assert deepest(done) == axes


def test_simpler_operators_of_fewer_axes_take_its_place() -> None:
    """Groups of a GroupNormalization are rows of three axes where it is said in means and arithmetic."""
    data, rank, _ = CASES["GroupNormalization"]
    done = on(data, chip(4, "GroupNormalization", "ReduceMean", "Add", "Sub", "Mul", "Div", "Sqrt", "Reshape"), "error")
    assert {d.device for d in done.record.decisions} == {"Flat"}
    assert 0 < deepest(done) <= rank
