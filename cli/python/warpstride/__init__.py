"""The command line `warpstride`, which `python -m warpstride` runs too, and a plugin for pytest."""

import importlib.metadata
import os
import shutil


def program():
    """Returns the path of the command line: that of this package, or else the one in PATH; None without both."""
    try:
        # pip notes where it put each file, also in a user's folder.
        files = importlib.metadata.files("warpstride") or []
    except importlib.metadata.PackageNotFoundError:
        return shutil.which("warpstride")
    programs = (os.fspath(file.locate()) for file in files if file.name == "warpstride" and file.parent.name == "bin")
    return next((program for program in programs if os.path.exists(program)), None)
