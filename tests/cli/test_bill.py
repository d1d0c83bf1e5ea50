"""The bill of materials of the image."""

import json
import re
from pathlib import Path

import pytest

from app.jars import DELTA, GCS, S3, locked
from cli.bill import bill

ROOT = Path(__file__).parents[2]


@pytest.mark.slow(5)
def test_all_that_the_locks_name_is_in_the_bill_with_its_hashes() -> None:
    made = json.loads(bill(ROOT / "requirements.txt", ROOT / "pyproject.toml"))
    assert made["bomFormat"] == "CycloneDX"
    assert made["metadata"]["component"]["name"] == "kcga"
    found = {each["purl"]: each for each in made["components"]}
    packages = re.findall(r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert len(packages) > 50
    for name, version in packages:
        assert any(purl.startswith(f"pkg:pypi/{name.lower()}@{version}") for purl in found), name
    jars = [jar for jars in (DELTA, GCS, S3) for jar in locked(jars)]
    assert len(jars) > 30
    for jar in jars:
        group, name, version = jar.coordinates.group, jar.coordinates.artifact, jar.coordinates.version
        hashes = found[f"pkg:maven/{group}/{name}@{version}"]["hashes"]
        assert hashes == [{"alg": "SHA-256", "content": jar.sha256}]
