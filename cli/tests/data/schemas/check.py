"""Checks reports against their schemas: `.sarif` files against SARIF 2.1.0, `.xml` files against the JUnit of Jenkins.

    python check.py FILE ...
"""

import json
import pathlib
import sys

import jsonschema
import xmlschema

FOLDER = pathlib.Path(__file__).parent


def check_sarif(path):
    schema = json.loads((FOLDER / "sarif-2.1.0.json").read_text())
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(json.loads(path.read_text()))]


def check_junit(path):
    schema = xmlschema.XMLSchema(FOLDER / "junit-10.xsd")
    return [f"{error.path}: {error.reason}" for error in schema.iter_errors(path)]


def main():
    faults = []
    for path in map(pathlib.Path, sys.argv[1:]):
        found = check_sarif(path) if path.suffix == ".sarif" else check_junit(path)
        faults += [f"{path}: {fault}" for fault in found]
    if faults or not sys.argv[1:]:
        sys.exit("\n".join(faults) or __doc__)


main()
