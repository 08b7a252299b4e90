"""A volume of a ConfigMap or Secret, as Kubernetes' kubelet writes it and changes it: a reader sees the old files or the new ones, never both."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path


class Volume:
    """A folder in which each file is a link: `tls.key` → `..data/tls.key`, and `..data` → `..2026_11_28_…`, the folder with the content. `group` owns
    the files, as `fsGroup` says; -1 leaves them to the group of the process."""

    def __init__(self, place: Path, files: dict[str, bytes | str], mode: int = 0o644, group: int = -1):
        self.place, self.mode, self.group = place, mode, group
        self.turns = itertools.count(1)
        place.mkdir(parents=True, exist_ok=True)
        self.write(files)

    def write(self, files: dict[str, bytes | str]) -> None:
        """All files at once, by the steps of kubelet: a new folder, a link that is renamed over the old one, links for new names, the old folder removed."""
        data, temporary = self.place / "..data", self.place / "..data_tmp"
        before = os.readlink(data) if data.is_symlink() else None
        folder = self.place / f"..2026_11_28_09_00_00.{next(self.turns):010}"
        folder.mkdir()
        folder.chmod(0o755)
        for name, content in files.items():
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
            (folder / name).chmod(self.mode)
            os.chown(folder / name, -1, self.group)
        temporary.symlink_to(folder.name)
        temporary.rename(data)
        for name in files:
            if not (self.place / name).is_symlink():
                (self.place / name).symlink_to(f"..data/{name}")
        for each in self.place.iterdir():
            if not each.name.startswith("..") and each.name not in files:
                each.unlink()
        if before:
            shutil.rmtree(self.place / before)
