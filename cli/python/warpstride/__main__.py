"""Runs the program of this package in place of Python."""

import os
import sys

from . import program

found = program()
if found is None:
    sys.exit("error: this package's program is not there; install it anew: pip install --force-reinstall warpstride")
os.execv(found, [found, *sys.argv[1:]])
