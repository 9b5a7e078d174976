#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command: installs what is missing, builds, and runs every test. See run.py for what
# runs when; `tests/run.sh --help` for the options. ECPIPE_SKIP_DEPS=1 skips the installation.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ ${ECPIPE_SKIP_DEPS:-0} != 1 ]]; then
  "$repository/deploy/install-deps.sh" build run lab test hdfs package
  # One test needs it, and skips itself without it.
  "$repository/deploy/install-deps.sh" browser ||
    echo "run.sh: no browser could be installed; the test of the status page will be skipped" >&2
fi
exec python3 "$repository/tests/run.py" "$@"
