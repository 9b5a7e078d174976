// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;

/**
 * Asks a requestor endpoint for repairs. Thread-safe; holds nothing open between repairs.
 *
 * Every failure is an IOException: RepairException when the endpoint has answered with an error,
 * another kind when it is away, slow or does not speak the protocol. Either way the caller has no
 * bytes and goes without ECPipe.
 */
public final class RepairClient {
  private final EndpointAddress address;
  private final Options options;
  private final Dialer dialer;
  private final FailureCache failures;

  /** How a client waits and what it calls itself. */
  public static final class Options {
    /** From the connection to the HEADER, and for each read after it, in milliseconds. */
    public long timeoutMillis = 2000;
    /** How long a failed endpoint is left alone, in milliseconds. */
    public long retryMillis = 30000;
    /** For the endpoint's logs; no spaces. */
    public String clientName = "java";
    /** The endpoint's cookie file, which is read for each request; empty: none. */
    public String cookieFile = "";
    /** A scheme's name; empty: the coordinator's default. */
    public String scheme = "";
    /** For a `unix:` address where the JDK has no Unix sockets (before 16); null: none. */
    public UnixSockets unixSockets = null;
    /** Nobody waits for the bytes: reads that somebody waits for go before. */
    public boolean background = false;
  }

  /** IllegalArgumentException, which says what to do, where nothing can reach a `unix:` address. */
  public RepairClient(EndpointAddress address, Options options) {
    this(address, options, EndpointAddress.JDK_HAS_UNIX_SOCKETS);
  }

  /** For tests on a JDK that has what an older one lacks. */
  RepairClient(EndpointAddress address, Options options, boolean jdkHasUnixSockets) {
    this.address = address;
    this.options = options;
    dialer = Dialer.of(address, options.unixSockets, jdkHasUnixSockets);
    failures = new FailureCache(options.retryMillis);
  }

  public EndpointAddress address() {
    return address;
  }

  /** Whether a repair may be tried now; false while a failed endpoint is left alone. */
  public boolean looksAlive() {
    return failures.looksAlive();
  }

  /** Begins a repair and waits for its first verified bytes. The caller closes the stream. */
  public RepairStream open(RepairRequest request) throws IOException {
    RepairStream stream = begin(request);
    try {
      stream.awaitHeader();
      return stream;
    } catch (IOException | RuntimeException e) {
      stream.close();
      throw e;
    }
  }

  /** Sends the request. The timeout runs from now on; awaitHeader() has the rest of it. */
  private RepairStream begin(RepairRequest request) throws IOException {
    if (!failures.mayTry()) {
      throw new IOException(address + " failed recently and is not tried again yet");
    }
    Deadline deadline = Deadline.after(options.timeoutMillis);
    try {
      byte[] encoded = request.encode(options, Cookie.read(options.cookieFile));
      Connection connection = dialer.open(deadline);
      RepairStream stream = new RepairStream(
          connection, request, options.timeoutMillis, deadline, failures);
      stream.send(encoded);
      return stream;
    } catch (IOException | RuntimeException e) {
      failures.failed();
      throw e;
    }
  }
}
