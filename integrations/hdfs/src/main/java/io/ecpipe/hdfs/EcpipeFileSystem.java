// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.EcpipeDFSClient;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * For `fs.hdfs.impl`: HDFS whose degraded reads go through ECPipe. Where ECPipe cannot be set up it
 * says so in one line of the log, and is HDFS.
 */
public class EcpipeFileSystem extends DistributedFileSystem {
  private static final Logger LOG = LoggerFactory.getLogger(EcpipeFileSystem.class);

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    try {
      EcpipeDFSClient.install(this, uri, conf, statistics);
    } catch (RuntimeException | LinkageError e) {
      LOG.error("ecpipe: not installed, HDFS decodes degraded reads itself: {}", e.toString());
    }
  }
}
