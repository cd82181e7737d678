"""Projects for the tests. `QUIPU_BIN` names the program."""

from pathlib import Path
from typing import Iterator

import pytest

from quipu_memory import Project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def project(folder: Path) -> Iterator[Project]:
    with Project.create(folder, agent="ada") as project:
        yield project
