"""All checks, one after the other; each is told as soon as it is known."""

from rich.console import Console
from rich.text import Text

from app.settings import Settings
from cli.doctor.clocks import check_clocks
from cli.doctor.finding import Check, Finding, Grade
from cli.doctor.kafka import check_kafka
from cli.doctor.kubernetes import check_kubernetes
from cli.doctor.lake import check_lake
from cli.doctor.machine import check_folder, check_java
from cli.doctor.registry import check_registry
from cli.terminal.glyphs import ASCII, BAD, FAINT, GOOD, UNICODE, WARNING
from domain.secrecy import masked

CHECKS: tuple[Check, ...] = (
    check_java,
    check_folder,
    check_kafka,
    check_clocks,
    check_lake,
    check_registry,
    check_kubernetes,
)
"""Of what kcga needs to control a group."""
OF_OBSERVING: tuple[Check, ...] = (check_kafka,)
"""Of what a controller needs that only observes: no consumer, lake or fleet is its own."""


def examine(settings: Settings, console: Console) -> bool:
    """Says what is found; whether there is no fault."""
    sound = True
    for check in OF_OBSERVING if settings.controller.observes else CHECKS:
        for finding in check(settings):
            _say(finding, console)
            sound &= finding.grade is not Grade.FAULT
    return sound


def _say(finding: Finding, console: Console) -> None:
    glyphs = ASCII if console.options.ascii_only else UNICODE
    mark, style = {
        Grade.OK: (glyphs.tick, GOOD),
        Grade.NOTE: (glyphs.dot, WARNING),
        Grade.FAULT: (glyphs.cross, BAD),
    }[finding.grade]
    console.print(Text.assemble((f"{mark} ", style), masked(finding.what)), soft_wrap=True)
    if finding.remedy:
        console.print(Text(f"  {glyphs.arrow} {masked(finding.remedy)}", FAINT), soft_wrap=True)
