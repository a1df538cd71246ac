"""``make demo``: compiles the digit classifier, verifies the plan against onnxruntime, and reads handwritten digits with it."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import flaot
from digits import FOLDER, HELD_OUT, load

OUT = FOLDER.parent / "out"
SHOWN = 4
SHADES = " .:-=+*#%@"


def command(*words: object) -> None:
    """Shows a command line and runs it; ends the demo when it fails."""
    line = [str(w) for w in words]
    print(f"\n$ {shlex.join(line)}", flush=True)
    done = subprocess.run([sys.executable, "-m", *line])
    if done.returncode:
        sys.exit(done.returncode)


def picture(images: np.ndarray) -> str:
    """The middle of the images side by side, two rows of pixels to a line of text."""
    middle = images[:, 0, 3:25, 4:24]
    pairs = middle.reshape(len(images), 11, 2, 20).mean(2)
    levels = np.clip(pairs * len(SHADES), 0, len(SHADES) - 1).astype(int)
    return "\n".join("   ".join("".join(SHADES[v] for v in row) for row in rows) for rows in levels.transpose(1, 0, 2))


def table(scores: np.ndarray, labels: np.ndarray) -> str:
    """One block per image: what it is taken for, and the three best scores as bars."""
    cells = []
    for row, label in zip(scores, labels, strict=True):
        best = np.argsort(row)[::-1][:3]
        head = f"read {best[0]}, written {label}"
        cells.append([head.ljust(20), *(f"{d} {row[d]:5.1%} {'#' * round(row[d] * 10)}".ljust(20) for d in best)])
    return "\n".join("   ".join(line).rstrip() for line in zip(*cells, strict=True))


def save_png(images: np.ndarray, scores: np.ndarray, path: Path) -> bool:
    """The same as a PNG; False where matplotlib is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return False
    figure, axes = pyplot.subplots(1, len(images), figsize=(2 * len(images), 2.4))
    for axis, image, row in zip(axes, images, scores, strict=True):
        axis.imshow(image[0], cmap="gray_r")
        axis.set_title(f"{row.argmax()} ({row.max():.0%})")
        axis.axis("off")
    figure.savefig(path, dpi=100, bbox_inches="tight")
    return True


def main() -> None:
    OUT.mkdir(exist_ok=True)
    model, plan = (p.relative_to(Path.cwd()) if p.is_relative_to(Path.cwd()) else p for p in (FOLDER / "digits.onnx", OUT / "digits.flp"))
    command("flaot", "compile", model, "--hcd", "host", "-o", plan)
    command("flaot", "verify", plan, model)

    images, labels = (a[-HELD_OUT:] for a in load())
    session = flaot.Session(plan)
    begin = time.perf_counter()
    scores = np.concatenate([session.run(None, {"image": image[None]})[0] for image in images])
    each = (time.perf_counter() - begin) / len(images)
    right = int((scores.argmax(1) == labels).sum())

    print(f"\n{picture(images[:SHOWN])}\n\n{table(scores[:SHOWN], labels[:SHOWN])}\n")
    print(f"{right} of {len(images)} digits it was not trained on are read right, {each * 1e6:.0f} microseconds each.")
    if save_png(images[:SHOWN], scores[:SHOWN], OUT / "digits.png"):
        print(f"The digits as a picture: {OUT / 'digits.png'}")


if __name__ == "__main__":
    main()
