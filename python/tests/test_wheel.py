"""scripts/wheel builds wheels that pip installs."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

import chimbuko

SCRIPT = ROOT / "scripts" / "wheel"


@pytest.fixture(scope="session")
def wheel() -> ModuleType:
    """scripts/wheel as a module."""
    loader = importlib.machinery.SourceFileLoader("wheel_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader("wheel_script", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def small(directory: Path) -> Path:
    """A small static program that prints a version as chimbuko does."""
    source = directory / "small.go"
    text = "chimbuko version 1.2.0-rc.3 (0abc123)"
    source.write_text(f'package main\n\nimport "os"\n\nfunc main() {{ os.Stdout.WriteString("{text}\\n") }}\n')
    target = directory / "small"
    environ = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", target, source], check=True, env=environ)
    return target


def build(*arguments: str | Path, **environ: str) -> Path:
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=True, env={**os.environ, **environ}
    )  # fmt: skip
    return Path(done.stdout.strip())


def test_same_sources_give_the_same_bytes(small: Path, tmp_path: Path) -> None:
    first = build(small, tmp_path / "a", SOURCE_DATE_EPOCH="1700000000")
    os.utime(small, (1, 1))
    second = build(small, tmp_path / "b", SOURCE_DATE_EPOCH="1700000000")
    assert first.name == second.name == f"chimbuko-1.2.0rc3-py3-none-manylinux_2_28_{os.uname().machine}.whl"
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert {e.date_time for e in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}
    assert build(small, tmp_path / "c").read_bytes() != first.read_bytes()  # 1980


def test_wheel_has_the_package_and_a_correct_record(small: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(build(small, tmp_path)) as archive:
        names = archive.namelist()
        info = next(n for n in names if n.endswith("/METADATA")).removesuffix("METADATA")
        record = archive.read(info + "RECORD").decode()
        assert [row[0] for row in csv.reader(io.StringIO(record))] == names
        for path, digest, size in csv.reader(io.StringIO(record)):
            if path == info + "RECORD":
                continue
            content = archive.read(path)
            want = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert (digest, int(size)) == ("sha256=" + want, len(content))
        programs = [e.filename for e in archive.infolist() if e.external_attr >> 16 & 0o111]
        assert programs == ["chimbuko-1.2.0rc3.data/scripts/chimbuko"]
        sources = {p.relative_to(ROOT / "python" / "src").as_posix() for p in (ROOT / "python" / "src" / "chimbuko").glob("*.*")}
        assert sources == {n for n in names if n.startswith("chimbuko/")}
        assert "chimbuko/py.typed" in sources
        assert archive.read(info + "licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


def test_wheel_has_other_licenses(small: Path, tmp_path: Path) -> None:
    file = tmp_path / "licenses" / "go" / "example.org" / "module@v1.2.3" / "LICENSE"
    file.parent.mkdir(parents=True)
    file.write_text("text")
    with zipfile.ZipFile(build("--licenses", tmp_path / "licenses", small, tmp_path)) as archive:
        info = next(n for n in archive.namelist() if n.endswith("/METADATA")).removesuffix("METADATA")
        path = "third-party/go/example.org/module@v1.2.3/LICENSE"
        assert archive.read(info + "licenses/" + path) == b"text"
        lines = archive.read(info + "METADATA").decode().splitlines()
        assert [x for x in lines if x.startswith("License-File: ")] == ["License-File: LICENSE", f"License-File: {path}"]


def test_installed_wheel_answers(gpu_run: Path, tmp_path: Path) -> None:
    """The wheel of the real program in a new environment; only pyarrow comes from that of the tests."""
    package = build("--tag", f"linux_{os.uname().machine}", chimbuko.program(), tmp_path)
    environ = {k: v for k, v in os.environ.items() if k not in ("CHIMBUKO", "PYTHONPATH")}
    environ["PATH"] = "/usr/bin:/bin"
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, env=environ)
    python = venv / "bin" / "python"
    options = ["--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, *options]
    subprocess.run([*pip, package], check=True, env=environ)
    assert (venv / "bin" / "chimbuko").read_bytes() == Path(chimbuko.program()).read_bytes()
    version = subprocess.run([venv / "bin" / "chimbuko", "version"], capture_output=True, text=True, check=True, env=environ).stdout
    module = subprocess.run([python, "-m", "chimbuko", "version"], capture_output=True, text=True, check=True, env=environ).stdout
    assert version == module != ""
    code = """import sys, chimbuko
