// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import io.ecpipe.client.RepairClient;
import java.io.IOException;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.datanode.erasurecode.EcpipeReconstruction;
import org.apache.hadoop.util.ServicePlugin;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * For `dfs.datanode.plugins`: the NameNode's reconstruction tasks are carried out through ECPipe.
 * Where that is not possible it says so in one line of the log, and the DataNode works as without.
 */
public final class DataNodePlugin implements ServicePlugin {
  private static final Logger LOG = LoggerFactory.getLogger(DataNodePlugin.class);

  private EcpipeReconstruction installed;

  @Override
  public synchronized void start(Object service) {
    try {
      DataNode dataNode = (DataNode) service;
      RepairClient client = Settings.client(dataNode.getConf(), "datanode", true);
      installed = EcpipeReconstruction.install(dataNode, client);
      LOG.info("ecpipe: reconstruction goes through {}", client.address());
    } catch (RuntimeException | LinkageError e) {
      LOG.error("ecpipe: not installed, HDFS reconstructs blocks itself: {}", e.toString());
    }
  }

  @Override
  public synchronized void stop() {
    if (installed != null) {
      installed.uninstall();
      installed = null;
      LOG.info("ecpipe: reconstruction in this DataNode: {}", Counters.RECONSTRUCTION);
    }
  }

  @Override
  public void close() throws IOException {
    stop();
  }
}
