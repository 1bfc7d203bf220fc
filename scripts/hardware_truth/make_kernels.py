#!/usr/bin/env python3
# Part of the Humming project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the PTX kernels of the hardware comparison that are more than one
instruction per thread: asynchronous copies, bulk copies and reductions,
mbarriers, clusters, atomics, cache hints.

  make_kernels.py > test/data/hardware/kernels.ptx

Every kernel takes (in, out): `in` is 64 KiB of random words, `out` is zero
before the launch. Lines `// case NAME grid=G block=B words=W` list them: both the
program that runs them on a GPU (Kernels.cu) and the unit test that replays
them (HardwareKernelTest.cpp) read these.
"""

cases = []
bodies = []


def kernel(name, body, block=128, grid=1, cluster=0, words=512, shared=2048):
    """Registers that every body finds set: %rd0 in, %rd1 out, %rd2 in + 16 tid,
    %rd3 out + 16 (tid + block * cta), %r0 tid, %r1 ctaid, %r3 the window, %r4
    its 16-byte slot of the thread, %r5 the barrier."""
    cases.append(f"// case {name} grid={grid} block={block} words={words}")
    directives = f".reqntid {block}, 1, 1"
    if cluster:
        directives += f"\n.explicitcluster\n.reqnctapercluster {cluster}, 1, 1"
    bodies.append(f"""
.visible .entry {name}(.param .u64 p_in, .param .u64 p_out)
{directives}
{{
  .reg .pred %p<8>;
  .reg .b16 %h<40>;
  .reg .b32 %r<64>;
  .reg .b64 %rd<32>;
  .shared .align 1024 .b8 window[{shared}];
  .shared .align 8 .b64 barrier[4];
  ld.param.u64 %rd0, [p_in];
  ld.param.u64 %rd1, [p_out];
  cvta.to.global.u64 %rd0, %rd0;
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r3, window;
  mov.u32 %r5, barrier;
  shl.b32 %r4, %r0, 4;
  cvt.u64.u32 %rd2, %r4;
  mad.lo.u32 %r6, %r1, {block}, %r0;
  shl.b32 %r6, %r6, 4;
  cvt.u64.u32 %rd3, %r6;
  add.u64 %rd2, %rd2, %rd0;
  add.u64 %rd3, %rd3, %rd1;
  add.u32 %r4, %r4, %r3;
  setp.eq.u32 %p0, %r0, 0;
{body}
  ret;
}}
""")


# The window gets words of `in` from byte 32768 on; every thread one slot.
INIT = """  ld.global.v4.b32 {%r40, %r41, %r42, %r43}, [%rd2+32768];
  st.shared.v4.b32 [%r4], {%r40, %r41, %r42, %r43};
"""
READ = """  ld.shared.v4.b32 {%r40, %r41, %r42, %r43}, [%r4];
  st.global.v4.b32 [%rd3], {%r40, %r41, %r42, %r43};
"""
SYNC = "  bar.sync 0;\n"
# One arrival completes a phase; visible to the async proxy and the cluster.
BARRIER = """  @%p0 mbarrier.init.shared.b64 [%r5], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  fence.proxy.async;
"""
CLUSTER_SYNC = """  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
"""
waits = 0


def wait(parity=0, scope=""):
    global waits
    waits += 1
    return f"""W{waits}:
  mbarrier.try_wait.parity{scope}.shared{'::cta' if scope else ''}.b64 %p7, [%r5], {parity};
  @!%p7 bra W{waits};
"""


# cp.async: every thread copies one slot of its neighbour.
OTHER = """  xor.b32 %r10, %r0, 5;
  shl.b32 %r10, %r10, 4;
  add.u32 %r10, %r10, %r3;
