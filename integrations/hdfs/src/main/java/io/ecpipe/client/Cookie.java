// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/** The secret that an endpoint on TCP wants to be shown. It is another one after each start. */
final class Cookie {
  private static final int LENGTH = 64;

  private Cookie() {}

  /** Empty for an empty path. IOException when the file cannot be read, or is no cookie. */
  static String read(String path) throws IOException {
    if (path.isEmpty()) {
      return "";
    }
    String secret = new String(Files.readAllBytes(Paths.get(path)), StandardCharsets.US_ASCII)
        .trim();
    if (secret.length() != LENGTH || !secret.matches("[0-9a-f]*")) {
      throw new IOException(path + " is not the cookie file of a requestor endpoint");
    }
    return secret;
  }
}
