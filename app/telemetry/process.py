"""The figures that every component has: of its process, and which version it is."""

from importlib.metadata import version

from prometheus_client import CollectorRegistry, Info, ProcessCollector


def process_registry() -> CollectorRegistry:
    """A new registry with `process_*` and `kcga_build_info`."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    Info("kcga_build", "Which kcga this is.", registry=registry).info({"version": version("kcga")})
    return registry