"""
POLICY = "  createpolicy.fractional.L2::evict_last.b64 %rd9, 1.0;\n"


def cp_async():
    wait_all = "  cp.async.commit_group;\n  cp.async.wait_group 0;\n"
    for op, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        def one(tail, extra="", suffix="", done=wait_all):
            return (INIT + SYNC + OTHER + extra +
                    f"  cp.async.{op}.shared.global{suffix} [%r10], [%rd2], {size}{tail};\n" +
                    done + SYNC + READ)
        name = f"cp_async_{op}{size}"
        kernel(name, one(""))
        kernel(name + "_src", one(", %r11", f"  rem.u32 %r11, %r0, {size + 1};\n"))
        kernel(name + "_ignore", one(", %p1", "  and.b32 %r11, %r0, 3;\n  setp.eq.u32 %p1, %r11, 1;\n"))
        kernel(name + "_hint", one(", %rd9", POLICY, ".L2::cache_hint",
                                   "  cp.async.wait_all;\n"))
        kernel(name + "_l2", one("", "", ".L2::128B"))
    # Groups: the older one is waited for first.
    kernel("cp_async_groups", INIT + SYNC + OTHER + """  cp.async.ca.shared.global [%r10], [%rd2], 8;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r10+8], [%rd2+2048], 8;
  cp.async.commit_group;
  cp.async.wait_group 1;
  ld.shared.v2.b32 {%r12, %r13}, [%r10];
  cp.async.wait_group 0;
  ld.shared.v2.b32 {%r14, %r15}, [%r10+8];
  st.global.v4.b32 [%rd3], {%r12, %r13, %r14, %r15};
""")
    # An mbarrier that counts the copies' arrivals.
    for noinc in (False, True):
        count = 128 if noinc else 129
        kernel("cp_async_mbarrier" + ("_noinc" if noinc else ""), f"""  @%p0 mbarrier.init.shared.b64 [%r5], {count};
""" + INIT + SYNC + OTHER + "  cp.async.cg.shared.global [%r10], [%rd2], 16;\n" +
               f"  cp.async.mbarrier.arrive{'.noinc' if noinc else ''}.shared.b64 [%r5];\n" +
               ("" if noinc else "  mbarrier.arrive.shared.b64 _, [%r5];\n"
                "  @%p0 mbarrier.arrive.shared.b64 _, [%r5];\n") + wait() + READ)


def hints():
    lines = []
    at = 0
    fractions = ("1.0", "0.5", "0.25", "0.0625", "0.7")
    for first in ("evict_last", "evict_normal", "evict_first", "evict_unchanged"):
        for second in ("", "L2::evict_first", "L2::evict_unchanged"):
            for f in fractions:
                mode = f"L2::{first}" + (f".{second}" if second else "")
                lines.append(f"  createpolicy.fractional.{mode}.b64 %rd9, {f};\n"
                             f"  @%p0 st.global.b64 [%rd1+{at}], %rd9;\n")
                at += 8
    kernel("createpolicy", "".join(lines), words=at // 4)
    load = "  add.u32 %r44, %r44, %r40;\n  xor.b32 %r45, %r45, %r41;\n" \
           "  add.u32 %r46, %r46, %r42;\n  xor.b32 %r47, %r47, %r43;\n"
    text = POLICY + "".join(f"  mov.b32 %r{i}, 0;\n" for i in range(44, 48))
    text += """  prefetch.global.L1 [%rd2];
  prefetch.global.L2 [%rd2+4096];
  prefetch.global.L2::evict_last [%rd2+4096];
  prefetch.global.L2::evict_normal [%rd2+4096];
  prefetchu.L1 [%rd0];
  applypriority.global.L2::evict_normal [%rd0], 128;
"""
    offset = 0
    for mode in (".ca", ".cg", ".cs", ".lu", ".cv", ".nc", ".nc.L1::no_allocate",
                 ".L1::evict_last", ".L1::evict_first", ".L1::no_allocate",
                 ".L1::evict_unchanged", ".L2::64B", ".L2::128B", ".L2::256B",
                 ".nc.L1::no_allocate.L2::128B", ".L1::evict_normal.L2::128B"):
        text += f"  ld.global{mode}.v4.b32 {{%r40, %r41, %r42, %r43}}, [%rd2+{offset}];\n" + load
        offset += 2048
    text += "  ld.global.L2::cache_hint.v4.b32 {%r40, %r41, %r42, %r43}, [%rd2], %rd9;\n" + load
    text += "  ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32 {%r40, %r41, %r42, %r43}, [%rd2+512], %rd9;\n" + load
    for i, mode in enumerate((".wb", ".cg", ".cs", ".wt", ".L1::no_allocate", ".L1::evict_last")):
        text += f"  st.global{mode}.v4.b32 [%rd3+{2048 * i}], {{%r44, %r45, %r46, %r47}};\n" \
                "  add.u32 %r44, %r44, 1;\n"
    text += "  st.global.L2::cache_hint.v4.b32 [%rd3+12288], {%r44, %r45, %r46, %r47}, %rd9;\n"
    kernel("cache_hints", text, words=7 * 512)


def bulk():
    for size in (16, 48, 1024, 2032):
        kernel(f"bulk_g2s_{size}", INIT + BARRIER + SYNC + f"""  @!%p0 bra R;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r5], {size};
  add.u32 %r10, %r3, 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd0+48], {size}, [%r5];
