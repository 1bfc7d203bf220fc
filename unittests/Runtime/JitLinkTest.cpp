//===- JitLinkTest.cpp - Tests of the assemblers --------------------------===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What needs a real assembler is tested with each that this machine has; the
// paths without one are always tested.
//
//===----------------------------------------------------------------------===//

#include "Humming/Runtime/JitLink.h"
#include "FakeDriver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace humming;
using namespace llvm;

namespace {

template <typename T>
std::string errorOf(Expected<T> value) {
  return value ? "" : toString(value.takeError());
}
bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// Sets an environment variable for the life of a test.
class Environment {
public:
  Environment(const char *name, const char *value) : name(name) {
    if (const char *old = std::getenv(name))
      previous = old;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() {
    previous ? setenv(name, previous->c_str(), 1) : unsetenv(name);
  }

private:
  const char *name;
  std::optional<std::string> previous;
};

struct TemporaryFolder {
  SmallString<128> path;
  TemporaryFolder() {
    EXPECT_FALSE(sys::fs::createUniqueDirectory("humming-jit", path));
  }
  ~TemporaryFolder() { sys::fs::remove_directories(path); }
};

const char *const kGoodPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret;
}
)";

/// The assemblers of this machine that need no GPU.
std::vector<Assembler> installedAssemblers() {
  std::vector<Assembler> found;
  for (AssemblerKind kind : {AssemblerKind::NvJitLink, AssemblerKind::Ptxas}) {
    AssemblerSearch search = cantFail(AssemblerSearch::fromEnvironment());
    search.forced = kind;
    if (Expected<Assembler> assembler = findAssembler(search))
      found.push_back(*assembler);
    else
      consumeError(assembler.takeError());
  }
  return found;
}

TEST(JitLink, AssemblesForEveryChip) {
  for (const Assembler &assembler : installedAssemblers()) {
    for (unsigned chip : {80u, 86u, 89u, 90u}) {
      std::string name = "sm_" + std::to_string(chip);
      Expected<AssembledKernel> kernel = assemble(assembler, kGoodPtx, name);
      ASSERT_TRUE(bool(kernel)) << errorOf(std::move(kernel));
      EXPECT_EQ(cantFail(cubinChipNumber(
                    StringRef(kernel->cubin.data(), kernel->cubin.size()))),
                chip);
      EXPECT_TRUE(contains(kernel->assembler, stringify(assembler.kind).str()))
          << kernel->assembler;
      EXPECT_GT(kernel->usage.registers, 0) << kernel->log;
      EXPECT_EQ(kernel->usage.spillStoreBytes, 0) << kernel->log;
      EXPECT_EQ(kernel->usage.stackBytes, 0) << kernel->log;
      EXPECT_TRUE(kernel->warnings.empty());
      EXPECT_GT(kernel->milliseconds, 0);
    }
  }
}

TEST(JitLink, ErrorsCarryTheLog) {
  std::string bad = kGoodPtx;
  bad.replace(bad.find("%tid.x"), 6, "%bogus");
  for (const Assembler &assembler : installedAssemblers()) {
    std::string message = errorOf(assemble(assembler, bad, "sm_80"));
    EXPECT_TRUE(contains(message, "Unknown symbol '%bogus'")) << message;
    EXPECT_TRUE(contains(message, "sm_80")) << message;
    EXPECT_NE(errorOf(assemble(assembler, "", "sm_80")), "");
    EXPECT_NE(errorOf(assemble(assembler, kGoodPtx, "sm_75")), "");
    EXPECT_NE(errorOf(assemble(assembler, kGoodPtx, "sm_11")), "");
    EXPECT_NE(errorOf(assemble(assembler, kGoodPtx, "gfx900")), "");
    EXPECT_TRUE(contains(
        errorOf(assemble(assembler, StringRef("a\0b", 3), "sm_80")), "NUL"));
  }
}

TEST(JitLink, LostPerformanceIsAWarning) {
  std::string ptx = kGoodPtx;
  ptx.replace(ptx.find("7.0"), 3, "8.0");
  ptx.replace(ptx.find("sm_80"), 5, "sm_90a");
  ptx.insert(ptx.find("ret;"), "setmaxnreg.inc.sync.aligned.u32 64; ");
  for (const Assembler &assembler : installedAssemblers()) {
    AssembledKernel kernel = cantFail(assemble(assembler, ptx, "sm_90a"));
    ASSERT_EQ(kernel.warnings.size(), 1u) << kernel.log;
    EXPECT_TRUE(contains(kernel.warnings[0], "'setmaxnreg' ignored"));
  }
}

