// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;

/**
 * Hears the endpoint's last word on repairs whose readers have all their bytes and have left: it
 * may name corrupt sources, and nobody has to wait for it. One thread, which ends when it is idle.
 */
final class Farewells {
  /**
   * Each holds a connection, and a listener that hangs holds them all: few, since an endpoint takes
   * 64. Beyond these they are closed at once.
   */
  private static final int MOST = 16;
  private static final ThreadPoolExecutor THREAD = Daemons.pool("ecpipe-farewells", 1, MOST);

  private Farewells() {}

  /** Whether it will be run. It waits to a deadline that runs already, and throws nothing. */
  static boolean take(Runnable farewell) {
    try {
      THREAD.execute(farewell);
      return true;
    } catch (RejectedExecutionException e) {
      return false;
    }
  }
}
