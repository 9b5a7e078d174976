// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EcpipeHdfs;

/** For `fs.AbstractFileSystem.hdfs.impl`: the same as EcpipeFileSystem for FileContext. */
public class EcpipeFs extends EcpipeHdfs {
  /** Called by AbstractFileSystem, by reflection. */
  EcpipeFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, conf);
  }
}
