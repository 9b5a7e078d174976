// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs;

import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import io.ecpipe.hdfs.Settings;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.junit.Test;

public class EcpipeDFSClientTest {
  /** Else a client would be left open. This name node, which is none, would be complained of. */
  @Test
  public void settingsAreLookedAtBeforeAClientIsMade() {
    Configuration conf = new Configuration(false);
    conf.set(Settings.ENDPOINT, "relative");
    String message = assertThrows(IllegalArgumentException.class,
        () -> new EcpipeDFSClient(URI.create("none:/"), conf, null)).getMessage();
    assertTrue(message, message.contains("endpoint address 'relative'"));
  }
}
