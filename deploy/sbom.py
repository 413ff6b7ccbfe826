"""Writes the software bill of materials of a release in CycloneDX 1.6: the packages that the image
installs, and the vendored front-end files. `make sbom` calls it.

The content depends on the repository only, apart from licences: they come from the metadata of the
installed packages, and are absent for packages of other platforms."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from pip_requirements_parser import RequirementsFile

from state_admin import __version__

ROOT = Path(__file__).resolve().parent.parent
# Those of the Dockerfile.
LOCKS = ("requirements-login.txt", "requirements-otel.txt", "requirements-s3.txt")
VENDORED = ROOT / "static/vendor/VENDORED.md"
LICENSES, HASHES = LicenseFactory(), HashTypeFactory()


def build() -> Bom:
    server = Component(
        name="commonhold", version=__version__, type=ComponentType.APPLICATION, bom_ref="commonhold"
    )
    bom = Bom(components=[*list_packages(), *list_vendored()])
    bom.metadata.component = server
    bom.register_dependency(server, bom.components)
    return bom


def list_packages() -> Iterator[Component]:
    """The Python packages of the locks, each once, with the hashes that pip accepts."""
    packages = {
        each.name: each
        for lock in LOCKS
        for each in RequirementsFile.from_file(str(ROOT / lock)).requirements
    }
    for name, package in sorted(packages.items()):
        version = package.get_pinned_version
        markers = [Property(name="commonhold:marker", value=str(package.marker))]
        yield Component(
            name=name,
            version=version,
            purl=PackageURL("pypi", None, name, version),
            bom_ref=f"pypi:{name}",
            licenses=[LICENSES.make_from_string(license_text)]
            if (license_text := find_license(name))
            else (),
            external_references=[
                ExternalReference(
                    type=ExternalReferenceType.DISTRIBUTION,
                    url=XsUri(f"https://pypi.org/project/{name}/{version}/"),
                    hashes=[HASHES.from_composite_str(each) for each in package.hash_options],
                )
            ],
            properties=markers if package.marker else (),
        )


def find_license(name: str) -> str | None:
    """The licence that the installed package declares: an SPDX expression, a name, or classifiers."""
    try:
        declared = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in declared.get_all("Classifier", [])
        if each.startswith("License :: OSI Approved")
    ]
    text = declared.get("License", "").strip()
    short = text if "\n" not in text else ""  # some put the whole text there
    return declared.get("License-Expression") or short or ", ".join(classifiers) or None


def list_vendored() -> Iterator[Component]:
    """The rows of both tables of VENDORED.md: files, and the pieces of CodeMirror."""
    for line in VENDORED.read_text().splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch("[0-9a-f]{64}", cells[4]):
            file, name, version, source, digest, license_id = cells
            yield Component(
                name=f"static/{file}",
                version=version,
                type=ComponentType.FILE,
                bom_ref=f"static/{file}",
                description=f"{name}, from {source}",
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
                licenses=[LICENSES.make_from_string(license_id)],
            )
        elif len(cells) == 3 and re.fullmatch("[0-9a-f]{64}", cells[2]):
            name, version, _ = cells
            scope, _, short = name.rpartition("/")
            yield Component(
                name=name,
                version=version,
                purl=PackageURL("npm", scope or None, short, version),
                bom_ref=f"npm:{name}",
                licenses=[LICENSES.make_from_string("MIT")],
            )


def main(target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    target.write_text(JsonV1Dot6(build()).output_as_string(indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
