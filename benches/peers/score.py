#!/usr/bin/env python3
"""Scores drawn permutes beside a copy and beside peers, by kind and overall.

usage: score.py DIR FILE...

The script reads the lines that `scripts/compare-peers OTHER --random SEED,N --part I/K` appended to OTHER/random.jsonl, from as
many parts as there are. It writes DIR/random.json, which has every case, and DIR/random.md, and prints the latter. It needs no
GPU and no PyTorch. Where a case is in several files, the last one counts. The script refuses files of different GPUs, versions,
commits, numbers of samples or draws: their cases are not parts of one run.
"""

import json
import math
import os
import sys
from pathlib import Path

# Bytes of an element.
WIDTHS = {"u8": 1, "u16": 2, "f32": 4, "f64": 8, "c128": 16}
# A memcpy permutes nothing.
PEERS = {"torch": "PyTorch", "cupy": "CuPy", "geam": "cuBLAS geam", "cutensor": "cuTENSOR"}
WORST = 10
# As fast as a peer within the noise of two runs.
TOLERANCE = 0.99
# The facts that the parts of one run share.
SHARED = ["gpu", "warpstride", "commit", "samples", "random"]


class Mixed(Exception):
    """Raised for the results of different runs, or of an unknown one."""


def joined(environment, said, file):
    """Returns what was said about the machine, with what this line of a file adds."""
    # Lines with the versions of peers lack these members.
    if "random" in said and "random" in environment:
        for name in SHARED:
            before, now = environment.get(name), said.get(name)
            if before != now:
                differ = f"{name} is {before!r} and {now!r}"
                raise Mixed(f"results of two runs do not go together, in {file}: {differ}; give each run a folder of its own")
    return environment | said


def read(files):
    """Returns what the files say about the machine, and their rows. Raises `Mixed` for files of different runs."""
    environment, rows = {}, {}
    for file in files:
        for line in Path(file).read_text().splitlines():
            try:
                said = json.loads(line)
            except ValueError:
                # A run that was cut may have left half a line.
                continue
            if "case" in said:
                rows[said["case"]["name"]] = said
            else:
                environment = joined(environment, said, file)
    return environment, list(rows.values())


def right(answer):
    """Returns whether an answer has a time and a right result."""
    return bool(answer and answer.get("ms") and answer.get("verified"))


def gbps(case, answer):
    """Returns the GB/s of a peer, read and written, if its result is right."""
    return 2 * math.prod(case["shape"]) * WIDTHS[case["dtype"]] / answer["ms"] / 1e6 if right(answer) else None


def of_copy(row):
    """Returns ours as a fraction of the copy; 0 where ours is wrong or failed."""
    own = row["ours"]
    return own["fraction_of_copy"] if right(own) else 0.0


def best(row, value, peers=PEERS):
    """Returns the greatest `value` of a peer's answer, and its peer."""
    found = [(value(row["peers"].get(peer)), peer) for peer in peers]
    return max(((value, peer) for value, peer in found if value), default=(None, None))


def runs(answer):
    """Returns the runs in a millisecond of a peer, if it is right."""
    return 1 / answer["ms"] if right(answer) else None


def of_best(row):
    """Returns ours as a fraction of the best peer's speed, or `None` without a peer; 0 where ours is wrong or failed."""
    _, peer = best(row, runs)
    if peer is None:
        return None
    return row["peers"][peer]["ms"] / row["ours"]["ms"]["median"] if right(row["ours"]) else 0.0


def beside(rows, peer):
    """Returns the figures of the cases that one peer did; `None` where it did none."""
    theirs = [(row["peers"].get(peer), row["ours"]) for row in rows]
    held = [answer["ms"] / own["ms"]["median"] if right(own) else 0.0 for answer, own in theirs if right(answer)]
    if not held:
        return None
    return {
        "cases": len(held),
        "at_or_above": sum(part >= 1 for part in held),
        "within_1_percent": sum(part >= TOLERANCE for part in held),
        "geometric_mean": mean(held),
        "lowest": min(held),
    }


def mean(numbers):
    """Returns the geometric mean; 0 where a number is 0, and `None` of none."""
    if not numbers:
        return None
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if min(numbers) > 0 else 0.0


def speed(rows):
    """Returns the figures of some cases. One that is wrong or failed counts as 0, as in the document of `bench permute --random`."""
    copies = [of_copy(row) for row in rows]
    peers = [held for held in map(of_best, rows) if held is not None]
    return {
        "cases": len(rows),
        "wrong_or_failed": sum(not right(row["ours"]) for row in rows),
        "geometric_mean": mean(copies),
        "lowest": min(copies),
        "with_a_peer": len(peers),
        "at_or_above_best_peer": sum(held >= 1 for held in peers),
        "within_1_percent_of_best_peer": sum(held >= TOLERANCE for held in peers),
        "mean_of_best_peer": mean(peers),
    }


