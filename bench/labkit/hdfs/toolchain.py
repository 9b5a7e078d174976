# SPDX-License-Identifier: Apache-2.0
"""What the test needs before anything runs: a JDK, Maven, Hadoop's jars, our jar. All of it is kept
under build/hdfs, so that only the first run for a Hadoop release needs the network."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Iterator, Sequence

REPOSITORY = Path(__file__).resolve().parents[3]
MODULE = REPOSITORY / "integrations" / "hdfs"
BUILD = REPOSITORY / "build" / "hdfs"
OLDEST, NEWEST = "3.1.1", "3.5.0"
MAVEN_SECONDS = 600
DUMP_SECONDS = 120

# C1 and the serial collector: a JVM of this test lives for minutes, and a dozen share two cores.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
             "-XX:-UsePerfData",
             "--add-opens=java.base/java.lang=ALL-UNNAMED",
             "--add-opens=java.base/java.util=ALL-UNNAMED")
# Maven works for seconds, too: a JVM that compiles less is faster.
MAVEN_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOG4J = """log4j.rootLogger=INFO,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
log4j.logger.BlockStateChange=WARN
log4j.logger.org.apache.hadoop.hdfs.StateChange=WARN
"""


class Unavailable(Exception):
    """The test cannot run here, through no fault of what it tests."""


def require_tools() -> None:
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise Unavailable(f"no {tool} here (deploy/install-deps.sh hdfs installs it)")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """What is kept under build/hdfs, and Maven's repository, have one writer at a time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def maven(*arguments: str) -> None:
    """Without the network first: then a repository that is warm is enough."""
    command = ["mvn", "-q", "-B", "-f", str(MODULE / "pom.xml")]
    outputs = []
    for offline in (["-o"], []):
        done = subprocess.run([*command, *offline, *arguments], capture_output=True, text=True,
                              timeout=MAVEN_SECONDS, env={**os.environ, "MAVEN_OPTS": MAVEN_FLAGS})
        if done.returncode == 0:
            return
        outputs.append(done.stdout[-3000:])
        if "There are test failures" in done.stdout:
            break
    if "Could not transfer" in outputs[-1] or "Unknown host" in outputs[-1]:
        raise Unavailable("Maven Central is out of reach, and the local repository lacks "
                          f"what `mvn {' '.join(arguments)}` needs")
    raise RuntimeError(f"mvn {' '.join(arguments)} failed:\n{outputs[-1]}")


def hadoop_jars(version: str) -> list[Path]:
    """All jars of a Hadoop release that a DataNode needs."""
    folder = BUILD / "lib" / version
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        maven(f"-Dhadoop.version={version}", "dependency:copy-dependencies",
              "-DincludeScope=compile", f"-DoutputDirectory={partial}")
        partial.rename(folder)
    return sorted(folder.glob("*.jar"))


def own_classes() -> list[Path]:
    """Our jar, and the test classes, which have the driver and the stand-in."""
    jar = BUILD / "maven" / "ecpipe-hdfs-0.1.0.jar"
    sources = [MODULE / "pom.xml", *MODULE.glob("src/**/*.java")]
    if not jar.exists() or jar.stat().st_mtime < max(file.stat().st_mtime for file in sources):
        maven("-DskipTests", "package")
    return [jar, BUILD / "maven" / "test-classes"]


def resources_jar() -> Path:
    """The released jars have no webapps/, which the daemons look for, and no log configuration."""
    jar = BUILD / "itest-resources.jar"
    if not jar.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("log4j.properties", LOG4J)
            for name in ("", "hdfs/", "datanode/", "secondary/"):
                archive.writestr(f"webapps/{name}", "")
            for name in ("hdfs", "datanode", "secondary"):
                archive.writestr(f"webapps/{name}/WEB-INF/", "")
                archive.writestr(f"webapps/{name}/WEB-INF/web.xml", "<web-app/>\n")
    return jar


class Toolchain:
    """How to start a JVM with one release of Hadoop."""

    def __init__(self, version: str) -> None:
        require_tools()
        self.version = version
        with alone():
            self._jars = [resources_jar(), *hadoop_jars(version)]
            self._own = own_classes()
        self.archive = BUILD / f"classes-{version}.jsa"
        # Others may be about to make it, too.
        self.new_archive = BUILD / f"classes-{version}-{os.getpid()}.jsa"

    def java(self, main: str, *arguments: str | Path, heap: str = "160m",
             flags: Sequence[str] = (), folders: Sequence[Path] = ()) -> list[str]:
        """Class data sharing demands that the class path begins as it did for the archive; it ends
        with `folders`."""
        shared = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive.exists() else []
        class_path = ":".join(map(str, [*self._jars, *self._own, *folders]))
        return ["java", *JVM_FLAGS, *shared, f"-Xmx{heap}", *flags, "-cp", class_path, main,
                *map(str, arguments)]

    def java_that_dumps(self, main: str, *arguments: str | Path,
                        flags: Sequence[str] = ()) -> list[str]:
        """Writes `new_archive`, of the classes that it has loaded, when it ends."""
        return ["java", *JVM_FLAGS, f"-XX:ArchiveClassesAtExit={self.new_archive}", "-Xmx256m",
                *flags, "-cp", ":".join(map(str, self._jars)), main, *map(str, arguments)]
