#!/usr/bin/env python3
"""Makes a library of CUDA small enough to carry: it zeroes the code for other GPUs, and compresses the rest.

usage: prune.py LIBRARY CAPABILITY OUT.xz        prune.py cutensor/lib/libcutensor.so.2 90 libcutensor.so.2.xz

The library comes from PyPI (`pip download --no-deps cutensor-cu13`, a zip archive). A fat binary holds an entry for each GPU.
The script keeps every header and the entries of machine code for CAPABILITY, so that nothing moves and the driver chooses as
before. `xz -dk OUT.xz` gives back a library of the same length; `scripts/compare-peers` takes it by CUTENSOR_LIBRARY.
"""

import lzma
import os
import struct
import sys
from pathlib import Path

MAGIC = (0xBA55ED50).to_bytes(4, "little")
# Bytes of the headers, in which an entry has its length and its capability.
FAT_HEADER, ENTRY_HEADER = 16, 64
MACHINE_CODE = 2
# An entry of a few bytes stays: some libraries have PTX without a kernel, which the driver may
# look at.
SMALL = 128


def entries(data):
    """Yields the offset, length, kind and capability of each entry of each fat binary."""
    at = data.find(MAGIC)
    while at >= 0:
        _, version, header, body = struct.unpack_from("<IHHQ", data, at)
        end = at + header + body
        if version != 1 or header != FAT_HEADER or end > len(data):
            at = data.find(MAGIC, at + len(MAGIC))
            continue
        entry = at + header
        while entry < end:
            if entry + ENTRY_HEADER > end:
                sys.exit(f"prune.py: the fat binary at byte {at} ends within an entry")
            kind, _, header, length = struct.unpack_from("<HHIQ", data, entry)
            (capability,) = struct.unpack_from("<I", data, entry + 28)
            if header < ENTRY_HEADER or entry + header + length > end:
                sys.exit(f"prune.py: the fat binary at byte {at} has a form that this script does not know")
            yield entry + header, length, kind, capability
            entry += header + length
        at = data.find(MAGIC, end)


def main():
    if len(sys.argv) != 4 or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    try:
        data, wanted = bytearray(Path(sys.argv[1]).read_bytes()), int(sys.argv[2])
    except OSError as error:
        sys.exit(f"prune.py: {error}")
    kept = 0
    for at, length, kind, capability in list(entries(data)):
        if (kind, capability) == (MACHINE_CODE, wanted):
            kept += length
        elif length > SMALL:
            data[at : at + length] = bytes(length)
    if not kept:
        sys.exit(f"prune.py: {sys.argv[1]} has no machine code for sm_{wanted}")
    # A stop in between leaves no part of a library.
    temporary = Path(sys.argv[3] + ".new")
    temporary.write_bytes(lzma.compress(bytes(data), preset=7))
    os.replace(temporary, sys.argv[3])
    print(f"prune.py: {kept} bytes of code for sm_{wanted} are left")


if __name__ == "__main__":
    main()
