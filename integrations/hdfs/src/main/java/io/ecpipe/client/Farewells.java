// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

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
  private static final ThreadPoolExecutor THREAD = new ThreadPoolExecutor(1, 1, 1,
      TimeUnit.SECONDS, new LinkedBlockingQueue<>(MOST), task -> {
        Thread thread = new Thread(task, "ecpipe-farewells");
        thread.setDaemon(true);
        return thread;
      });

  static {
    THREAD.allowCoreThreadTimeOut(true);
  }

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
