"""Writes the pages that come from the code, whenever the site is built."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from cli.reference import commands_page, settings_page

_PAGES = {"settings.md": settings_page, "commands.md": commands_page}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs with the files that it found."""
    for name, page in _PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files
