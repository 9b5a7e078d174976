// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.fs;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.EcpipeDFSClient;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Hdfs with ECPipe's client; its constructor and its client are visible in this package only. */
public abstract class EcpipeHdfs extends Hdfs {
  private static final Logger LOG = LoggerFactory.getLogger(EcpipeHdfs.class);

  protected EcpipeHdfs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, conf);
    try {
      DFSClient stock = dfs;
      dfs = new EcpipeDFSClient(uri, conf, getStatistics());
      stock.close();
    } catch (RuntimeException | LinkageError e) {
      LOG.error("ecpipe: not installed, HDFS decodes degraded reads itself: {}", e.toString());
    }
  }
}
