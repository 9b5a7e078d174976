// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs.server.datanode.erasurecode;

import io.ecpipe.client.RepairClient;
import io.ecpipe.hdfs.Counters;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * Takes the reconstruction tasks of a DataNode: an executor in the place of its own one, which
 * hands every task to ECPipe first. install() either changes one field or nothing.
 */
public final class EcpipeReconstruction {
  private final ErasureCodingWorker worker;
  private final PrivateParts parts;
  private final ThreadPoolExecutor stock;
  private final Pool pool;

  private EcpipeReconstruction(ErasureCodingWorker worker, RepairClient client) {
    this.worker = worker;
    parts = new PrivateParts();
    stock = parts.get(parts.pool, worker, ThreadPoolExecutor.class);
    pool = new Pool(stock, task -> new RepairTask(task, parts, client, Counters.RECONSTRUCTION));
  }

  /** IllegalStateException when this Hadoop is not as expected; nothing has changed then. */
  public static EcpipeReconstruction install(DataNode dataNode, RepairClient client) {
    EcpipeReconstruction installed =
        new EcpipeReconstruction(dataNode.getErasureCodingWorker(), client);
    // Tasks that were submitted before stay with the stock executor, whose threads end when idle.
    installed.parts.set(installed.parts.pool, installed.worker, installed.pool);
    return installed;
  }

  /** Gives the DataNode its own executor back; running tasks end by themselves. */
  public void uninstall() {
    parts.set(parts.pool, worker, stock);
    pool.shutdown();
  }

  private interface Wrapper {
    Runnable wrap(StripedBlockReconstructor task);
  }

  private static final class Pool extends ThreadPoolExecutor {
    private final Wrapper wrapper;

    Pool(ThreadPoolExecutor stock, Wrapper wrapper) {
      super(stock.getCorePoolSize(), stock.getMaximumPoolSize(),
          stock.getKeepAliveTime(TimeUnit.SECONDS), TimeUnit.SECONDS,
          new LinkedBlockingQueue<>(), stock.getThreadFactory(),
          stock.getRejectedExecutionHandler());
      allowCoreThreadTimeOut(true);
      this.wrapper = wrapper;
    }

    @Override
    public Future<?> submit(Runnable task) {
      return super.submit(task instanceof StripedBlockReconstructor
          ? wrapper.wrap((StripedBlockReconstructor) task) : task);
    }
  }
}
