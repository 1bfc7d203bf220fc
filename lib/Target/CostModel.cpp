//===- CostModel.cpp - Expected bytes and time of a config ------ -*- C++
//-*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model sees a kernel as six resources used side by side:
//
//   memory   unique bytes over the sustained bandwidth, less where too few
//            bytes are in flight (Little's law)
//   L2       every byte that blocks read, over the rate of the L2 and its wires
//   shared   shared-memory traffic of the busiest SM, 128 bytes a clock
//   issue    warp instructions of the busiest SM, four schedulers
//   mma      tensor-core work of the busiest SM, padding included
//   latency  the dependent chain of one warp, waves of blocks in sequence
//
// They overlap, but not perfectly: the time is the 4-norm of the six (two equal
// ones cost 19 % more than one), plus what does not overlap with anything: the
// launch, filling the first stages, the epilogue, the split-K reduction.
//
// Worked example: w4a16 g128, M = 16, N = K = 8192 on sm_90, block 64x16x256 in
// 128 blocks, warps 32x16 (two along N, four along K), six stages of 16.6 KB.
// Memory: 35.1 MB at 4.27 TB/s, with 81 KB in flight per SM all of it: 8.2 us.
// L2: 128 blocks of 534 KB, half of it activations: 9.1 us. Issue: 32 stages of
// 1385 warp instructions: 8.1 us. Latency: 32 stages of 326 clocks: 5.7 us.
// Their 4-norm is 11.4 us; launch, first stage, last stage, the sum over the
// warps along K and the epilogue add 3.3 us.
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"
#include "Humming/Target/Dequant.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cmath>

using namespace humming;

namespace {

// Constants of the model, in the units that their names say. Measured on an
// H200 with kernels in a graph: the smallest kernel takes 1.2 us; a kernel that
// streams 34.6 MB takes 10.4 us where 8.1 are the bytes; 64 to 96 KB in flight
// per SM are best, 192 KB are 8 % slower. The others are estimates.
constexpr double launchMicroseconds = 1.2;
// What a stage costs that overlaps with nothing: all warps meet, then start
// with the latencies of shared memory. Measured on an H200 by deepening the
// stages of one kernel (8192 x 8192, M = 1: 32, 16, 8 stages
// take 15.7, 14.1, 13.4 us).
constexpr double stageMicroseconds = 0.05;
// With producer warps nobody meets at a stage's end: the price of a look at its
// barrier and of starting on its data (measured at 8192 x 8192: M = 1, 16
// stages of 512 cost 1.0 us more than 8 of 1024; M = 1024, two tiles of 128
// stages of 64 cost 15 us more than of 64 stages of 128).
constexpr double ringMicroseconds = 0.11;
constexpr double ringClocks = 60;
// Nothing is dequantized where the operands come from shared memory (measured:
// W8A8 at 8192 x 8192, M = 64, 32 stages take 19.8 us, M = 1, 16 stages 16.3,
// where the bytes alone take 15.7). Nor does a tensor copy need a fence, which
// tells where the MMAs are long (w4a16, M = 1024: 172 us against 194).
constexpr double plainRingMicroseconds = 0.03;
// Without them the warpgroups meet at every stage, and the tensor cores wait
// for all of them (measured: 8192 x 8192, M = 1024, 212 us against 193).
constexpr double meetingMicroseconds = 0.26;
// What starting before the end of the kernel before saves: the launch, and the
// wait for the first stages of weights (measured: 1.0 to 1.5 us).
constexpr double earlyMicroseconds = 1.1;
constexpr double epilogueMicroseconds = 0.5;
constexpr double bestBytesInFlight = 88 * 1024;
// Latency of DRAM under moderate load. At 4.27 TB/s and 132 SMs it stands for
// 24 KB in flight, the knee of the saturation curve below.
constexpr double memoryLatencySeconds = 740e-9;
// The next wave of blocks starts with empty stages, after its predecessors'
// tail.
constexpr double waveMicroseconds = 0.3;
// Counter, fences, and the wait of the last block for the partial sums: three
// trips to L2 one after the other.
constexpr double splitMicroseconds = 1.5;
// Two barriers of a cluster, and what an SM reads of another one's memory a
// clock (estimates; measured at 8192 x 8192 with two splits: a cluster saves
// 1.2 us at M = 64 and 4.2 at 256).
constexpr double clusterMicroseconds = 1.6;
constexpr double clusterBytesPerClock = 40;
// What an SM gets from L2 with all SMs reading, three quarters of what its port
// takes (measured: tiles that read half as much again lose nothing by it):
// 11.6 TB/s on an H200, 7.3 TB/s on an A100.
constexpr double l2BytesPerClockPerSM = 48;
constexpr double sharedBytesPerClock = 128;
constexpr double schedulersPerSM = 4;
// Schedulers rarely fill every slot: dependences, bank conflicts, half-rate
// integer instructions.
constexpr double issueEfficiency = 0.75;
// Clocks from one instruction of a warp to its next, on average.
constexpr double clocksPerDependentInstruction = 1.6;
constexpr double sharedLatencyClocks = 35;
// One MMA on the accumulator of the one before.
constexpr double mmaLatencyClocks = 33;
constexpr double barrierClocks = 110;
// Of the data sheet's rate, what wgmma sustains: the clock drops under load.
constexpr double wgmmaShare = 0.82;

struct Work {
  double instructions; ///< warp instructions
  double chainClocks;  ///< dependent clocks
  double sharedBytes;
};

} // namespace

