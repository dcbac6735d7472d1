"""The wheel where it is installed: what it needs of the system, its command, alone and as one of several processes."""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import stretto

COMMAND = pathlib.Path(sys.prefix, "bin", "stretto")
PACKAGE = pathlib.Path(stretto.__file__).parent
QUICKSTART = pathlib.Path(sys.prefix, "share/doc/stretto/examples/quickstart.toml")
C_LIBRARY = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
             "ld-linux-aarch64.so.1"}
BESIDE = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
SMALL = ["--train.steps=3", "--train.batch=8", "--train.microbatches=4", "--train.validate=0", "--model.layers=2",
         "--model.width=32", "--model.heads=4", "--model.context=32", "--checkpoint.keep=0"]


def needed(path):
    """Names of the libraries that a program is linked with."""
    return set(re.findall(r"NEEDED.*\[(.*)\]", subprocess.check_output(["readelf", "-d", path], text=True)))


class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_bare(self, *words, **environment):
        """In an empty folder and environment: nothing of this system is found but by chance."""
        return subprocess.run([str(w) for w in words], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={"PATH": "/usr/bin:/bin", **environment})

    def hash_of(self, *words):
        done = self.run_bare(*words, COMMAND, "train", QUICKSTART, *SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        hashes = re.findall(r"parameters ([0-9a-f]{16})", done.stdout)
        self.assertEqual(len(hashes), 1, done.stdout)
        return hashes[0]

    def test_what_it_is_linked_with_is_the_c_library(self):
        if not shutil.which("readelf"):
            self.skipTest("there is no readelf")
        for path in [PACKAGE / "libstretto_python.so", COMMAND]:
            self.assertLessEqual(needed(path), C_LIBRARY, path)
        for name, library in BESIDE.items():
            path = COMMAND.with_name(f"stretto-{name}")
            if path.exists():
                self.assertLessEqual(needed(path), C_LIBRARY | {library})

    def test_its_name_says_for_which_systems_it_is(self):
        name = pathlib.Path(os.environ["STRETTO_WHEEL"]).name
        found = re.fullmatch(rf"stretto-{stretto.__version__}-py3-none-manylinux_2_(\d+)_(\w+)\.whl", name)
        self.assertTrue(found, name)
        self.assertEqual(found[2], platform.machine())
        self.assertLessEqual(int(found[1]), int(platform.libc_ver()[1].split(".")[1]))  # it does run here

    def test_the_command_trains_what_python_trains(self):
        self.assertEqual(self.run_bare(COMMAND, "--version").stdout, f"stretto {stretto.__version__}\n")
        done = stretto.train(QUICKSTART, quiet=True, log={"dir": str(self.folder / "python")}, checkpoint={"keep": 0},
                             model={"layers": 2, "width": 32, "heads": 4, "context": 32},
                             train={"steps": 3, "batch": 8, "microbatches": 4, "validate": 0})
        self.assertEqual(self.hash_of(), done.parameters)

    def test_several_processes_take_the_mpi_that_is_there(self):
        threads = None
        for name in BESIDE:
            mpirun = shutil.which(f"mpirun.{name}")
            if not mpirun or not COMMAND.with_name(f"stretto-{name}").exists():
                continue
            threads = threads or self.hash_of()
            how = ["--allow-run-as-root", "--oversubscribe"] if name == "openmpi" else []
            self.assertEqual(self.hash_of(mpirun, *how, "-n", "2"), threads, name)
            launched = self.run_bare(COMMAND, "launch", "--mpirun", mpirun, "--", "train", QUICKSTART, *SMALL)
            self.assertIn(f"parameters {threads}", launched.stdout, launched.stderr)
        if not threads:
            self.skipTest("there is no MPI, or the wheel was made beside none")

    def test_where_no_mpi_is_found_it_says_so(self):
        alone = shutil.copy(COMMAND, self.folder / "stretto")
        done = self.run_bare(alone, "train", QUICKSTART, *SMALL, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
        self.assertIn("[mpi] this run has several processes, and Stretto finds no MPI; hint: ", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_a_processor_without_avx2_gets_a_message(self):
        emulator = shutil.which("qemu-x86_64-static")
        if not emulator or platform.machine() != "x86_64":
            self.skipTest("there is no emulator of other processors")
        done = self.run_bare(emulator, "-cpu", "Nehalem", COMMAND, "train", QUICKSTART)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertRegex(done.stderr, r"\A\[processor\] it lacks AVX2, .*; hint: .*\n\Z")


if __name__ == "__main__":
    unittest.main()
