"""Builds the shared library with CMake, in build/ or $STRETTO_BUILD, beside what is there already."""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

source = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(os.environ.get("STRETTO_BUILD", source / "build")).resolve()


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if not (build / "build.ninja").exists():
            subprocess.check_call(["cmake", "--preset", "release", "-B", str(build), "-DSTRETTO_TESTS=OFF",
                                   "-DSTRETTO_BENCH=OFF"], cwd=source)
        subprocess.check_call(["cmake", "--build", str(build), "--target", "stretto_python"], cwd=source)
        shutil.copy(build / "python" / "libstretto_python.so", pathlib.Path(self.build_lib, "stretto"))


class PlatformDistribution(Distribution):
    def has_ext_modules(self):  # the wheel is for this platform
        return True


setup(
    version=re.search(r"project\(stretto VERSION ([0-9.]+)", (source / "CMakeLists.txt").read_text()).group(1),
    cmdclass={"build_py": BuildWithLibrary},
    distclass=PlatformDistribution,
)
