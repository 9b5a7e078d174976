// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import static org.junit.Assert.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.erasurecode.CodecUtil;
import org.apache.hadoop.io.erasurecode.ErasureCoderOptions;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureEncoder;
import org.junit.Test;

/**
 * The files of golden/ are what this Hadoop's encoders make; golden/README.md describes them. With
 * -Dgolden.write=true they are written instead.
 */
public class GoldenVectorsTest {
  private static final int[] LENGTHS = {1, 17, 255, 1021};

  static byte dataByte(int block, int at) {
    return (byte) (block * 151 + at * 29 + (at >> 8) * 71 + 13);
  }

  private static String vectors(String codec, int data, int parity) throws IOException {
    StringBuilder text = new StringBuilder();
    text.append("codec ").append(codec).append(' ').append(data).append(' ').append(parity)
        .append('\n');
    RawErasureEncoder encoder = CodecUtil.createRawEncoder(
        new Configuration(false), codec, new ErasureCoderOptions(data, parity));
    for (int length : LENGTHS) {
      byte[][] inputs = new byte[data][length];
      for (int i = 0; i < data; i++) {
        for (int at = 0; at < length; at++) {
          inputs[i][at] = dataByte(i, at);
        }
      }
      byte[][] outputs = new byte[parity][length];
      encoder.encode(inputs, outputs);
      for (int i = 0; i < parity; i++) {
        text.append("parity ").append(length).append(' ').append(data + i).append(' ')
            .append(hex(outputs[i])).append('\n');
      }
    }
    encoder.release();
    return text.toString();
  }

  private static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte value : bytes) {
      text.append(String.format("%02x", value));
    }
    return text.toString();
  }

  private static void check(String codec, int data, int parity) throws IOException {
    Path file = Path.of(System.getProperty("golden.directory"))
        .resolve(codec + "-" + data + "-" + parity + ".txt");
    String made = vectors(codec, data, parity);
    if (Boolean.getBoolean("golden.write")) {
      Files.writeString(file, made);
    }
    assertEquals(Files.readString(file), made);
  }

  @Test
  public void reedSolomon() throws IOException {
    check("rs", 6, 3);
    check("rs", 3, 2);
    check("rs", 10, 4);
    check("rs", 12, 4);
  }

  @Test
  public void legacy() throws IOException {
    check("rs-legacy", 6, 3);
  }

  @Test
  public void xor() throws IOException {
    check("xor", 2, 1);
  }
}
