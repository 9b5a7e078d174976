// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.util.concurrent.TimeUnit;

/** A point in time on the monotonic clock. Immutable. */
final class Deadline {
  private final long nanos;

  private Deadline(long nanos) {
    this.nanos = nanos;
  }

  static Deadline after(long millis) {
    return new Deadline(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis));
  }

  /** At least 1 while any time is left, so that it can be handed to select(); 0 afterwards. */
  long remainingMillis() {
    long left = nanos - System.nanoTime();
    return left <= 0 ? 0 : Math.max(1, TimeUnit.NANOSECONDS.toMillis(left));
  }
}
