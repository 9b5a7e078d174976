// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;

/**
 * The bytes of a repair, in order, each frame of them checked. read() returns -1 only after the
 * endpoint has confirmed the end of exactly the bytes that were asked for; anything else that ends
 * the connection is an IOException.
 *
 * A read may take the client's timeout altogether. One thread reads; close() may come from any
 * thread, ends a wait at once, and cancels the repair if it still runs.
 */
public final class RepairStream extends InputStream {
  private final Connection connection;
  private final long wantedBytes;
  private final long timeoutMillis;
  private final Deadline headerDeadline;
  private final FailureCache failures;
  private final ByteBuffer frameHeader = ByteBuffer.allocate(Frame.HEADER_BYTES);

  private byte[] payload = new byte[4096];
  private int payloadBytes;  // of the frame that is in `payload`
  private int consumedBytes;  // of these
  private long receivedBytes;
  private boolean ended;
  private volatile boolean closed;
  private String checksumType;
  private int bytesPerChecksum;
  private String repairId;

  RepairStream(Connection connection, long wantedBytes, long timeoutMillis,
      Deadline headerDeadline, FailureCache failures) {
    this.connection = connection;
    this.wantedBytes = wantedBytes;
    this.timeoutMillis = timeoutMillis;
    this.headerDeadline = headerDeadline;
    this.failures = failures;
  }

  void send(byte[] request) throws IOException {
    try {
      connection.write(Frame.encode(Frame.REPAIR, request), headerDeadline);
    } catch (IOException e) {
      connection.close();
      throw e;
    }
  }

  /** Waits until the first verified bytes are at hand. Called once, before anything is read. */
  public void awaitHeader() throws IOException {
    try {
      expect(nextFrame(headerDeadline), Frame.HEADER);
      parseHeader();
      failures.succeeded();
    } catch (IOException e) {
      boolean quick = headerDeadline.remainingMillis() > timeoutMillis / 2;
      report(e, quick);
      throw e;
    }
  }

  /**
   * Who refuses at once lives. Who needs most of the timeout to do so costs as much as a dead one,
   * and is treated as such. That the caller gives up says nothing about the endpoint.
   */
  private void report(IOException error, boolean quick) {
    if (error instanceof RepairException && quick) {
      failures.succeeded();
    } else if (!closed && !(error instanceof InterruptedIOException
        && !(error instanceof SocketTimeoutException))) {
      failures.failed();
    }
  }

  private void parseHeader() throws IOException {
    if (Frame.number(payload, payloadBytes, "bytes") != wantedBytes) {
      throw new IOException("the endpoint announced another number of bytes than requested");
    }
    String[] checksum = Frame.value(payload, payloadBytes, "checksum").split(" ");
    try {
      bytesPerChecksum = checksum.length == 2 ? Integer.parseInt(checksum[1]) : 0;
    } catch (NumberFormatException e) {
      bytesPerChecksum = 0;
    }
    checksumType = checksum[0];
    boolean known = checksumType.equals("crc32c") || checksumType.equals("crc32");
    if (!known || bytesPerChecksum <= 0) {
      throw new IOException("the endpoint sent an unknown kind of checksum");
    }
    repairId = Frame.value(payload, payloadBytes, "repair");
  }

  /** `crc32c` or `crc32`: what the survivors' checksum files have. */
  public String checksumType() {
    return checksumType;
  }

  public int bytesPerChecksum() {
    return bytesPerChecksum;
  }

  /** The repair's name in ECPipe's logs. */
  public String repairId() {
    return repairId;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
  }

  @Override
  public int read(byte[] bytes, int offset, int length) throws IOException {
    ByteBuffer buffer = ByteBuffer.wrap(bytes, offset, length);
    if (length > 0 && !fetch(Deadline.after(timeoutMillis))) {
      return -1;
    }
    return take(buffer);
  }

  /** Fills the buffer, within the timeout altogether; EOFException when less is left. */
  public void readFully(ByteBuffer buffer) throws IOException {
    Deadline deadline = Deadline.after(timeoutMillis);
    while (buffer.hasRemaining()) {
      if (!fetch(deadline)) {
        throw new EOFException("read past the end of a repair");
      }
      take(buffer);
    }
  }

  /** Waits for the endpoint's word that all bytes are there, when all bytes have been read. */
  public void awaitEnd() throws IOException {
    if (fetch(Deadline.after(timeoutMillis))) {
      throw new IOException("awaitEnd() was called before all bytes were read");
    }
  }

  private int take(ByteBuffer buffer) {
    int count = Math.min(buffer.remaining(), payloadBytes - consumedBytes);
    buffer.put(payload, consumedBytes, count);
    consumedBytes += count;
    return count;
  }

  /** Makes sure that bytes are in `payload`; false at the end. */
  private boolean fetch(Deadline deadline) throws IOException {
    if (repairId == null) {
      throw new IllegalStateException("awaitHeader() was not called or has failed");
    }
    try {
      while (!ended && consumedBytes == payloadBytes) {
        fetchFrame(deadline);
      }
      return !ended;
    } catch (IOException e) {
      report(e, deadline.remainingMillis() > timeoutMillis / 2);
      throw e;
    }
  }

  private void fetchFrame(Deadline deadline) throws IOException {
    boolean all = receivedBytes == wantedBytes;
    expect(nextFrame(deadline), all ? Frame.END : Frame.DATA);
    if (all) {
      if (Frame.number(payload, payloadBytes, "bytes") != wantedBytes) {
        throw new IOException("the endpoint ended with another number of bytes than requested");
      }
      ended = true;
      return;
    }
    receivedBytes += payloadBytes;
    consumedBytes = 0;
    if (receivedBytes > wantedBytes || payloadBytes == 0) {
      throw new IOException("the endpoint sent more bytes than requested, or an empty frame");
    }
  }

  private Frame nextFrame(Deadline deadline) throws IOException {
    frameHeader.clear();
    connection.read(frameHeader, deadline);
    frameHeader.flip();
    Frame frame = Frame.parse(frameHeader);
    if (payload.length < frame.payloadBytes) {
      payload = new byte[frame.payloadBytes];
    }
    connection.read(ByteBuffer.wrap(payload, 0, frame.payloadBytes), deadline);
    frame.verify(payload);
    payloadBytes = frame.payloadBytes;
    consumedBytes = frame.payloadBytes;
    return frame;
  }

  private void expect(Frame frame, byte type) throws IOException {
    if (frame.type == Frame.ERROR) {
      throw new RepairException(Frame.value(payload, payloadBytes, "code"),
          Frame.value(payload, payloadBytes, "message"));
    }
    if (frame.type != type) {
      throw new IOException("the endpoint sent a frame of type " + frame.type + ", not " + type);
    }
  }

  @Override
  public void close() throws IOException {
    closed = true;
    connection.close();
  }
}