R:
""" + wait() + READ)
        kernel(f"bulk_s2g_{size}", INIT + "  fence.proxy.async;\n" + SYNC + f"""  @!%p0 bra R;
  add.u32 %r10, %r3, 16;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1+48], [%r10], {size};
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
R:
""", words=1024)
    kernel("bulk_s2g_hint", INIT + "  fence.proxy.async;\n" + SYNC + POLICY + """  @!%p0 bra R;
  cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd1], [%r3], 512, %rd9;
  cp.async.bulk.commit_group;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1+1024], [%r3+512], 512;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 1;
  cp.async.bulk.wait_group.read 0;
R:
""")
    kernel("bulk_g2s_hint", INIT + BARRIER + SYNC + POLICY + """  @!%p0 bra R;
  cp.async.bulk.prefetch.L2.global [%rd0], 1024;
  cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd0+1024], 1024, %rd9;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 1536;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r3], [%rd0], 1024, [%r5], %rd9;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+1024], [%rd0+8192], 512, [%r5];
R:
""" + wait() + READ)
    kernel("bulk_s2s", INIT + BARRIER + CLUSTER_SYNC + """  setp.eq.u32 %p1, %r1, 1;
  and.pred %p2, %p0, %p1;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 768;
  setp.eq.u32 %p3, %r1, 0;
  and.pred %p3, %p0, %p3;
  mapa.shared::cluster.u32 %r11, %r3, 1;
  mapa.shared::cluster.u32 %r12, %r5, 1;
  @%p3 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11+32], [%r3], 768, [%r12];
  @!%p1 bra S;
""" + wait(0, ".acquire.cluster") + "S:\n" + READ + CLUSTER_SYNC, grid=2, cluster=2, words=1024)
    kernel("bulk_multicast", INIT + BARRIER + CLUSTER_SYNC + """  setp.ne.u32 %p1, %r1, 2;
  and.pred %p2, %p0, %p1;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 512;
""" + CLUSTER_SYNC + """  setp.eq.u32 %p3, %r1, 2;
  and.pred %p3, %p0, %p3;
  mov.b16 %h1, 11;
  @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3+256], [%rd0], 512, [%r5], %h1;
  @!%p1 bra S;
""" + wait(0, ".acquire.cluster") + "S:\n" + READ + CLUSTER_SYNC, grid=4, cluster=4, words=2048)


def bulk_reduce():
    ops = [(o, t) for o in ("and", "or", "xor") for t in ("b32", "b64")]
    ops += [("add", t) for t in ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16")]
    ops += [(o, "u32") for o in ("inc", "dec")]
    ops += [(o, t) for o in ("min", "max") for t in ("s32", "u32", "s64", "u64", "f16", "bf16")]
    for op, ty in ops:
        kernel(f"bulk_reduce_{op}_{ty.replace('.', '_')}", INIT + """  ld.global.v4.b32 {%r44, %r45, %r46, %r47}, [%rd2];
  st.global.v4.b32 [%rd3], {%r44, %r45, %r46, %r47};
  fence.proxy.async;
""" + SYNC + f"""  @!%p0 bra R;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{ty} [%rd1+64], [%r3], 1024;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
R:
""")
    ops = [(o, "b32") for o in ("and", "or", "xor")]
    ops += [("add", t) for t in ("u32", "s32", "u64")]
    ops += [(o, "u32") for o in ("inc", "dec")]
    ops += [(o, t) for o in ("min", "max") for t in ("s32", "u32")]
    for op, ty in ops:
        kernel(f"bulk_reduce_shared_{op}_{ty}", """  mad.lo.u32 %r12, %r1, 4096, 0;
  cvt.u64.u32 %rd4, %r12;
  add.u64 %rd2, %rd2, %rd4;
