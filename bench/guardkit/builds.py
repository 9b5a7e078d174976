# SPDX-License-Identifier: Apache-2.0
"""Two revisions of a repository, each in a clone of its own, with the micro-benchmarks built.

The clones take their objects from the repository and leave it as it is. In a folder that is kept a
second run compiles only what has changed.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from labkit.process import LabError

from .bounded import run_group

GIT_SECONDS = 300.0
CONFIGURE_SECONDS = 300.0
BUILD_SECONDS = 3600.0
WORKING_TREE = "."

# What is measured: programs that are nothing but google-benchmark.
USES_GOOGLE_BENCHMARK = re.compile(r"^#include <benchmark/benchmark\.h>", re.MULTILINE)
# A snapshot needs an author; nobody sees it outside of the clone.
AUTHOR = ("-c", "user.name=guard", "-c", "user.email=guard@localhost")


@dataclass(frozen=True)
class Build:
    """Where the programs of one side are, and what they were built from."""

    commit: str
    bin_dir: Path

    def programs(self) -> dict[str, Path]:
        return {path.name: path for path in sorted(self.bin_dir.glob("*_bench"))}


def resolve(repository: Path, revision: str) -> str:
    try:
        return run_group(["git", "-C", repository, "rev-parse", "--verify", "--quiet",
                          "--end-of-options", f"{revision}^{{commit}}"], GIT_SECONDS).strip()
    except LabError:
        raise LabError(f"{repository} has no revision {revision}") from None


def check_out(repository: Path, revision: str, clone: Path) -> str:
    """Makes `clone` a clone at `revision` and returns the commit. Files that do not differ keep
    their times, so that they are not compiled again."""
    repository = repository.resolve()
    if not (clone / ".git").exists():
        run_group(["git", "clone", "--quiet", "--shared", "--no-checkout", repository, clone],
                  GIT_SECONDS)
    git = ["git", "-C", clone]
    origin = run_group([*git, "config", "remote.origin.url"], GIT_SECONDS).strip()
    if Path(origin) != repository:
        raise LabError(f"{clone} is a clone of {origin}; give another --work-dir")
    if revision == WORKING_TREE:
        commit = snapshot(repository, clone)
    else:
        commit = resolve(repository, revision)
    run_group([*git, "checkout", "--quiet", "--force", "--detach", commit], GIT_SECONDS)
    run_group([*git, "clean", "--quiet", "--force", "-d"], GIT_SECONDS)
    return commit


def snapshot(repository: Path, clone: Path) -> str:
    """A commit of the repository's files as they are, ignored ones left out. It and its index live
    in the clone only."""
    git = ["git", *AUTHOR, f"--git-dir={clone / '.git'}", f"--work-tree={repository}"]
    environment = {"GIT_INDEX_FILE": str(clone / ".git" / "snapshot-index")}

    def in_tree(*arguments: str) -> str:
        return run_group([*git, *arguments], GIT_SECONDS, cwd=repository,
                         environment=environment).strip()

    in_tree("add", "--all")
    parent = resolve(repository, "HEAD")
    return in_tree("commit-tree", in_tree("write-tree"), "-p", parent, "-m", "working tree")


def bench_targets(clone: Path) -> list[str]:
    return sorted(path.stem for path in (clone / "bench").glob("*_bench.cc")
                  if USES_GOOGLE_BENCHMARK.search(path.read_text(encoding="utf-8")))


def build(clone: Path, preset: str, jobs: int) -> Path:
    """Builds all micro-benchmarks and nothing else; the folder of the programs."""
    targets = bench_targets(clone)
    if not targets:
        raise LabError(f"the revision in {clone} has no micro-benchmarks")
    configure = ["cmake", "--preset", preset]
    if shutil.which("ccache"):
        configure += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    run_group(configure, CONFIGURE_SECONDS, cwd=clone)
    bin_dir = clone / "build" / preset / "bin"
    # Programs of a revision that was here before.
    for program in bin_dir.glob("*_bench"):
        if program.name not in targets:
            program.unlink()
    run_group(["cmake", "--build", "--preset", preset, "-j", str(jobs), "--target", *targets],
              BUILD_SECONDS, cwd=clone)
    return bin_dir


def build_both(repository: Path, revisions: tuple[str, str], folder: Path, preset: str, jobs: int,
               ) -> tuple[Build, Build]:
    """Checks both out before it builds, so that nothing is measured that came after the start."""
    # Paths of one length: they end up in the programs.
    clones = [folder.resolve() / side for side in ("a", "b")]
    commits = [check_out(repository, revision, clone)
               for revision, clone in zip(revisions, clones)]
    built = []
    for side, revision, commit, clone in zip("AB", revisions, commits, clones):
        print(f"{side}: building {revision} ({commit[:12]})", flush=True)
        built.append(Build(commit, build(clone, preset, jobs)))
    return built[0], built[1]
