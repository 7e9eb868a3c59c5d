"""PyTorch's pipeline of frames, for `warpstride pipeline --reuse`: pinned memory and copies with `non_blocking=True`.

usage: pipeline.py [--batch N] [--shape C,H,W] [--dtype u8|f32] [--compute X,Y] [--slots N] [--frames N]

Frames lie in pinned memory once for each slot, so that the host makes none. A batch goes to the GPU, each channel is
normalised to f32 planes, a model computes, and the results go to pinned memory. The model is a loop of fused kernels,
`x = offset + factor * x`; their number is found so that all work on the GPU takes X times as long as the copies of a
batch alone. `--compute` takes several such multiples, and 0 leaves the model out.

The ways: `blocking` waits behind every batch; `one_stream` queues everything on one stream, at most as many batches as
there are slots; `streams` gives each slot a stream, so that copies of one batch overlap the work of another.

The first line of JSON has the versions. Each other line has a way and its frames a second beside `link` and `compute`,
the rates of the copies alone, in both directions at once, and of the work alone; the bound is the slower of the two.
"""

import argparse
import json
import statistics
import time

import torch

TYPES = {"u8": torch.uint8, "f32": torch.float32}
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FACTOR, OFFSET = 0.999, 0.001
SAMPLES = 5
WAYS = ("blocking", "one_stream", "streams")


def numbers(text):
    return [float(part) for part in text.split(",")]


def extents(text):
    channels, height, width = (int(part) for part in text.split(","))
    return channels, height, width


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--shape", type=extents, default=(3, 224, 224))
    parser.add_argument("--dtype", choices=TYPES, default="u8")
    parser.add_argument("--compute", type=numbers, default=[0.5, 1.0, 2.0])
    parser.add_argument("--slots", type=int, default=6)
    parser.add_argument("--frames", type=int, default=32768)
    return parser.parse_args()


class Slot:
    """Pinned and device memory of one batch, a stream, and an event behind its last copy."""

    def __init__(self, options):
        channels, height, width = options.shape
        # Bytes lie as images do, and floats as planes.
        shape = (height, width, channels) if options.dtype == "u8" else options.shape
        type_ = TYPES[options.dtype]
        frames = torch.rand(options.batch, *shape)
        self.source = ((frames * 255).to(type_) if options.dtype == "u8" else frames).pin_memory()
        self.input = torch.empty_like(self.source, device="cuda")
        self.output = torch.empty(options.batch, *options.shape, device="cuda")
        self.sink = torch.empty(options.batch, *options.shape, pin_memory=True)
        self.stream, self.landed = torch.cuda.Stream(), torch.cuda.Event()


class Pipeline:
    def __init__(self, options):
        self.options, self.steps = options, 0
        self.slots = [Slot(options) for _ in range(options.slots)]
        scale = 1 / 255 if options.dtype == "u8" else 1.0
        channels = options.shape[0]
        values = [(scale / DEVIATION[c % 3], -MEAN[c % 3] / DEVIATION[c % 3]) for c in range(channels)]
        self.factor, self.offset = (torch.tensor(v, device="cuda").view(1, -1, 1, 1) for v in zip(*values))
        self.step = torch.tensor(OFFSET, device="cuda")

    def upload(self, slot):
        slot.input.copy_(slot.source, non_blocking=True)

    def work(self, slot):
        planes = slot.input.permute(0, 3, 1, 2) if self.options.dtype == "u8" else slot.input
        torch.mul(planes, self.factor, out=slot.output)
        slot.output.add_(self.offset)
        for _ in range(self.steps):
            torch.add(self.step, slot.output, alpha=FACTOR, out=slot.output)

    def download(self, slot):
        slot.sink.copy_(slot.output, non_blocking=True)

    def batch(self, slot):
        self.upload(slot)
        self.work(slot)
        self.download(slot)
        slot.landed.record()

    def run(self, way, batches):
        """Returns the seconds of a run."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        for number in range(batches):
            slot = self.slots[number % len(self.slots)]
            # The host takes the results before it sends the slot's next batch.
            slot.landed.synchronize()
            if way == "streams":
                with torch.cuda.stream(slot.stream):
                    self.batch(slot)
            else:
                self.batch(slot)
            if way == "blocking":
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    def link(self, rounds=20):
        """Returns the seconds of the copies of a batch, both directions at once on two streams."""
        up, down = torch.cuda.Stream(), torch.cuda.Stream()

        def copies():
            for slot in self.slots:
                with torch.cuda.stream(up):
                    self.upload(slot)
                with torch.cuda.stream(down):
                    self.download(slot)

        return self.seconds(copies, rounds) / len(self.slots)

    def compute(self, rounds=20):
        """Returns the seconds of the work on a batch."""
        return self.seconds(lambda: [self.work(slot) for slot in self.slots], rounds) / len(self.slots)

    @staticmethod
    def seconds(queue, rounds):
        """Returns the least seconds of a round of `queue`."""
        least = float("inf")
        queue()
        for _ in range(SAMPLES):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(rounds):
                queue()
            torch.cuda.synchronize()
            least = min(least, (time.perf_counter() - start) / rounds)
        return least

    def take(self, multiple, link):
        """Chooses the model's steps so that the work takes `multiple` times the copies."""
        self.steps = 0
        bare = self.compute(5)
        if multiple == 0:
            return
        self.steps = 20
        each = (self.compute(5) - bare) / self.steps
        self.steps = max(0, round((multiple * link - bare) / each))

    def verified(self):
        """Returns whether the first batch's results are those of a CPU, nearly: PyTorch rounds in its own ways."""
        slot = self.slots[0]
        self.batch(slot)
        torch.cuda.synchronize()
        frames = slot.source[:1].to(torch.float32)
        frames = frames.permute(0, 3, 1, 2) if self.options.dtype == "u8" else frames
        expected = frames * self.factor.cpu() + self.offset.cpu()
        for _ in range(self.steps):
            expected = OFFSET + FACTOR * expected
        return bool(torch.allclose(slot.sink[:1], expected, rtol=1e-3, atol=1e-4))


def main():
    options = arguments()
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    pipeline = Pipeline(options)
    batches = max(2 * options.slots, options.frames // options.batch)
    frames = batches * options.batch
    link = pipeline.link()
    for multiple in options.compute:
        pipeline.take(multiple, link)
        compute, verified = pipeline.compute(), pipeline.verified()
        bound = options.batch / max(link, compute)
        for way in WAYS:
            pipeline.run(way, 2 * options.slots)
            rate = frames / statistics.median(pipeline.run(way, batches) for _ in range(3))
            print(
                json.dumps({
                    "way": way,
                    "batch": options.batch,
                    "shape": options.shape,
                    "dtype": options.dtype,
                    "compute_multiple": multiple,
                    "steps": pipeline.steps,
                    "verified": verified,
                    "frames": frames,
                    "frames_per_second": rate,
                    "link": options.batch / link,
                    "compute": options.batch / compute,
                    "fraction_of_bound": rate / bound,
                }),
                flush=True,
            )


if __name__ == "__main__":
    main()