""" + INIT + BARRIER + CLUSTER_SYNC + f"""  setp.eq.u32 %p1, %r1, 1;
  and.pred %p2, %p0, %p1;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 1024;
  setp.eq.u32 %p3, %r1, 0;
  and.pred %p3, %p0, %p3;
  mapa.shared::cluster.u32 %r11, %r3, 1;
  mapa.shared::cluster.u32 %r12, %r5, 1;
  @%p3 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{ty} [%r11+32], [%r3], 1024, [%r12];
  @!%p1 bra S;
""" + wait(0, ".acquire.cluster") + "S:\n" + READ + CLUSTER_SYNC, grid=2, cluster=2, words=1024)


def mbarriers():
    out = []

    def put(reg):
        out.append(f"  st.global.b32 [%rd1+{4 * put.at}], {reg};\n")
        put.at += 1
    put.at = 0

    def test(parity):
        out.append(f"  mbarrier.test_wait.parity.shared.b64 %p1, [%r5], {parity};\n"
                   "  selp.b32 %r10, 1, 0, %p1;\n")
        put("%r10")

    def both():
        test(0)
        test(1)

    def state(reg):
        out.append(f"  mbarrier.pending_count.b64 %r10, {reg};\n")
        put("%r10")
        out.append(f"  mbarrier.test_wait.shared.b64 %p1, [%r5], {reg};\n"
                   "  selp.b32 %r10, 1, 0, %p1;\n")
        put("%r10")
    out.append("  @!%p0 bra R;\n  mbarrier.init.shared.b64 [%r5], 5;\n")
    both()
    out.append("  mbarrier.arrive.shared.b64 %rd10, [%r5];\n")
    state("%rd10")
    out.append("  mbarrier.arrive.noComplete.shared.b64 %rd11, [%r5], 2;\n")
    state("%rd11")
    state("%rd10")
    out.append("  mbarrier.arrive.shared.b64 %rd12, [%r5], 2;\n")
    state("%rd12")
    state("%rd10")
    both()
    out.append("  mbarrier.arrive_drop.shared.b64 %rd13, [%r5];\n")
    state("%rd13")
    out.append("  mbarrier.arrive.shared.b64 %rd14, [%r5], 4;\n")
    state("%rd14")
    state("%rd13")
    both()
    # Now four arrivals complete a phase; the transaction count holds it.
    out.append("  mbarrier.arrive.shared.b64 %rd15, [%r5], 3;\n")
    out.append("  mbarrier.arrive.expect_tx.shared.b64 %rd16, [%r5], 96;\n")
    state("%rd16")
    both()
    out.append("  mbarrier.complete_tx.shared.b64 [%r5], 32;\n")
    both()
    out.append("  mbarrier.expect_tx.relaxed.cta.shared.b64 [%r5], 16;\n")
    out.append("  mbarrier.complete_tx.shared.b64 [%r5], 80;\n")
    both()
    state("%rd16")
    out.append("  mbarrier.arrive_drop.noComplete.shared.b64 %rd17, [%r5], 2;\n")
    state("%rd17")
    out.append("  mbarrier.arrive.shared.b64 %rd18, [%r5], 2;\n")
    state("%rd18")
    both()
    out.append("  mbarrier.arrive.shared.b64 %rd18, [%r5], 2;\n")
    both()
    out.append("  mbarrier.inval.shared.b64 [%r5];\n  mbarrier.init.shared.b64 [%r5], 1048575;\n")
    out.append("  mbarrier.arrive.shared.b64 %rd18, [%r5], 4095;\n")
    state("%rd18")
    out.append("  mbarrier.arrive.expect_tx.shared.b64 %rd18, [%r5], 1048575;\n")
    state("%rd18")
    both()
    kernel("mbarrier", "".join(out) + "R:\n", block=32, words=128)


def clusters():
    half = """  xor.b32 %r13, %r1, 1;
  mapa.shared::cluster.u32 %r11, %r4, %r13;
  mapa.shared::cluster.u32 %r12, %r5, %r13;
  mad.lo.u32 %r14, %r1, 4096, 0;
  cvt.u64.u32 %rd4, %r14;
  add.u64 %rd2, %rd2, %rd4;
  ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd2];
  mov.b64 %rd10, {%r20, %r21};
  mov.b64 %rd11, {%r22, %r23};
