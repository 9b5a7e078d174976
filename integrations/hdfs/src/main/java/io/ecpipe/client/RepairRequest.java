// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * What to repair: a range of one or several internal blocks of an HDFS block group, with all that
 * the NameNode has told about the group. Immutable; made by a Builder.
 */
public final class RepairRequest {
  private static final List<String> CODECS = Arrays.asList("rs", "rs-legacy", "xor");

  private final List<Long> bytes;
  private final Set<String> sources;
  private final CorruptListener corruptListener;
  private final String payload;

  /** Hears of each source of the request whose replica ECPipe has found corrupt. */
  public interface CorruptListener {
    /** Called once for each, by the thread that reads the repair, or after close() by another. */
    void corrupt(int index, String dataNodeUuid);
  }

  private RepairRequest(Builder builder) {
    bytes = Collections.unmodifiableList(new ArrayList<>(builder.bytes));
    sources = Collections.unmodifiableSet(new HashSet<>(builder.sources));
    corruptListener = builder.corruptListener;
    StringBuilder text = new StringBuilder(builder.facts).append("target ")
        .append(words(builder.targets)).append("\noffset ").append(builder.offset)
        .append("\nbytes ").append(bytesText()).append('\n');
    for (String source : builder.sources) {
      text.append("source ").append(source).append('\n');
    }
    payload = text.toString();
  }

  /** How many bytes are wanted of each block, in the order of target(). */
  public List<Long> bytes() {
    return bytes;
  }

  /** As both sides write it. */
  String bytesText() {
    return words(bytes);
  }

  /** `INDEX UUID` of each source. */
  Set<String> sources() {
    return sources;
  }

  CorruptListener corruptListener() {
    return corruptListener;
  }

  private static String words(List<?> values) {
    StringBuilder text = new StringBuilder();
    for (Object value : values) {
      text.append(text.length() == 0 ? "" : " ").append(value);
    }
    return text.toString();
  }

  /** `cookie`: empty for none. */
  byte[] encode(RepairClient.Options options, String cookie) {
    String manner = "timeout-ms " + options.timeoutMillis + "\nclient " + options.clientName + "\n"
        + (cookie.isEmpty() ? "" : "cookie " + cookie + "\n")
        + (options.scheme.isEmpty() ? "" : "scheme " + options.scheme + "\n")
        + (options.background ? "background 1\n" : "");
    return (payload + manner).getBytes(StandardCharsets.US_ASCII);
  }

  /**
   * Collects the facts. Every setter must be called but onCorrupt(); source() is called often, and
   * target() for each block that is wanted.
   */
  public static final class Builder {
    private final StringBuilder facts = new StringBuilder("store hdfs\n");
    private final List<String> sources = new ArrayList<>();
    private final List<Integer> targets = new ArrayList<>();
    private final List<Long> bytes = new ArrayList<>();
    private CorruptListener corruptListener = (index, uuid) -> { };
    private int blocks;
    private int parity;
    private long offset = -1;

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
    public Builder policy(String codec, int data, int parityUnits, int cellBytes) {
      if (!CODECS.contains(codec)) {
        throw new IllegalArgumentException("codec '" + codec + "' is not one of " + CODECS);
      }
      blocks = data + parityUnits;
      parity = parityUnits;
      facts.append("codec ").append(codec).append("\ndata ").append(data).append("\nparity ")
          .append(parity).append("\ncell ").append(cellBytes).append('\n');
      return this;
    }

    /** A DataNode (by UUID) that has internal block `index`. */
    public Builder source(int index, String dataNodeUuid) {
      sources.add(index + " " + dataNodeUuid);
      return this;
    }

    /**
     * The range wanted, in the internal block `index` of the group. Several blocks are repaired at
     * once, each survivor read once: called for each, ascending by index, with one offset for all
     * and the length that each block has from there.
     */
    public Builder target(int index, long offsetInBlock, long wantedBytes) {
      boolean first = targets.isEmpty();
      if (!first && (offset != offsetInBlock || index <= targets.get(targets.size() - 1))) {
        throw new IllegalArgumentException("block " + index + " from byte " + offsetInBlock
            + ": targets must ascend, and begin at the same byte");
      }
      targets.add(index);
      bytes.add(wantedBytes);
      offset = offsetInBlock;
      return this;
    }

    /** Who hears of corrupt sources; nobody by default. */
    public Builder onCorrupt(CorruptListener listener) {
      corruptListener = listener;
      return this;
    }

    public RepairRequest build() {
      if (targets.isEmpty() || targets.size() > parity) {
        throw new IllegalArgumentException(targets.size() + " blocks of a group that can lose "
            + parity);
      }
      for (int i = 0; i < targets.size(); i++) {
        if (targets.get(i) < 0 || targets.get(i) >= blocks || offset < 0 || bytes.get(i) <= 0) {
          throw new IllegalArgumentException("block " + targets.get(i) + " of " + blocks
              + ", bytes " + offset + " + " + bytes.get(i)
              + ": not a range of a block of the group");
        }
      }
      return new RepairRequest(this);
    }
  }
}
