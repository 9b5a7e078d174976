// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

/** What one side of the integration has done since the process started; totals. */
public interface CountersMXBean {
  /** Repairs whose bytes were used, wholly or in part. */
  long getRepairs();

  /** Bytes that these repairs were asked for, whether or not they were used. */
  long getRequestedBytes();

  /** Bytes that came through ECPipe and were used. */
  long getRepairedBytes();

  /**
   * Lost blocks that HDFS had to deal with itself, because ECPipe could not or did not: in a client
   * once for each stream that reads such a block, in a DataNode once for each task.
   */
  long getFallbacks();

  /** Repairs that failed after bytes of them were used. */
  long getBrokenRepairs();
}
