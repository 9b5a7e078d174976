// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs;

/**
 * How far the repairs of one reader of an internal block go. Who has just sought gets the cell,
 * which HDFS reads to its end in any case. Who reads on gets more each time, and so has few
 * repairs; who seeks away has not set much in motion. Not thread-safe.
 */
final class LookAhead {
  /** While a repair is shorter than `sequential`. */
  private static final int CAREFUL_GROWTH = 2;
  private static final int GROWTH = 4;

  private final long cell;
  private final long sequential;
  private long window;

  /** `cell`: bytes that are read to their end; `sequential`: the window of a sequential reader. */
  LookAhead(long cell, long sequential) {
    this.cell = cell;
    this.sequential = sequential;
  }

  /** The reader is known to read in order. */
  LookAhead inOrder() {
    window = sequential;
    return this;
  }

  /** Where the repair ends that begins at `position`, of whose bytes `wanted` are read at once. */
  long next(long position, long wanted) {
    long end = (position + Math.max(wanted, window) + cell - 1) / cell * cell;
    window = (end - position) * (end - position < sequential ? CAREFUL_GROWTH : GROWTH);
    return end;
  }

  /** The reader has left something out. */
  void restart() {
    window = 0;
  }
}
