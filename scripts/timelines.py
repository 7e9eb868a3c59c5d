"""Timelines of the lessons in Rust, drawn from the calls of a software GPU. `scripts/lesson-pictures` uses them.

The software GPU has no times, so a piece of work takes one unit: a copy, a kernel, and a call that takes or gives back
memory of the driver. Queueing takes a quarter. Work begins as soon as its stream, the events that its stream waits for and
its engine allow. With `--late` it begins when the host waits for it, as it does on the software GPU with an even seed.
"""

import argparse
import re

from drawings import COLOURS, MARGIN, ROW, WIDTH, Canvas, number

QUEUEING = 0.25
LABELS = 110
# Pixels of a unit, at most.
UNIT = 72
ENGINES = {"copy_h2d": "upload", "launch": "compute", "copy_d2h": "download"}
# Calls that are drawn as waiting for all work before they do theirs, with the words in their blocks.
MEMORY = {"alloc": "alloc", "free": "free", "alloc_host": "pin", "free_host": "unpin"}
WAITS = ["stream_synchronize", "event_synchronize"]


def parsed(words):
    """Returns the options of a page's comment."""
    counted = lambda text: (text.split(":")[0], int(text.split(":")[1]))
    parser = argparse.ArgumentParser(prog="calls")
    parser.add_argument("--behind", type=counted, required=True, help="the call behind which the drawing begins: METHOD:N")
    parser.add_argument("--until", type=counted, help="the last call that is drawn, and the waits behind it: METHOD:N")
    parser.add_argument("--late", action="store_true", help="work begins when the host waits for it")
    parser.add_argument("--reads", action="store_true", help="the host reads the result behind its first wait")
    return parser.parse_args(words)


def calls_of(text):
    """Returns the calls of a record: a name, and the operands that are numbers."""
    operands = lambda line: {name: int(value, 0) for name, value in re.findall(r"(\w+): (?:\w+\()?(0x\w+|\d+)", line)}
    return [(line.split(" ")[0], operands(line)) for line in text.splitlines()]


def behind(calls, method, count):
    """Returns the place behind the call that is the `count`-th of its method."""
    places = [at for at, (name, _) in enumerate(calls) if name == method]
    if len(places) < count:
        raise SystemExit(f"timelines: the record has {len(places)} calls of {method}, and {count} are needed")
    return places[count - 1] + 1


def part(calls, options):
    """Returns the calls that are drawn."""
    calls = calls[behind(calls, *options.behind) :]
    end = behind(calls, *options.until) if options.until else len(calls)
    while end < len(calls) and options.until and calls[end][0] in WAITS:
        end += 1
    return calls[:end]


def page_locked(calls):
    """Returns the ranges of page-locked memory. A record has the bytes where memory is taken, and the address where it goes."""
    taken = [given["bytes"] for name, given in calls if name == "alloc_host"]
    given_back = [given["memory"] for name, given in calls if name == "free_host"]
    if len(set(taken)) > 1 or len(taken) != len(given_back):
        raise SystemExit("timelines: the record does not say which page-locked memory has which size")
    return [range(start, start + size) for start, size in zip(given_back, taken)]


