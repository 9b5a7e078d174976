// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Semaphore;

/**
 * The bytes of a repair, in order, each frame of them checked. read() returns -1 only after the
 * endpoint has confirmed the end of exactly the bytes that were asked for; anything else that ends
 * the connection is an IOException.
 *
 * A repair of one block can be read as any InputStream. One of several blocks is read by
 * readFully(), which takes the same range of each: so whoever is slow with one block holds all of
 * them back, and at most one frame of each is held.
 *
 * A read may take the client's timeout altogether. One thread reads; close() may come from any
 * thread, ends a wait at once, and cancels the repair if it still runs. When all bytes have come it
 * does not wait, but the endpoint's last word is still heard.
 */
public final class RepairStream extends InputStream {
  private final Connection connection;
  private final RepairRequest request;
  private final Part[] parts;  // of the blocks, in the request's order
  private final long timeoutMillis;
  private final Deadline headerDeadline;
  private final FailureCache failures;
  private final ByteBuffer frameHeader = ByteBuffer.allocate(Frame.HEADER_BYTES);

  private byte[] text = new byte[4096];
  private int textBytes;  // of the frame that is in `text`
  private boolean ended;
  private volatile boolean closed;
  private IOException sendFailure;  // null: the request was written
  private final Semaphore connectionInUse = new Semaphore(1);
  private String checksumType;
  private int bytesPerChecksum;
  private String repairId;
  private final Set<String> corrupt = new HashSet<>();

  /** What has come of a block. */
  private static final class Part {
    final long wantedBytes;
    long receivedBytes;
    byte[] frame = new byte[0];
    int frameBytes;  // of the frame that is in `frame`
    int consumedBytes;  // of these

    Part(long wantedBytes) {
      this.wantedBytes = wantedBytes;
    }

    int atHand() {
      return frameBytes - consumedBytes;
    }

    int take(ByteBuffer buffer) {
      int count = Math.min(buffer.remaining(), atHand());
      buffer.put(frame, consumedBytes, count);
      consumedBytes += count;
      return count;
    }
  }

  RepairStream(Connection connection, RepairRequest request, long timeoutMillis,
      Deadline headerDeadline, FailureCache failures) {
    this.connection = connection;
    this.request = request;
    parts = request.bytes().stream().map(Part::new).toArray(Part[]::new);
    this.timeoutMillis = timeoutMillis;
    this.headerDeadline = headerDeadline;
    this.failures = failures;
  }

  /**
   * An endpoint that has closed already is no error here: who may not ask is told so before the
   * request is read, and awaitHeader() hears it. If it hears nothing, its error has this one.
   */
  void send(byte[] encodedRequest) throws IOException {
    try {
      connection.write(Frame.encode(Frame.REPAIR, encodedRequest), headerDeadline);
    } catch (InterruptedIOException e) {  // or a SocketTimeoutException
      connection.close();
      throw e;
    } catch (IOException e) {
      sendFailure = e;
    }
  }

  /** Waits until the first verified bytes are at hand. Called once, before anything is read. */
  void awaitHeader() throws IOException {
    try {
      expect(nextFrame(headerDeadline), Frame.HEADER);
      parseHeader();
      failures.succeeded();
    } catch (IOException e) {
      boolean quick = headerDeadline.remainingMillis() > timeoutMillis / 2;
      report(e, quick);
      if (sendFailure != null) {
        e.addSuppressed(sendFailure);
      }
      throw e;
    }
    tellOfCorrupt();
  }

  /**
   * Who refuses at once lives. Who needs most of the timeout to do so costs as much as a dead one,
   * and is treated as such; so is one whose coordinator is away, or that does not let this user
   * ask, since the next repairs will fare no better. That the caller gives up says nothing about
   * the endpoint.
   */
  private void report(IOException error, boolean quick) {
    if (error instanceof RepairException && quick && !((RepairException) error).concernsAll()) {
      failures.succeeded();
    } else if (!closed && !(error instanceof InterruptedIOException
        && !(error instanceof SocketTimeoutException))) {
      failures.failed();
    }
  }

  private void parseHeader() throws IOException {
    if (!Frame.value(text, textBytes, "bytes").equals(request.bytesText())) {
      throw new IOException("the endpoint announced another number of bytes than requested");
    }
    String[] checksum = Frame.value(text, textBytes, "checksum").split(" ");
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
    repairId = Frame.value(text, textBytes, "repair");
  }

  /** What the request did not name is none of ours: a wrong word could cost a good replica. */
  private void tellOfCorrupt() {
    for (String source : Frame.values(text, textBytes, "corrupt")) {
      if (request.sources().contains(source) && corrupt.add(source)) {
        int blank = source.indexOf(' ');
        request.corruptListener().corrupt(
            Integer.parseInt(source.substring(0, blank)), source.substring(blank + 1));
      }
    }
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
    if (parts.length != 1) {
      throw new IllegalStateException("a repair of several blocks is read by readFully()");
    }
    if (length == 0) {
      return 0;
    }
    Deadline deadline = Deadline.after(timeoutMillis);
    while (parts[0].atHand() == 0) {
      if (!fetch(deadline)) {
        return -1;
      }
    }
    return parts[0].take(ByteBuffer.wrap(bytes, offset, length));
  }

