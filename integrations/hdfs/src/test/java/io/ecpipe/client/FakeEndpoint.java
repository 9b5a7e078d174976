// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An endpoint on a Unix socket whose answer a test writes itself. Each connection's REPAIR is read
 * and checked first; then `Answer` has the connection, which is closed when it returns.
 */
public final class FakeEndpoint implements AutoCloseable {
  /** Writes the answer to a request of these lines. An IOException means the client has gone. */
  public interface Answer {
    void write(Peer peer, String request) throws IOException;
  }

  /** The endpoint's side of a connection. */
  public static final class Peer {
    private final SocketChannel channel;

    Peer(SocketChannel channel) {
      this.channel = channel;
    }

    public void raw(byte[] bytes) throws IOException {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      while (buffer.hasRemaining()) {
        channel.write(buffer);
      }
    }

    public void text(byte type, String payload) throws IOException {
      frame(type, payload.getBytes(StandardCharsets.US_ASCII));
    }

    public void frame(byte type, byte[] payload) throws IOException {
      raw(Frame.encode(type, payload).array());
    }

    public void header(long bytes) throws IOException {
      header(String.valueOf(bytes), "");
    }

    /** Of several targets, and with lines behind. */
    public void header(String bytes, String more) throws IOException {
      text(Frame.HEADER, "bytes " + bytes + "\nchecksum crc32c 512\nrepair 2a\n" + more);
    }

    public void data(byte[] payload) throws IOException {
      data(0, payload);
    }

    public void data(int target, byte[] payload) throws IOException {
      raw(Frame.encode(Frame.DATA, target, payload).array());
    }

    public void end(long bytes) throws IOException {
      end(String.valueOf(bytes), "");
    }

    public void end(String bytes, String more) throws IOException {
      text(Frame.END, "bytes " + bytes + "\nattempts 1\n" + more);
    }

    public void error(String code, String message) throws IOException {
      text(Frame.ERROR, "code " + code + "\nmessage " + message + "\n");
    }

    /** Blocks until the client closes; false if it sends something instead. */
    public boolean awaitClose() throws IOException {
      return channel.read(ByteBuffer.allocate(1)) < 0;
    }
  }

  public final AtomicInteger requests = new AtomicInteger();
  private final Path path;
  private final ServerSocketChannel server;
  private final Answer answer;
  private boolean ownDirectory;

  /** On a socket of its own, in a directory that close() removes. */
  public FakeEndpoint(Answer answer) throws IOException {
    this(UnixDomainSocketAddress.of(
        Files.createTempDirectory("ecpipe-fake-").resolve("socket")), answer);
    ownDirectory = true;
  }

  public FakeEndpoint(UnixDomainSocketAddress address, Answer answer) throws IOException {
    this.answer = answer;
    path = address.getPath();
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(address);
    Thread thread = new Thread(this::accept, "fake-endpoint");
    thread.setDaemon(true);
    thread.start();
  }

  public EndpointAddress address() {
    return EndpointAddress.parse("unix:" + path);
  }

  private void accept() {
    while (server.isOpen()) {
      try {
        SocketChannel channel = server.accept();
        Thread thread = new Thread(() -> serve(channel), "fake-endpoint-connection");
        thread.setDaemon(true);
        thread.start();
      } catch (IOException e) {
        return;  // closed
      }
    }
  }

  private void serve(SocketChannel channel) {
    try (channel) {
      String request = readRequest(channel);
      requests.incrementAndGet();
      answer.write(new Peer(channel), request);
    } catch (IOException e) {
      // The client has gone, which some tests want.
    }
  }

  private static String readRequest(SocketChannel channel) throws IOException {
    ByteBuffer header = readFully(channel, Frame.HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    Frame frame = Frame.parse(header);
    byte[] payload = readFully(channel, frame.payloadBytes).array();
    frame.verify(payload);
    return new String(payload, StandardCharsets.US_ASCII);
  }

  private static ByteBuffer readFully(SocketChannel channel, int bytes) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocate(bytes);
    while (buffer.hasRemaining()) {
      if (channel.read(buffer) < 0) {
        throw new IOException("the client closed within a frame");
      }
    }
    return buffer.flip();
  }

  @Override
  public void close() throws IOException {
    server.close();
    Files.deleteIfExists(path);
    if (ownDirectory) {
      Files.delete(path.getParent());
    }
  }
}
