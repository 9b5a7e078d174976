// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;

/** The endpoint has answered and says that there is no repair: an ERROR frame. */
public final class RepairException extends IOException {
  private static final long serialVersionUID = 1L;

  private final String code;

  RepairException(String code, String message) {
    super(code + ": " + message);
    this.code = code;
  }

  /** A canonical name such as UNAVAILABLE or DATA_LOSS. */
  public String code() {
    return code;
  }

  /**
   * Whether other repairs would be refused as well: the endpoint cannot reach its coordinator or is
   * about to end, or this user may not ask. An endpoint says PERMISSION_DENIED of nothing else.
   */
  boolean concernsAll() {
    return code.equals("UNAVAILABLE") || code.equals("PERMISSION_DENIED");
  }
}
