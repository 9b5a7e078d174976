// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import java.lang.management.ManagementFactory;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.InstanceAlreadyExistsException;
import javax.management.JMException;
import javax.management.ObjectName;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The counters behind the MBean `ecpipe:name=NAME`. Thread-safe. */
public final class Counters implements CountersMXBean {
  private static final Logger LOG = LoggerFactory.getLogger(Counters.class);

  /** Of this process as a reader: `ecpipe:name=DegradedReads`. */
  public static final Counters READS = register("DegradedReads");
  /** Of this process as a DataNode: `ecpipe:name=Reconstruction`. */
  public static final Counters RECONSTRUCTION = register("Reconstruction");

  public final AtomicLong repairs = new AtomicLong();
  public final AtomicLong requestedBytes = new AtomicLong();
  public final AtomicLong repairedBytes = new AtomicLong();
  public final AtomicLong fallbacks = new AtomicLong();
  public final AtomicLong brokenRepairs = new AtomicLong();

  private Counters() {}

  private static Counters register(String name) {
    Counters counters = new Counters();
    try {
      ManagementFactory.getPlatformMBeanServer()
          .registerMBean(counters, new ObjectName("ecpipe:name=" + name));
    } catch (InstanceAlreadyExistsException e) {
      LOG.info("ecpipe: another class loader has the MBean {}; these counters are hidden", name);
    } catch (JMException e) {
      LOG.warn("ecpipe: cannot register the MBean {}", name, e);
    }
    return counters;
  }

  /** The share of one reader of a file: counts for it and for the process. */
  public final class Session {
    private final AtomicLong myRepairs = new AtomicLong();
    private final AtomicLong myBytes = new AtomicLong();
    /** Ids of the blocks that HDFS has had to deal with itself, each however often it was read. */
    private final Set<Long> myFallbacks = ConcurrentHashMap.newKeySet();

    /** A repair of so many bytes has its first ones. */
    public void begun(long bytes) {
      repairs.incrementAndGet();
      myRepairs.incrementAndGet();
      requestedBytes.addAndGet(bytes);
    }

    public void repaired(long bytes) {
      repairedBytes.addAndGet(bytes);
      myBytes.addAndGet(bytes);
    }

    /** ECPipe was not asked for bytes of the block. */
    public void fallback(long block) {
      if (myFallbacks.add(block)) {
        fallbacks.incrementAndGet();
      }
    }

    /** ECPipe was asked and failed, before or after the repair had begun. */
    public void failed(long block, boolean begun) {
      if (begun) {
        brokenRepairs.incrementAndGet();
      }
      fallback(block);
    }

    /** Says in one line what ECPipe did for the file, if anything, and starts from zero. */
    public void logOnce(String file) {
      long bytes = myBytes.getAndSet(0);
      long begun = myRepairs.getAndSet(0);
      int natively = myFallbacks.size();
      myFallbacks.clear();
      if (begun + natively > 0) {
        LOG.info("ecpipe: {}: rebuilt {} bytes of lost blocks in {} repairs, {} fallbacks to HDFS",
            file, bytes, begun, natively);
      }
    }
  }

  public Session newSession() {
    return new Session();
  }

  @Override
  public long getRepairs() {
    return repairs.get();
  }

  @Override
  public long getRequestedBytes() {
    return requestedBytes.get();
  }

  @Override
  public long getRepairedBytes() {
    return repairedBytes.get();
  }

  @Override
  public long getFallbacks() {
    return fallbacks.get();
  }

  @Override
  public long getBrokenRepairs() {
    return brokenRepairs.get();
  }

  @Override
  public String toString() {
    return repairs + " repairs, " + repairedBytes + " bytes, " + fallbacks + " fallbacks, "
        + brokenRepairs + " broken";
  }
}