"""

    def one(name, instructions, size):
        kernel(name, half + INIT + BARRIER +
               f"  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], {128 * size};\n" +
               CLUSTER_SYNC + instructions + wait(0, ".acquire.cluster") + READ + CLUSTER_SYNC,
               grid=2, cluster=2, words=1024)
    st = "  st.async.shared::cluster.mbarrier::complete_tx::bytes"
    one("st_async_b32", st + ".b32 [%r11+4], %r20, [%r12];\n", 4)
    one("st_async_b64", st + ".b64 [%r11+8], %rd10, [%r12];\n", 8)
    one("st_async_v2_b32", st + ".v2.b32 [%r11], {%r20, %r21}, [%r12];\n", 8)
    one("st_async_v4_u32", st + ".v4.u32 [%r11], {%r20, %r21, %r22, %r23}, [%r12];\n", 16)
    one("st_async_v2_b64", st + ".v2.b64 [%r11], {%rd10, %rd11}, [%r12];\n", 16)
    one("st_async_weak_s32", st.replace("async", "async.weak") + ".s32 [%r11+12], %r20, [%r12];\n", 4)
    ops = [(o, "u32") for o in ("inc", "dec")] + [(o, t) for o in ("min", "max") for t in ("u32", "s32")]
    ops += [(o, "b32") for o in ("and", "or", "xor")] + [("add", t) for t in ("u32", "s32", "u64")]
    for op, ty in ops:
        wide = ty == "u64"
        one(f"red_async_{op}_{ty}", "  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
            f"{op}.{ty} [%r11+8], {'%rd10' if wide else '%r20'}, [%r12];\n", 8 if wide else 4)
    kernel("remote_arrive", """  @%p0 mbarrier.init.shared.b64 [%r5], 128;
  @%p0 fence.mbarrier_init.release.cluster;
""" + half + CLUSTER_SYNC + """  st.shared::cluster.v4.b32 [%r11], {%r20, %r21, %r22, %r23};
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
""" + wait(0, ".acquire.cluster") + READ + CLUSTER_SYNC, grid=2, cluster=2, words=1024)
    kernel("cluster_access", half + INIT + CLUSTER_SYNC + """  ld.shared::cluster.v2.b32 {%r30, %r31}, [%r11];
  ld.shared::cluster.u8 %r32, [%r11+8];
  mapa.u64 %rd12, %rd2, 0;
  getctarank.shared::cluster.u32 %r33, %r11;
  cvta.shared.u64 %rd12, %rd13;
  st.global.v4.b32 [%rd3], {%r30, %r31, %r32, %r33};
""".replace("  mapa.u64 %rd12, %rd2, 0;\n", "").replace("  cvta.shared.u64 %rd12, %rd13;\n", "") + CLUSTER_SYNC +
           """  atom.shared::cluster.add.u32 %r30, [%r11+12], %r20;
""" + CLUSTER_SYNC + """  ld.shared.b32 %r31, [%r4+12];
  st.global.v2.b32 [%rd3+4096], {%r30, %r31};
