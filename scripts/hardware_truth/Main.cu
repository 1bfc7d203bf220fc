//===- Main.cu - Runs instructions on a GPU and stores their results *- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// hardware_truth FOLDER [FAMILY...]: writes FOLDER/FAMILY.bin for every family
// (or the named ones). A family's file is written as soon as it has run, so a
// fault in a later one loses nothing. Exit code 0 only if all went well.
//
// The cases of an isolated family may fault: they run in processes of their
// own (this program with --worker), and a process that a fault has spoilt is
// followed by one that goes on behind it. The fault is the case's result.

#include "Device.cuh"
#include <sys/wait.h>
#include <unistd.h>

struct Family {
  const char *name;
  std::vector<truth::Case> (*run)(); ///< null: isolated
  unsigned (*count)() = nullptr;
  IsolatedResult (*one)(unsigned) = nullptr;
};

static const Family families[] = {
    {"arithmetic", runArithmetic},
    {"convert", runConvert},
    {"integer", runInteger},
    {"matrix", runMatrix},
    {"mma", runMma},
    {"wgmma", runWgmma},
    {"tensor", nullptr, tensorCount, runTensorCase},
    {"kernels", nullptr, kernelCount, runKernelCase},
};

static std::string partPath(const char *folder, const Family &f, unsigned i) {
  return std::string(folder) + "/" + f.name + "." + std::to_string(i) + ".part";
}

/// Runs the cases first, first + step... until one faults.
static int work(const char *folder, const Family &f, unsigned first,
                unsigned step) {
  for (unsigned i = first; i < f.count(); i += step) {
    IsolatedResult r = f.one(i);
    truth::Case status =
        truth::makeCase("status of " + r.name, &r.status, 1, 4, true);
    std::vector<truth::Case> parts = {status};
    if (!r.status)
      parts.push_back(r.result);
    if (!truth::writeFile(partPath(folder, f, i), parts))
      return 1;
    if (r.status >= truth::statusFailed)
      break;
  }
  // No destructors and no CUDA call: the context may be lost.
  fflush(stdout);
  _exit(0);
}

static bool readPart(const std::string &path, std::vector<truth::Case> &cases) {
  FILE *file = fopen(path.c_str(), "rb");
  if (!file)
    return false;
  std::vector<uint8_t> bytes;
  uint8_t block[65536];
  for (size_t got; (got = fread(block, 1, sizeof(block), file)) > 0;)
    bytes.insert(bytes.end(), block, block + got);
  fclose(file);
  cases.clear();
  return truth::parseFile(bytes.data(), bytes.size(), cases);
}

static pid_t startWorker(const char *folder, const Family &f, unsigned first,
                         unsigned step) {
  pid_t id = fork();
  if (id != 0)
    return id;
  std::string a = std::to_string(first), b = std::to_string(step);
  execl("/proc/self/exe", "hardware_truth", "--worker", folder, f.name,
        a.c_str(), b.c_str(), static_cast<char *>(nullptr));
  _exit(127);
}

/// All cases of an isolated family, and the word "status" of each.
static std::vector<truth::Case> runIsolated(const char *folder,
                                            const Family &f) {
  const unsigned shards = 6;
  std::vector<uint32_t> status(f.count(), truth::statusLost);
  std::vector<truth::Case> results(f.count());
  pid_t running[shards];
  unsigned next[shards];
  for (unsigned s = 0; s < shards; ++s) {
    next[s] = s;
    running[s] = next[s] < f.count() ? startWorker(folder, f, s, shards) : -1;
  }
  for (unsigned live = shards; live;) {
    live = 0;
    for (unsigned s = 0; s < shards; ++s) {
      if (running[s] <= 0)
        continue;
      int code = 0;
      pid_t ended = waitpid(running[s], &code, WNOHANG);
      if (ended == 0) {
        ++live;
        continue;
      }
      // What it left; a case without a file is the one that ended it.
      for (; next[s] < f.count(); next[s] += shards) {
        std::vector<truth::Case> parts;
        std::string path = partPath(folder, f, next[s]);
        if (!readPart(path, parts) || parts.empty())
          break;
        memcpy(&status[next[s]], parts[0].stored.data(), 4);
        if (parts.size() > 1)
          results[next[s]] = parts[1];
        else
          printf("%s: %s is %u\n", f.name, parts[0].name.c_str(),
                 status[next[s]]);
        remove(path.c_str());
        if (status[next[s]] >= truth::statusFailed) {
          next[s] += shards;
          code = 0;
          break;
        }
      }
      if (code != 0 && next[s] < f.count()) {
        printf("%s: case %u ended its process (%d)\n", f.name, next[s], code);
        next[s] += shards;
      }
      running[s] =
          next[s] < f.count() ? startWorker(folder, f, next[s], shards) : -1;
      live += running[s] > 0;
    }
    usleep(2000);
  }
  std::vector<truth::Case> cases;
  cases.push_back(truth::makeCase("status", status.data(),
                                  uint32_t(status.size()), 4, true));
  for (truth::Case &c : results)
    if (!c.name.empty())
      cases.push_back(c);
  return cases;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s FOLDER [FAMILY...]\n", argv[0]);
    return 2;
  }
  if (argc == 6 && strcmp(argv[1], "--worker") == 0) {
    for (const Family &f : families)
      if (strcmp(f.name, argv[3]) == 0)
        return work(argv[2], f, unsigned(atoi(argv[4])),
                    unsigned(atoi(argv[5])));
    return 2;
  }
  cudaDeviceProp properties;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  int driver = 0;
  CHECK_CUDA(cudaDriverGetVersion(&driver));
  printf("device: %s, sm_%d%d, driver API %d\n", properties.name,
         properties.major, properties.minor, driver);
  if (properties.major != 9 || properties.minor != 0) {
    fprintf(stderr, "expected an sm_90 device\n");
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    bool known = false;
    for (const Family &f : families)
      known = known || strcmp(f.name, argv[i]) == 0;
    if (!known) {
      fprintf(stderr, "unknown family '%s'\n", argv[i]);
      return 2;
    }
  }
  for (const Family &f : families) {
    bool wanted = argc == 2;
    for (int i = 2; i < argc; ++i)
      wanted = wanted || strcmp(f.name, argv[i]) == 0;
    if (!wanted)
      continue;
    std::vector<truth::Case> cases = f.run ? f.run() : runIsolated(argv[1], f);
    std::string path = std::string(argv[1]) + "/" + f.name + ".bin";
    if (!truth::writeFile(path, cases)) {
      fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
    // Read back: the file must parse to what was written.
    FILE *file = fopen(path.c_str(), "rb");
    std::vector<uint8_t> bytes;
    uint8_t block[65536];
    for (size_t got; file && (got = fread(block, 1, sizeof(block), file)) > 0;)
      bytes.insert(bytes.end(), block, block + got);
    if (file)
      fclose(file);
    std::vector<truth::Case> again;
    if (!truth::parseFile(bytes.data(), bytes.size(), again) ||
        again.size() != cases.size()) {
      fprintf(stderr, "%s does not read back\n", path.c_str());
      return 1;
    }
    size_t results = 0;
    for (const truth::Case &c : cases)
      results += c.count;
    printf("%-12s %4zu cases, %8zu results, %8zu bytes\n", f.name, cases.size(),
           results, bytes.size());
    fflush(stdout);
  }
  CHECK_CUDA(cudaDeviceReset());
  printf("done\n");
  return 0;
}
