"""Builds the shared library and the command with CMake, in build/ or $STRETTO_BUILD, beside what is there already."""

import atexit
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

try:
    from setuptools.command.build_scripts import build_scripts
except ImportError:
    from distutils.command.build_scripts import build_scripts

source = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(os.environ.get("STRETTO_BUILD", source / "build")).resolve()
parts = build / "wheel"


def commands():
    return sorted(p for p in parts.iterdir() if p.name.startswith("stretto"))


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if not (build / "build.ninja").exists():
            subprocess.check_call(["cmake", "--preset", "release", "-B", str(build), "-DSTRETTO_TESTS=OFF",
                                   "-DSTRETTO_BENCH=OFF"], cwd=source)
        subprocess.check_call(["cmake", "--build", str(build), "--target", "wheel_parts"], cwd=source)
        shutil.copy(parts / "libstretto_python.so", pathlib.Path(self.build_lib, "stretto"))


class Commands(build_scripts):
    """The command is a program, which needs no Python to be started."""

    def get_source_files(self):
        return []

    def run(self):
        self.mkpath(self.build_dir)
        for program in commands():
            shutil.copy(program, self.build_dir)


class PlatformDistribution(Distribution):
    def has_ext_modules(self):  # the wheel is for this platform
        return True


class Wheel(bdist_wheel):
    """For every Python 3, as the library is loaded through ctypes; for every C library that has what is used of it."""

    def get_tag(self):
        platform = super().get_tag()[2]
        try:
            used = "".join(subprocess.check_output(["objdump", "-T", str(p)], text=True)
                           for p in [parts / "libstretto_python.so", *commands()])
        except OSError:
            return "py3", "none", platform
        newest = max(int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", used))
        return "py3", "none", platform.replace("linux_", f"manylinux_2_{newest}_")


# A folder of its own each time: in one that is used again, what has been removed here would still lie.
work = tempfile.mkdtemp(prefix="stretto-wheel-")
atexit.register(shutil.rmtree, work, ignore_errors=True)
examples = {}
for file in sorted(p.relative_to(source) for p in source.glob("examples/**/*") if p.is_file()):
    examples.setdefault(f"share/doc/stretto/{file.parent}", []).append(str(file))

setup(
    version=re.search(r"project\(stretto VERSION ([0-9.]+)", (source / "CMakeLists.txt").read_text()).group(1),
    cmdclass={"build_py": BuildWithLibrary, "build_scripts": Commands, "bdist_wheel": Wheel},
    distclass=PlatformDistribution,
    scripts=["stretto"],  # which they are is known when they have been built
    data_files=list(examples.items()),
    options={"build": {"build_base": work}},
)
