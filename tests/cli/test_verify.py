"""``flaot verify``: agreement, difference, and a reference that fails."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flaot
from flaot.errors import RunInputError
from tests.cli.models import write_pair, x


def test_agreement(run, tmp_path):
    write_pair(tmp_path)
    np.savez(tmp_path / "f.npz", x=x())
    done = run("verify", "p.flp", "m.onnx", "--inputs", "f.npz", "--layers")
    assert done.code == 0, done
    assert "verified: 1 output and 1 intermediate agree with onnxruntime" in done.out
    document = json.loads(run("verify", "p.flp", "m.onnx", "--layers", "--json").out)
    assert document["ok"]
    assert [layer["name"] for layer in document["layers"]] == ["mid"]
    assert document["layers"][0]["nodes"] == ["first"]


def test_frozen_initializers_may_be_fed_unchanged(run, tmp_path):
    k = np.arange(8, dtype=np.float32)
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 8]), ("k", [8]), ("y", [2, 8]))]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "k"], ["y"])], "g", ports[:2], ports[2:], [numpy_helper.from_array(k, "k")])
    for version in (3, 8):
        model = str(tmp_path / f"{version}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=version), model)
        plan = flaot.compile(model, "generic_cpu").plan
        assert flaot.verify(plan, model, {"x": x(), "k": k}, layers=True).ok
        with pytest.raises(RunInputError, match="'k' is frozen into the plan"):
            flaot.verify(plan, model, {"x": x(), "k": k + 1})
    (tmp_path / "k.flp").write_bytes(plan)
    for name, value in (("same", k), ("other", -k)):
        np.savez(tmp_path / f"{name}.npz", x=x(), k=value)
    assert run("verify", "k.flp", "8.onnx", "--inputs", "same.npz").code == 0
    run("verify", "k.flp", "8.onnx", "--inputs", "other.npz").failed(7, "'k' is frozen into the plan")


def test_difference_names_the_first_node(run, tmp_path):
    plan, model = write_pair(tmp_path, axis=0)
    done = run("verify", "p.flp", "m.onnx").failed(1, "'y' of Softmax 'second' differs")
    assert "DIFFERS" in done.out
    run("verify", "p.flp", "m.onnx", "--layers").failed(1, "first difference in order of execution: 'y'")
    failed = run("verify", "p.flp", "m.onnx", "--json").failed(1, "p.flp: 'y' of Softmax 'second' differs")
    document = json.loads(failed.out)
    assert (document["ok"], document["exit_code"], document["outputs"][0]["verdict"]) == (False, 1, "DIFFERS")
    result = flaot.verify(str(plan), str(model), {"x": x()}, layers=True)
    assert not result.ok
    assert result.layers[0].ok
    assert result.first_difference.name == "y"


def test_reference_that_fails(run, tmp_path):
    write_pair(tmp_path)
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(model, tmp_path / "bad.onnx")
    run("verify", "p.flp", "bad.onnx").failed(8, "bad.onnx: reference failed")
    run("verify", "p.flp", "absent.onnx").failed(8, "absent.onnx")
    run("verify", "m.onnx", "m.onnx").failed(6, "not a flaot plan")


def test_another_model_is_not_a_failed_reference(run, tmp_path):
    write_pair(tmp_path)
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.output[0].name = model.graph.node[1].output[0] = "other"
    onnx.save(model, tmp_path / "outputs.onnx")
    run("verify", "p.flp", "outputs.onnx").failed(2, "none of the plan's outputs: y", "is it the model the plan was made of?")
    model.graph.input[0].name = model.graph.node[0].input[0] = "image"
    onnx.save(model, tmp_path / "inputs.onnx")
    run("verify", "p.flp", "inputs.onnx").failed(2, "the model takes 'image', the plan 'x'", "is it the model the plan was made of?")


def test_broken_onnxruntime_is_a_dependency_error(run, tmp_path):
    write_pair(tmp_path)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "onnxruntime.py").write_text("raise ImportError('hidden for the test')")
    from tests.cli.conftest import ROOT

    env = {"PYTHONPATH": f"{tmp_path / 'hidden'}:{ROOT}"}
    run("verify", "p.flp", "m.onnx", env=env).failed(8, "hidden for the test")


def test_wrong_inputs(run, tmp_path):
    write_pair(tmp_path)
    np.save(tmp_path / "x.npy", x().astype(np.float16))
    run("verify", "p.flp", "m.onnx", "--input", "x=x.npy").failed(7, "has dtype float16")
