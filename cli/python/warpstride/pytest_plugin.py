"""A plugin for pytest: `pytest --warpstride` runs the CUDA of tests on a software GPU, and checks it.

Each test fails with what the checkers find in it. A marker holds a test's kernels to expectations:

    @pytest.mark.warpstride("load.sectors <= 1.0 * ideal", "shared.bank_conflicts == 0", kernel="transpose")
    def test_transpose(): ...

and the fixture `soft_gpu` has the counters of the kernels that the test has run so far.
"""

import collections
import ctypes
import json
import os
import sys

import pytest

from . import program

# `warpstride run` sets it for a program that it runs.
INSIDE = "WARPSTRIDE_RUN_REPORT"


def pytest_addoption(parser):
    group = parser.getgroup("warpstride")
    group.addoption("--warpstride", action="store_true", help="run the CUDA of tests on warpstride's software GPU")
    group.addoption(
        "--warpstride-checks",
        metavar="CHECKS",
        default="all",
        help="with --warpstride: all, or some of memcheck, initcheck, racecheck and synccheck by comma",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    # This comes before pytest captures the output, and before a test or conftest.py loads CUDA.
    options = early_config.known_args_namespace
    if options.warpstride and INSIDE not in os.environ:
        found = program()
        if found is None:
            raise pytest.UsageError("--warpstride: the program warpstride is not there; install it, or put it into PATH")
        command = getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv]
        sys.stdout.flush()
        os.execv(found, [found, "run", "--check", options.warpstride_checks, "--", *command])
    return (yield)


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "warpstride(*expectations, kernel=None): with --warpstride, hold a kernel of the test, or the sum of all, to "
        "expectations such as 'load.sectors <= 1.0 * ideal'",
    )
    if config.getoption("--warpstride"):
        config.pluginmanager.register(Checks(Library()), "warpstride-checks")


class Library:
    """The software GPU as this process has it."""

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
            self.read_section = self.cuda.warpstrideSectionRead
        except (OSError, AttributeError) as error:
            raise pytest.UsageError(f"--warpstride: libcuda.so.1 is not the software GPU: {error}") from error

    def begin(self):
        self.cuda.warpstrideSectionBegin()

    def read(self, expectations=()):
        """Returns the document of what ran since `begin`."""
        text = ctypes.c_char_p()
        if self.read_section(json.dumps(expectations).encode(), ctypes.byref(text)):
            raise pytest.UsageError(f"the software GPU does not take these expectations: {expectations}")
        return json.loads(text.value)


def findings(document):
    """Returns the texts of what the checkers found, each with the number of times."""
    found = collections.Counter()
    for kernel in document["kernels"]:
        for finding in kernel["findings"]:
            if not finding.get("note"):
                # The text says how often it was found.
                found[f"{finding['rule']}: {finding['text']}"] = 1
        for stop in kernel["stops"]:
            found[f"{stop['rule']}: {stop['text']}"] += stop["count"]
        if kernel["more_findings"]:
            found[f"{kernel['kernel']} has more findings"] += kernel["more_findings"]
    for pair in document["order"]["findings"]:
        found[f"racecheck/streams: {pair['text']}"] += pair["count"]
    for failure in document["failures"] or []:
        if failure["rule"]:
            found[f"{failure['rule']}: {failure['function']}: {failure['why']}"] += failure["count"]
    return found


class SoftGpu:
    """The kernels of a test on the software GPU, as far as they have run."""

    def __init__(self, gpu):
        self._gpu = gpu

    @property
    def kernels(self):
        """The kernels in the order of their first launches, as `warpstride run --json` has them."""
        return self._gpu.read()["kernels"]

    def expect(self, *expectations, kernel=None):
        """Fails the test if a kernel, or the sum of all, does not meet expectations."""
        wanted = [{"kernel": kernel, "expectation": expectation} for expectation in expectations]
        short = [verdict for verdict in self._gpu.read(wanted)["verdicts"] if not verdict["held"]]
        if short:
            lines = (v.get("error") or f"found {v['found']}, wanted {v['wanted']}" for v in short)
            pytest.fail("\n".join(f"{v['expectation']}: {line}" for v, line in zip(short, lines)), pytrace=False)


class Checks:
    """Fails tests with the findings of the checkers, and with expectations that fell short."""

    def __init__(self, gpu):
        self.gpu = gpu
        # The findings so far. Those of calls and streams count since the process began.
        self.known = collections.Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self):
        self.gpu.begin()
        self.known = findings(self.gpu.read())
        return self.checked((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        result = yield
        for marker in reversed(list(item.iter_markers("warpstride"))):
            SoftGpu(self.gpu).expect(*marker.args, **marker.kwargs)
        return self.checked(result)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self):
        return self.checked((yield))

    def checked(self, result):
        found = findings(self.gpu.read())
        new = found - self.known
        self.known = found
        if new:
            pytest.fail("\n".join(f"{text}{f', {times} times' if times > 1 else ''}" for text, times in new.items()), pytrace=False)
        return result


@pytest.fixture
def soft_gpu(request):
    """The kernels that the test has run on the software GPU; skips the test without `--warpstride`."""
    checks = request.config.pluginmanager.get_plugin("warpstride-checks")
    if checks is None:
        pytest.skip("it needs --warpstride")
    return SoftGpu(checks.gpu)
