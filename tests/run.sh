#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command: installs what is missing, builds, and runs every test. See run.py for what
# runs when; `tests/run.sh --help` for the options. ECPIPE_SKIP_DEPS=1 skips the installation.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ ${ECPIPE_SKIP_DEPS:-0} != 1 ]]; then
  "$repository/deploy/install-deps.sh" build run lab test hdfs package
  # Tests that need these skip themselves where they cannot be had.
  for group in containers browser; do
    "$repository/deploy/install-deps.sh" "$group" ||
      echo "run.sh: goes on without the packages of the group $group" >&2
  done
fi
exec python3 "$repository/tests/run.py" "$@"
