#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to a lost block rebuilt: installs, builds, starts a cluster on loopback and
# repairs a real file by every scheme. quickstart.py does what comes after the build.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
needed_mib=3072 # 0.75 GiB of data, 1.75 GiB of blocks, and room to repair

usage() {
  cat <<'USAGE'
Usage: deploy/quickstart.sh [--keep] [--hold] [--work-dir DIR]

Builds ECPipe and repairs a lost block of a real file by each scheme, on a cluster of 1 coordinator
and 15 helpers on this machine. Cleans up after itself, also on ctrl-C.
  --keep          keep the work directory: blocks, configs, logs
  --hold          leave the cluster running after the table, until ctrl-C
  --work-dir DIR  work there and keep it; its data file is used again the next time
                  (default: a temporary directory under ${TMPDIR:-/tmp})
ECPIPE_SKIP_DEPS=1 skips the installation of packages.
USAGE
}

die() {
  echo "quickstart: $*" >&2
  exit 1
}

# Asked before anything is installed or built, so that the answer does not come after minutes.
check_free_space() {
  local free_mib
  free_mib=$(df --output=avail --block-size=1M "$1" | tail -n 1 | tr -d ' ')
  if ((free_mib < needed_mib)); then
    die "$1 has $free_mib MiB free and $needed_mib MiB are needed: free some, or name another" \
      "place with --work-dir DIR or TMPDIR"
  fi
}

build() {
  cd "$repository"
  local log=build/quickstart-build.log
  mkdir -p build
  echo "==> Building ECPipe (preset release; output in $log)"
  if ! { cmake --preset release &&
    cmake --build --preset release --target ecpipe-coordinator ecpipe-helper ecpipe; } \
    >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    die "the build failed"
  fi
}

main() {
  local work_dir="" options=()
  while (($# > 0)); do
    case $1 in
      --keep | --hold) options+=("$1") ;;
      --work-dir)
        (($# > 1)) || die "--work-dir needs a directory"
        work_dir=$2
        shift
        ;;
      -h | --help) usage && exit 0 ;;
      *) usage >&2 && die "unknown argument: $1" ;;
    esac
    shift
  done
  if [[ -n $work_dir ]]; then
    mkdir -p "$work_dir"
    options+=(--work-dir "$(cd "$work_dir" && pwd)")
  fi
  check_free_space "${work_dir:-${TMPDIR:-/tmp}}"
  if [[ ${ECPIPE_SKIP_DEPS:-0} != 1 ]]; then
    "$repository/deploy/install-deps.sh" build run
  fi
  build
  exec python3 "$repository/deploy/quickstart.py" "${options[@]}"
}

main "$@"
