#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to a lost block rebuilt: installs, builds, starts a cluster and repairs a
# real file's block by every scheme. quickstart.py does what comes after the build.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
programs=(ecpipe-coordinator ecpipe-helper ecpipe)
build_log=build/quickstart-build.log
build_core_minutes=5
build_pid=""
pause_pid=""

usage() {
  cat <<'USAGE'
Usage: deploy/quickstart.sh [--loopback] [--quick] [--keep] [--hold] [--work-dir DIR]

Installs what is missing, builds ECPipe, and repairs a lost block of a real file by each scheme, on
a cluster of 1 coordinator and 15 helpers on this machine, behind links of 200 Mb/s. Then it shows
a degraded read, a repair whose helper is killed, and the recovery of the lost node. Under a minute
once it is built; cleans up after itself, also on ctrl-C.
  --loopback      no limits: what the schemes cost the CPU; only the table
  --quick         a tenth of the data: rougher ratios, in half the time
  --keep          keep the work directory: blocks, configs, logs
  --hold          leave the cluster running at the end, until ctrl-C
  --work-dir DIR  work there and keep it; its data file is used again the next time
                  (default: a temporary directory under ${TMPDIR:-/tmp})
Without root it does the same in a user namespace or, where there is none, on loopback with the
programs' own limits. ECPIPE_SKIP_DEPS=1 skips the installation of packages.
USAGE
}

die() {
  echo "quickstart: $*" >&2
  exit 1
}

# A trap waits until the command in the foreground has ended. For apt-get that is as it should be:
# it takes ctrl-C itself, and leaves the packages in order. The build is in the background.
end_on_signals() {
  trap 'leave INT 130' INT
  trap 'leave TERM 143' TERM
  trap 'leave HUP 129' HUP
}

leave() {
  trap '' INT TERM HUP
  if [[ -n $build_pid ]]; then
    kill -TERM -- "-$build_pid" "$pause_pid" 2>/dev/null || true
    wait "$build_pid" 2>/dev/null || true
  fi
  echo >&2
  echo "quickstart: ended by SIG$1" >&2
  exit "$2"
}

# Asked before anything is installed or built, so that the answer does not come after minutes.
check_free_space() {
  local folder=$1 needed_mib=$2 free_mib
  [[ -d $folder && -w $folder ]] ||
    die "cannot write in $folder: name another place with --work-dir DIR or TMPDIR"
  free_mib=$(df --output=avail --block-size=1M "$folder" | tail -n 1 | tr -d ' ')
  if ((free_mib < needed_mib)); then
    die "$folder has $free_mib MiB free and $needed_mib MiB are needed: free some, or name" \
      "another place with --work-dir DIR or TMPDIR"
  fi
}

install() {
  local missing
  mapfile -t missing < <("$repository/deploy/install-deps.sh" --missing build run)
  if ((${#missing[@]} > 0)); then
    echo "==> Installing ${#missing[@]} Debian packages and what they need; they stay installed."
    echo "    1 to 3 minutes, depending on the network"
  fi
  "$repository/deploy/install-deps.sh" build run
}

# So that a build of somebody else, which may only be read, serves as well.
is_built() {
  [[ -f build/release/build.ninja ]] &&
    ninja -C build/release -n "${programs[@]}" 2>/dev/null | grep --quiet 'no work to do'
}

build() {
  cd "$repository"
  if is_built; then
    return
  fi
  { mkdir -p build && : >"$build_log"; } 2>/dev/null ||
    die "ECPipe has to be built and $repository/build cannot be written: run this as its owner"
  local cores minutes start=$SECONDS
  cores=$(nproc)
  minutes=$(((build_core_minutes + cores - 1) / cores))
  echo "==> Building ECPipe on $cores cores: about $minutes minutes"
  echo "    what the build says goes to $build_log"
  # A process group of its own, which an interrupt ends whole.
  set -m
  { cmake --preset release && cmake --build --preset release --target "${programs[@]}"; } \
    >"$build_log" 2>&1 </dev/null &
  build_pid=$!
  set +m
  show_build
  local code=0
  wait "$build_pid" || code=$?
  build_pid=""
  if ((code != 0)); then
    tail -n 40 "$build_log" >&2
    die "the build failed; the end of $build_log is above"
  fi
  echo "    built in $((SECONDS - start)) s"
}

# The build's own count, [12/345]: rewritten in place on a terminal, else a line now and then.
show_build() {
  local at seconds=0 line_end=$'\n' every=15
  [[ -t 1 ]] && line_end=$'\r' every=1
  while kill -0 "$build_pid" 2>/dev/null; do
    # In the background, because a trap interrupts `wait` only.
    sleep 1 &
    pause_pid=$!
    wait "$pause_pid" || true
    ((++seconds % every == 0)) || continue
    at=$(tail -c 4096 "$build_log" | grep -o '^\[[0-9]*/[0-9]*\]' | tail -n 1 || true)
    [[ -z $at ]] || printf '    %s%s' "$at" "$line_end"
  done
}

main() {
  local work_dir="" options=() needed_mib=2048 # the file, 1.4 times as much of blocks, and repairs
  while (($# > 0)); do
    case $1 in
      --keep | --hold | --loopback) options+=("$1") ;;
      --quick) options+=("$1") && needed_mib=400 ;;
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
    work_dir=$(cd "$work_dir" && pwd)
    options+=(--work-dir "$work_dir")
  fi
  check_free_space "${work_dir:-${TMPDIR:-/tmp}}" "$needed_mib"
  end_on_signals
  if [[ ${ECPIPE_SKIP_DEPS:-0} != 1 ]]; then
    install
  fi
  build
  exec python3 "$repository/deploy/quickstart.py" "${options[@]}"
}

main "$@"
