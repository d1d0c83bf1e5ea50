"""What programs that go through the loads can be told of them."""

import argparse
from pathlib import Path

from bench.figures import MOST_VALUES, processors
from bench.latency.contenders import WARM_UP_S
from bench.latency.shapes import SHAPES
from bench.quiet import add_busy


def loads_options(module: str, description: str | None) -> argparse.Namespace:
    """What a program was told, within its limits.

    Args:
        module: the program.
        description: what it does.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--shapes", nargs="+", choices=tuple(SHAPES), default=tuple(SHAPES), help="(all)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=90.0,
        help=f"of each load, {WARM_UP_S / 60:g} of them not counted (%(default)g)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the loads and of what handovers take (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="so many, from that one on (%(default)s)")
    parser.add_argument("--processes", type=int, default=processors(), help="at one time (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    if options.minutes * 60 <= WARM_UP_S:
        parser.error(f"--minutes {options.minutes:g}: it must be more than the {WARM_UP_S / 60:g} that are not counted")
    if not 2 <= options.seeds <= MOST_VALUES:
        parser.error(f"--seeds {options.seeds}: it must be a number from 2 to {MOST_VALUES}")
    return options
