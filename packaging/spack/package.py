# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Chimbuko(MakefilePackage):
    """Performance analysis of parallel programs. Chimbuko reads traces of TAU, Score-P, PyTorch and others, finds the few
    function executions that went wrong among billions, and reports which rank, host and function misbehaves, when it started,
    why, and what it costs: while the program runs and afterward."""

    homepage = "https://github.com/chimbuko/chimbuko"
    url = "https://github.com/chimbuko/chimbuko/releases/download/v1.0.0/chimbuko-1.0.0-source.tar.gz"
    git = "https://github.com/chimbuko/chimbuko.git"

    license("Apache-2.0", checked_by="chimbuko")

    sanity_check_is_file = ["bin/chimbuko", "bin/chimbuko-ad"]

    # make source sets the checksum in dist/spack/package.py. The archive has all Go modules, so the build needs no network.
    version("1.0.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("gmake", type="build")

    # The archive contains DuckDB's static libraries for these architectures.
    requires("target=x86_64:", "target=aarch64:", policy="any_of")
    requires("platform=linux")

    build_targets = ["build"]

    def setup_build_environment(self, env):
        env.set("GOFLAGS", "-mod=vendor -p={0}".format(make_jobs))
        env.set("GOPROXY", "off")
        env.set("GOTOOLCHAIN", "local")
        env.set("GOCACHE", join_path(self.stage.path, "go-cache"))
        env.set("CGO_ENABLED", "1")

    @property
    def install_targets(self):
        return ["install", "PREFIX={0}".format(self.prefix)]

    def test_version(self):
        """print the version"""
        out = which(self.prefix.bin.chimbuko)("version", output=str.split, error=str.split)
        assert "chimbuko version {0} (".format(self.spec.version) in out
