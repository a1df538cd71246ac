"""Sessions: results, input checks, options, threads, refusals."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from flaot.errors import FileSystemError, PlanError, RunInputError, UsageError
from flaot.ir.types import DType, Frozen, TensorType
from flaot.plan.fields import HEADER
from flaot.plan.program import DeviceRecord, Program
from flaot.plan.write import write_plan
from flaot.runtime.session import RunOptions, Session
from tests.plan.programs import K, plan_of, seal, softmax, softmax_of_constant, two_softmaxes, with_frozen

X = np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)
Y = softmax(softmax(X))


@pytest.fixture
def session() -> Session:
    return Session(plan_of(two_softmaxes()))


def test_runs_like_an_inference_session(session: Session) -> None:
    for outputs in (session.run(None, {"x": X}), session.run(["y"], {"x": X}), session.run({"x": X})):
        np.testing.assert_allclose(outputs[0], Y, rtol=1e-5)
    assert [(p.name, p.shape, p.dtype) for p in session.get_inputs()] == [("x", (2, 8), np.float32)]
    assert [p.name for p in session.get_outputs()] == ["y"]


def test_constants_strides_and_several_outputs() -> None:
    session = Session(plan_of(softmax_of_constant()))
    x = np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32)
    y, z = session.run(None, {"x": x})
    np.testing.assert_allclose(y, softmax(np.arange(12, dtype=np.float32).reshape(4, 3)), rtol=1e-5)
    np.testing.assert_allclose(z, softmax(x.T, 0), rtol=1e-5)
    np.testing.assert_array_equal(session.run(["z", "y"], {"x": x})[0], z)


def test_results_belong_to_the_caller(session: Session) -> None:
    first = session.run({"x": X})[0]
    kept = first.copy()
    session.run({"x": X * 3})
    np.testing.assert_array_equal(first, kept)
    first[...] = 0


@pytest.mark.parametrize("rows", [2, 3000], ids=["staged", "lent"])
def test_memory_orders(rows: int) -> None:
    session = Session(plan_of(two_softmaxes(rows)))
    x = np.random.default_rng(3).standard_normal((rows, 8)).astype(np.float32)
    want = session.run({"x": x})[0]
    read_only = x.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    base = np.zeros((rows, 16), np.float32)
    base[:, ::2] = x
    for other in (np.asfortranarray(x), x[::-1][::-1], base[:, ::2], read_only, unaligned, x.astype(">f4"), np.rec.array(x)):
        np.testing.assert_array_equal(session.run({"x": other})[0], want)
    repeated = np.broadcast_to(x[:1], x.shape)
    np.testing.assert_array_equal(session.run({"x": repeated})[0], session.run({"x": repeated.copy()})[0])


@pytest.mark.parametrize(("feeds", "says"), [
    ({}, "input 'x' is missing; the plan's inputs are x"),
    ({"X": X}, "no input 'X', input 'x' is missing; the plan's inputs are x"),
    ({"x": X, "q\n": X}, r"no input 'q\\\\n'"),
    ({"x": X[:1]}, r"shape \[1, 8\]; the plan wants \[2, 8\]"),
    ({"x": X[0]}, r"shape \[8\]"),
    ({"x": X.astype(np.float64)}, "dtype float64; the plan wants float32"),
    ({"x": X.astype(object)}, "dtype object"),
    ({"x": X > 0}, "dtype bool"),
    ({"x": None}, "is a NoneType"),
    ({"x": X.tolist()}, "is a list"),
    ([X], "feeds of type list"),
])
def test_wrong_feeds(session: Session, feeds: object, says: str) -> None:
    with pytest.raises(RunInputError, match=says):
        session.run(None, feeds)  # type: ignore[arg-type]
    np.testing.assert_allclose(session.run({"x": X})[0], Y, rtol=1e-5)


@pytest.mark.parametrize("k", [K, np.asfortranarray(K), K.astype(">f4"), np.rec.array(K)])
def test_a_frozen_initializer_may_be_fed_unchanged(k: np.ndarray) -> None:
    session = Session(plan_of(with_frozen()))
    np.testing.assert_array_equal(session.run({"k": k, "x": X})[0], session.run({"x": X})[0])
    assert [named.name for named, _ in session.intermediates({"x": X, "k": k})] == ["mid"]


@pytest.mark.parametrize(("feeds", "says"), [
    ({"x": X, "k": -K}, "input 'k' is frozen into the plan as an initializer of the model, float32[2,3]; it is fed other values; "),
    ({"x": X, "k": K.astype(np.float64)}, "frozen into the plan as an initializer of the model, float32[2,3]; it is fed float64[2, 3]"),
    ({"x": X, "k": K.reshape(3, 2)}, "it is fed float32[3, 2]; to change it, compile a model without it among the initializers"),
    ({"x": X, "k": K.astype(object)}, "it is fed object[2, 3]"),
    ({"x": X, "k": K.tolist()}, "input 'k' is a list; a numpy array float32[2,3] is wanted"),
    ({"x": X, "k": K, "kk": K}, "no input 'kk'; the plan's inputs are x"),
    ({"k": K}, "input 'x' is missing"),
])
def test_a_frozen_initializer_cannot_be_changed(feeds: dict[str, object], says: str) -> None:
    session = Session(plan_of(with_frozen()))
    with pytest.raises(RunInputError, match=re.escape(says)) as e:
        session.run(None, feeds)  # type: ignore[arg-type]
    assert e.value.exit_code == 7
    np.testing.assert_allclose(session.run({"x": X})[0], Y, rtol=1e-5)


def test_frozen_bfloat16_may_come_as_its_bits() -> None:
    program = two_softmaxes()
    bits = np.array([0x3F80, 0x4000], np.uint16)
    program.frozen = [Frozen("b", TensorType(DType.bfloat16, (2,)), sha256(bits.tobytes()).digest())]
    session = Session(plan_of(program))
    np.testing.assert_allclose(session.run({"x": X, "b": bits})[0], Y, rtol=1e-5)
    with pytest.raises(RunInputError, match="fed other values"):
        session.run({"x": X, "b": bits[::-1]})


def test_unknown_output(session: Session) -> None:
    with pytest.raises(RunInputError, match="no output 'q'; the plan has"):
        session.run(["q"], {"x": X})


def test_special_values(session: Session) -> None:
    x = X.copy()
    x[0, 0], x[1, 1] = np.nan, np.float32(1e-42)
    y = session.run({"x": x})[0]
    assert np.isnan(y[0]).all() and np.isfinite(y[1]).all()


def test_profile_names_the_model_nodes(session: Session) -> None:
    times = session.profile({"x": X}, repeat=3)
    assert [(t.step, t.op, t.origin, t.kernel) for t in times] == [
        (0, "Softmax", ("first",), "softmax_f32.generic"), (1, "Softmax", ("second", "third"), "softmax_f32.generic"),
    ]
    assert all(t.nanoseconds > 0 for t in times)
    with pytest.raises(UsageError, match="uint64 array of 2"):
        session.run(None, {"x": X}, RunOptions(np.zeros(3, np.uint64)))


def test_profile_of_no_runs_is_refused(session: Session) -> None:
    with pytest.raises(UsageError, match="0 runs; at least 1"):
        session.profile({"x": X}, repeat=0)


def test_intermediates(session: Session) -> None:
    ((named, mid),) = session.intermediates({"x": X})
    assert named.name == "mid" and named.step == 0
    np.testing.assert_allclose(mid, softmax(X), rtol=1e-5)


def test_close(session: Session) -> None:
    session.run({"x": X})
    with session:
        pass
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"x": X})


def test_empty_program_runs() -> None:
    assert Session(plan_of(Program())).run({}) == []


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_threads_give_the_same_bytes(threads: int) -> None:
    data = plan_of(two_softmaxes(301, 16))
    x = np.random.default_rng(4).standard_normal((301, 16)).astype(np.float32)
    want = Session(data).run({"x": x})[0]
    with Session(data, threads=threads) as session:
        for _ in range(50):
            np.testing.assert_array_equal(session.run({"x": x})[0], want)
        time.sleep(0.01)
        np.testing.assert_array_equal(session.run({"x": x})[0], want)


def test_one_session_from_several_threads() -> None:
    session = Session(plan_of(two_softmaxes(64, 64)))
    rng = np.random.default_rng(5)
    xs = [rng.standard_normal((64, 64)).astype(np.float32) for _ in range(4)]
    want = [session.run({"x": x})[0] for x in xs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(200):
            if not np.array_equal(session.run({"x": xs[i]})[0], want[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_wrong_number_of_threads() -> None:
    with pytest.raises(UsageError, match="allowed are 0"):
        Session(plan_of(Program()), threads=65)


def test_plan_file(tmp_path: Path) -> None:
    path = tmp_path / "a.flp"
    path.write_bytes(plan_of(two_softmaxes()))
    session = Session(path)
    path.write_bytes(b"")
    np.testing.assert_allclose(session.run({"x": X})[0], Y, rtol=1e-5)


def test_files_that_are_no_plan(tmp_path: Path) -> None:
    with pytest.raises(FileSystemError, match="No such file"):
        Session(tmp_path / "none.flp")
    with pytest.raises(FileSystemError, match="not a regular file"):
        Session(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileSystemError, match="not a regular file"):
        Session(tmp_path / "fifo")
    with open(tmp_path / "sparse", "wb") as f:
        f.truncate(5 << 30)
    with pytest.raises(PlanError, match="not a flaot plan"):
        Session(tmp_path / "sparse")
    (tmp_path / "cut").write_bytes(plan_of(two_softmaxes())[:-1])
    with pytest.raises(PlanError, match="the file is cut"):
        Session(tmp_path / "cut")


def test_refusal_names_the_step() -> None:
    program = two_softmaxes()
    program.steps[1].params = np.array([7, 0], "<i4").tobytes()
    with pytest.raises(PlanError, match=r"step 1 \(node 'second' \(Softmax\), kernel softmax_f32.generic\): a kernel refuses"):
        Session(plan_of(program))
    program = two_softmaxes()
    program.steps[0].kernel = "softmax_f99"
    with pytest.raises(PlanError, match=r"step 0 .*kernel softmax_f99.generic\): the plan uses a kernel this runtime does not have"):
        Session(plan_of(program))


def test_missing_instruction_set_is_named() -> None:
    data = write_plan(two_softmaxes(), device=DeviceRecord("big", "cpu", 0x80000001))
    with pytest.raises(PlanError, match=r"the plan is for chip big \(cpu\) with avx2, this CPU has"):
        Session(data)


def test_tensor_out_of_the_arena_is_named() -> None:
    program = two_softmaxes()
    program.arena = 64
    program.steps[1].scratch = program.steps[1].scratch_offset = 0
    with pytest.raises(PlanError, match="tensor 1: bad tensor record"):
        Session(plan_of(program))


def test_hostile_arena_size_is_refused_before_it_is_allocated() -> None:
    program = two_softmaxes()
    program.arena = 1 << 62
    with pytest.raises(Exception, match="no memory|arena") as e:
        Session(plan_of(program)).run({"x": X})
    assert e.value.exit_code in (6, 9)  # type: ignore[attr-defined]


def test_resealed_damage_is_refused_or_runs() -> None:
    data = plan_of(two_softmaxes())
    for at in range(HEADER.size, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 0x40
        with contextlib.suppress(PlanError):
            Session(seal(bytes(changed))).get_inputs()


def test_imports_only_what_it_needs() -> None:
    code = (
        "import sys, flaot.runtime.session\n"
        "heavy = {'onnx', 'onnxruntime', 'networkx', 'torch', 'yaml', 'pydantic', 'click', 'rich'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_many_runs_and_sessions_keep_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    data = plan_of(two_softmaxes(300, 64))
    x = np.zeros((300, 64), np.float32)

    def work() -> None:
        for _ in range(30):
            with Session(data, threads=2) as session:
                for _ in range(20):
                    session.run({"x": x})

    work()
    before = resident()
    work()
    assert resident() - before < 4 << 20
