// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.Test;

public class FailureCacheTest {
  private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5);  // the clock may wrap
  private final FailureCache cache = new FailureCache(100, now::get);

  private void pass(long millis) {
    now.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
  }

  @Test
  public void oneProbeAtATime() {
    assertTrue(cache.mayTry());
    assertTrue(cache.mayTry());
    cache.failed();
    assertFalse(cache.looksAlive());
    assertFalse(cache.mayTry());
    pass(99);
    assertFalse(cache.mayTry());
    pass(1);
    assertTrue(cache.looksAlive());
    assertTrue("the probe", cache.mayTry());
    assertFalse("another beside it", cache.mayTry());
    cache.succeeded();
    assertTrue(cache.mayTry());
    assertTrue(cache.mayTry());
  }

  @Test
  public void failedProbeStartsAnew() {
    cache.failed();
    pass(100);
    assertTrue(cache.mayTry());
    pass(50);
    cache.failed();
    pass(99);
    assertFalse(cache.mayTry());
    pass(1);
    assertTrue(cache.mayTry());
  }

  @Test
  public void lostProbeIsFollowedByAnother() {
    cache.failed();
    pass(100);
    assertTrue(cache.mayTry());
    pass(100);
    assertTrue(cache.mayTry());
  }
}
