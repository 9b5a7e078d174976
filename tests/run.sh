#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command: installs what is missing, builds, and runs every test that a change must
# pass. See run.py for what runs when; `tests/run.sh --help` for the options, which installs
# nothing. ECPIPE_SKIP_DEPS=1 skips the installation.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for argument in "$@"; do
  case $argument in
    -h | --help) ECPIPE_SKIP_DEPS=1 ;;
  esac
done
if [[ ${ECPIPE_SKIP_DEPS:-0} != 1 ]]; then
  "$repository/deploy/install-deps.sh" build run lab test hdfs package
  # Tests that need these skip themselves where they cannot be had.
  for group in containers browser; do
    "$repository/deploy/install-deps.sh" "$group" ||
      echo "run.sh: goes on without the packages of the group $group" >&2
  done
fi
command -v python3 >/dev/null || {
  echo "run.sh: needs python3, which deploy/install-deps.sh installs" >&2
  exit 1
}
exec python3 "$repository/tests/run.py" "$@"
