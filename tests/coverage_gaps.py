"""How much of the product the tests run, and the longest pieces that none runs: `python -m tests.coverage_gaps`.

It reads what `coverage run` has left behind.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from coverage import Coverage

LONG = 20
"""Lines: pieces longer than that are named."""


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """Statements one after the other that no test runs."""

    file: str
    first: int
    last: int

    @property
    def lines(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.file}:{self.first}-{self.last}"


def gaps(file: str, executed: Sequence[int], missing: Sequence[int]) -> Iterator[Gap]:
    """The gaps of a file, of which these lines with statements were run and those were not."""
    lacking = set(missing)
    for is_gap, lines in groupby(sorted({*executed, *missing}), key=lacking.__contains__):
        if is_gap:
            first, *others = lines
            yield Gap(file, first, others[-1] if others else first)


def report(measured: dict[str, Any]) -> str:
    """Of coverage's JSON report: the shares of lines and branches that were run, and the long gaps."""
    totals = measured["totals"]
    lines = totals["covered_lines"] / totals["num_statements"]
    branches = totals["covered_branches"] / totals["num_branches"]
    found = sorted(
        gap
        for file, of_file in measured["files"].items()
        for gap in gaps(file, of_file["executed_lines"], of_file["missing_lines"])
        if gap.lines > LONG
    )
    of_lines = f"{lines:.1%} of {totals['num_statements']:,} lines"
    shares = f"Coverage: {of_lines}, {branches:.1%} of {totals['num_branches']:,} branches"
    return "\n".join([shares, *(f"  no test runs {gap} ({gap.lines} lines)" for gap in found)])


def main() -> None:
    coverage = Coverage()
    coverage.load()
    written = Path(coverage.config.json_output)
    coverage.json_report(outfile=str(written))
    print(report(json.loads(written.read_text(encoding="utf-8"))))
    written.unlink()


if __name__ == "__main__":
    main()
