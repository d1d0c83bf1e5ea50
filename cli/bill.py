"""The bill of materials of the image (CycloneDX): what the locks name, with its hashes. `make dist` writes it.

Debian's packages are not in it: they are those of the base image on the day it is built, of which `docker buildx build
--sbom=true` makes a bill of its own.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseAcknowledgement
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from pip_requirements_parser import RequirementsFile

from app.jars import DELTA, GCS, S3, locked


def bill(requirements: Path, project: Path) -> str:
    """Of the packages in a lock, with the project itself, and of the jars that Spark has beside its own; JSON."""
    bom = Bom(components=[*_packages(requirements), *_jars()])
    bom.metadata.component = kcga = _kcga(project)
    bom.register_dependency(kcga, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _packages(requirements: Path) -> Iterable[Component]:
    for locked_package in RequirementsFile.from_file(str(requirements)).requirements:
        version = locked_package.get_pinned_version
        hashes = [each.removeprefix("sha256:") for each in locked_package.hash_options]
        yield _library(PackageURL("pypi", None, locked_package.name, version), hashes)


def _jars() -> Iterable[Component]:
    for jar in (jar for jars in (DELTA, GCS, S3) for jar in locked(jars)):
        at = jar.coordinates
        yield _library(PackageURL("maven", at.group, at.artifact, at.version), [jar.sha256])


def _library(purl: PackageURL, hashes: Iterable[str]) -> Component:
    """With the SHA-256 of each file that it may be installed from."""
    return Component(
        type=ComponentType.LIBRARY,
        group=purl.namespace,
        name=purl.name,
        version=purl.version,
        bom_ref=str(purl),
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes],
    )


def _kcga(project: Path) -> Component:
    said = tomllib.loads(project.read_text())["project"]
    return Component(
        type=ComponentType.APPLICATION,
        name=said["name"],
        version=said["version"],
        description=said["description"],
        licenses=[DisjunctiveLicense(id=said["license"], acknowledgement=LicenseAcknowledgement.DECLARED)],
    )


if __name__ == "__main__":
    print(bill(Path("requirements.txt"), Path("pyproject.toml")), end="")  # noqa: T201
