// SPDX-License-Identifier: Apache-2.0
package io.ecpipe.hdfs;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;

/**
 * LocatedBlock.getLocations(). Its return type is DatanodeInfo[] in some releases and a subtype's
 * array in others, and the JVM takes these for different methods: so it is found by name.
 */
public final class Locations {
  private static final MethodHandle GET = find();

  private Locations() {}

  private static MethodHandle find() {
    try {
      return MethodHandles.publicLookup()
          .unreflect(LocatedBlock.class.getMethod("getLocations"))
          .asType(MethodType.methodType(DatanodeInfo[].class, LocatedBlock.class));
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("LocatedBlock has no getLocations()", e);
    }
  }

  public static DatanodeInfo[] of(LocatedBlock block) {
    try {
      return (DatanodeInfo[]) GET.invokeExact(block);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException(e);  // it throws nothing checked
    }
  }
}
