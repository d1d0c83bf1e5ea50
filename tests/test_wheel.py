"""What whoever installs kcga gets."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from cli.commands.deploy import OVERLAYS
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_the_product_and_the_manifests_and_no_bench(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, timeout=PATIENCE_S, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    product = "app brokers cli consumer controller domain heuristics monitor sandbox solver"
    assert {name.partition("/")[0] for name in names} == set(product.split())
    manifests = {file.relative_to(ROOT).as_posix() for file in OVERLAYS.parent.rglob("*") if file.is_file()}
    assert manifests <= names
    assert len(manifests) > 10
