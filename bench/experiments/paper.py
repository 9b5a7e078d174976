# SPDX-License-Identifier: Apache-2.0
"""The list of figures; see figures.py. Those of ours come last."""

from __future__ import annotations

from .codes import OTHER_CODES, RS_CODES
from .figures import (
    Comparison, Figure, faster, faster_at, less, less_at_largest, less_range, options, ratio,
    spread_of)
from .models import MORE_STREAMS, SLOWER_CORES, SMALL_BUFFERS
from .ours import OURS
from .views import Row, View, mib

SLICE = 32 * 1024
LOCAL = "17 machines, 1 Gb/s, RS (14, 10), blocks of 64 MiB, slices of 32 KiB, means of 10 runs"
QFS = ("16 ChunkServers, (9, 6), chunks of 64 MiB, slices of 32 KiB; QFS itself, conventional "
       "repair and RP under ECPipe")
QFS_NOTES = ("Which is which: `conventional` and `rp` are ECPipe's, over chunk files with QFS's "
             "headers and checksums and a metaserver that only answers where chunks are; chunks "
             "are made smaller by shorter files. `qfs` is QFS itself, a recovery that is forced "
             "onto a chunkserver, and is measured where QFS_HOME names an installed one; no row "
             "says `qfs` where none was. The paper's 86.6 % and 26.3 % are against QFS itself, "
             "both at most; at one size they would make 81.8 % of rp against conventional.")
K_12 = f"rs(16,12),{OTHER_CODES}"
RS_BY_K = View("k", "data blocks k of RS(n, k)")


def case_of(row: Row) -> str:
    return row["parameters"].get("case", "")


