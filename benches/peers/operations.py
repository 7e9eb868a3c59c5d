"""Measures the whole bench, and peers for its operations, in one run on a machine with an NVIDIA GPU: PyTorch, and plain kernels of
CUDA C++.

usage: operations.py DIR [--warpstride BINARY] [--device D]

The script writes DIR/run.json, which `warpstride report` draws, DIR/operations.json with the peers' times, and
DIR/operations.md with the table. It writes the last two anew after each answer of a peer, so a stopped run keeps its results.
BINARY is the command line, by default `bin/warpstride` or `target/release/warpstride` of this repository. The script needs
Python 3 with PyTorch, and CuPy for the kernels of CUDA C++; without PyTorch, the table has ours alone.
`scripts/compare-peers` compares permutes.

Ours is `warpstride bench --all`, which verifies every result. The peers are those of `calls.py`, which run on the same device,
right after it. The exit status is 1 if ours was wrong or failed, or a peer failed.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from score import line

ROOT = Path(__file__).resolve().parents[2]
TITLES = {"torch": "PyTorch", "cuda": "CUDA C++"}


def cell(answer, bytes_):
    if answer is None or "lacks" in answer:
        return "n/a"
    if "ms" not in answer:
        return "ERR " + answer["error"].replace("|", "/")[:40]
    return f"{bytes_ / answer['ms'] / 1e6:.0f}" + ("" if answer["gapless"] else " \\*")


def doubtful(case):
    """Says whether times of ours contain gaps of the host, or the device was throttled; as `Record::doubt` decides."""
    clocks = case["clocks"]
    low = clocks and clocks["sm_mhz"] < 0.75 * clocks["sm_max_mhz"] and not clocks.get("held", False)
    return not case["gapless"] or bool(clocks and (clocks["slowed"] or low))


def table(cases, answers):
    text = line(["case", "kernel", *TITLES.values(), "ours", "ours / best", "of ceiling", "of nominal"])
    text += line(["---", "---", *["---:"] * (len(TITLES) + 4)])
    for case in cases:
        bytes_, ms = case["bytes"], case["ms"]
        peers = [answers.get((case["name"], peer)) for peer in TITLES]
        best = min((answer["ms"] for answer in peers if answer and "ms" in answer), default=None)
        cells = [case["name"], f"`{case['kernel']}`", *(cell(answer, bytes_) for answer in peers)]
        if ms is None:
            cells += ["-" if case["verified"] else "WRONG", "-", "-", "-"]
        else:
            parts = [case["fraction_of_ceiling"], case["fraction_of_nominal"]]
            cells += [
                f"{case['gbps']:.0f}" + (" \\*" if doubtful(case) else ""),
                f"{best / ms['median']:.3f}" if best else "-",
                *(f"{100 * part:.1f} %" if part else "-" for part in parts),
            ]
        text += line(cells)
    return text


def markdown(run, versions, answers, commit):
    device, peaks = run["device"], run["peaks"]
    text = f"# Operations, side by side\n\n{device['name']}, driver {device['driver_version']}, {run['date']}"
    text += f"{', commit ' + commit if commit else ''}; PyTorch {versions.get('torch')}, CUDA {versions.get('cuda')}.\n\n"
    text += "GB/s are 10^9 bytes a second; the bytes are those that the operation itself reads and writes (BabelStream's count). Each is the "
    text += "median of 20 runs with a cold L2 cache, by events behind a gate. A ceiling is the speed of the best simple kernels of this "
    text += "run for the same bytes read and written; "
    if peaks:
        best = [f"{name} {peaks[name]['gbps']:.0f}" for name in ("read", "write", "copy")]
        text += f"they are {', '.join(best)} GB/s, the driver's copy {peaks['memcpy']:.0f}"
        text += " (at low clocks). " if peaks.get("low_clocks") else ". "
    text += "Ours is verified element by element. \\* marks figures whose runs were not all queued before the gate opened, and ours "
    text += "where the device was throttled.\n"
    for group, title in [("stream", "Streams"), ("axis", "Axes"), ("conversion", "Conversions")]:
        text += f"\n## {title}\n\n" + table([case for case in run["cases"] if case["group"] == group], answers)
    return text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--warpstride")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    if not args.warpstride:
        found = [place for place in (ROOT / "bin/warpstride", ROOT / "target/release/warpstride") if place.exists()]
        if not found:
            parser.error("no warpstride in this repository; name it by --warpstride")
        args.warpstride = str(found[0])
    return args


def measured(run, keep):
    """Measures the peers for a run, and calls `keep` with the versions and the answers so far. Returns whether none failed."""
    versions, answers = {}, []
    keep(versions, answers)
    try:
        # Not before: ours needs no PyTorch, and neither does its table.
        import calls

        versions = calls.VERSIONS
        for answer in calls.answered(run):
            answers.append(answer)
            keep(versions, answers)
    except Exception as error:
        print(f"operations.py: the peers failed: {error!r}", file=sys.stderr)
        return False
    return not any("error" in answer for answer in answers)


def replace(file, text):
    """Replaces a file whole, so that a stop in between leaves the old one."""
    temporary = file.with_name(file.name + ".new")
    temporary.write_text(text)
    os.replace(temporary, file)


def main():
    args = arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    ours = subprocess.run(
        [args.warpstride, "--device", args.device, "--json", "bench", "--all"], stdout=subprocess.PIPE, text=True
    )
    (args.folder / "run.json").write_text(ours.stdout)
    if not ours.stdout:
        sys.exit(ours.returncode or 1)
    run = json.loads(ours.stdout)
    if "cases" not in run:
        sys.exit(f"operations.py: the bench failed: {run.get('error')}")
    commit = (ROOT / "COMMIT").read_text().strip() if (ROOT / "COMMIT").exists() else ""
    table_file = args.folder / "operations.md"

    def keep(versions, peers):
        replace(args.folder / "operations.json", json.dumps({"versions": versions, "peers": peers}, indent=1) + "\n")
        answers = {(answer["case"], answer["peer"]): answer for answer in peers}
        replace(table_file, markdown(run, versions, answers, commit))

    succeeded = measured(run, keep)
    print(table_file.read_text(), end="")
    sys.exit(ours.returncode or (0 if succeeded else 1))


if __name__ == "__main__":
    main()