  /**
   * Fills the buffers, one for each block in the request's order, within the timeout altogether;
   * EOFException when less is left. Blocks are read evenly: as many bytes of each, but of one that
   * ends before the others only what it has.
   */
  public void readFully(ByteBuffer... buffers) throws IOException {
    if (buffers.length != parts.length) {
      throw new IllegalArgumentException(buffers.length + " buffers for " + parts.length
          + " blocks");
    }
    Deadline deadline = Deadline.after(timeoutMillis);
    while (!fill(buffers)) {
      if (!fetch(deadline)) {
        throw new EOFException("read past the end of a repair");
      }
    }
  }

  /** Takes what is at hand; whether that was enough. */
  private boolean fill(ByteBuffer[] buffers) {
    boolean full = true;
    for (int i = 0; i < parts.length; i++) {
      parts[i].take(buffers[i]);
      full &= !buffers[i].hasRemaining();
    }
    return full;
  }

  /** Waits for the endpoint's word that all bytes are there, when all bytes have been read. */
  public void awaitEnd() throws IOException {
    for (Part part : parts) {
      if (part.atHand() > 0 || part.receivedBytes < part.wantedBytes) {
        throw new IOException("awaitEnd() was called before all bytes were read");
      }
    }
    fetch(Deadline.after(timeoutMillis));
  }

  /** Waits for the next bytes of any block; false at the end. */
  private boolean fetch(Deadline deadline) throws IOException {
    if (repairId == null) {
      throw new IllegalStateException("awaitHeader() was not called or has failed");
    }
    if (ended) {
      return false;
    }
    if (!connectionInUse.tryAcquire()) {
      throw new IOException("the repair was closed");
    }
    try {
      fetchFrame(deadline);
    } catch (IOException e) {
      report(e, deadline.remainingMillis() > timeoutMillis / 2);
      throw e;
    } finally {
      connectionInUse.release();
    }
    if (ended) {
      tellOfCorrupt();
    }
    return !ended;
  }

  private boolean hasAllBytes() {
    for (Part part : parts) {
      if (part.receivedBytes < part.wantedBytes) {
        return false;
      }
    }
    return true;
  }

  private void fetchFrame(Deadline deadline) throws IOException {
    boolean all = hasAllBytes();
    expect(nextFrame(deadline), all ? Frame.END : Frame.DATA);
    if (!all) {
      return;
    }
    if (!Frame.value(text, textBytes, "bytes").equals(request.bytesText())) {
      throw new IOException("the endpoint ended with another number of bytes than requested");
    }
    ended = true;
  }

  private Frame nextFrame(Deadline deadline) throws IOException {
    frameHeader.clear();
    connection.read(frameHeader, deadline);
    frameHeader.flip();
    Frame frame = Frame.parse(frameHeader);
    if (frame.type == Frame.DATA) {
      readPart(frame, deadline);
      return frame;
    }
    if (text.length < frame.payloadBytes) {
      text = new byte[frame.payloadBytes];
    }
    connection.read(ByteBuffer.wrap(text, 0, frame.payloadBytes), deadline);
    frame.verify(text);
    textBytes = frame.payloadBytes;
    return frame;
  }

  private void readPart(Frame frame, Deadline deadline) throws IOException {
    if (frame.target >= parts.length) {
      throw new IOException("the endpoint sent bytes of a block that was not requested");
    }
    Part part = parts[frame.target];
    if (part.atHand() > 0) {
      throw new IOException("the endpoint sent bytes of block " + frame.target
          + " out of turn, or the blocks are not read evenly");
    }
    if (frame.payloadBytes == 0 || frame.payloadBytes > part.wantedBytes - part.receivedBytes) {
      throw new IOException("the endpoint sent more bytes than requested, or an empty frame");
    }
    if (part.frame.length < frame.payloadBytes) {
      part.frame = new byte[frame.payloadBytes];
    }
    connection.read(ByteBuffer.wrap(part.frame, 0, frame.payloadBytes), deadline);
    frame.verify(part.frame);
    part.receivedBytes += frame.payloadBytes;
    part.frameBytes = frame.payloadBytes;
    part.consumedBytes = 0;
  }

  private void expect(Frame frame, byte type) throws IOException {
    if (frame.type == Frame.ERROR) {
      throw new RepairException(Frame.value(text, textBytes, "code"),
          Frame.value(text, textBytes, "message"));
    }
    if (frame.type != type) {
      throw new IOException("the endpoint sent a frame of type " + frame.type + ", not " + type);
    }
  }

  @Override
  public void close() throws IOException {
    boolean first = !closed;
    closed = true;
    // Whoever takes the connection here keeps it: nobody reads any more.
    if (first && connectionInUse.tryAcquire() && !ended && hasAllBytes()) {
      Deadline deadline = Deadline.after(timeoutMillis);
      if (Farewells.take(() -> hearEnd(deadline))) {
        return;
      }
    }
    connection.close();
  }

  private void hearEnd(Deadline deadline) {
    try {
      fetchFrame(deadline);
      tellOfCorrupt();
    } catch (IOException e) {
      return;  // the bytes had come, and their reader has gone
    } finally {
      try {
        connection.close();
      } catch (IOException e) {
        return;  // nor does anybody wait for this
      }
    }
  }
}
