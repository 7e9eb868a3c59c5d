"""Times a transpose of a matrix over several GPUs as PyTorch and NCCL do it: pack, all-to-all, unpack.

One process for each GPU. The matrix and its transpose are cut by rows. Prints one line of JSON for
each case: the median time of the slowest rank, and that of the all-to-all alone. Every rank compares
all of its result.

    python3 benches/peers/redistribute.py GPUS
"""
import json
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

CASES = [
    (torch.float32, 1024, 2048),
    (torch.float32, 8192, 8192),
    (torch.float32, 32768, 32768),
    (torch.float16, 32768, 32768),
    (torch.uint8, 32768, 32768),
]


def timed(call, repeat=20):
    """Returns the median milliseconds of the slowest rank."""
    for _ in range(5):
        call()
    times = []
    for _ in range(repeat):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier()
        torch.cuda.synchronize()
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        slowest = torch.tensor([begin.elapsed_time(end)], device="cuda")
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        times.append(slowest.item())
    return statistics.median(times)


def part(rank, ranks, dtype, rows, cols):
    """Returns the rows of a rank, the same on every rank."""
    generator = torch.Generator(device="cuda").manual_seed(rank)
    return torch.randint(0, 200, (rows // ranks, cols), device="cuda", generator=generator, dtype=torch.uint8).to(dtype)


def transposes(rank, ranks):
    """Measures the cases and checks each result."""
    for dtype, rows, cols in CASES:
        mine = part(rank, ranks, dtype, rows, cols)
        packed = torch.empty((ranks, cols // ranks, rows // ranks), dtype=dtype, device="cuda")
        got = torch.empty_like(packed)
        result = torch.empty((cols // ranks, rows), dtype=dtype, device="cuda")

        def exchange():
            dist.all_to_all_single(got, packed)

        def transpose():
            packed.copy_(mine.view(rows // ranks, ranks, cols // ranks).permute(1, 2, 0))
            exchange()
            result.view(cols // ranks, ranks, rows // ranks).copy_(got.permute(1, 0, 2))

        ms, alone = timed(transpose), timed(exchange)
        right = torch.ones(1, device="cuda")
        for other in range(ranks):
            block = part(other, ranks, dtype, rows, cols)[:, rank * (cols // ranks) : (rank + 1) * (cols // ranks)]
            got_block = result[:, other * (rows // ranks) : (other + 1) * (rows // ranks)]
            right *= float(torch.equal(got_block, block.t()))
        dist.all_reduce(right, op=dist.ReduceOp.MIN)
        if rank == 0:
            case = {"dtype": str(dtype)[6:], "shape": [rows, cols], "ms": ms, "all_to_all_ms": alone, "verified": bool(right.item())}
            print(json.dumps(case), flush=True)
        del mine, packed, got, result
        torch.cuda.empty_cache()


def work(rank, ranks):
    """Runs one rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", NCCL_NVLS_ENABLE="0")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    transposes(rank, ranks)
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus = int(sys.argv[1])
    mp.spawn(work, args=(gpus,), nprocs=gpus)
