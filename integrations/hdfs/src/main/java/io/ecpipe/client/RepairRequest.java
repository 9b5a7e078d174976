// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * What to repair: a range of one internal block of an HDFS block group, with all that the NameNode
 * has told about the group. Immutable; made by a Builder.
 */
public final class RepairRequest {
  private static final List<String> CODECS = Arrays.asList("rs", "rs-legacy", "xor");

  private final long bytes;
  private final String payload;

  private RepairRequest(Builder builder) {
    bytes = builder.bytes;
    payload = builder.facts.toString() + "target " + builder.target + "\noffset " + builder.offset
        + "\nbytes " + builder.bytes + "\n" + builder.sources;
  }

  /** How many bytes are wanted. */
  public long bytes() {
    return bytes;
  }

  byte[] encode(RepairClient.Options options) {
    String manner = "timeout-ms " + options.timeoutMillis + "\nclient " + options.clientName + "\n"
        + (options.scheme.isEmpty() ? "" : "scheme " + options.scheme + "\n")
        + (options.background ? "background 1\n" : "");
    return (payload + manner).getBytes(StandardCharsets.US_ASCII);
  }

  /** Collects the facts. Every setter must be called but source(), which is called often. */
  public static final class Builder {
    private final StringBuilder facts = new StringBuilder("store hdfs\n");
    private final StringBuilder sources = new StringBuilder();
    private int blocks;
    private int target = -1;
    private long offset = -1;
    private long bytes;

    /** The block group: pool, its id (negative), generation stamp and bytes of data. */
    public Builder group(String pool, long id, long stamp, long groupBytes) {
      facts.append("pool ").append(pool).append("\ngroup ").append(id).append("\nstamp ")
          .append(stamp).append("\ngroup-bytes ").append(groupBytes).append('\n');
      return this;
    }

    /**
     * The erasure coding policy. IllegalArgumentException for a codec that ECPipe does not have
     * byte for byte: a repair by another matrix would be wrong and stay unseen.
     */
    public Builder policy(String codec, int data, int parity, int cellBytes) {
      if (!CODECS.contains(codec)) {
        throw new IllegalArgumentException("codec '" + codec + "' is not one of " + CODECS);
      }
      blocks = data + parity;
      facts.append("codec ").append(codec).append("\ndata ").append(data).append("\nparity ")
          .append(parity).append("\ncell ").append(cellBytes).append('\n');
      return this;
    }

    /** A DataNode (by UUID) that has internal block `index`. */
    public Builder source(int index, String dataNodeUuid) {
      sources.append("source ").append(index).append(' ').append(dataNodeUuid).append('\n');
      return this;
    }

    /** The range wanted, in the internal block `index` of the group. */
    public Builder target(int index, long offsetInBlock, long wantedBytes) {
      target = index;
      offset = offsetInBlock;
      bytes = wantedBytes;
      return this;
    }

    public RepairRequest build() {
      if (target < 0 || target >= blocks || offset < 0 || bytes <= 0) {
        throw new IllegalArgumentException("block " + target + " of " + blocks + ", bytes "
            + offset + " + " + bytes + ": not a range of a block of the group");
      }
      return new RepairRequest(this);
    }
  }
}
