// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Remembers that the middleware has failed, so that a dead one costs one timeout and not one a
 * block. After `retryMillis` one caller at a time may probe it; the others go without until that
 * one has succeeded. Thread-safe.
 */
public final class FailureCache {
  private final long retryNanos;
  private final LongSupplier clock;
  private boolean failed;
  private long retryAt;

  public FailureCache(long retryMillis) {
    this(retryMillis, System::nanoTime);
  }

  FailureCache(long retryMillis, LongSupplier nanoClock) {
    retryNanos = TimeUnit.MILLISECONDS.toNanos(retryMillis);
    clock = nanoClock;
  }

  /** Whether it is worth to begin something that will call mayTry() later. Reserves nothing. */
  public synchronized boolean looksAlive() {
    return !failed || clock.getAsLong() - retryAt >= 0;
  }

  /** Whether the caller may try now. One who may must call succeeded() or failed() afterwards. */
  synchronized boolean mayTry() {
    if (!looksAlive()) {
      return false;
    }
    if (failed) {
      // This caller probes. Should it never report back, the next probe comes when this is over.
      retryAt = clock.getAsLong() + retryNanos;
    }
    return true;
  }

  synchronized void succeeded() {
    failed = false;
  }

  synchronized void failed() {
    failed = true;
    retryAt = clock.getAsLong() + retryNanos;
  }
}