class Schedule:
    """When each piece of work runs, and what the host does: (start, end, words, kind), by row."""

    def __init__(self, options, locked):
        self.options, self.locked, self.now = options, locked, 0.0
        self.rows = {row: [] for row in ["host", *COLOURS]}
        self.work, self.last, self.awaited, self.marks = [], {}, {}, {}
        self.reads = options.reads

    def host(self, length, words, kind):
        self.rows["host"].append((self.now, self.now + length, words, kind))
        self.now += length

    def queue(self, engine, stream):
        """Queues a piece of work."""
        self.host(QUEUEING, "", engine)
        self.work.append({"engine": engine, "needs": self.goal(stream), "end": None})
        self.last[stream], self.awaited[stream] = len(self.work) - 1, []
        if not self.options.late:
            self.run(len(self.work) - 1)

    def goal(self, stream):
        """Returns the work behind which new work of a stream runs."""
        return self.awaited.get(stream, []) + ([self.last[stream]] if stream in self.last else [])

    def run(self, at):
        """Gives a piece of work its time, and before it those that it needs. Returns its end."""
        piece = self.work[at]
        if piece["end"] is None:
            row = self.rows[piece["engine"]]
            free = row[-1][1] if row else 0.0
            start = max([self.now, free, *map(self.run, piece["needs"])])
            piece["end"] = start + 1
            row.append((start, start + 1, str(len(row)), piece["engine"]))
        return piece["end"]

    def wait(self, goal):
        """Lets the host wait for work, which takes as long as queueing where the work has run already."""
        self.host(max([self.now + QUEUEING, *map(self.run, goal)]) - self.now, "waits", "waits")

    def read(self):
        """Lets the host read what was copied to it, once."""
        self.reads = False
        copied = all(piece["end"] is not None for piece in self.work if piece["engine"] == "download")
        self.host(1, *("reads", "reads") if copied else ("too early", "reads too early"))

    def call(self, name, given):
        """Follows a call."""
        stream, event = given.get("stream"), given.get("event")
        if name in ENGINES:
            self.queue(ENGINES[name], stream)
            side = given.get("src" if name == "copy_h2d" else "dst")
            if name != "launch" and not any(side in memory for memory in self.locked):
                # The host waits for copies of pageable memory.
                self.wait([len(self.work) - 1])
        elif name == "event_record":
            self.marks[event] = self.goal(stream)
        elif name == "event_wait":
            self.awaited.setdefault(stream, []).extend(self.marks.get(event, []))
        elif name in WAITS:
            self.wait(self.marks.get(event, []) if event else self.goal(stream))
            if self.reads:
                self.read()
        elif name in MEMORY:
            # The software GPU runs what is queued before memory is given back, and not before it is taken.
            running = [] if self.options.late and name.startswith("alloc") else range(len(self.work))
            end = max([self.now, *map(self.run, running)])
            if end > self.now:
                self.host(end - self.now, "waits", "waits")
            self.host(1, MEMORY[name], "memory")
        elif name == "pool_alloc":
            self.host(QUEUEING, "", "pool")


def draw(records, words, subject, style):
    """Draws the calls of the task above those of the solution. `records` are their records, by file."""
    options, schedules = parsed(words), {}
    for file, text in records.items():
        calls = calls_of(text)
        schedules[file] = Schedule(options, page_locked(calls))
        for name, given in part(calls, options):
            schedules[file].call(name, given)
    last = lambda schedule: max(end for row in schedule.rows.values() for _, end, _, _ in row)
    ends = {file: last(schedule) for file, schedule in schedules.items()}
    scale = min(UNIT, (WIDTH - 2 * MARGIN - LABELS) / max(ends.values()))
    used = [row for row in ["host", *COLOURS] if any(schedule.rows[row] for schedule in schedules.values())]
    canvas = Canvas(subject)
    for file, schedule in schedules.items():
        # The record does not say which calls make the host wait, so the drawing counts what it shows.
        waits = sum(kind == "waits" for *_, kind in schedule.rows["host"])
        title = f"{file}: {number(ends[file])} units, {waits} drawn wait{'' if waits == 1 else 's'} of the host"
        canvas.line("title", title)
        canvas.words.append(f"{title}.")
        for row in used:
            canvas.y += ROW
            canvas.text("faint", MARGIN, row)
            for start, end, words, kind in schedule.rows[row]:
                tip = f"{f'{kind} {words}' if row != 'host' else kind}, from {number(start)} to {number(end)}"
                classes = "crowd" if kind in ("waits", "reads too early") else "moved"
                x = MARGIN + LABELS + start * scale
                canvas.block(x, (end - start) * scale, words, tip, COLOURS.get(kind), classes)
            named = [f"{words} {number(start)}-{number(end)}" for start, end, words, _ in schedule.rows[row] if words]
            # The host's blocks without words queue work.
            canvas.words.append(f"{row}: {', '.join(named) or 'queues alone' if schedule.rows[row] else 'nothing'}.")
        canvas.y += ROW / 2
    canvas.line("faint", "a copy, a kernel or a call for memory of the driver is one unit; a narrow block queues the work of its colour")
    if any(kind == "pool" for schedule in schedules.values() for *_, kind in schedule.rows["host"]):
        canvas.line("faint", "a narrow grey block is a call of the pool")
    return canvas.finish(style)