TEST(JitLink, LogsAreRead) {
  ResourceUsage usage = parseResourceUsage(
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "    40 bytes stack frame, 36 bytes spill stores, 44 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, "
      "400 bytes cmem[0]\n");
  EXPECT_EQ(usage.registers, 255);
  EXPECT_EQ(usage.stackBytes, 40);
  EXPECT_EQ(usage.spillStoreBytes, 36);
  EXPECT_EQ(usage.spillLoadBytes, 44);
  EXPECT_EQ(usage.barriers, 1);
  EXPECT_EQ(usage.staticSharedBytes, 1024);
  EXPECT_EQ(parseResourceUsage("").registers, -1);
  EXPECT_EQ(parseResourceUsage("bytes stack frame, x bytes spill").stackBytes,
            -1);

  std::vector<std::string> warnings = parseAssemblerWarnings(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma serialised\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas warning : something\n"
      "ptxas info    : (C7513) Potential Performance Loss: other\n");
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_TRUE(StringRef(warnings[0]).starts_with("(C7510)"));
}

TEST(JitLink, HeadersAreRead) {
  PtxHeader header = cantFail(parsePtxHeader(kGoodPtx));
  EXPECT_EQ(header.version, 70);
  EXPECT_EQ(header.target, "sm_80");
  header = cantFail(parsePtxHeader(
      "// c\n.version 8.7 // x\n.target sm_90a, texmode_independent\n"));
  EXPECT_EQ(header.version, 87);
  EXPECT_EQ(header.target, "sm_90a");
  for (const char *text :
       {"", ".version 8.0\n", ".target sm_80\n", ".version x\n.target sm_80\n",
        ".version 8\n.target sm_80\n", ".entry k\n.version 8.0\n"})
    EXPECT_NE(errorOf(parsePtxHeader(text)), "") << text;
}

TEST(JitLink, CubinHeadersAreRead) {
  EXPECT_EQ(cantFail(cubinChipNumber(makeCubin(90))), 90u);
  EXPECT_EQ(cantFail(cubinChipNumber(makeCubin(120))), 120u);
  std::string old = makeCubin(0);
  old[8] = 7;     // ABI version of CUDA 12
  old[48] = 0x50; // sm_80 in the low byte of e_flags
  EXPECT_EQ(cantFail(cubinChipNumber(old)), 80u);
  EXPECT_NE(errorOf(cubinChipNumber("")), "");
  EXPECT_NE(errorOf(cubinChipNumber(std::string(200, 'x'))), "");
  EXPECT_NE(errorOf(cubinChipNumber(makeCubin(90).substr(0, 63))), "");
}

TEST(JitLink, PtxVersionsFollowTheToolkit) {
  EXPECT_EQ(maxPtxVersion(12000), 80);
  EXPECT_EQ(maxPtxVersion(12060), 85); // 12.6 brought no new PTX
  EXPECT_EQ(maxPtxVersion(13000), 90);
  EXPECT_EQ(minCudaVersion(80), 12000);
  EXPECT_EQ(minCudaVersion(78), 11080);
  EXPECT_EQ(minCudaVersion(63), 10000);
  for (int version : {63, 70, 78, 80, 85, 87, 90})
    EXPECT_GE(maxPtxVersion(minCudaVersion(version)), version);
}

TEST(JitLink, NothingFoundIsAClearError) {
  TemporaryFolder empty;
  AssemblerSearch search;
  search.libraryFolders = search.programFolders = {std::string(empty.path)};
  search.useSystemLoader = false;
  EXPECT_TRUE(contains(errorOf(findAssembler(search)), "no assembler found"));
  for (AssemblerKind kind : {AssemblerKind::NvJitLink, AssemblerKind::Ptxas,
                             AssemblerKind::Driver}) {
    search.forced = kind;
    EXPECT_TRUE(contains(
        errorOf(findAssembler(search)),
        ("assembler '" + stringify(kind) + "' was asked for but not found")
            .str()));
  }
}

