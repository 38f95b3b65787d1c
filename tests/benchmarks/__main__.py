"""One table of ratios with their bars: ``python -m tests.benchmarks [--sessions 10000]``.

Every module here that defines ``rows()`` gives its lines. Each fast answer is compared with the plain one first; then
candidate and base run in turns, and the table shows medians of ratios. Exits with 1 if a bar is missed (``--check``).
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import setting


def modules() -> list[str]:
    """The names of the modules beside this one."""
    here = Path(__file__).parent
    return sorted(path.stem for path in here.glob("*.py") if not path.stem.startswith("_"))


def line(row: Any) -> str:
    """One row as Markdown, whichever module's it is."""
    ratio, bar = row.ratio, row.bar
    at_least = getattr(row, "at_least", False)
    is_met = None if ratio is None or bar is None else ratio >= bar if at_least else ratio <= bar
    shown = "" if bar is None else f"{'≥' if at_least else '≤'} {bar:g}"
    mark = {True: "yes", False: "**no**", None: ""}[is_met]
    number = "not measured" if ratio is None else f"{ratio:.3g}"
    return f"| {row.name} | {number} | {shown} | {mark} | {row.note} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--sessions", type=int, default=200, help="how many sessions to make: 200, 2000 or 10000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--home", type=Path, help="where to make (and find again) the files; else they are temporary")
    parser.add_argument("--only", nargs="*", default=modules(), help="modules to run")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is missed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        setting.sessions, setting.rounds, setting.home = chosen.sessions, chosen.rounds, chosen.home or Path(temporary)
        setting.home.mkdir(parents=True, exist_ok=True)
        print(
            f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {setting.sessions} sessions\n"
        )
        print("| operation / base | ratio | bar | met | |\n|---|---|---|---|---|")
        missed = failed = 0
        for name in chosen.only:
            module = importlib.import_module(f"tests.benchmarks.{name}")
            try:
                for row in module.rows() if hasattr(module, "rows") else ():
                    text = line(row)
                    missed += "**no**" in text
                    print(text, flush=True)
            except Exception:  # noqa: BLE001  (one module's failure is told, and the others still run)
                failed += 1
                print(f"| {name} failed | | | **no** | {traceback.format_exc().splitlines()[-1]} |", flush=True)
                traceback.print_exc()
    return 1 if failed or (chosen.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