static double ceilDiv(double a, double b) { return std::ceil(a / b); }

/// MMA instructions that 16 features, 8 tokens and a slab take with operands of
/// `bits` bits.
static double stepsOf(MmaKind kind, double bits) {
  switch (kind) {
  case MmaKind::M16N8K8:
  case MmaKind::M8N8K16:
    return 8;
  case MmaKind::M16N8K16:
    return 4;
  case MmaKind::Wgmma:
    return bits / 4;
  case MmaKind::M16N8K32:
    return 2;
  case MmaKind::M16N8K64:
    return 1;
  }
  return 4;
}

/// dequantCost of the last problem: thousands of configs ask for the same.
static DequantCost dequantInstructions(const MatmulProblem &problem,
                                       bool native) {
  struct Last {
    QuantType type;
    NumberFormat operand;
    bool native = false;
    DequantCost cost;
  };
  static thread_local Last last;
  if (last.cost.perWeights8 == 0 || last.type != problem.weight ||
      last.operand != problem.activation || last.native != native)
    last = {problem.weight, problem.activation, native,
            dequantCost(problem.weight,
                        weightOperand(problem.weight, problem.activation),
                        native)};
  return last.cost;
}

/// Whether the assembler makes the MMA of 8-bit floats out of f16 ones.
static bool isEmulated(const MatmulProblem &problem, const KernelConfig &config,
                       const TargetInfo &target) {
  return config.mma != MmaKind::Wgmma && problem.activation.isFloat() &&
         problem.activation.bits == 8 && target.emulatesFp8Mma();
}