FIGURES = (
    Figure("8a", "Figure 8(a): slice size", "§6.1", LOCAL,
           quick=(options("slices --rate-mbit 200 --block-mib 8 --runs 3 "
                          "--slice-kib 1,4,16,32,128,1024"),),
           full=(options("slices --rate-mbit 200 --runs 10 "
                         "--slice-kib 1,2,4,8,16,32,64,128,256,512,1024,4096,16384"),),
           comparisons=(
               Comparison("rp at 32 KiB, less than conventional", "89.5 %",
                          less("rp", "conventional", slice_bytes=SLICE)),
               Comparison("rp at 32 KiB, less than ppr", "69.5 %",
                          less("rp", "ppr", slice_bytes=SLICE)),
               Comparison("rp at 32 KiB, against the direct send", "+8.8 %",
                          ratio("rp", slice_bytes=SLICE)))),
    Figure("8b", "Figure 8(b): block size", "§6.1", LOCAL,
           quick=(options("blocks --rate-mbit 200 --block-mib 1,4,16 --runs 2"),),
           full=(options("blocks --rate-mbit 200 --block-mib 1,2,4,8,16,32,64,128 --runs 10"),),
           comparisons=(
               Comparison("rp, less than conventional", "88.8-91.6 %",
                          less_range("rp", "conventional", "block_bytes")),
               Comparison("rp, less than ppr", "66.0-91.8 %",
                          less_range("rp", "ppr", "block_bytes")))),
    Figure("8c", "Figure 8(c): coding parameters", "§6.1", LOCAL,
           quick=(options(f"codes --codes {RS_CODES} --rate-mbit 200 --block-mib 8 --runs 2"),),
           full=(options(f"codes --codes {RS_CODES} --rate-mbit 200 --runs 10"),),
           view=RS_BY_K,
           comparisons=(
               Comparison("k = 6: rp, less than conventional", "82.5 %",
                          less("rp", "conventional", code="rs(9,6)")),
               Comparison("k = 12: rp, less than conventional", "91.2 %",
                          less("rp", "conventional", code="rs(16,12)")),
               Comparison("k = 6: rp, less than ppr", "68.6 %", less("rp", "ppr", code="rs(9,6)")),
               Comparison("k = 12: rp, less than ppr", "70.4 %",
                          less("rp", "ppr", code="rs(16,12)"))),
           notes="The paper's text gives only k's ends, 6 and 12; which (n, k) lie between is our "
                 "choice."),
    Figure("8d", "Figure 8(d): repair-friendly codes", "§6.1",
           LOCAL + "; LRC and Rotated RS with k = 12",
           quick=(options(f"codes --codes {K_12} --every-block --rate-mbit 200 --block-mib 2 "
                          "--runs 1"),),
           full=(options(f"codes --codes {K_12} --every-block --rate-mbit 200 --runs 2"),),
           comparisons=(
               Comparison("LRC (k = 12, two groups): conventional, blocks read of RS's 12", "6",
                          lambda rows: blocks_read(rows, "lrc(12,2,2)")),
               Comparison("Rotated RS (16, 12): conventional, blocks read of RS's 12", "9",
                          lambda rows: blocks_read(rows, "rotated-rs(16,12)")),
               Comparison("LRC: rp, less than conventional", "-",
                          less("rp", "conventional", code="lrc(12,2,2)")),
               Comparison("Rotated RS: rp, less than conventional", "-",
                          less("rp", "conventional", code="rotated-rs(16,12)"))),
           notes="Each of the 16 blocks is lost in turn; a run is the mean of the 16. The paper's "
                 "6 blocks are those of a local group; a global parity of the LRC takes 12, so the "
                 "mean is 6.75. Where Rotated RS is missing, the programs of that revision did not "
                 "take it."),
    Figure("8e", "Figure 8(e): full-node recovery", "§6.1",
           "16 helpers, 64 stripes with a block on the lost node, 1 to 16 requestors, 1 Gb/s",
           quick=(options("node --nodes 16 --stripes 24 --block-mib 1 --rate-mbit 200 --runs 2 "
                          "--requestors 1,8,all "
                          "--policies rp,rp-greedy,rp-balanced,conventional,ppr"),),
           full=(options("node --nodes 16 --stripes 64 --block-mib 4 --rate-mbit 150 --runs 5 "
                         "--requestors 1,2,4,8,16,all --streams 12 "
                         "--policies rp,rp-greedy,rp-balanced,conventional,ppr"),),
           comparisons=(
               Comparison("8 requestors: rp, rate of conventional", "1.89 x",
                          faster("rp x8", "conventional x8")),
               Comparison("16 requestors: rp, rate of conventional", "1.51 x",
                          faster("rp x16", "conventional x16")),
               Comparison("8 requestors: greedy scheduling, rate of rp", "1.13 x",
                          faster("rp-greedy x8", "rp x8")),
               Comparison("16 requestors: greedy scheduling, rate of rp", "1.09 x",
                          faster("rp-greedy x16", "rp x16"))),
           notes="Requestors are nodes of their own here; in the paper they share the machines of "
                 "the 16 helpers, whose links then carry both. That makes our conventional repair "
                 "with 16 requestors faster in comparison. Where links rest in a recovery is "
                 "measured in docs/design/003-recovery.md: at the begin and the end, and in "
                 "between when paths that share links wait for each other."),
    Figure("8f", "Figure 8(f): multi-block repair", "§6.1", LOCAL,
           quick=(options("multi --rate-mbit 200 --block-mib 8 --runs 2"),),
           full=(options("multi --rate-mbit 200 --runs 10"),),
           comparisons=(
               Comparison("conventional, one to four failed blocks (64 MiB, 1 Gb/s)",
                          "5.88-6.23 s", spread_of("conventional", "failed")),
               Comparison("four failed blocks: rp, less than conventional", "60.9 %",
                          less("rp f=4", "conventional f=4"))),
           notes="`mixed` gives its path and its stars slices in turn, by few at a time, because "
                 "they wait for each other (docs/design/002-schemes.md). With runs of four times "
                 "that length it took 2.60 x direct for f = 4 with blocks of 8 MiB at 50 Mb/s, "
                 "where cores have time; theory, which knows no runs, is 2.43 for such blocks."),
    Figure("8g", "Figure 8(g): limited edge bandwidth", "§6.1",
           LOCAL + "; links from helpers to the requestor at 1000 to 100 Mb/s",
           quick=(options("edge --rate-mbit 200 --edge-mbit 200,100,40,20 --block-mib 8 "
                          "--runs 2"),),
           full=(options("edge --rate-mbit 200 --edge-mbit 200,100,40,20 --runs 10"),),
           comparisons=(
               Comparison("edge at a tenth of the other links: rp-cyclic, less than rp", "82.8 %",
                          less("rp-cyclic", "rp", edge_mbit=20)),
               Comparison("edge as the other links: rp-cyclic, less than rp", "almost identical",
                          less("rp-cyclic", "rp", edge_mbit=200))),
           notes="`rp-cyclic` fills every link of its ring with nine lanes and is done with the "
                 "last of them. With blocks of 8 MiB it is 8 % above theory, also at a quarter of "
                 "these rates (50 and 10 Mb/s), where cores have time: the busiest link ends "
                 "before the last lane does."),
    Figure("8h", "Figure 8(h): rack awareness", "§6.1",
           "RS (9, 6), three racks of three helpers, 10 Gb/s within, 400 or 800 Mb/s between racks",
           quick=(options("rack --rate-mbit 800 --cross-mbit 40,80 --block-mib 4 --runs 2"),),
           full=(options("rack --rate-mbit 800 --cross-mbit 40,80,160,320 --block-mib 64 "
                         "--runs 20"),),
           comparisons=(
               Comparison("the faster of the two: rp, less than conventional", "60.9 %",
                          less("rp", "conventional", cross_mbit=80)),
               Comparison("the faster of the two: rp-rack, less than conventional", "77.6 %",
                          less("rp-rack", "conventional", cross_mbit=80))),
           notes="`rp` takes helpers and path at random, as the paper's does: each run has another "
                 "stripe, and its theory is that of its own plan."),
    Figure("8i", "Figure 8(i): network bandwidth", "§6.1", LOCAL + "; 1 to 10 Gb/s",
           quick=(options("implementations --rate-mbit 0 --block-mib 32 --runs 3 "
                          "--schemes conventional,ppr,rp --transport tcp,redis"),),
           full=(options("implementations --rate-mbit 0 --block-mib 64 --runs 10 "
                         "--schemes conventional,ppr,pipe-b,pipe-s,rp --transport tcp,redis"),),
           view=View("transport", "transport of the slices", bars=True, per_cpu=True),
           comparisons=(
               Comparison("10 Gb/s: rp, less than conventional", "81.4 %",
                          less("rp", "conventional", transport="tcp")),
               Comparison("10 Gb/s: rp, less than ppr", "50.0 %",
                          less("rp", "ppr", transport="tcp"))),
           notes="10 Gb/s for each of 16 nodes cannot be emulated on two cores. Links are not "
                 "shaped here, all nodes share the cores, and what counts is the work that a "
                 "scheme makes: gigabytes rebuilt for each CPU second. All schemes read, send and "
                 "sum the same k blocks, so their times are as near to each other as their CPU "
                 "seconds, and RP cannot win what it wins where every node has its own cores."),
    SLOWER_CORES,
    Figure("9a", "Figure 9(a): Amazon EC2, North America", "§6.2, Table 1(a)",
           "16 helpers in four regions, RS (16, 12), 64 MiB, requestor in each region",
           quick=(options("geo --matrix north-america --block-mib 4 --runs 2"),),
           full=(options("geo --matrix north-america --runs 10"),),
           comparisons=(
               Comparison("rp, less than ppr (ours: ppr-rounds)", "62.7-78.0 %",
                          less_range("rp", "ppr-rounds", "requestor_region")),
               Comparison("rp-weighted, less than rp", "7.3-45.4 %",
                          less_range("rp-weighted", "rp", "requestor_region"))),
           notes="Links have the rates of Table 1, each pair of nodes its own; nodes have no limit "
                 "beside, and rates do not fluctuate. `rp` takes helpers and path at random. Two "
                 "kinds of PPR: `ppr-rounds` ends each step before the next begins, as §2.2 has "
                 "it; `ppr` passes each slice on when it is there. On equal links both wait for "
                 "the requestor's downlink; where each pair has a link of its own the second is "
                 "bound by the slowest pair, as a path is."),
    Figure("9b", "Figure 9(b): Amazon EC2, Asia", "§6.2, Table 1(b)",
           "16 helpers in four regions, RS (16, 12), 64 MiB, requestor in each region",
           quick=(options("geo --matrix asia --block-mib 4 --runs 2 "
                          "--schemes ppr-rounds,rp,rp-weighted"),),
           full=(options("geo --matrix asia --runs 10"),),
           comparisons=(
               Comparison("rp, less than ppr (ours: ppr-rounds)", "66.6-87.1 %",
                          less_range("rp", "ppr-rounds", "requestor_region")),
               Comparison("rp-weighted, less than rp", "14.5-45.0 %",
                          less_range("rp-weighted", "rp", "requestor_region"))),
           notes="As Figure 9(a)."),
    Figure("10", "Figure 10: HDFS-3", "§6.3",
           "16 DataNodes of HDFS 3.1.1, 64 stripes, all blocks of a DataNode rebuilt on a new one",
           quick=(options("hdfs --policies RS-6-3,RS-10-4 --groups 8 --block-mib 8 "
                          "--rate-mbit 100 --runs 1"),),
           full=tuple(options(f"hdfs --policies {policy} --groups 8 --block-mib 64 "
                              f"--rate-mbit 200 --runs {runs}")
                      for policy, runs in (("RS-6-3", 2), ("RS-10-4", 1))),
           view=View("case", "policy", lambda case: case.split(",")[0], bars=True, rate=True,
                     keep=lambda row: case_of(row).endswith("recovery")),
           more_views=(("10-reads", "Figure 10: reads of HDFS-3 in degraded mode",
                        View("case", "what a client reads", bars=True,
                             keep=lambda row: case_of(row).endswith(("block", "group")))),),
           comparisons=(
               Comparison("recovery: rp, rate of HDFS (all (n, k))", "5.1-16.0 x",
                          lambda rows: against_hdfs(rows, "recovery", percent=False)),
               Comparison("single block: rp, less than HDFS's own (HDFS-RAID in the paper)",
                          "82.7-91.2 %",
                          lambda rows: against_hdfs(rows, "lost block", percent=True))),
           notes="`hdfs` is HDFS alone, with its coder in Java, as the jars come; `healthy` reads "
                 "with nothing lost. A new node takes all that is rebuilt, so its downlink carries "
                 "k blocks for each with `hdfs` and `conventional`, and one with `rp`: theory is "
                 "k to 1, and what the paper has beyond that is HDFS's own. A read of a whole "
                 "group gets the same bytes down the client's link in each case but "
                 "`conventional`. Not measured: 10(a), HDFS-RAID, for which there is no "
                 "integration.",
           needs_jdk=True),
    Figure("10c", "Figure 10(c): QFS, slice size", "§6.3", QFS,
           quick=(options("qfs --rate-mbit 200 --chunk-mib 8 --slice-kib 1,4,16,32,128,1024 "
                          "--runs 3"),),
           full=(options("qfs --rate-mbit 200 --chunk-mib 64 "
                         "--slice-kib 1,2,4,8,16,32,64,128,256,512,1024 --runs 10"),),
           comparisons=(
               Comparison("rp at 32 KiB, less than QFS itself", "86.6 %",
                          less("rp", "qfs", {}, slice_bytes=SLICE)),
               Comparison("conventional under ECPipe, less than QFS itself", "26.3 % at most",
                          less("conventional", "qfs", {})),
               Comparison("rp at 32 KiB, less than conventional under ECPipe", "-",
                          less("rp", "conventional", slice_bytes=SLICE))),
           notes=QFS_NOTES),
    Figure("10d", "Figure 10(d): QFS, chunk size, and the recovery of a chunkserver", "§6.3", QFS,
           quick=(options("qfs --rate-mbit 200 --chunk-mib 1,16 --runs 2"),
                  options("qfs --rate-mbit 200 --chunk-mib 4 --recover 12 --runs 2")),
           full=(options("qfs --rate-mbit 200 --chunk-mib 1,2,4,8,16,32,64 --runs 10"),
                 options("qfs --rate-mbit 200 --chunk-mib 64 --recover 16 --runs 3")),
           view=View("block_bytes", "chunk size (MiB)", mib,
                     keep=lambda row: not row["scheme"].endswith("recovery")),
           comparisons=(
               Comparison("largest chunk: rp, less than QFS itself", "86.6 % (64 MiB)",
                          less_at_largest("rp", "qfs")),
               Comparison("rp, less than conventional under ECPipe", "-",
                          less_range("rp", "conventional", "block_bytes")),
               Comparison("recovery of a chunkserver: rp, rate of conventional under ECPipe", "-",
                          faster("rp recovery", "conventional recovery"))),
           notes=QFS_NOTES + " The recovery is not in the paper's figure: all chunks of a lost "
                 "chunkserver are rebuilt for one new node, which asks for four at a time, as a "
                 "chunkserver of QFS does; all come down its one link, k blocks for each with "
                 "`conventional`."),
    Figure("11a", "Figure 11(a): implementations, one block", "§6.4", LOCAL,
           quick=(options("implementations --rate-mbit 200 --block-mib 1,4,8 --runs 2 "
                          "--schemes pipe-b,pipe-s,rp"),),
           full=(options("implementations --rate-mbit 200 --block-mib 1,4,16,64 --runs 10 "
                         "--schemes pipe-b,pipe-s,rp"),),
           comparisons=(
               Comparison("rp, less than pipe-b, the largest block", "93.2 % (0.61 s, 9.0 s)",
                          less_at_largest("rp", "pipe-b")),
               Comparison("rp, less than pipe-s, all block sizes", "41.1-43.0 %",
                          less_range("rp", "pipe-s", "block_bytes"))),
           notes="Pipe-S is as fast as RP here: its hops do one thing after the other, but what "
                 "they do takes little of the time (CPU s, over all eleven programs), and "
                 "meanwhile the kernel's socket buffers send and receive."),
    SMALL_BUFFERS,
    Figure("11b", "Figure 11(b): implementations, full-node recovery", "§6.4",
           "16 nodes; PUSH-Rep and PUSH-Sur as Pipe-Rep and Pipe-Sur; slices of 32 KiB",
           quick=tuple(options(f"node --nodes 16 --stripes {stripes} --block-mib {block} "
                               "--rate-mbit 200 --runs 2 "
                               "--policies pipe-rep,pipe-sur,rp-single,rp-all")
                       for block, stripes in ((1, 32), (8, 4))),
           full=tuple(options(f"node --nodes 16 --stripes {stripes} --placement random "
                              f"--block-mib {block} --rate-mbit 200 --runs {runs} "
                              "--policies pipe-rep,pipe-sur,rp-single,rp-all")
                      for block, stripes, runs in (
                          (1, 256, 5), (4, 64, 5), (16, 32, 5), (64, 32, 2))),
           view=View("block_bytes", "block size (MiB)", mib, rate=True),
           comparisons=(
               Comparison("1 MiB: pipe-rep, rate of rp-single", "+9.0 %",
                          faster_at("pipe-rep x1", "rp-single x1", 1)),
               Comparison("1 MiB: pipe-sur, rate of rp-all", "+9.7 %",
                          faster_at("pipe-sur xall", "rp-all xall", 1)),
               Comparison("largest block (64 MiB there): rp-single, rate of pipe-rep", "+80.2 %",
                          faster_at("rp-single x1", "pipe-rep x1")),
               Comparison("largest block: rp-all, rate of pipe-sur", "+268.1 %",
                          faster_at("rp-all xall", "pipe-sur xall")),
               Comparison("largest block: rp-all, rate of rp-single", "+58.1 %",
                          faster_at("rp-all xall", "rp-single x1"))),
           notes="A block of rp-single and pipe-rep goes to one node beside the 16. Pipe-Rep and "
                 "Pipe-Sur forward whole blocks, so links rest unless many are under way, which is "
                 "what the figure is about; their theory plays that through, repair by repair. The "
                 "fewer blocks are lost, the less there is to overlap: large blocks here are "
                 "few."),
    MORE_STREAMS,
    *OURS,
)


def blocks_read(rows: list, code: str) -> str | None:
    """What all links carry of conventional repair, in blocks."""
    row = next((row for row in rows if row["scheme"] == "conventional"
                and row["parameters"]["code"] == code), None)
    return f"{row['total_bytes'] / row['parameters']['block_bytes']:.1f}" if row else None


def against_hdfs(rows: list, what: str, percent: bool) -> str | None:
    """Over the policies: how many times as fast rp is, or by how much less time."""
    times = {(case_of(row), row["scheme"]): row["median_s"] for row in rows}
    ratios = sorted(times[case, "hdfs"] / seconds for (case, scheme), seconds in times.items()
                    if case.endswith(what) and scheme == "rp" and (case, "hdfs") in times)
    if not ratios:
        return None
    if percent:
        return f"{(1 - 1 / ratios[0]) * 100:.1f}-{(1 - 1 / ratios[-1]) * 100:.1f} %"
    return f"{ratios[0]:.1f}-{ratios[-1]:.1f} x"
