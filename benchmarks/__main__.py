"""All measurements beside their targets: ``python -m benchmarks [--json FILE]``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import arena, compile_time, latency, memory, simulator, startup


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    figures = {}
    print("Latency, one thread")
    figures["latency"] = latency.run([])
    print("\nTwo threads")
    figures["scaling"] = latency.scaling()
    print("\nSimulated chip over host")
    figures["simulator"] = simulator.run([])
    print("\nStart-up and memory of whole processes")
    figures["startup"] = startup.run()
    print("\nCompile time")
    figures["compile_time"] = compile_time.run()
    print("\nArena")
    figures["arena"] = arena.run()
    print("\nMemory planner")
    figures["memory"] = memory.run()
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
