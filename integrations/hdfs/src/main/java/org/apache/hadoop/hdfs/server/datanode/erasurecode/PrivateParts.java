// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hdfs.server.datanode.erasurecode;

import java.lang.reflect.Field;
import java.util.concurrent.ThreadPoolExecutor;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.util.DataChecksum;

/**
 * The private fields of the DataNode that reconstruction through ECPipe needs. All of them are
 * looked up, and the package-private methods too, before anything is changed: a Hadoop release that
 * differs is found out when the DataNode starts, and HDFS works as before.
 */
final class PrivateParts {
  final Field pool = field(ErasureCodingWorker.class, "stripedReconstructionPool",
      ThreadPoolExecutor.class);
  final Field writer = field(StripedBlockReconstructor.class, "stripedWriter",
      StripedWriter.class);
  final Field policy = field(StripedReconstructor.class, "ecPolicy", ErasureCodingPolicy.class);
  final Field writers = field(StripedWriter.class, "writers", StripedBlockWriter[].class);
  final Field targetIndices = field(StripedWriter.class, "targetIndices", short[].class);
  final Field sources = field(StripedReader.class, "sources", DatanodeInfo[].class);
  final Field liveIndices = field(StripedReader.class, "liveIndices", byte[].class);
  final Field checksum = field(StripedReader.class, "checksum", DataChecksum.class);
  final Field bufferSize = field(StripedReader.class, "bufferSize", int.class);
  final Field wantedBufferSize = field(StripedReader.class, "stripedReadBufferSize", int.class);

  /** IllegalStateException, which names what is missing. */
  PrivateParts() {
    Class<?> writerType = StripedWriter.class;
    method(writerType, void.class, "init");
    method(writerType, int[].class, "getRealTargetIndices");
    method(writerType, java.nio.ByteBuffer[].class, "getRealTargetBuffers", int.class);
    method(writerType, void.class, "updateRealTargetBuffers", int.class);
    method(writerType, int.class, "transferData2Targets");
    method(writerType, void.class, "endTargetBlocks");
    method(writerType, void.class, "clearBuffers");
    Class<?> targetType = StripedBlockWriter.class;
    method(targetType, java.nio.ByteBuffer.class, "getTargetBuffer");
    method(targetType, void.class, "freeTargetBuffer");
    method(targetType, void.class, "close");
    Class<?> taskType = StripedReconstructor.class;
    method(taskType, void.class, "initDecoderIfNecessary");
    method(taskType, long.class, "getPositionInBlock");
    method(taskType, void.class, "updatePositionInBlock", long.class);
    method(taskType, long.class, "getMaxTargetLength");
    method(taskType, long.class, "getBlockLen", int.class);
    method(taskType, ExtendedBlock.class, "getBlock", int.class);
    method(taskType, int.class, "getXmits");
    method(taskType, void.class, "freeBuffer", java.nio.ByteBuffer.class);
    method(taskType, void.class, "cleanup");
    method(DataNode.class, void.class, "decrementXmitsInProgress", int.class);
    method(DataNode.class, void.class, "reportRemoteBadBlock", DatanodeInfo.class,
        ExtendedBlock.class);
  }

  private static Field field(Class<?> owner, String name, Class<?> type) {
    try {
      Field field = owner.getDeclaredField(name);
      if (field.getType() != type) {
        throw new IllegalStateException(owner.getSimpleName() + "." + name + " is a "
            + field.getType().getName() + ", not a " + type.getName());
      }
      field.setAccessible(true);
      return field;
    } catch (NoSuchFieldException e) {
      throw new IllegalStateException(owner.getSimpleName() + " has no field " + name, e);
    }
  }

  private static void method(Class<?> owner, Class<?> result, String name, Class<?>... types) {
    try {
      if (owner.getDeclaredMethod(name, types).getReturnType() != result) {
        throw new IllegalStateException(
            owner.getSimpleName() + "." + name + " does not return " + result.getName());
      }
    } catch (NoSuchMethodException e) {
      throw new IllegalStateException(owner.getSimpleName() + " has no method " + name, e);
    }
  }

  <T> T get(Field field, Object owner, Class<T> type) {
    try {
      return type.cast(field.get(owner));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);  // setAccessible has succeeded before
    }
  }

  void set(Field field, Object owner, Object value) {
    try {
      field.set(owner, value);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }
}