TEST(JitLink, TheDriverIsTheLastResort) {
  FakeDriver fake;
  auto driver = cantFail(CudaDriver::create(fake.table));
  AssemblerSearch search;
  search.useSystemLoader = false;
  Assembler assembler = cantFail(findAssembler(search, driver.get()));
  EXPECT_EQ(assembler.kind, AssemblerKind::Driver);
  EXPECT_EQ(assembler.identity, "driver-12040");
  AssembledKernel kernel =
      cantFail(assemble(assembler, kGoodPtx, "sm_90", driver.get()));
  EXPECT_EQ(kernel.assembler, "driver 12.4");
  // It assembles for the device that is there, so another chip is refused.
  EXPECT_TRUE(
      contains(errorOf(assemble(assembler, kGoodPtx, "sm_80", driver.get())),
               "expected sm_80, got sm_90"));
  for (const char *entry : {"linkCreate", "linkAddData", "linkComplete"}) {
    fake.faults[entry] = {cu::kInvalidValue};
    EXPECT_TRUE(
        contains(errorOf(assemble(assembler, kGoodPtx, "sm_90", driver.get())),
                 "CUDA_ERROR_INVALID_VALUE"))
        << entry;
    fake.faults.clear();
  }
  EXPECT_TRUE(contains(errorOf(assemble(assembler, kGoodPtx, "sm_90")),
                       "no CUDA driver is loaded"));
}

TEST(JitLink, UnusableFilesAreNamed) {
  TemporaryFolder folder;
  SmallString<128> path(folder.path);
  sys::path::append(path, "libnvJitLink.so.13");
  std::error_code error;
  raw_fd_ostream(path, error) << std::string(100, 'x');
  AssemblerSearch search;
  search.libraryFolders = {std::string(folder.path)};
  search.useSystemLoader = false;
  std::string message = errorOf(findAssembler(search));
  EXPECT_TRUE(contains(message, "libnvJitLink.so.13 is unusable: not an ELF"))
      << message;
  // A file that only looks like a library is found, and fails when opened.
  raw_fd_ostream(path, error) << StringRef("\x7f"
                                           "ELF\x02\x01",
                                           6)
                              << std::string(100, '\0');
  Assembler assembler = cantFail(findAssembler(search));
  EXPECT_TRUE(contains(errorOf(assemble(assembler, kGoodPtx, "sm_80")),
                       "nvjitlink: cannot open"));
}

TEST(JitLink, IdentityIsContentNotPath) {
  for (const Assembler &assembler : installedAssemblers()) {
    TemporaryFolder folder;
    SmallString<128> link(folder.path);
    sys::path::append(link, sys::path::filename(assembler.path));
    ASSERT_FALSE(sys::fs::create_link(assembler.path, link));
    AssemblerSearch search;
    search.libraryFolders = search.programFolders = {std::string(folder.path)};
    search.useSystemLoader = false;
    Assembler byLink = cantFail(findAssembler(search));
    EXPECT_EQ(byLink.kind, assembler.kind);
    EXPECT_NE(byLink.path, assembler.path);
    EXPECT_EQ(byLink.identity, assembler.identity);
    EXPECT_FALSE(contains(assembler.identity, "/"));
  }
}

TEST(JitLink, EnvironmentForcesAndOrders) {
  {
    Environment variable("HUMMING_ASSEMBLER", "gas");
    std::string message = errorOf(AssemblerSearch::fromEnvironment());
    EXPECT_EQ(message, "environment variable HUMMING_ASSEMBLER: assembler: "
                       "expected nvjitlink, ptxas or driver, got 'gas'");
  }
  Environment forced("HUMMING_ASSEMBLER", "ptxas");
  Environment home("CUDA_HOME", "/some/toolkit");
  Environment venv("VIRTUAL_ENV", nullptr);
  AssemblerSearch search = cantFail(AssemblerSearch::fromEnvironment());
  EXPECT_EQ(search.forced, AssemblerKind::Ptxas);
  auto has = [](const std::vector<std::string> &list, const char *item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  };
  EXPECT_TRUE(has(search.libraryFolders, "/some/toolkit/lib64"));
  EXPECT_TRUE(
      has(search.libraryFolders, "/some/toolkit/targets/x86_64-linux/lib"));
  EXPECT_TRUE(has(search.programFolders, "/some/toolkit/bin"));
}

TEST(JitLink, WheelFoldersAreSearched) {
  TemporaryFolder folder;
  SmallString<128> wheel(folder.path);
  sys::path::append(wheel, "lib", "python3.12", "site-packages");
  ASSERT_FALSE(sys::fs::create_directories(wheel));
  Environment venv("VIRTUAL_ENV", folder.path.c_str());
  AssemblerSearch search = cantFail(AssemblerSearch::fromEnvironment());
  SmallString<128> expected(wheel);
  sys::path::append(expected, "nvidia/nvjitlink/lib");
  EXPECT_NE(std::find(search.libraryFolders.begin(),
                      search.libraryFolders.end(), expected.str().str()),
            search.libraryFolders.end());
}

} // namespace