sys.path.append(sys.argv[2])
print(chimbuko.__version__, chimbuko.program(), len(chimbuko.open(sys.argv[1]).anomalies()))"""
    import pyarrow

    packages = str(Path(pyarrow.__file__).parents[1])
    done = subprocess.run([python, "-c", code, gpu_run, packages], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split()[0] in package.name
    assert done.stdout.split()[1:] == [str(venv / "bin" / "chimbuko"), str(len(chimbuko.open(gpu_run).anomalies()))]
    without = subprocess.run([python, "-c", code, gpu_run, ""], capture_output=True, text=True, check=False, env=environ)
    assert "tables need the package pyarrow" in without.stderr


def test_program_is_found_in_a_target_directory(small: Path, tmp_path: Path) -> None:
    package = build(small, tmp_path)
    target = tmp_path / "target"
    options = ["--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    pip: list[str | Path] = [sys.executable, "-m", "pip", *options, "--target", target]
    environ = {k: v for k, v in os.environ.items() if k not in ("CHIMBUKO", "PYTHONPATH")}
    subprocess.run([*pip, package], check=True, env=environ)
    code = "import chimbuko; print(chimbuko.program())"
    environ["PYTHONPATH"] = str(target)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.strip() == str(target / "bin" / "chimbuko")


def elf(libraries: list[str], versions: dict[str, list[str]], machine: int = 62) -> bytes:
    """Return an ELF file with only a dynamic section and symbol versions."""
    strings = b"\0"

    def put(text: str) -> int:
        nonlocal strings
        strings += text.encode() + b"\0"
        return len(strings) - len(text) - 1

    dynamic = b"".join(struct.pack("<QQ", 1, put(name)) for name in libraries) + struct.pack("<QQ", 0, 0)
    needs = b""
    for i, (library, names) in enumerate(versions.items()):
        entries = b"".join(struct.pack("<IHHII", 0, 0, 2, put(n), 16 if k < len(names) - 1 else 0) for k, n in enumerate(names))
        following = 16 + len(entries) if i < len(versions) - 1 else 0
        needs += struct.pack("<HHIII", 1, len(names), put(library), 16, following) + entries
    parts = [(3, strings, 0, 0), (6, dynamic, 1, 0), (0x6FFFFFFE, needs, 1, len(versions))]
    body, sections = b"", struct.pack("<IIQQQQIIQQ", *[0] * 10)
    for kind, content, link, entries_ in parts:
        sections += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, 64 + len(body), len(content), link, entries_, 1, 0)
        body += content
    magic = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = magic + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 4, 0)
    return head + body + sections


GLIBC = {"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.28"], "libm.so.6": ["GLIBC_2.27"]}


@pytest.mark.parametrize(
    ("libraries", "versions", "problem"),
    [
        (["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"], GLIBC, None),
        ([], {}, None),
        (["libc.so.6"], {**GLIBC, "libm.so.6": ["GLIBC_2.27", "GLIBC_2.29"]}, "it needs GLIBC_2.29"),
        (["libc.so.6"], {"libc.so.6": ["GLIBC_2.34", "GLIBC_2.2.5"]}, "it needs GLIBC_2.34"),
        (["libc.so.6", "libstdc++.so.6"], {**GLIBC, "libstdc++.so.6": ["GLIBCXX_3.4.20"]}, "it needs libstdc"),
    ],
)
def test_platform_is_what_the_program_keeps(
    wheel: ModuleType, tmp_path: Path, libraries: list[str], versions: dict[str, list[str]], problem: str | None
) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf(libraries, versions))
    assert wheel.elf(path) == (62, libraries, versions)
    assert wheel.platform(path, "linux_x86_64") == "linux_x86_64"
    if problem is None:
        assert wheel.platform(path, None) == "manylinux_2_28_x86_64"
        return
    with pytest.raises(wheel.Problem, match=problem):
        wheel.platform(path, None)


def test_other_files_are_refused(wheel: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf([], {}, machine=183))
    assert wheel.platform(path, None) == "manylinux_2_28_aarch64"
    path.write_bytes(elf([], {}, machine=8))
    with pytest.raises(wheel.Problem, match="unknown processor 8"):
        wheel.platform(path, "linux_mips")
    path.write_text("#!/bin/sh\n")
    done = subprocess.run([sys.executable, SCRIPT, path, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"wheel: {path} is not a program for 64-bit Linux\n")


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("1.0.0", "1.0.0"),
        ("1.0.0-rc.1", "1.0.0rc1"),
        ("1.0.0-rc1", "1.0.0rc1"),
        ("1.10.2-beta.2", "1.10.2b2"),
        ("1.1.0-dev", "1.1.0.dev0"),
    ],
)
def test_versions(wheel: ModuleType, printed: str, version: str) -> None:
    from packaging.version import Version

    assert wheel.pep440(printed) == version
    assert str(Version(version)) == version  # already in the normal form


@pytest.mark.parametrize("printed", ["dev", "0123abc", "v1.0.0", "1.0", "1.0.0-12-g0123abc"])
def test_other_versions_are_refused(wheel: ModuleType, printed: str) -> None:
    with pytest.raises(wheel.Problem, match="unknown version"):
        wheel.pep440(printed)
