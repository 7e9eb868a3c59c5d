"""Nsight Compute from Python: the counters that the software GPU has, and what `ncu` says of them."""

import csv
import subprocess
import sys

# Field of our JSON -> Nsight Compute's metric, with {} for ld or st.
METRICS = {
    "global": {
        "instructions": "smsp__sass_inst_executed_op_global_{}.sum",
        "requests": "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum",
        "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum",
    },
    "shared": {
        "instructions": "smsp__sass_inst_executed_op_shared_{}.sum",
        "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum",
        "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum",
    },
}
FIGURES = [
    (f"{space}_{long}", field, metric.format(short))
    for space, fields in METRICS.items()
    for long, short in (("load", "ld"), ("store", "st"))
    for field, metric in fields.items()
]

# What hardware adds something to that differs from run to run.
LOSSY = ("wavefronts", "bank_conflicts")


def profile(command, metrics, *options):
    """Runs `command` under `ncu`: the name and the metrics, as whole numbers, of each launch that it profiled."""
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
