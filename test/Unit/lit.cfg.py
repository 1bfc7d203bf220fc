# The gtest programs, each case of them a test of lit.

import os

import lit.formats

config.name = "Humming-Unit"
# lit's own folder for temporary files can be entered by its owner alone; tests
# that give up their rights need one that others can enter.
without_lits_folder = ["env", "-u", "TMPDIR", "-u", "TMP", "-u", "TEMP", "-u", "TEMPDIR"]
config.test_format = lit.formats.GoogleTest(
    ".", ".gtest", run_under=without_lits_folder
)
config.suffixes = []
config.test_source_root = config.unittests_dir
config.test_exec_root = config.unittests_dir
for variable in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "HUMMING_TEST_DEVICE"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
config.environment["HUMMING_CACHE_DIR"] = os.path.join(
    config.unittests_dir, "humming-cache"
)