/// One warp's work on its units of one 64-wide slab.
static Work slabWork(const MatmulProblem &problem, const KernelConfig &config,
                     const TargetInfo &target) {
  const QuantType &weight = problem.weight;
  double units = config.rowUnits();      // 16 features (tokens) x 64 k
  double columns = config.columnTiles(); // MMA columns of 8 tokens (features)
  double bits = weight.weight.bits;
  double steps = stepsOf(config.mma, problem.activation.bits) *
                 partsOfStep(problem, config);
  const bool warpgroups = config.mma == MmaKind::Wgmma;
  const bool plain = problem.weightLayout == WeightLayout::Plain;
  int32_t group = weight.granularity.columns;
  double groups = group > 0 && group < 64 ? 64.0 / group : 1;

  // The dequantization of 32 weights a lane, and the loads of their words; of
  // plain weights an ldmatrix a step, or with wgmma nothing.
  DequantCost dequant =
      plain ? DequantCost()
            : dequantInstructions(problem, target.convertsFp8());
  double unit =
      plain ? (warpgroups ? 0 : steps) : bits / 4 + 4 * dequant.perWeights8;
  if (weight.zeroPoint == ZeroPointKind::Integer)
    unit += 6 * groups;
  else if (weight.zeroPoint == ZeroPointKind::Float)
    unit += 8 * groups;
  switch (config.scale) {
  case ScalePlacement::Operand: // 16 multiplies, load and spread two scales
    unit += 16 + (1 + dequant.perScale) * groups;
    break;
  case ScalePlacement::Accumulator: // an f32 FMA per partial sum
    unit += groups * (4 * columns + 3);
    // The sums of a single MMA are waited for at once (measured: nvfp4 at
    // 8192 x 8192, M = 1, takes 18.6 us, on the operand 16.7).
    if (groups >= steps)
      unit += 7 * groups;
    break;
  case ScalePlacement::Epilogue:
    break;
  }
  // A product or a conversion a partial sum, and the loads of its scales.
  // With rows=tokens a unit has two scales, multiplied into that of the weights
  // (or into the sums, where these have none in the loop).
  if (problem.activationGroup != 0)
    unit += std::max(1.0, 64.0 / problem.activationGroup) *
            (!config.tokenRows()                           ? 6 * columns
             : config.scale == ScalePlacement::Accumulator ? 6
                                                           : 4 * columns + 4);
  else if (problem.accumulator.isF16())
    unit += 6 * columns;
  // One instruction a unit and step (and a fence, a commit and a wait a step)
  // instead of one for every column; B needs no loads.
  unit += warpgroups ? steps : steps * columns;
  const bool emulated = isEmulated(problem, config, target);
  if (emulated) // a second MMA, and conversions of A
    unit += steps * columns + 8 * steps;
  double loads = warpgroups ? 0 : 2 * columns; // ldmatrix.x4, for all units
  if (warpgroups)
    unit += (plain ? 4 : 4 * steps) / units;
  if (emulated) // conversions of B, for all units
    loads += 4 * steps * columns;

  Work work;
  work.instructions = units * unit + loads + 6;
  double mmaChain = (emulated ? 2 : 1) * steps * mmaLatencyClocks *
                    (config.mma == MmaKind::M16N8K8 ? 0.6 : 1);
  // A step's wgmma runs while the next step is dequantized; 64 features by 8
  // tokens by 16 take 2 clocks.
  if (warpgroups)
    mmaChain = steps * (mmaLatencyClocks + 2 * units * columns);
  work.chainClocks =
      sharedLatencyClocks +
      std::max(work.instructions * clocksPerDependentInstruction, mmaChain);
  work.sharedBytes = units * 128 * bits + (warpgroups ? 0 : 2 * columns) * 512;
  return work;
}

