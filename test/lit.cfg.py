# The lit suite of Humming. Read through the build folder's lit.site.cfg.py.
#
# Features (for REQUIRES lines):
#   compiler    the MLIR-based tools are built
#   ptxas       an assembler of the CUDA toolkit is installed
#   nvjitlink   libnvJitLink.so can be loaded
#   cuda        HUMMING_TEST_DEVICE names a CUDA device to run on
#   static      a HUMMING_STATIC build
#   package     a development build, which installs a package and the plugin
#
# Substitutions: %execute (runs what humming-opt lowered on the emulator:
# `humming-opt %s --humming-compile=... | %execute %s`), %compile_and_execute
# (humming-compile, whose kernel runs there too), %python, %llvm_tools, %mlir_include, %cmake, %cxx, %cc, %humming_src,
# %humming_build, %shlibext.

import ctypes
import glob
import os
import shutil
import sys

import lit.formats

config.name = "Humming"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test", ".c"]
config.excludes = [
    "Inputs",
    "data",
    "lit.cfg.py",
    "lit.local.cfg",
    "CMakeLists.txt",
]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.humming_build_dir, "test")


def prepend_path(*folders):
    config.environment["PATH"] = os.pathsep.join(
        list(folders) + [config.environment["PATH"]]
    )


prepend_path(
    os.path.join(config.humming_build_dir, "bin"),
    os.path.join(config.humming_build_dir, "test", "bin"),
    config.llvm_tools_dir,
)

# As in MLIR: a failed check shows the input around it.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --allow-unused-prefixes=false"

# Tests have a kernel cache of their own, never the user's, and start without.
config.environment["HUMMING_CACHE_DIR"] = os.path.join(
    config.test_exec_root, "humming-cache"
)
shutil.rmtree(config.environment["HUMMING_CACHE_DIR"], ignore_errors=True)

for variable in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "HUMMING_TEST_DEVICE"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]


def find_ptxas():
    found = shutil.which("ptxas")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if not found and variable in os.environ:
            found = shutil.which(os.path.join(os.environ[variable], "bin", "ptxas"))
    return found or shutil.which("/usr/local/cuda/bin/ptxas")


def find_nvjitlink():
    names = ["libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"]
    roots = [os.environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")]
    for root in [r for r in roots if r] + ["/usr/local/cuda"]:
        names += glob.glob(os.path.join(root, "lib64", "libnvJitLink.so*"))
    for folder in sys.path:
        names += glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvJitLink.so*"))
    for name in names:
        try:
            ctypes.CDLL(name)
            return name
        except OSError:
            continue
    return None


ptxas = find_ptxas()
if ptxas:
    config.available_features.add("ptxas")
    prepend_path(os.path.dirname(ptxas))
if find_nvjitlink():
    config.available_features.add("nvjitlink")
if os.environ.get("HUMMING_TEST_DEVICE"):
    config.available_features.add("cuda")
if config.humming_static:
    config.available_features.add("static")
if config.humming_enable_compiler:
    config.available_features.add("compiler")
    if not config.humming_static:
        config.available_features.add("package")
else:
    config.excludes += ["Dialect", "Conversion", "Transforms", "Pipelines", "Execute", "Fuzz", "CAPI", "Docs"]

config.substitutions += [
    ("%execute", "humming-execute"),
    (
        "%compile_and_execute",
        '"%s" "%s"'
        % (
            sys.executable,
            os.path.join(
                config.test_source_root, "Inputs", "compile_and_execute.py"
            ),
        ),
    ),
    ("%python", '"%s"' % sys.executable),
    ("%mlir_include", config.mlir_include_dir),
    ("%llvm_tools", config.llvm_tools_dir),
    ("%cmake", config.cmake_command),
    ("%cxx", config.cxx_compiler),
    ("%cc", config.c_compiler),
    ("%humming_src", config.humming_source_dir),
    ("%humming_build", config.humming_build_dir),
    ("%shlibext", ".so"),
]