def score(rows, drawn):
    """Returns the score of all rows, of so many drawn cases; the worst kinds and cases come first."""
    kinds = {kind: speed([row for row in rows if row["case"]["kind"] == kind]) for kind in {row["case"]["kind"] for row in rows}}
    ranked = sorted(kinds.items(), key=lambda of: (of[1]["geometric_mean"], of[0]))
    behind = sorted((row for row in rows if of_best(row) is not None and of_best(row) < 1), key=of_best)
    return {
        "drawn": drawn,
        "all": speed(rows),
        "kinds": dict(ranked),
        "peers": {peer: found for peer in PEERS if (found := beside(rows, peer))},
        "worst": [told(row) for row in sorted(rows, key=of_copy)[:WORST]],
        "behind": [told(row) for row in behind],
    }


def told(row):
    """Describes a case in the lists of the worst."""
    own, (_, peer) = row["ours"], best(row, runs)
    return {
        "name": row["case"]["name"],
        "kind": row["case"]["kind"],
        "strategy": own.get("strategy"),
        "kernel": own.get("kernel"),
        "fraction_of_copy": of_copy(row),
        "fraction_of_best_peer": of_best(row),
        "best_peer": peer,
        "error": own.get("error") or (None if right(own) else "wrong" if own.get("verified") is False else "not timed"),
    }


def line(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def part(number):
    return "-" if number is None else f"{number:.3f}"


def share(count, of):
    return f"{count} of {of} ({100 * count / of:.1f} %)" if of else "-"


def table(scored):
    header = ["kind", "cases", "wrong or failed", "mean of copy", "lowest of copy", "at or above the best peer"]
    header += ["within 1 % of it or above", "mean of the best peer"]
    text = line(header) + line(["---"] + ["---:"] * (len(header) - 1))
    for name, figures in [*scored["kinds"].items(), ("all", scored["all"])]:
        of = figures["with_a_peer"]
        text += line(
            [
                name, figures["cases"], figures["wrong_or_failed"], part(figures["geometric_mean"]), part(figures["lowest"]),
                share(figures["at_or_above_best_peer"], of), share(figures["within_1_percent_of_best_peer"], of),
                part(figures["mean_of_best_peer"]),
            ]
        )
    return text


def peers_table(scored):
    text = line(["peer", "cases that it did", "at or above it", "within 1 % of it or above", "mean of it", "lowest of it"])
    text += line(["---"] + ["---:"] * 5)
    for peer, found in scored["peers"].items():
        of = found["cases"]
        text += line(
            [
                PEERS[peer], of, share(found["at_or_above"], of), share(found["within_1_percent"], of),
                part(found["geometric_mean"]), part(found["lowest"]),
            ]
        )
    return text


def listed(cases):
    header = ["case", "kind", "strategy", "kernel", "of copy", "of the best peer", "best peer", "error"]
    text = line(header) + line(["---"] * 4 + ["---:"] * 2 + ["---"] * 2)
    for case in cases:
        cells = [case["name"], case["kind"], case["strategy"] or "-", case["kernel"] or "-", part(case["fraction_of_copy"])]
        cells += [part(case["fraction_of_best_peer"]), PEERS.get(case["best_peer"], "-"), case["error"] or ""]
        text += line(cells)
    return text


def markdown(environment, scored):
    text = "# Drawn permutes\n\n"
    text += "; ".join(f"{name}: {value}" for name, value in environment.items()) + "\n\n"
    text += f"{scored['all']['cases']} of {scored['drawn']} cases. Means are geometric. A copy is ours, in the same run. It copies "
    text += "the result, and its time is scaled to as many bytes as the sectors that a case touches. The worst kinds and cases "
    text += "come first.\n\n" + table(scored)
    if scored["peers"]:
        text += "\n## Beside each peer\n\n" + peers_table(scored)
    text += f"\n## The {len(scored['worst'])} cases furthest below a copy\n\n" + listed(scored["worst"])
    if scored["behind"]:
        text += "\n## Every case below its best peer\n\n" + listed(scored["behind"])
    return text


def write(folder, files):
    """Writes the score of these files to a folder, and returns its text."""
    environment, rows = read(files)
    if not rows:
        return "no case was measured\n"
    if "random" not in environment:
        raise Mixed(f"{', '.join(map(str, files))}: no line says which cases were drawn")
    scored = score(rows, int(environment["random"].split(",")[1]))
    text = markdown(environment, scored)
    report = {"environment": environment, "score": scored, "rows": rows}
    for name, contents in [("random.json", json.dumps(report, indent=1) + "\n"), ("random.md", text)]:
        temporary = Path(folder) / f".{name}"
        temporary.write_text(contents)
        os.replace(temporary, Path(folder) / name)
    return text


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    try:
        print(write(sys.argv[1], sys.argv[2:]), end="")
    except Mixed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
