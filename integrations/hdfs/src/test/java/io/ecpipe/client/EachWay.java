// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import io.ecpipe.hdfs.DomainSockets;
import java.io.IOException;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

/**
 * A test that runs by each way to a Unix socket: the JDK's, and Hadoop's where its native library
 * is. The Maven profile `libhadoop` fetches the library and says that it must be there.
 */
@RunWith(Parameterized.class)
public abstract class EachWay {
  enum Way { JDK, HADOOP }

  @Parameterized.Parameter public Way way;

  @Parameterized.Parameters(name = "{0}")
  public static Object[] ways() {
    boolean hadoop = Boolean.getBoolean("libhadoop.expected")
        || new DomainSockets().missing() == null;
    return hadoop ? Way.values() : new Object[] {Way.JDK};
  }

  Connection connect(EndpointAddress address, Deadline deadline) throws IOException {
    return Dialer.of(address, new DomainSockets(), way == Way.JDK).open(deadline);
  }

  RepairClient client(FakeEndpoint endpoint, RepairClient.Options options) {
    options.unixSockets = new DomainSockets();
    return new RepairClient(endpoint.address(), options, way == Way.JDK);
  }

  RepairClient client(FakeEndpoint endpoint, long timeoutMillis) {
    RepairClient.Options options = new RepairClient.Options();
    options.timeoutMillis = timeoutMillis;
    return client(endpoint, options);
  }
}
