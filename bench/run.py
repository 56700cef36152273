"""Speed figures as ratios measured in one run: `make bench`. Nothing here is a test.

    python bench/run.py [--mb 400] [--runs 5] [--tree DIR]

The tree comes from gen_big.py where the shared tools lie beside the checkout, else from the samples, repeated. ripgrep gets
the rg-compatible forms of the same patterns (`triage signatures list --format patterns`); its exit code is checked, and its
total of matching lines is compared with ours.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".bench"
GENERATOR = ROOT.parent / "shared" / "tools" / "gen_big.py"
RECORD = ROOT / "bench" / "recorded.json"
TRIAGE = Path(sys.executable).with_name("triage")


def tree(megabytes: int) -> Path:
    """Return a log tree of about the given size, made once."""
    target = WORK / f"tree-{megabytes}"
    if target.exists():
        return target
    WORK.mkdir(exist_ok=True)
    if GENERATOR.exists():
        subprocess.run(
            [sys.executable, GENERATOR, target, "--mb", str(megabytes)], check=True, stdout=subprocess.DEVNULL
        )
        return target
    size, copies = 0, 0
    while size < megabytes << 20:
        for bundle in sorted((ROOT / "samples").glob("*/bundle")):
            copy = target / f"copy{copies:05d}"
            shutil.copytree(bundle, copy)
            size += sum(f.stat().st_size for f in copy.rglob("*") if f.is_file())
            copies += 1
    return target


def median(action: Callable[[], object], runs: int) -> float:
    """Return the median wall seconds of ``runs`` calls after one warm-up."""
    action()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def command(*words: str | Path) -> Callable[[], object]:
    """Return a call that runs a command and insists on its success."""
    return lambda: subprocess.run(
        [str(w) for w in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


class Scan:
    """Our scan stage on a list of files: read blocks, find candidates, keep lines that a scan form matches."""

    def __init__(self, files: list[Path]) -> None:
        import regex

        from triage import knowledge
        from triage.engine import build
        from triage.patterns import probe_forms, scan_form

        self.files = files
        signatures, _ = knowledge.load_signatures(cache=knowledge.cache_dir())
        self.patterns = [p for s in signatures if not s.where for p in s.patterns]
        probes = [(probe, number) for number, p in enumerate(self.patterns) for probe in probe_forms(p)]
        self.targets = [number for _, number in probes]
        self.loose = [regex.compile(scan_form(p).encode()) for p in self.patterns]
        self.engine = build([probe for probe, _ in probes], knowledge.cache_dir())

    def candidates(self) -> int:
        """Only find candidates; return how many."""
        from triage.reading import open_stream, pieces

        found = 0
        for path in self.files:
            with open_stream(path) as stream:
                for piece in pieces(stream):
                    found += len(self.engine.candidates(piece.data))
        return found

    def matching_lines(self) -> int:
        """Find the lines that a pattern's scan form matches; return how many."""
        from triage.reading import line_at, open_stream, pieces

        lines = 0
        for path in self.files:
            with open_stream(path) as stream:
                for piece in pieces(stream):
                    data = bytes(piece.data)
                    stop, matched = -1, False
                    for number, end in sorted(self.engine.candidates(data), key=lambda c: c[1]):
                        if end - 1 > stop:
                            start, stop = line_at(data, end)
                            matched = False
                        if not matched and self.loose[self.targets[number]].search(data, start, stop):
                            matched = True
                            lines += 1
        return lines


def ripgrep_lines(patterns: Path, folder: Path) -> int:
    """Return the number of lines ripgrep finds; its exit code is checked (1 would mean no match at all)."""
    run = subprocess.run(
        ["rg", "-a", "-c", "--no-filename", "-f", patterns, folder], check=True, capture_output=True, text=True
    )
    return sum(map(int, run.stdout.split()))


def rows(megabytes: int, runs: int, given: Path | None) -> dict[str, float]:
    """Measure everything; return name -> ratio or seconds."""
    folder = given or tree(megabytes)
    files = files_of(folder)
    size = sum(f.stat().st_size for f in files)
    out: dict[str, float] = {"tree MB": size / 1e6, "files": len(files)}
    scan = Scan(files)
    out["patterns"] = len(scan.patterns)
    ours, engine = median(scan.matching_lines, runs), median(scan.candidates, runs)
    out["scan MB/s"], out["engine MB/s"] = size / ours / 1e6, size / engine / 1e6
    if shutil.which("rg"):
        WORK.mkdir(exist_ok=True)
        listing = WORK / "patterns.txt"
        text = subprocess.run(
            [TRIAGE, "signatures", "list", "--format", "patterns"], check=True, capture_output=True, text=True
        ).stdout
        listing.write_text(text)
        theirs = median(lambda: ripgrep_lines(listing, folder), runs)
        out["scan vs ripgrep (x faster)"] = theirs / ours
        out["engine vs ripgrep (x faster)"] = theirs / engine
        out["matching lines, ours / ripgrep"] = scan.matching_lines() / max(1, ripgrep_lines(listing, folder))
    out["wc -l of all files (s)"] = median(
        command("sh", "-c", f"cat {folder}/*/* {folder}/*/*/* 2>/dev/null | wc -l; true"), runs
    )
    out["triage --help (s)"] = median(command(TRIAGE, "--help"), runs)
    small = ROOT / "samples" / "gpu-oom" / "bundle"
    out["small bundle, text (s)"] = median(command(TRIAGE, "postmortem", small, "-q"), runs)
    out["small bundle, json (s)"] = median(command(TRIAGE, "postmortem", small, "--format", "json", "-q"), runs)
    return out


def main() -> None:
    """Print the table, and loudly what fell by more than 15 % against the recorded ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=400)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--record", action="store_true", help="write the ratios to bench/recorded.json")
    given = parser.parse_args()
    found = rows(given.mb, given.runs, given.tree)
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, medians of {given.runs} runs")
    for name, value in found.items():
        before = recorded.get(name)
        mark = f"   REGRESSION: was {before:.2f}" if before and "x faster" in name and value < 0.85 * before else ""
        print(f"{name:<36} {value:>12,.2f}{mark}")
    if given.record:
        RECORD.write_text(json.dumps({k: round(v, 2) for k, v in found.items() if "x faster" in k}, indent=1) + "\n")


if __name__ == "__main__":
    main()