""", grid=2, cluster=2, words=2048)
    registers = ("clusterid.x", "nclusterid.x", "cluster_ctaid.x", "cluster_nctaid.x",
                 "cluster_ctarank", "cluster_nctarank", "ctaid.x", "nctaid.x")
    text = ""
    for i, reg in enumerate(registers):
        text += f"  mov.u32 %r10, %{reg};\n  st.global.b32 [%rd3+{4 * (i % 4) + i // 4 * 4096}], %r10;\n"
    text += "  mov.pred %p1, %is_explicit_cluster;\n  selp.b32 %r10, 1, 0, %p1;\n  st.global.b32 [%rd3+8192], %r10;\n"
    kernel("cluster_registers", text, block=32, grid=8, cluster=4, words=4096)


def barriers():
    text = "  ld.global.b32 %r10, [%rd2];\n  and.b32 %r11, %r10, 7;\n  setp.ne.u32 %p1, %r11, 0;\n  mov.b32 %r15, 1;\n"
    text += "  bar.red.popc.u32 %r12, 1, %p1;\n  barrier.cta.red.popc.aligned.u32 %r13, 2, 128, !%p1;\n"
    text += "  bar.red.and.pred %p2, %r15, %p1;\n  bar.red.or.pred %p3, 3, 128, %p1;\n"
    text += "  selp.b32 %r14, 1, 0, %p2;\n  selp.b32 %r16, 2, 0, %p3;\n  or.b32 %r14, %r14, %r16;\n"
    text += "  setp.lt.u32 %p4, %r0, 64;\n  @%p4 bra A;\n  st.shared.b32 [%r4], %r10;\n  bar.arrive 4, 128;\n  bra B;\nA:\n"
    text += "  bar.sync 4, 128;\n  ld.shared.b32 %r10, [%r4+1024];\nB:\n"
    text += "  st.global.v4.b32 [%rd3], {%r12, %r13, %r14, %r10};\n"
    kernel("barriers", text)


def atomics():
    ops = [("add", t) for t in ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16", "noftz.bf16x2")]
    ops += [(o, t) for o in ("min", "max") for t in ("u32", "s32", "u64", "s64")]
    ops += [(o, "u32") for o in ("inc", "dec")]
    ops += [(o, t) for o in ("and", "or", "xor", "exch") for t in ("b32", "b64")]
    ops += [("cas", t) for t in ("b16", "b32", "b64")]
    for space in ("global", "shared"):
        text = INIT
        at = 0
        for op, ty in ops:
            bits = {"16": 16, "32": 32, "64": 64, "x2": 32}[ty[-2:]]
            reg = {16: "%h", 32: "%r", 64: "%rd"}[bits]
            place = "[%rd3]" if space == "global" else "[%r4]"
            text += "  ld.global.v4.b32 {%r40, %r41, %r42, %r43}, [%rd2+" + str(32768 - 2048 + at) + "];\n"
            text += f"  st.{space}.v4.b32 {place}, {{%r40, %r41, %r42, %r43}};\n"
            text += f"  ld.global.b{bits} {reg}20, [%rd2+{at}];\n"
            compare = ""
            if op == "cas":
                # Every second thread compares with what is there.
                text += f"  and.b32 %r30, %r0, 1;\n  setp.eq.u32 %p1, %r30, 0;\n  ld.{space}.b{bits} {reg}21, {place};\n"
                text += f"  add.u{bits} {reg}22, {reg}21, 1;\n  selp.b{bits} {reg}21, {reg}21, {reg}22, %p1;\n"
                compare = f"{reg}21, "
            text += f"  atom.{space}.{op}.{ty} {reg}23, {place}, {compare}{reg}20;\n"
            if bits == 64:
                text += f"  ld.{space}.b64 %rd24, {place};\n  mov.b64 {{%r31, %r32}}, %rd23;\n  mov.b64 {{%r33, %r34}}, %rd24;\n"
            elif bits == 16:
                text += f"  ld.{space}.b32 %r33, {place};\n  cvt.u32.u16 %r31, %h23;\n  mov.b32 %r32, 0;\n  mov.b32 %r34, 0;\n"
            else:
                text += f"  ld.{space}.b32 %r33, {place};\n  mov.b32 %r31, {reg}23;\n  mov.b32 %r32, 0;\n  mov.b32 %r34, 0;\n"
            text += f"  st.global.v4.b32 [%rd3+{2048 + at // 512 * 2048}], {{%r31, %r32, %r33, %r34}};\n"
            at += 512
        kernel(f"atom_{space}", text, words=512 * (len(ops) + 1))
    text = ""
    vectors = [("v2", "f32", 2, 32), ("v4", "f32", 4, 32), ("v2", "f16", 2, 16), ("v4", "f16", 4, 16),
               ("v8", "f16", 8, 16), ("v2", "bf16", 2, 16), ("v8", "bf16", 8, 16),
               ("v2", "f16x2", 2, 32), ("v4", "f16x2", 4, 32), ("v4", "bf16x2", 4, 32)]
    at = 0
    for form in ("red", "atom"):
        for vec, ty, n, bits in vectors:
            for op in (("add",) if ty == "f32" else ("add", "min", "max")):
                reg = "%h" if bits == 16 else "%r"
                noftz = "" if ty == "f32" else ".noftz"
                text += f"  ld.global.v4.b32 {{%r40, %r41, %r42, %r43}}, [%rd2+{30720 - at // 8}];\n"
                text += f"  st.global.v4.b32 [%rd3+{at}], {{%r40, %r41, %r42, %r43}};\n"
                for i in range(n):
                    text += f"  ld.global.b{bits} {reg}{20 + i}, [%rd2+{at // 8 + i * bits // 8}];\n"
                value = "{" + ", ".join(f"{reg}{20 + i}" for i in range(n)) + "}"
                got = "{" + ", ".join(f"{reg}{30 + i}" for i in range(n)) + "}, " if form == "atom" else ""
                text += f"  {form}.global.{vec}.{ty}.{op}{noftz} {got}[%rd3+{at}], {value};\n"
                at += 2048
                if form == "atom":
                    for i in range(n):
                        text += f"  st.global.b{bits} [%rd3+{at + i * bits // 8}], {reg}{30 + i};\n"
                    at += 2048
    kernel("red_vector", text, words=at // 4)


def accesses():
    for space, base in (("global", "%rd2"), ("shared", "%r4")):
        text = INIT + SYNC
        at = 0

        def put(regs):
            nonlocal at, text
            regs = (regs + [regs[-1]] * 4)[:4]
            text += f"  st.global.v4.b32 [%rd3+{at}], {{{', '.join(regs)}}};\n"
            at += 2048
        for ty in ("u8", "s8", "b8", "u16", "s16", "u32"):
            for vec in ("", "v2", "v4"):
                n = int(vec[1]) if vec else 1
                size = int(ty[1:]) // 8
                regs = [f"%r{20 + i}" for i in range(n)]
                operand = "{" + ", ".join(regs) + "}" if vec else regs[0]
                text += f"  ld.{space}{'.' + vec if vec else ''}.{ty} {operand}, [{base}+{size * n % 16}];\n"
                put(regs)
        text += f"  ld.{space}.v2.b64 {{%rd20, %rd21}}, [{base}];\n  mov.b64 {{%r20, %r21}}, %rd21;\n  mov.b64 {{%r22, %r23}}, %rd20;\n"
        put(["%r20", "%r21", "%r22", "%r23"])
        for ty in ("s8", "u8", "s16", "u32", "s32"):
            text += f"  ld.{space}.{ty} %rd20, [{base}+4];\n  mov.b64 {{%r20, %r21}}, %rd20;\n"
            put(["%r20", "%r21"])
        text += SYNC
        place = f"%rd3+{at}" if space == "global" else "%r4"
        text += f"""  st.{space}.b8 [{place}], %r40;
  st.{space}.b8 [{place}+1], %r41;
  st.{space}.b16 [{place}+2], %h1;
  st.{space}.v4.b8 [{place}+4], {{%r40, %r41, %r42, %r43}};
  st.{space}.v2.b16 [{place}+8], {{%h1, %h1}};
  st.{space}.b32 [{place}+12], %r43;
""".replace(f"  st.{space}.b8 [{place}],", f"  cvt.u16.u32 %h1, %r42;\n  st.{space}.b8 [{place}],", 1)
        if space == "shared":
            text += f"  ld.shared.v4.b32 {{%r40, %r41, %r42, %r43}}, [%r4];\n"
            put(["%r40", "%r41", "%r42", "%r43"])
        else:
            at += 2048
        kernel(f"access_{space}", text, words=at // 4)


cp_async()
hints()
bulk()
bulk_reduce()
mbarriers()
clusters()
barriers()
atomics()
accesses()
print("// Written by scripts/hardware_truth/make_kernels.py.")
print("\n".join(cases))
print("\n.version 8.6\n.target sm_90a\n.address_size 64")
print("".join(bodies), end="")
