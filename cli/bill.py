"""The bill of materials of the image (CycloneDX): what the locks name, with its hashes. `make dist` writes it.

Debian's packages are not in it: they are those of the base image on the day it is built, of which `docker buildx build
--sbom=true` makes a bill of its own.
"""

import json
import subprocess
import sys
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from app.jars import DELTA, GCS, S3, LockedJar, locked


def bill(requirements: Path, project: Path) -> str:
    """Of the packages in a lock, with the project itself, and of the jars that Spark has beside its own; JSON."""
    command = (sys.executable, "-m", "cyclonedx_py", "requirements", str(requirements), "--pyproject", str(project))
    packages = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    bom: Bom = Bom.from_json(json.loads(packages))  # type: ignore[attr-defined]
    bom.components.update(_component(jar) for jars in (DELTA, GCS, S3) for jar in locked(jars))
    if bom.metadata.component is not None:
        bom.register_dependency(bom.metadata.component, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _component(jar: LockedJar) -> Component:
    group, name, version = jar.coordinates.group, jar.coordinates.artifact, jar.coordinates.version
    return Component(
        type=ComponentType.LIBRARY,
        group=group,
        name=name,
        version=version,
        purl=PackageURL("maven", group, name, version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)],
    )


if __name__ == "__main__":
    print(bill(Path("requirements.txt"), Path("pyproject.toml")), end="")  # noqa: T201
