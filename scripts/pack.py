"""Packs a built program: `pack.py PROGRAM FOLDER` (see scripts/package).

The same program and commit give the same bytes, but for the .deb, which dpkg-deb compresses.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ABOUT = "Memory for AI agents: Markdown and JSON under an enforced contract"
LICENCE = "MIT OR Apache-2.0"
OWNER = os.environ.get("OWNER", "quipu-memory")
DOCUMENTS = ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"]
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
NODE = {"x86_64": "x64", "aarch64": "arm64"}


def main(program: pathlib.Path, out: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    version = manifest["workspace"]["package"]["version"]
    files = installed(program)
    tarball(out, version, files)
    deb(out, version, files)
    npm(out, version, files)
    wheel(out, version, files)
    for package in sorted(out.iterdir()):
        print(package)


def installed(program: pathlib.Path) -> dict[str, bytes]:
    """The files of an installation, by their path below a prefix such as /usr."""
    files = {"bin/quipu": program.read_bytes()}
    shells = {
        "bash": "share/bash-completion/completions/quipu",
        "zsh": "share/zsh/site-functions/_quipu",
        "fish": "share/fish/vendor_completions.d/quipu.fish",
    }
    for shell, path in shells.items():
        files[path] = subprocess.check_output([program, "completions", shell])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "man", folder], check=True, stdout=subprocess.DEVNULL)
        for page in sorted(pathlib.Path(folder).iterdir()):
            files[f"share/man/man1/{page.name}"] = page.read_bytes()
    for name in DOCUMENTS:
        files[f"share/doc/quipu/{name}"] = (ROOT / name).read_bytes()
    return files


def mode(path: str) -> int:
    return 0o755 if "bin/" in path or "/scripts/" in path else 0o644


def tar_bytes(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode(path)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def tarball(out: pathlib.Path, version: str, files: dict[str, bytes]) -> None:
    name = f"quipu-{version}-linux-{platform.machine()}"
    inside = {f"{name}/{path}": content for path, content in files.items()}
    (out / f"{name}.tar.gz").write_bytes(tar_bytes(inside))


def newest_glibc(program: bytes) -> tuple[int, int]:
    """The newest version of glibc of which the program uses a symbol."""
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", program)
    return max((int(major), int(minor)) for major, minor in found)


def deb(out: pathlib.Path, version: str, files: dict[str, bytes]) -> None:
    machine = DEBIAN[platform.machine()]
    major, minor = newest_glibc(files["bin/quipu"])
    control = (
        f"Package: quipu\nVersion: {version}\nArchitecture: {machine}\n"
        f"Maintainer: The Quipu maintainers <noreply@example.invalid>\n"
        f"Depends: libc6 (>= {major}.{minor}), libgcc-s1\nSection: utils\nPriority: optional\n"
        f"Description: {ABOUT}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "quipu"
        for path, content in {f"usr/{p}": c for p, c in files.items()}.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(mode(path))
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(control)
        package = out / f"quipu_{version}_{machine}.deb"
        command = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(package)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def npm(out: pathlib.Path, version: str, files: dict[str, bytes]) -> None:
    manifest = {
        "name": "quipu",
        "version": version,
        "description": ABOUT,
        "license": LICENCE,
        # By this name the MCP registry knows that server.json speaks of this package.
        "mcpName": f"io.github.{OWNER}/quipu",
        "os": ["linux"],
        "cpu": [NODE[platform.machine()]],
        "libc": ["glibc"],
        "bin": {"quipu": "bin/quipu"},
        "files": ["bin"],
    }
    inside = {"package/package.json": json.dumps(manifest, indent=2).encode()}
    inside["package/bin/quipu"] = files["bin/quipu"]
    for name in DOCUMENTS:
        inside[f"package/{name}"] = files[f"share/doc/quipu/{name}"]
    (out / f"quipu-{version}.tgz").write_bytes(tar_bytes(inside))


def wheel(out: pathlib.Path, version: str, files: dict[str, bytes]) -> None:
    """The Python package, and the program as a script of the environment."""
    python = ROOT / "python"
    project = tomllib.loads((python / "pyproject.toml").read_text())["project"]
    if project["version"] != version:
        sys.exit(f"python/pyproject.toml has version {project['version']}, Cargo.toml {version}")
    major, minor = newest_glibc(files["bin/quipu"])
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    name = f"{project['name'].replace('-', '_')}-{version}"
    info = f"{name}.dist-info"
    inside = {f"{name}.data/scripts/quipu": files["bin/quipu"]}
    for path, content in files.items():
        if path.startswith("share/"):
            inside[f"{name}.data/data/{path}"] = content
    for place in sorted((python / "src").rglob("*")):
        if place.suffix == ".py" or place.name == "py.typed":
            inside[str(place.relative_to(python / "src"))] = place.read_bytes()
    extras = [
        f"Provides-Extra: {extra}\nRequires-Dist: {need}; extra == '{extra}'\n"
        for extra, needs in project["optional-dependencies"].items()
        for need in needs
    ]
    inside[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
        f"Summary: {ABOUT}\nLicense: {LICENCE}\nRequires-Python: {project['requires-python']}\n"
        f"{''.join(extras)}Description-Content-Type: text/markdown\n\n"
        f"{(python / 'README.md').read_text()}"
    ).encode()
    inside[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: scripts/pack.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    ).encode()
    record = f"{info}/RECORD"
    lines = [f"{path},{checksum(content)},{len(content)}" for path, content in inside.items()]
    inside[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    place = out / f"{name}-{tag}.whl"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in inside.items():
            entry = zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode(path)) << 16
            archive.writestr(entry, content)


def checksum(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
    return "sha256=" + digest.rstrip("=")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
