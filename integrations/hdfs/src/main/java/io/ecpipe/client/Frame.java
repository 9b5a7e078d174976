// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The frames of the requestor endpoint; docs/wire.md draws them. 16 bytes little-endian:
 * "ECPR", version, type, target (16 bits; of DATA only), payload length, CRC32C of the payload.
 */
final class Frame {
  static final int HEADER_BYTES = 16;
  static final int MAX_TEXT_BYTES = 64 << 10;
  static final int MAX_DATA_BYTES = 1 << 20;
  static final byte VERSION = 1;
  static final byte REPAIR = 1;
  static final byte HEADER = 2;
  static final byte DATA = 3;
  static final byte END = 4;
  static final byte ERROR = 5;

  private static final int MAGIC = 'E' | 'C' << 8 | 'P' << 16 | 'R' << 24;

  final byte type;
  /** Whose bytes these are, by its place among the request's targets. */
  final int target;
  final int payloadBytes;
  final int crc;

  private Frame(byte type, int target, int payloadBytes, int crc) {
    this.type = type;
    this.target = target;
    this.payloadBytes = payloadBytes;
    this.crc = crc;
  }

  /** A whole frame, ready to be written. */
  static ByteBuffer encode(byte type, byte[] payload) {
    return encode(type, 0, payload);
  }

  static ByteBuffer encode(byte type, int target, byte[] payload) {
    ByteBuffer frame = ByteBuffer.allocate(HEADER_BYTES + payload.length);
    frame.order(ByteOrder.LITTLE_ENDIAN).putInt(MAGIC).put(VERSION).put(type);
    frame.putShort((short) target).putInt(payload.length);
    frame.putInt(Checksums.crc32c(payload, 0, payload.length)).put(payload).flip();
    return frame;
  }

  /** Parses HEADER_BYTES bytes; IOException when they do not begin a frame of ours. */
  static Frame parse(ByteBuffer bytes) throws IOException {
    bytes.order(ByteOrder.LITTLE_ENDIAN);
    int magic = bytes.getInt();
    byte version = bytes.get();
    byte type = bytes.get();
    int target = bytes.getShort() & 0xFFFF;
    int payloadBytes = bytes.getInt();
    int crc = bytes.getInt();
    if (magic != MAGIC || version != VERSION || type < REPAIR || type > ERROR
        || (target != 0 && type != DATA)) {
      throw new IOException("the endpoint does not speak version 1 of the repair protocol");
    }
    int limit = type == DATA ? MAX_DATA_BYTES : MAX_TEXT_BYTES;
    if (payloadBytes < 0 || payloadBytes > limit) {
      throw new IOException("the endpoint sent a frame longer than " + limit + " bytes");
    }
    return new Frame(type, target, payloadBytes, crc);
  }

  void verify(byte[] payload) throws IOException {
    if (Checksums.crc32c(payload, 0, payloadBytes) != crc) {
      throw new IOException("the endpoint sent a frame with a wrong checksum");
    }
  }

  /** The values of a key in a payload of lines `key SP value LF`. */
  static List<String> values(byte[] payload, int bytes, String key) {
    String text = new String(payload, 0, bytes, StandardCharsets.US_ASCII);
    List<String> found = new ArrayList<>();
    for (String line : text.split("\n")) {
      if (line.startsWith(key + " ")) {
        found.add(line.substring(key.length() + 1));
      }
    }
    return found;
  }

  /** The only value of a key; IOException without it. */
  static String value(byte[] payload, int bytes, String key) throws IOException {
    List<String> found = values(payload, bytes, key);
    if (found.size() != 1) {
      throw new IOException("the endpoint sent "
          + (found.isEmpty() ? "no '" + key + "'" : "'" + key + "' twice"));
    }
    return found.get(0);
  }
}
