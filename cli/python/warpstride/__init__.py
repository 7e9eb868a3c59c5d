"""The command line `warpstride`, which `python -m warpstride` runs too."""
