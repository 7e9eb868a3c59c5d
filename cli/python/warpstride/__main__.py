"""Runs the program of this package in place of Python."""

import importlib.metadata
import os
import sys

# pip notes where it put each file, also in a user's folder.
files = importlib.metadata.files("warpstride") or []
programs = (os.fspath(file.locate()) for file in files if file.name == "warpstride" and file.parent.name == "bin")
program = next((program for program in programs if os.path.exists(program)), None)
if program is None:
    sys.exit("error: this package's program is not there; install it anew: pip install --force-reinstall warpstride")
os.execv(program, [program, *sys.argv[1:]])