RawCost humming::estimateRawCost(const MatmulProblem &problem,
                                 const KernelConfig &config,
                                 const TargetInfo &target) {
  const QuantType &weight = problem.weight;
  const auto [m, n, k] = assumedSizes(problem);
  double sms = target.numSMs;
  double clock = target.clockHz;

  // Grid and occupancy.
  SharedMemoryLayout layout = layoutSharedMemory(problem, config);
  double threads = config.blockThreads();
  double warps = config.numWarps();
  double registers = (predictRegisters(problem, config) + 7) / 8 * 8;
  double resident = std::min(
      {double(target.maxBlocksPerSM),
       std::floor(double(target.sharedMemoryPerSM) /
                  double(layout.totalBytes + target.sharedMemoryReserved)),
       // Warps get their registers four at a time.
       std::floor(target.registersPerSM /
                  (registers * ceilDiv(threads, 128) * 128)),
       std::floor(target.maxThreadsPerSM / threads)});
  resident = std::max(resident, 1.0);
  double gridN = ceilDiv(n, config.blockN), gridM = ceilDiv(m, config.blockM);
  double tiles = gridN * gridM;
  double splits = config.splitK;
  double blocks = tiles * splits;
  double stagesPerBlock = ceilDiv(ceilDiv(k, config.blockK), splits);
  double busiest = ceilDiv(blocks, sms); // blocks of the busiest SM
  double slots = sms * resident;
  double waves = ceilDiv(blocks, slots);

  // Bytes. A wave of blocks covers wave/gridN rows of tiles and reads each
  // weight once; weights that L2 holds are read from memory only once in all.
  double groups = double(weight.granularity.scaleColumns(int64_t(k)));
  double scaleBytes = weight.scale.bits / 8.0;
  double perGroup = scaleBytes;
  if (weight.zeroPoint != ZeroPointKind::None)
    perGroup += weight.zeroPoint == ZeroPointKind::Float ? scaleBytes : 1;
  double weightBytes = n * k * weight.weight.bits / 8 + n * groups * perGroup;
  double activationBytes = m * k * problem.activation.bits / 8;
  double outputBytes = m * n * problem.output.bits / 8;
  double readsOfWeights = 1;
  if (weightBytes > 0.7 * double(target.l2Bytes)) {
    double rows = std::max(1.0, std::floor(slots / (gridN * splits)));
    readsOfWeights = ceilDiv(gridM, rows);
  }
  const bool plain = problem.weightLayout == WeightLayout::Plain;
  RawCost cost;
  cost.bytes = weightBytes * readsOfWeights + activationBytes + outputBytes;
  double partialBytes = splits > 1 ? splits * m * n * 4 : 0;

  // Memory. What is in flight decides which share of the bandwidth is reached:
  // x / (1 + x^4)^(1/4) of it for x times what Little's law asks for.
  double stagesInFlight = config.copy == CopyKind::Sync ? 1 : config.stages - 1;
  double inFlightPerBlock = stagesInFlight * double(layout.stageBytes);
  auto memorySeconds = [&](double runningBlocks) {
    double share = runningBlocks / blocks;
    double inFlight = runningBlocks * inFlightPerBlock;
    double x = inFlight / (target.memoryBandwidth * memoryLatencySeconds);
    double reached =
        target.memoryBandwidth * x / std::sqrt(std::sqrt(1 + x * x * x * x));
    double perSM = inFlight / std::min(runningBlocks, sms);
    // Plain weights gain by every stage (measured up to five).
    if (perSM > bestBytesInFlight && !plain)
      reached /= 1 + 0.08 * (perSM / bestBytesInFlight - 1);
    return cost.bytes * share / reached;
  };
  double full = std::floor(blocks / slots);
  double rest = blocks - full * slots;
  double memory = full > 0 ? full * memorySeconds(slots) : 0;
  if (rest > 0)
    memory += memorySeconds(rest);

  // L2 and its wires: all that the busiest SM reads and writes.
  double stageCount = busiest * stagesPerBlock;
  double l2Bytes =
      stageCount * double(layout.stageBytes) +
      busiest * double(config.blockN) * config.blockM * (splits > 1 ? 4 : 2);
  double l2 = l2Bytes / (l2BytesPerClockPerSM * clock);

  // The busiest SM's instruction slots, shared memory and tensor cores.
  Work slab = slabWork(problem, config, target);
  double warpSlabs = config.blockK / 64 / config.warpsK; // of a warp and stage
  double copiedByThreads = double(layout.stageBytes);
  // A tensor copy is a few instructions of one thread.
  if (config.copy == CopyKind::Tensor)
    copiedByThreads -=
        double(config.blockM) * config.blockK * problem.activation.bits / 8;
  double copyInstructions = copiedByThreads / (16 * 32) * 2.5;
  double stageInstructions =
      warps * (warpSlabs * slab.instructions + 25) + copyInstructions;
  double issue = stageCount * stageInstructions /
                 (schedulersPerSM * issueEfficiency * clock);
  double sharedBytes = stageCount * (warps * warpSlabs * slab.sharedBytes +
                                     double(layout.stageBytes));
  double shared = sharedBytes / (sharedBytesPerClock * clock);
  double multiplyAdds =
      stageCount * double(config.blockN) * config.blockM * config.blockK;
  double mmaShare =
      config.mma == MmaKind::Wgmma ? wgmmaShare : target.mmaSyncShare;
  // Narrower operands are multiplied as much faster.
  double bitsOfMma =
      isEmulated(problem, config, target) ? 16 : problem.activation.bits;
  double mma =
      multiplyAdds * bitsOfMma / (16 * target.mmaRate16 * mmaShare * clock);
  // Parts of a step are whole instructions with zeros, or for integers of
  // mma.sync half ones.
  double parts = partsOfStep(problem, config);
  if (problem.activation.isInteger() && config.mma != MmaKind::Wgmma)
    parts = std::max(1.0, parts / 2);
  mma *= parts;

  // The chain of a warp; co-resident blocks run side by side. With two buffers
  // the next copy waits for the barrier after the last read, a second one.
  double barriers = layout.stages == 2 ? 2 : 1;
  const bool hasProducers = config.usesRing();
  double stageChain = warpSlabs * slab.chainClocks +
                      (hasProducers ? ringClocks : barriers * barrierClocks);
  double chain = stagesPerBlock * stageChain;
  double rounds = ceilDiv(busiest, resident);
  double latency = rounds * chain / clock;

  auto fourth = [](double x) { return x * x * x * x; };
  // A warpgroup's own dequantization and MMAs overlap by a step only (measured:
  // blocks of 128 features by 256 tokens beat 256 by 128, which dequantize
  // twice as much).
  if (config.mma == MmaKind::Wgmma) {
    // With tensor copies no fence keeps them from running side by side.
    mma = config.copy == CopyKind::Tensor
              ? std::cbrt(mma * mma * mma + issue * issue * issue)
              : std::sqrt(mma * mma + issue * issue);
    issue = 0;
  }
  double sum = fourth(memory) + fourth(l2) + fourth(shared) + fourth(issue) +
               fourth(mma) + fourth(latency);
  double overlapped = std::sqrt(std::sqrt(sum));

  // What nothing hides: the first stage has to arrive before anything is
  // computed, the last is computed after everything has arrived. Later waves
  // pay it again unless another block of the SM works meanwhile.
  double running = std::min(blocks, slots);
  double fill =
      memoryLatencySeconds +
      double(layout.stageBytes) *
          std::max(running / target.memoryBandwidth,
                   ceilDiv(running, sms) / (l2BytesPerClockPerSM * clock));
  double drain = stageChain / clock;
  double ends = (fill + drain) * 1e6;
  double fixed = launchMicroseconds + epilogueMicroseconds + ends;
  if (config.early)
    fixed -= earlyMicroseconds;
  fixed += busiest * stagesPerBlock / resident *
           (hasProducers && (plain || (config.copy == CopyKind::Tensor &&
                                       config.warpM >= 128))
                ? plainRingMicroseconds
            : hasProducers                 ? ringMicroseconds
            : config.mma == MmaKind::Wgmma ? meetingMicroseconds
                                           : stageMicroseconds);
  fixed += (waves - 1) * (ends + waveMicroseconds) / resident;
  // Warps along K add their tiles up through shared memory.
  double reduce = double(config.blockN) * config.blockM * 4 *
                  (2 * config.warpsK - 1) / (sharedBytesPerClock * clock);
  fixed += rounds * reduce * 1e6;
  if (config.cluster) {
    // The first block reads the others' sums over the wires between SMs.
    fixed += clusterMicroseconds;
    fixed += (splits - 1) * double(config.blockN) * config.blockM * 4 /
             (clusterBytesPerClock * clock) * 1e6;
  } else if (splits > 1) {
    // All partials are written to and read from L2; the last block of a tile
    // reads them all.
    fixed += splitMicroseconds;
    double rate = l2BytesPerClockPerSM * clock;
    double lastBlock = splits * double(config.blockN) * config.blockM * 4;
    fixed += std::max(2 * partialBytes / (rate * sms),
                      lastBlock * ceilDiv(tiles, sms) / rate) *
             1e6;
  }
  cost.microseconds = overlapped * 1e6 + fixed;

  double most = std::max({memory, l2, shared, issue, mma, latency});
  if (most * 1e6 < fixed || most == latency)
    cost.limiter = Limiter::Latency;
  else if (most == memory || most == l2)
    cost.limiter = Limiter::Memory;
  else if (most == mma)
    cost.limiter = Limiter::Mma;
  else
    cost.limiter = Limiter::Issue;
  return cost;
}

static llvm::StringRef nameOf(Limiter limiter) {
  switch (limiter) {
  case Limiter::Memory:
    return "memory";
  case Limiter::Mma:
    return "mma";
  case Limiter::Issue:
    return "issue";
  case Limiter::Latency:
    return "latency";
  }
  return "unknown";
}

CostEstimate humming::finishCost(const RawCost &raw) {
  CostEstimate cost;
  cost.bytes = raw.bytes;
  cost.microseconds = raw.microseconds;
  cost.limiter = nameOf(raw.limiter).str();
  return cost;
}

CostEstimate humming::estimateCost(const MatmulProblem &problem,
                                   const KernelConfig &config,
                                   const TargetInfo &target) {
  return finishCost(estimateRawCost(problem, config, target));
}
