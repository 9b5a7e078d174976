// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import io.ecpipe.client.UnixSockets;
import java.io.IOException;
import java.io.OutputStream;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import org.apache.hadoop.net.unix.DomainSocket;

/** Those of Hadoop's native library. */
public final class DomainSockets implements UnixSockets {
  @Override
  public String missing() {
    String reason = DomainSocket.getLoadingFailureReason();
    return reason == null ? null : "Hadoop's native library (" + reason + ")";
  }

  @Override
  public Socket connect(String path) throws IOException {
    return new Connected(DomainSocket.connect(path));
  }

  private static final class Connected implements Socket {
    private final DomainSocket socket;
    private final ReadableByteChannel in;
    private final OutputStream out;
    private int readMillis;
    private int writeMillis;

    Connected(DomainSocket socket) {
      this.socket = socket;
      in = socket.getChannel();
      out = socket.getOutputStream();
    }

    @Override
    public int read(ByteBuffer bytes, int millis) throws IOException {
      if (millis != readMillis) {
        socket.setAttribute(DomainSocket.RECEIVE_TIMEOUT, millis);
        readMillis = millis;
      }
      try {
        return in.read(bytes);
      } catch (SocketTimeoutException e) {
        return 0;
      }
    }

    @Override
    public boolean write(byte[] bytes, int offset, int length, int millis) throws IOException {
      if (millis != writeMillis) {
        socket.setAttribute(DomainSocket.SEND_TIMEOUT, millis);
        writeMillis = millis;
      }
      try {
        out.write(bytes, offset, length);
        return true;
      } catch (SocketTimeoutException e) {
        return false;
      }
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }
}
