"""Runs Nsight Compute from Python, and maps its metrics to the counters of the software GPU."""

import csv
import subprocess
import sys

# Kinds of access by their JSON names, each with its space and operation in Nsight Compute's
# metrics.
KINDS = {
    "global_load": ("global", "ld"),
    "global_store": ("global", "st"),
    "global_atomic": ("global", "atom"),
    "global_reduction": ("global", "red"),
    "local_load": ("local", "ld"),
    "local_store": ("local", "st"),
    "shared_load": ("shared", "ld"),
    "shared_store": ("shared", "st"),
    "shared_atomic": ("shared", "atom"),
}
# Fields of a kind, with its space and its operation.
CACHED = {
    "instructions": "smsp__sass_inst_executed_op_{space}_{op}.sum",
    "requests": "l1tex__t_requests_pipe_lsu_mem_{space}_op_{op}.sum",
    "sectors": "l1tex__t_sectors_pipe_lsu_mem_{space}_op_{op}.sum",
}
BANKED = {
    "instructions": "smsp__sass_inst_executed_op_{space}_{op}.sum",
    "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_{space}_op_{op}.sum",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_{space}_op_{op}.sum",
}
FIGURES = [
    (kind, field, metric.format(space=space, op=operation))
    for kind, (space, operation) in KINDS.items()
    for field, metric in (BANKED if space == "shared" else CACHED).items()
]

# Fields to which the hardware adds an amount that differs from run to run.
LOSSY = ("wavefronts", "bank_conflicts")


def compared(soft, hard):
    """Compares our counters with the hardware's; returns what differs and what the hardware lost, in words."""
    differing, lost = [], []
    for kind, field, metric in FIGURES:
        # The software GPU does not count this kind.
        if kind not in soft:
            continue
        ours, theirs = soft[kind][field], hard[metric]
        if field in LOSSY and theirs > ours:
            lost.append(f"{kind}.{field} {ours} + {theirs - ours} lost")
        elif theirs != ours:
            differing.append(f"{kind}.{field} soft {ours} HARDWARE {theirs}")
    return differing, lost


def profile(command, metrics, *options):
    """Runs `command` under `ncu`, and returns the name and the metrics, as integers, of each profiled launch."""
    ncu = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", *options, "--metrics", ",".join(metrics)]
    done = subprocess.run(ncu + command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if done.returncode != 0 or start is None:
        sys.exit(f"ncu profiled nothing of {' '.join(command)}:\n{done.stdout}\n{done.stderr}")
    header, _units, *rows = list(csv.reader(lines[start:]))
    number = lambda value: int(float(value.replace(",", "")))
    return [
        (row["Kernel Name"], {metric: number(row[metric]) for metric in metrics})
        for row in (dict(zip(header, values)) for values in rows)
    ]
