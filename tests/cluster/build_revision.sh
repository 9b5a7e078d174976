#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the programs of another revision, for versions_test.py --old-bin DIR/build/release/bin.
set -eu
usage="Usage: $0 REVISION DIR"
if [ "${1:-}" = --help ]; then
  echo "$usage"
  exit 0
fi
if [ $# -ne 2 ]; then
  echo "$usage" >&2
  exit 2
fi
git worktree add --detach "$2" "$1"
cd "$2"
cmake --preset release
cmake --build --preset release --target ecpipe-coordinator ecpipe-helper ecpipe
echo "the programs are in $2/build/release/bin; 'git worktree remove --force $2' removes them"
