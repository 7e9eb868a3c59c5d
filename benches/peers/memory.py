"""Transfers and allocators of PyTorch and CuPy, for `warpstride transfers` and `warpstride alloc`.

    python3 memory.py transfers [--bytes N]      GB/s of copies between host and device, and the cost of pinning
    python3 memory.py allocators                 ns of an allocation and its release, by size
    python3 memory.py replay LOG.csv ...         peak bytes of PyTorch's caching allocator on a log in RMM's columns
    python3 memory.py record LOG.csv             writes such a log of three training steps of a transformer

Each prints one JSON document. GB/s are 10^9 bytes a second. A transfer is timed twice: by the host's clock around a copy
and a wait, as programs see it, and by events behind a kernel that holds the stream, as nvbandwidth does.
"""

import csv
import json
import statistics
import sys
import time

import torch

SAMPLES = 7


def host_seconds(work):
    """Returns the median seconds of `work` and a wait, by the host's clock."""
    seconds = []
    for sample in range(SAMPLES + 1):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if sample:
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def event_seconds(work):
    """Returns the median seconds of `work` between two events, behind a kernel that holds the stream meanwhile."""
    seconds = []
    for sample in range(SAMPLES + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        if sample:
            seconds.append(start.elapsed_time(end) / 1e3)
    return statistics.median(seconds)


def transfers(count):
    device, other = (torch.empty(count, dtype=torch.uint8, device="cuda") for _ in range(2))
    pageable = torch.ones(count, dtype=torch.uint8)
    pinned, back = (torch.ones(count, dtype=torch.uint8).pin_memory() for _ in range(2))
    one, two = torch.cuda.Stream(), torch.cuda.Stream()

    def both():
        with torch.cuda.stream(one):
            device.copy_(pinned, non_blocking=True)
        with torch.cuda.stream(two):
            back.copy_(other, non_blocking=True)

    def gbps(seconds, times=1):
        return times * count / seconds / 1e9

    result = {
        "bytes": count,
        "pageable_h2d": gbps(host_seconds(lambda: device.copy_(pageable))),
        "pageable_d2h": gbps(host_seconds(lambda: pageable.copy_(device))),
        "pinned_h2d": gbps(host_seconds(lambda: device.copy_(pinned, non_blocking=True))),
        "pinned_d2h": gbps(host_seconds(lambda: back.copy_(device, non_blocking=True))),
        "pinned_h2d_by_events": gbps(event_seconds(lambda: device.copy_(pinned, non_blocking=True))),
        "pinned_d2h_by_events": gbps(event_seconds(lambda: back.copy_(device, non_blocking=True))),
        "pinned_both_ways": gbps(host_seconds(both), 2),
    }
    start = time.perf_counter()
    torch.empty(count, dtype=torch.uint8, pin_memory=True)
    result["pin_seconds"] = time.perf_counter() - start
    # The frames of the stories: 10 of 3 x 3840 x 2160 floats there and back, pinned, one wait at the end.
    frames = torch.ones(10, 3, 3840, 2160).pin_memory()
    there = torch.empty_like(frames, device="cuda")

    def round_trip():
        there.copy_(frames, non_blocking=True)
        frames.copy_(there, non_blocking=True)

    result["frames_round_trip"] = 2 * frames.nbytes / host_seconds(round_trip) / 1e9
    return result


def pair_ns(work, turns):
    work()
    start = time.perf_counter()
    for _ in range(turns):
        work()
    return (time.perf_counter() - start) / turns * 1e9


def allocators():
    import cupy

    rows = []
    pool, stream = cupy.get_default_memory_pool(), cupy.cuda.Stream(non_blocking=True)
    runtime = cupy.cuda.runtime
    for count in (512, 1 << 12, 1 << 20, 1 << 26, 1 << 30):

        def plain():
            runtime.free(runtime.malloc(count))

        def ordered():
            runtime.freeAsync(runtime.mallocAsync(count, stream.ptr), stream.ptr)

        def cached():
            torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(count))

        def cupys():
            pool.malloc(count)

        rows.append({
            "bytes": count,
            "cudaMalloc": pair_ns(plain, 50),
            "cudaMallocAsync": pair_ns(ordered, 2000),
            "torch": pair_ns(cached, 20000),
            "cupy": pair_ns(cupys, 20000),
        })
    return {"ns_a_pair_from_python": rows}


def replay(path):
    """Feeds a log to PyTorch's caching allocator: each allocation and release on the log's stream, in the log's order.

    The allocator gets the log's sizes by `caching_allocator_alloc`; nothing uses the memory, so no release waits. Failed
    allocations and blocks of 0 bytes are left out and counted, as `warpstride alloc replay` does.
    """
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    live, active, peak_active = {}, 0, 0
    allocate, release = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    with open(path, newline="") as log:
        rows = [(row["Action"], row["Pointer"], int(row["Size"]), row["Stream"]) for row in csv.DictReader(log)]
    if any(row[0] == "lost" for row in rows):
        sys.exit(f"memory.py: {path} misses rows, because its writer was slower than its calls; log with a faster one")
    operations = [row for row in rows if row[0] != "allocate failure" and row[2] > 0]
    if not operations:
        sys.exit(f"memory.py: {path} has no allocations")
    streams = {stream: torch.cuda.Stream() for _, _, _, stream in operations}
    start = time.perf_counter()
    for action, pointer, count, stream in operations:
        if action == "allocate":
            live[pointer] = (allocate(count, stream=streams[stream]), count)
            active += count
            peak_active = max(peak_active, active)
        else:
            address, freed = live.pop(pointer)
            release(address)
            active -= freed
    seconds = time.perf_counter() - start
    for address, _ in live.values():
        release(address)
    peak_reserved = torch.cuda.max_memory_reserved()
    return {
        "log": path,
        "operations": len(operations),
        "left_out": len(rows) - len(operations),
        "peak_active": peak_active,
        "peak_reserved": peak_reserved,
        "ratio": peak_reserved / peak_active,
        "ns_per_call": seconds / len(operations) * 1e9,
    }


def record(path):
    from torch import nn

    torch.manual_seed(0)
    torch.cuda.memory._record_memory_history(max_entries=2_000_000, context=None)
    layers = [nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.1, batch_first=True) for _ in range(12)]
    model = nn.Sequential(*layers, nn.Linear(768, 32000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for tokens in (512, 384, 512):
        x = torch.randn(16, tokens, 768, device="cuda")
        y = torch.randint(0, 32000, (16 * tokens,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1).float(), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    names = {"alloc": "allocate", "free_completed": "free"}
    events = [event for event in torch.cuda.memory._snapshot()["device_traces"][0] if event["action"] in names]
    with open(path, "w", newline="") as log:
        writer = csv.writer(log, lineterminator="\n")
        writer.writerow(["Thread", "Time", "Action", "Pointer", "Size", "Stream"])
        for event in events:
            moment = event["time_us"] - events[0]["time_us"]
            writer.writerow([0, moment, names[event["action"]], hex(event["addr"]), event["size"], event["stream"]])
    return {
        "lines": len(events),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "peak_allocated": torch.cuda.max_memory_allocated(),
    }


def main(arguments):
    match arguments:
        case ["transfers"]:
            result = transfers(1 << 30)
        case ["transfers", "--bytes", count]:
            result = transfers(int(count))
        case ["allocators"]:
            result = allocators()
        case ["replay", *logs] if logs:
            result = {"replays": [replay(log) for log in logs]}
        case ["record", log]:
            result = record(log)
        case _:
            sys.exit(__doc__)
    result |= {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
