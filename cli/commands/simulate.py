"""`kcga simulate`."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import Capacity, Classes, Plot, Seed, TimeLimit, parse_classes
from cli.packing.simulate import FiguresFormat, SimulateOptions, run
from cli.packing.simulation import Policy


def simulate(
    stream: Annotated[
        Path, typer.Argument(help="CSV iteration,topic,partition,speed, gzipped or not; - is standard input.")
    ],
    engines: Annotated[
        str,
        typer.Option(
            help="With commas; exact@LAMBDA is the exact solver with that weight of migration, exact@LAMBDA/SHARE one "
            "that fills consumers only up to that share of the capacity."
        ),
    ] = "mbfp,bfd,exact@0.5",
    capacity: Capacity = 100,
    classes: Classes = None,
    time_limit: TimeLimit = 1.0,
    seed: Seed = 0,
    output: Annotated[FiguresFormat, typer.Option(help="How the figures are printed.")] = FiguresFormat.TABLE,
    assignments: Annotated[
        Path | None, typer.Option(help="Write CSV algorithm,iteration,topic,partition,consumer (.csv or .csv.gz).")
    ] = None,
    metrics: Annotated[
        Path | None, typer.Option(help="Write a row of figures for each iteration (.csv or .csv.gz).")
    ] = None,
    plot: Plot = None,
    policy: Annotated[
        Policy,
        typer.Option(help="controller: the whole controller, with consumers that obey at once, in place of engines."),
    ] = Policy.ENGINES,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            "-s",
            help="With --policy controller: its settings, capacity and time limit included, and the monitor's interval "
            "(TOML).",
        ),
    ] = None,
) -> None:
    run(
        SimulateOptions(
            stream,
            engines,
            capacity,
            time_limit,
            seed,
            output,
            assignments,
            metrics,
            plot,
            policy,
            settings,
            parse_classes(classes),
        )
    )
