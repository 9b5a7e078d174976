// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import io.ecpipe.client.EndpointAddress;
import io.ecpipe.client.RepairClient;
import org.apache.hadoop.conf.Configuration;

/** The configuration keys, in core-site.xml or hdfs-site.xml. */
public final class Settings {
  /** `unix:/path` or `tcp:host:port` of the requestor endpoint on this host. */
  public static final String ENDPOINT = "ecpipe.endpoint";
  public static final String ENDPOINT_DEFAULT = "unix:/run/ecpipe/endpoint.sock";
  /** The cookie file of an endpoint on tcp; empty: none. */
  public static final String COOKIE = "ecpipe.endpoint.cookie";
  /** How much later than without ECPipe anything may be, in milliseconds. */
  public static final String TIMEOUT = "ecpipe.timeout-ms";
  /** How long an endpoint that has failed is left alone, in milliseconds. */
  public static final String RETRY = "ecpipe.retry-interval-ms";
  /** A scheme's name; empty: the coordinator decides. */
  public static final String SCHEME = "ecpipe.scheme";
  /**
   * A sequential reader's first request, in bytes; each next one is four times as long. After a
   * seek a reader asks for the rest of its cell, then for twice as much each time until it is as
   * long.
   */
  public static final String LOOK_AHEAD = "ecpipe.look-ahead-bytes";
  public static final long LOOK_AHEAD_DEFAULT = 4L << 20;

  private Settings() {}

  /**
   * With `background` reads that somebody waits for go before what it asks for.
   * IllegalArgumentException when the address or a number is not valid, or nothing in this JVM can
   * reach such an address.
   */
  public static RepairClient client(Configuration conf, String name, boolean background) {
    RepairClient.Options options = new RepairClient.Options();
    options.timeoutMillis = positive(conf, TIMEOUT, options.timeoutMillis);
    options.retryMillis = positive(conf, RETRY, options.retryMillis);
    options.scheme = conf.getTrimmed(SCHEME, options.scheme);
    options.cookieFile = conf.getTrimmed(COOKIE, options.cookieFile);
    options.clientName = name;
    options.background = background;
    options.unixSockets = new DomainSockets();
    return new RepairClient(
        EndpointAddress.parse(conf.getTrimmed(ENDPOINT, ENDPOINT_DEFAULT)), options);
  }

  public static long positive(Configuration conf, String key, long fallback) {
    long value = conf.getLong(key, fallback);
    if (value <= 0) {
      throw new IllegalArgumentException(key + " must be positive, not " + value);
    }
    return value;
  }
}
