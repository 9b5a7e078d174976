// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * The frames of the requestor endpoint; docs/design/013-hdfs.md draws them. 16 bytes little-endian:
 * "ECPR", version, type, two zero bytes, payload length, CRC32C of the payload.
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
  final int payloadBytes;
  final int crc;

  private Frame(byte type, int payloadBytes, int crc) {
    this.type = type;
    this.payloadBytes = payloadBytes;
    this.crc = crc;
  }

  /** A whole frame, ready to be written. */
  static ByteBuffer encode(byte type, byte[] payload) {
    ByteBuffer frame = ByteBuffer.allocate(HEADER_BYTES + payload.length);
    frame.order(ByteOrder.LITTLE_ENDIAN).putInt(MAGIC).put(VERSION).put(type);
    frame.putShort((short) 0).putInt(payload.length);
    frame.putInt(Checksums.crc32c(payload, 0, payload.length)).put(payload).flip();
    return frame;
  }

  /** Parses HEADER_BYTES bytes; IOException when they do not begin a frame of ours. */
  static Frame parse(ByteBuffer bytes) throws IOException {
    bytes.order(ByteOrder.LITTLE_ENDIAN);
    int magic = bytes.getInt();
    byte version = bytes.get();
    byte type = bytes.get();
    short reserved = bytes.getShort();
    int payloadBytes = bytes.getInt();
    int crc = bytes.getInt();
    if (magic != MAGIC || version != VERSION || reserved != 0 || type < REPAIR || type > ERROR) {
      throw new IOException("the endpoint does not speak version 1 of the repair protocol");
    }
    int limit = type == DATA ? MAX_DATA_BYTES : MAX_TEXT_BYTES;
    if (payloadBytes < 0 || payloadBytes > limit) {
      throw new IOException("the endpoint sent a frame longer than " + limit + " bytes");
    }
    return new Frame(type, payloadBytes, crc);
  }

  void verify(byte[] payload) throws IOException {
    if (Checksums.crc32c(payload, 0, payloadBytes) != crc) {
      throw new IOException("the endpoint sent a frame with a wrong checksum");
    }
  }

  /** The value of a key in a payload of lines `key SP value LF`; IOException without it. */
  static String value(byte[] payload, int bytes, String key) throws IOException {
    String text = new String(payload, 0, bytes, StandardCharsets.US_ASCII);
    String found = null;
    for (String line : text.split("\n")) {
      if (line.startsWith(key + " ")) {
        if (found != null) {
          throw new IOException("the endpoint sent '" + key + "' twice");
        }
        found = line.substring(key.length() + 1);
      }
    }
    if (found == null) {
      throw new IOException("the endpoint sent no '" + key + "'");
    }
    return found;
  }

  static long number(byte[] payload, int bytes, String key) throws IOException {
    String text = value(payload, bytes, key);
    try {
      return Long.parseLong(text);
    } catch (NumberFormatException e) {
      throw new IOException("the endpoint sent '" + key + " " + text + "'", e);
    }
  }
}
