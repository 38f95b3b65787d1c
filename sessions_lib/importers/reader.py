"""What an importer is: the name of a format, whose it is, how it is recognised, and how it is read.

A new importer is a file with a ``Reader`` and its entry in ``readers``.

Does not know any format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessions_lib.importers.imported import Imported, ImportReport
from sessions_lib.importers.source import Records, Source

Read = Callable[[Source, Records, ImportReport], list[Imported]]


@dataclass(frozen=True, slots=True)
class Reader:
    """One format: ``name`` as a person types it, ``label`` as it is told, ``looks_like`` its content.

    ``read`` gives a file's conversations; ``None`` where it cannot be imported, and ``needed`` says what that would
    take (``""`` for what holds no session). ``places`` are the files and folders, below the home folder, where the tool
    keeps sessions. Readers with one ``family`` read each other's files: forcing one on another is no mistake.
    """

    name: str
    label: str
    looks_like: Callable[[Records], bool]
    read: Read | None = None
    aliases: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    family: str = ""
    needed: str = ""

    @property
    def found(self) -> str:
        """The format as a refusal says it."""
        if self.read is not None:
            return f"looks like {self.label}"
        if self.needed:
            return f"looks like {self.label}, which cannot be imported yet ({self.needed})"
        return self.label


def known(label: str, looks_like: Callable[[Records], bool], needed: str = "") -> Reader:
    """A format that is known by its name and cannot be imported."""
    return Reader("", label, looks_like, needed=needed)
