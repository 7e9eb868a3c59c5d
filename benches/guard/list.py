#!/usr/bin/env python3
"""Writes the list of permutes that guards every choice of kernels: benches/guard/cases.json.

usage: benches/guard/list.py WARPSTRIDE > benches/guard/cases.json

WARPSTRIDE is the command line, which draws the cases of a seed. README.md beside this script says where the others come from.
"""
import json
import math
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
WIDTHS = {"u8": 1, "u16": 2, "f32": 4, "f64": 8, "c128": 16}
MIB = 1 << 20
LIST = []


def add(kind, dtype, shape, axes, **more):
    """Adds a case, unless the list has it."""
    case = {"kind": kind, "dtype": dtype, "shape": list(shape), "axes": list(axes), **more}
    of = lambda case: {key: value for key, value in case.items() if key not in ("kind", "name")}
    if all(of(case) != of(other) for other in LIST):
        assert math.prod(shape) * WIDTHS[dtype] <= 1024 * MIB, case
        LIST.append(case)


def fill(kind, dtype, shape, axes, mib=72, **more):
    """Adds a case whose extent that is given as None, if there is one, makes an array of about `mib` MiB."""
    rest = math.prod(extent for extent in shape if extent) * WIDTHS[dtype]
    add(kind, dtype, [mib * MIB // rest if extent is None else extent for extent in shape], axes, **more)


def both(kind, dtypes, pixels, **more):
    """Adds images N, H, W, C into planes, and back."""
    images, rows, columns, channels = pixels
    for dtype in dtypes.split():
        fill(kind, dtype, [images, rows, columns, channels], [0, 3, 1, 2], **more)
        fill(kind, dtype, [images, channels, rows, columns], [0, 2, 3, 1], **more)


def public():
    """The cases of `bench --all` and those beside them."""
    for file in ["../../cli/src/bench/cases.json", "../cases-more.json"]:
        for case in json.loads((FOLDER / file).read_text()):
            add(case.get("kind", "listed"), case["dtype"], case["shape"], case["axes"])


def drawn(warpstride):
    """300 drawn cases."""
    line = [warpstride, "bench", "permute", "--random", "31415927,300", "--cases"]
    for case in json.loads(subprocess.run(line, check=True, capture_output=True).stdout):
        steps = {"steps": case["steps"]} if "steps" in case else {}
        add(case["kind"], case["dtype"], case["shape"], case["axes"], **steps)


def strided_copies():
    """The layouts of NVIDIA/cccl's benchmark of strided copies, with fewer of the outermost indices."""
    kind = "cccl"
    add(kind, "f32", [2, 70, 90, 80, 80], [0, 1, 2, 3, 4])
    add(kind, "f32", [2, 70, 90, 80, 80], [0, 1, 2, 3, 4], start=1)
    add(kind, "u8", [6, 70, 90, 80, 80], [0, 1, 2, 3, 4])
    add(kind, "u8", [6, 70, 90, 80, 80], [0, 1, 2, 3, 4], start=1)
    add(kind, "f32", [2, 70, 90, 80, 80], [0, 1, 2, 3, 4], steps=[1, 1, 1, 1, -1], start=1)
    add(kind, "u8", [4 * MIB, 32], [0, 1], within=[4 * MIB, 128], into=[4 * MIB, 128], start=32)
    add(kind, "f32", [1023, 32768], [0, 1], within=[1023, 131072], into=[1023, 131072])
    padded = [8, 64, 64, 64, 65]
    add(kind, "f32", [8, 64, 64, 64, 64], [0, 1, 2, 3, 4], within=padded, into=padded)
    padded = [6, 65, 67, 69, 58]
    add(kind, "f32", [6, 65, 67, 69, 57], [0, 1, 2, 3, 4], within=padded, into=padded)
    add(kind, "u8", [1 << 20, 2, 2, 2], [0, 3, 1, 2])
    add(kind, "f32", [8192, 8192], [1, 0])
    add(kind, "u8", [16384, 16384], [1, 0])
    add(kind, "u16", [16384, 8190], [1, 0])
    add(kind, "f64", [4096, 8192], [1, 0])
    add(kind, "f32", [8193, 8191], [1, 0])
    add(kind, "f32", [400, 400, 400], [2, 1, 0])
    add(kind, "f32", [400, 401, 399], [2, 1, 0])
    for extent in [15, 16, 17]:
        # Axes: rows, 32 columns and few; the few come first in the result.
        fill(kind, "f32", [None, 32, extent], [2, 0, 1], mib=256)
    for few in [8, 16]:
        rows = 256 * MIB // (4 * 32 * few)
        add(kind, "f32", [rows, few, 32], [2, 0, 1], into=[32, rows, 2 * few])
    add(kind, "f32", [128, 1024, 32, 16], [3, 0, 1, 2])


def images():
    for rows, columns in [(224, 224), (1080, 1920)]:
        both("images", "u8 u16 f32", [None, rows, columns, 3])
    both("images", "u8", [50000, 32, 32, 3])
    both("images", "u16 f32", [None, 32, 32, 3])
    both("images", "u8 f32", [None, 299, 299, 3])
    both("images", "u8 u16", [None, 480, 640, 4])
    both("images", "u8", [None, 1200, 1600, 2])
    both("images", "u16", [None, 512, 512, 12])
    both("images", "u8", [None, 128, 128, 33])
    both("images", "f32", [None, 96, 96, 9])
    for channels, side in [(64, 112), (256, 56), (1024, 14), (2048, 7)]:
        both("images", "u16", [None, side, side, channels])
    both("images", "u8 f32", [None, 28, 28, 512])
    # Upside down, blue first, and every second pixel.
    fill("images", "u8", [None, 1080, 1920, 3], [0, 1, 2, 3], steps=[1, -1, 1, 1])
    fill("images", "u8", [None, 1080, 1920, 3], [0, 3, 1, 2], steps=[1, 1, 1, -1])
    fill("images", "u8", [None, 540, 960, 3], [0, 3, 1, 2], steps=[1, 2, 2, 1])
    # A part of each image, and images into rows that start on whole lines.
    add("images", "u8", [500, 224, 224, 3], [0, 3, 1, 2], within=[500, 256, 256, 3])
    add("images", "u8", [12, 1080, 1920, 3], [0, 3, 1, 2], into=[12, 3, 1080, 2048])


def structs():
    for fields in [4, 8, 12, 16, 20, 32]:
        fill("structs", "u8", [None, fields], [1, 0])
        fill("structs", "u8", [fields, None], [1, 0])
    for dtype, most in [("u8", [3, 6, 7, 9]), ("u16", [4, 6, 7, 12]), ("f32", [6, 8, 9, 12]), ("f64", [4, 5, 8, 9, 13])]:
        for fields in most:
            fill("structs", dtype, [None, fields], [1, 0])
    for dtype in ["u16", "f32", "f64"]:
        fill("structs", dtype, [6, None], [1, 0])
    for fields in [5, 7]:
        fill("structs", "c128", [None, fields], [1, 0])
    for dtype, fields in [("u8", 4), ("u8", 8), ("u16", 3), ("f32", 7)]:
        fill("structs", dtype, [None, 65536, fields], [0, 2, 1])


def batches():
    squares = {
        "u8": [3, 4, 8, 12, 16, 24, 28, 31, 32, 64],
        "u16": [4, 8, 16, 28, 31, 64],
        "f32": [3, 5, 8, 16, 28, 31, 33],
        "f64": [3, 6, 9, 12, 16, 24, 31],
        "c128": [3, 4, 6, 8, 12, 16],
    }
    for dtype, sides in squares.items():
        for side in sides:
            fill("batch", dtype, [None, side, side], [0, 2, 1])
    for dtype in WIDTHS:
        for rows, columns in [(35, 37), (109, 61), (255, 129)]:
            fill("odd", dtype, [None, rows, columns], [0, 2, 1])
    for rows, columns in [(4, 3), (10, 100), (64, 6)]:
        fill("batch", "u8", [None, rows, columns], [0, 2, 1])
        fill("batch", "f32", [None, rows, columns], [0, 2, 1])


def heads():
    for dtype, length, count, wide in [
        ("u16", 2048, 32, 64), ("u16", 1024, 12, 80), ("u16", 1500, 20, 64), ("u16", 4096, 8, 128), ("u8", 2048, 32, 128),
        ("f32", 512, 12, 64), ("f32", 577, 16, 72), ("u16", 197, 12, 64),
    ]:
        fill("heads", dtype, [None, length, count, wide], [0, 2, 1, 3])
    # Queries, keys and values of one projection, keys transposed, and pages of a cache.
    fill("heads", "u16", [None, 1024, 3, 16, 64], [2, 0, 3, 1, 4])
    fill("heads", "f32", [None, 197, 3, 12, 64], [2, 0, 3, 1, 4])
    fill("heads", "u16", [None, 16, 2048, 64], [0, 1, 3, 2])
    fill("heads", "u16", [None, 12, 1500, 80], [0, 1, 3, 2])
    fill("heads", "f32", [None, 12, 512, 64], [0, 1, 3, 2])
    fill("heads", "u8", [None, 16, 8, 128], [0, 2, 3, 1])
    fill("heads", "u16", [None, 8, 16, 16, 8], [0, 2, 1, 3, 4])


def files():
    """Arrays of scientists, a few of them small."""
    add("files", "f32", [24, 721, 1440], [1, 2, 0])
    add("files", "f32", [10, 37, 181, 360], [0, 2, 3, 1])
    add("files", "u16", [300, 512, 512], [2, 1, 0])
    add("files", "u16", [4, 3660, 3660], [1, 2, 0])
    add("files", "f32", [720, 256, 384], [1, 0, 2])
    add("files", "f64", [128, 512, 256], [2, 1, 0])
    add("files", "f64", [181, 360, 137], [2, 0, 1])
    add("files", "f64", [513, 259, 65], [2, 1, 0])
    add("files", "c128", [16, 256, 1024], [2, 0, 1])
    add("files", "f64", [1000000, 17], [1, 0])
    add("files", "f32", [20000, 999], [1, 0])
    add("files", "u8", [100000, 1001], [1, 0])
    add("files", "u8", [61, 720, 1280, 3], [3, 0, 1, 2])
    add("files", "f32", [513, 301, 129], [2, 1, 0])
    add("files", "c128", [192, 192, 192], [2, 1, 0])
    add("files", "u16", [103, 610, 680], [1, 2, 0])
    add("files", "f32", [24] * 6, [5, 4, 3, 2, 1, 0])
    add("files", "u8", [24] * 6, [5, 4, 3, 2, 1, 0])
    add("files", "f32", [512, 512, 512], [2, 1, 0])
    # Rows that start on whole lines, as libraries of images allocate them.
    add("files", "f32", [6000, 6000], [1, 0], within=[6000, 6016])
    add("files", "u8", [10000, 10000], [1, 0], into=[10000, 10240])
    add("files", "u16", [5000, 7000], [1, 0], within=[5000, 7168], into=[7000, 5120])
    add("small", "f64", [1000, 1000], [1, 0])
    add("small", "u8", [2160, 3840, 3], [2, 0, 1])
    add("small", "u8", [10000, 28, 28], [0, 2, 1])
    add("small", "f32", [64, 64, 64], [2, 1, 0])
    add("small", "f32", [100000, 3], [1, 0])
    add("small", "u16", [8, 1024, 16, 64], [0, 2, 1, 3])


def main(warpstride):
    public()
    drawn(warpstride)
    strided_copies()
    for family in [images, structs, batches, heads, files]:
        family()
    assert len(LIST) == 600, f"the list has {len(LIST)} cases"
    print("[\n " + ",\n ".join(json.dumps(case) for case in LIST) + "\n]")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
