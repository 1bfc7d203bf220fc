# The gtest programs, each case of them a test of lit.

import os

import lit.formats

config.name = "Humming-Unit"
config.test_format = lit.formats.GoogleTest(".", ".gtest")
config.suffixes = []
config.test_source_root = config.unittests_dir
config.test_exec_root = config.unittests_dir
for variable in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "HUMMING_TEST_DEVICE"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
config.environment["HUMMING_CACHE_DIR"] = os.path.join(
    config.unittests_dir, "humming-cache"
)
