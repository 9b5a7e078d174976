// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs.itest;

import io.ecpipe.hdfs.Counters;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.DigestOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.hdfs.tools.DFSck;
import org.apache.hadoop.util.ToolRunner;

/**
 * The client of the integration test: one JVM that takes commands, a line each, and answers each
 * with one line, `ok ...` or `error ...`. Every command that reads has a file system of its own, so
 * that nothing is remembered from one to the next.
 */
public final class Driver {
  private static final int BUFFER_BYTES = 1 << 20;

  private final Configuration conf;
  private final BufferedReader commands;
  private final PrintStream answers;
  private FileSystem heldBy;   // of the file that is being written, if there is one
  private OutputStream held;

  private Driver(Configuration conf, BufferedReader commands, PrintStream answers) {
    this.conf = conf;
    this.commands = commands;
    this.answers = answers;
  }

  /** Arguments: configuration files. */
  public static void main(String[] files) throws IOException {
    Configuration conf = new HdfsConfiguration();
    for (String file : files) {
      conf.addResource(new Path("file://" + file));
    }
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream answers = System.out;
    System.setOut(System.err);  // what tools print must not look like an answer
    new Driver(conf, input, answers).serve();
  }

  private void serve() throws IOException {
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      long start = System.nanoTime();
      String answer;
      try {
        answer = "ok " + run(line.split(" "));
      } catch (Exception | LinkageError e) {
        e.printStackTrace();
        answer = "error " + e.toString().replace('\n', ' ');
      }
      long millis = (System.nanoTime() - start) / 1_000_000;
      System.err.println("driver: " + line + " -> " + answer + " (" + millis + " ms)");
      answers.println(answer);
      answers.flush();
    }
  }

  private String run(String[] words) throws Exception {
    switch (words[0]) {
      case "policy":
        return policy(words[1], words[2]);
      case "put":
        return put(words[1], Long.parseLong(words[2]), Long.parseLong(words[3]));
      case "hold":
        return hold(words[1], Long.parseLong(words[2]), Long.parseLong(words[3]));
      case "release":
        return release();
      case "cat":
        return cat(words[1], Long.parseLong(words[2]), false);
      case "halves":
        return cat(words[1], Long.parseLong(words[2]), true);
      case "context":
        return context(words[1], Long.parseLong(words[2]));
      case "pread":
        return pread(words[1], Long.parseLong(words[2]), Integer.parseInt(words[3]),
            Integer.parseInt(words[4]));
      case "seek":
        return seek(words[1], Long.parseLong(words[2]), Integer.parseInt(words[3]));
      case "cells":
        return cells(words[1], Long.parseLong(words[2]), Integer.parseInt(words[3]),
            Long.parseLong(words[4]), Long.parseLong(words[5]), Integer.parseInt(words[6]));
      case "latencies":
        return latencies(words[1], Long.parseLong(words[2]), Integer.parseInt(words[3]),
            Integer.parseInt(words[4]), Integer.parseInt(words[5]), rest(words, 6));
      case "whole":
        return whole(words[1], Long.parseLong(words[2]));
      case "dfs-cat":
        return dfsCat(words[1], Long.parseLong(words[2]));
      case "set":
        conf.set(words[1], words[2]);
        return "";
      case "blocks":
        return Groups.describe(conf, words[1]);
      case "rebuild":
        return Repairs.run(conf, words[1], Integer.parseInt(words[2]), words[3].equals("one"),
            java.util.Arrays.stream(words, 4, words.length).mapToInt(Integer::parseInt).toArray());
      case "counters":
        Counters counters = Counters.READS;
        return counters.getRepairs() + " " + counters.getRequestedBytes() + " "
            + counters.getRepairedBytes() + " "
            + counters.getFallbacks() + " " + counters.getBrokenRepairs();
      case "admin":
        return String.valueOf(ToolRunner.run(new DFSAdmin(conf), rest(words, 1)));
      case "fsck":
        return fsck(words[1]);
      default:
        throw new IllegalArgumentException("no command " + words[0]);
    }
  }

  private static String[] rest(String[] words, int from) {
    return java.util.Arrays.copyOfRange(words, from, words.length);
  }

  private interface Use<T> {
    T of(DistributedFileSystem fileSystem) throws Exception;
  }

  private <T> T with(Use<T> use) throws Exception {
    try (FileSystem fileSystem = FileSystem.newInstance(conf)) {
      return use.of((DistributedFileSystem) fileSystem);
    }
  }

  private String policy(String directory, String name) throws Exception {
    return with(fs -> {
      fs.mkdirs(new Path(directory));
      fs.enableErasureCodingPolicy(name);
      fs.setErasureCodingPolicy(new Path(directory), name);
      return name;
    });
  }

  private String put(String path, long bytes, long seed) throws Exception {
    return with(fs -> {
      try (FSDataOutputStream out = fs.create(new Path(path))) {
        write(out, bytes, seed);
      }
      return "";
    });
  }

  private static void write(OutputStream out, long bytes, long seed) throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    for (long at = 0; at < bytes; at += BUFFER_BYTES) {
      int count = (int) Math.min(BUFFER_BYTES, bytes - at);
      Content.fill(seed, at, buffer, count);
      out.write(buffer, 0, count);
    }
  }

  /** The file stays open until `release`. */
  private String hold(String path, long bytes, long seed) throws IOException {
    heldBy = FileSystem.newInstance(conf);
    held = heldBy.create(new Path(path));
    write(held, bytes, seed);
    return "";
  }

  private String release() throws IOException {
    try (FileSystem owner = heldBy; OutputStream out = held) {
      return "";
    }
  }

  /** With `pause`, says `half` when half of the file is read, and goes on after another line. */
  private String cat(String path, long seed, boolean pause) throws Exception {
    return with(fs -> {
      long bytes = fs.getFileStatus(new Path(path)).getLen();
      try (FSDataInputStream in = fs.open(new Path(path))) {
        return readAll(in, bytes, seed, pause);
      }
    });
  }

  private String readAll(FSDataInputStream in, long bytes, long seed, boolean pause)
      throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    byte[] expected = new byte[BUFFER_BYTES];
    java.security.MessageDigest got = Content.sha256();
    java.security.MessageDigest want = Content.sha256();
    long at = 0;
    boolean paused = !pause;
    while (at < bytes) {
      int count = in.read(buffer, 0, (int) Math.min(BUFFER_BYTES, bytes - at));
      if (count < 0) {
        throw new IOException("the file ends at byte " + at);
      }
      Content.fill(seed, at, expected, count);
      want.update(expected, 0, count);
      got.update(buffer, 0, count);
      at += count;
      if (!paused && at >= bytes / 2) {
        answers.println("half");
        answers.flush();
        commands.readLine();
        paused = true;
      }
    }
    if (in.read() >= 0) {
      throw new IOException("the file goes on after byte " + bytes);
    }
    if (!java.util.Arrays.equals(got.digest(), want.digest())) {
      throw new IOException("WRONG BYTES");
    }
    return String.valueOf(bytes);
  }

  /** What `hdfs dfs -cat` prints, by its checksum. */
  private String dfsCat(String path, long seed) throws Exception {
    PrintStream usual = System.out;
    DigestOutputStream printed =
        new DigestOutputStream(OutputStream.nullOutputStream(), Content.sha256());
    int code;
    try (PrintStream standardOutput = new PrintStream(printed)) {
      System.setOut(standardOutput);
      code = ToolRunner.run(new FsShell(conf), new String[] {"-cat", path});
    } finally {
      System.setOut(usual);
    }
    long bytes = with(fs -> fs.getFileStatus(new Path(path)).getLen());
    java.security.MessageDigest want = Content.sha256();
    byte[] expected = new byte[BUFFER_BYTES];
    for (long at = 0; at < bytes; at += BUFFER_BYTES) {
      int count = (int) Math.min(BUFFER_BYTES, bytes - at);
      Content.fill(seed, at, expected, count);
      want.update(expected, 0, count);
    }
    if (!java.util.Arrays.equals(printed.getMessageDigest().digest(), want.digest())) {
      throw new IOException("WRONG BYTES");
    }
    return String.valueOf(code);
  }

  private String context(String path, long seed) throws Exception {
    FileContext context = FileContext.getFileContext(conf);
    String kind = context.getDefaultFileSystem().getClass().getName();
    long bytes = context.getFileStatus(new Path(path)).getLen();
    try (FSDataInputStream in = context.open(new Path(path))) {
      return readAll(in, bytes, seed, false) + " " + kind;
    }
  }

  /** `count` positional reads of up to 3 MiB by each of `threads` threads, over one stream. */
  private String pread(String path, long seed, int count, int threads) throws Exception {
    return with(fs -> {
      long bytes = fs.getFileStatus(new Path(path)).getLen();
      ExecutorService pool = Executors.newFixedThreadPool(threads);
      try (FSDataInputStream in = fs.open(new Path(path))) {
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
          Random random = new Random(i);
          tasks.add(() -> preads(in, bytes, seed, count, random));
        }
        for (Future<Void> done : pool.invokeAll(tasks)) {
          done.get();
        }
      } finally {
        pool.shutdownNow();
      }
      return String.valueOf(count * threads);
    });
  }

  /** The seconds of `count` positional reads of `bytes` each, `stride` apart. */
  private String cells(String path, long seed, int bytes, long first, long stride, int count)
      throws Exception {
    return with(fs -> {
      byte[][] cells = new byte[count][bytes];
      long start;
      long end;
      try (FSDataInputStream in = fs.open(new Path(path))) {
        start = System.nanoTime();
        for (int i = 0; i < count; i++) {
          in.readFully(first + i * stride, cells[i]);
        }
        end = System.nanoTime();
      }
      for (int i = 0; i < count; i++) {
        if (!Content.matches(seed, first + i * stride, cells[i], bytes)) {
          throw new IOException("WRONG BYTES in read " + i);
        }
      }
      return String.valueOf((end - start) / 1e9);
    });
  }

  /**
   * The nanoseconds of each of `count` positional reads of `bytes`, at random places within the
   * cells that begin at these offsets of the file.
   */
  private String latencies(String path, long seed, int bytes, int cellBytes, int count,
      String[] cells) throws Exception {
    return with(fs -> {
      Random random = new Random(count);
      byte[] buffer = new byte[bytes];
      StringBuilder nanos = new StringBuilder();
      try (FSDataInputStream in = fs.open(new Path(path))) {
        for (int i = 0; i < count; i++) {
          long at = Long.parseLong(cells[random.nextInt(cells.length)])
              + random.nextInt(cellBytes - bytes + 1);
          long start = System.nanoTime();
          in.readFully(at, buffer);
          nanos.append(i == 0 ? "" : " ").append(System.nanoTime() - start);
          if (!Content.matches(seed, at, buffer, bytes)) {
            throw new IOException("WRONG BYTES at " + at);
          }
        }
      }
      return nanos.toString();
    });
  }

  /** The seconds of reading a file from its begin to its end. */
  private String whole(String path, long seed) throws Exception {
    return with(fs -> {
      byte[] content = new byte[(int) fs.getFileStatus(new Path(path)).getLen()];
      long start = System.nanoTime();
      try (FSDataInputStream in = fs.open(new Path(path))) {
        in.readFully(content);
      }
      long end = System.nanoTime();
      if (!Content.matches(seed, 0, content, content.length)) {
        throw new IOException("WRONG BYTES");
      }
      return String.valueOf((end - start) / 1e9);
    });
  }

  private static Void preads(FSDataInputStream in, long bytes, long seed, int count,
      Random random) throws IOException {
    for (int i = 0; i < count; i++) {
      long at = (long) (random.nextDouble() * bytes);
      int length = (int) Math.min(bytes - at, 1 + random.nextInt(3 << 20));
      byte[] buffer = new byte[length];
      in.readFully(at, buffer);
      if (!Content.matches(seed, at, buffer, length)) {
        throw new IOException("WRONG BYTES at " + at + " + " + length);
      }
    }
    return null;
  }

  private String seek(String path, long seed, int count) throws Exception {
    return with(fs -> {
      long bytes = fs.getFileStatus(new Path(path)).getLen();
      Random random = new Random(seed);
      byte[] buffer = new byte[100_000];
      try (FSDataInputStream in = fs.open(new Path(path))) {
        for (int i = 0; i < count; i++) {
          long at = (long) (random.nextDouble() * bytes);
          int length = (int) Math.min(bytes - at, 1 + random.nextInt(buffer.length));
          in.seek(at);
          in.readFully(buffer, 0, length);
          if (!Content.matches(seed, at, buffer, length)) {
            throw new IOException("WRONG BYTES at " + at + " + " + length);
          }
        }
      }
      return String.valueOf(count);
    });
  }

  private String fsck(String path) throws Exception {
    ByteArrayOutputStream output = new ByteArrayOutputStream();
    int code = ToolRunner.run(
        new DFSck(conf, new PrintStream(output, true, "UTF-8")), new String[] {path});
    String text = output.toString("UTF-8");
    System.err.println(text);
    return code + (text.contains("is HEALTHY") ? " healthy" : " unhealthy");
  }
}
