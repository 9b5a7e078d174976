// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Threads that keep no JVM alive, and end when they are idle. */
final class Daemons {
  private Daemons() {}

  /** Up to so many threads, and so many tasks that wait for one; others are rejected. */
  static ThreadPoolExecutor pool(String name, int threads, int tasks) {
    ThreadPoolExecutor pool = new ThreadPoolExecutor(threads, threads, 1, TimeUnit.SECONDS,
        new LinkedBlockingQueue<>(tasks), task -> {
          Thread thread = new Thread(task, name);
          thread.setDaemon(true);
          return thread;
        });
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }
}
