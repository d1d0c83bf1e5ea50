"""The bill of materials of the image."""

import json
import re
from pathlib import Path

from app.jars import DELTA, GCS, S3, locked
from cli.bill import bill

ROOT = Path(__file__).parents[2]
LOCKED_PACKAGE = re.compile(r"^([\w.-]+)==([^ ;\\]+)[^\n]*\\\n((?: +--hash=sha256:\w+(?: \\)?\n)+)", re.MULTILINE)


def test_all_that_the_locks_name_is_in_the_bill_with_its_hashes() -> None:
    made = json.loads(bill(ROOT / "requirements.txt", ROOT / "pyproject.toml"))
    assert made["bomFormat"] == "CycloneDX"
    kcga = made["metadata"]["component"]
    assert (kcga["name"], kcga["licenses"][0]["license"]["id"]) == ("kcga", "Apache-2.0")
    hashes = {each["purl"]: {has["content"] for has in each["hashes"]} for each in made["components"]}
    packages = LOCKED_PACKAGE.findall((ROOT / "requirements.txt").read_text())
    assert len(packages) > 50
    for name, version, listed in packages:
        assert hashes.pop(f"pkg:pypi/{name.lower()}@{version}") == set(re.findall(r"sha256:(\w+)", listed))
    jars = [jar for jars in (DELTA, GCS, S3) for jar in locked(jars)]
    assert len(jars) > 30
    for jar in jars:
        group, name, version = jar.coordinates.group, jar.coordinates.artifact, jar.coordinates.version
        assert hashes.pop(f"pkg:maven/{group}/{name}@{version}") == {jar.sha256}
    assert not hashes, "nothing else is in it"
