#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what ECPipe needs from Debian 12's own archive. Quickstart, tests and CI all call this
# one script. When nothing is missing it only asks dpkg and ends.
set -euo pipefail

# Compilers and libraries.
build_packages=(
  g++ cmake ninja-build pkg-config git ca-certificates python3
  libisal-dev libhiredis-dev
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev libssl-dev
  libtomlplusplus-dev libcli11-dev libsqlite3-dev libcurl4-openssl-dev zlib1g-dev
  nlohmann-json3-dev prometheus-cpp-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
# What the daemons, the quickstart, make-certs.sh and the tests run. iproute2: links with a rate.
run_packages=(redis-server python3 procps openssl iproute2)
# Plots for bench/lab.py, disks that hang for its chaos; ssh for bench/cluster.py; XFS to cut off.
lab_packages=(python3-matplotlib openssh-client bindfs xfsprogs)
# What only tests need: an sshd of their own; clang for all presets but `release`, with libFuzzer,
# a symbolizer for `asan`, and clang-tidy; a cache for the compilers; Jerasure, whose parities
# ECPipe's are compared with; SciPy, whose linear programs say how good a plan can be; a Prometheus
# for the alerts; abidiff; processors with fewer instruction sets.
test_packages=(openssh-server clang-19 clang-tidy-19 libclang-rt-19-dev llvm-19 ccache
  libjerasure2 python3-scipy prometheus abigail-tools qemu-user)
# What makes Debian packages, and what tests them in a Debian of their own, with a systemd.
package_packages=(help2man lintian debootstrap systemd-container)
# What builds and runs the image of deploy/containers, and lets its containers find each other.
containers_packages=(podman runc podman-compose golang-github-containernetworking-plugin-dnsname)
# What shows the status page to its test, and a font for it to write with.
browser_packages=(chromium fonts-dejavu-core)
# The Java module in integrations/hdfs and its tests.
hdfs_packages=(openjdk-17-jdk-headless maven)
# What tests/arm64/codec_test.sh compiles with, and runs in.
arm64_packages=(g++-aarch64-linux-gnu qemu-user)

usage() {
  cat <<'USAGE'
Usage: deploy/install-deps.sh [--list | --missing] [build] [run] [lab] [test] [package]
                              [containers] [browser] [hdfs] [arm64]

Installs the Debian packages of the named groups (default: all but the last five).
  --list     print the packages and install nothing
  --missing  the same, of those that are not installed
Needs root, or sudo, only when a package is missing.
USAGE
}

die() {
  echo "install-deps: $*" >&2
  exit 1
}

# Prints those of its arguments that are not fully installed.
missing_of() {
  local installed
  installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
    awk '$2 == "installed" { print $1 }' || true)
  printf '%s\n' "$@" | grep --fixed-strings --line-regexp --invert-match \
    --file=<(printf '%s\n' "$installed") || true
}

policy_file=/usr/sbin/policy-rc.d
our_policy=no

remove_our_policy() {
  if [[ $our_policy == yes ]]; then
    rm -f "$policy_file"
  fi
}

# Debian starts a package's service as soon as it is installed. We want the programs redis-server
# and sshd and start our own instances on ports of our own; system-wide ones would only be in the
# way, and a door that nobody asked for. Debian asks policy-rc.d before it starts anything; 101
# means "do not".
forbid_service_start() {
  if [[ -e $policy_file ]]; then
    return  # the machine's owner has a policy already, and it stays in force
  fi
  trap remove_our_policy EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  our_policy=yes
  printf '#!/bin/sh\nexit 101\n' >"$policy_file"
  chmod 755 "$policy_file"
}

# Without this the service would start at the next boot. Only done for one whose package this script
# has just installed: one that was there before belongs to somebody.
disable_service() {
  update-rc.d "$1" disable >/dev/null 2>&1 ||
    echo "install-deps: could not disable the service $1; it may start at boot" >&2
}

install_packages() {
  local apt=(apt-get --quiet --yes -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3)
  export DEBIAN_FRONTEND=noninteractive
  forbid_service_start
  # A third-party source that is out of reach fails the update, yet Debian's own lists may be
  # fine: the install decides.
  "${apt[@]}" update || echo "install-deps: apt-get update had errors, going on" >&2
  "${apt[@]}" install --no-install-recommends "$@" ||
    die "apt-get could not install: $* (its message is above)"
}

main() {
  local packages=() list=no argument
  for argument in "$@"; do
    case $argument in
      build) packages+=("${build_packages[@]}") ;;
      run) packages+=("${run_packages[@]}") ;;
      lab) packages+=("${lab_packages[@]}") ;;
      test) packages+=("${test_packages[@]}") ;;
      package) packages+=("${package_packages[@]}") ;;
      containers) packages+=("${containers_packages[@]}") ;;
      browser) packages+=("${browser_packages[@]}") ;;
      hdfs) packages+=("${hdfs_packages[@]}") ;;
      arm64) packages+=("${arm64_packages[@]}") ;;
      --list | --missing) list=${argument#--} ;;
      -h | --help) usage && exit 0 ;;
      *) usage >&2 && die "unknown argument: $argument" ;;
    esac
  done
  if [[ ${#packages[@]} -eq 0 ]]; then
    packages=("${build_packages[@]}" "${run_packages[@]}" "${lab_packages[@]}"
      "${test_packages[@]}")
  fi
  if [[ $list == list ]]; then
    printf '%s\n' "${packages[@]}"
    exit 0
  fi
  { command -v dpkg-query && command -v apt-get; } >/dev/null ||
    die "this needs Debian 12 or a system with apt; elsewhere install: ${packages[*]}"

  local missing
  mapfile -t missing < <(missing_of "${packages[@]}")
  if [[ $list == missing ]]; then
    ((${#missing[@]} == 0)) || printf '%s\n' "${missing[@]}"
    exit 0
  fi
  if [[ ${#missing[@]} -eq 0 ]]; then
    echo "install-deps: all ${#packages[@]} packages are installed"
    exit 0
  fi
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null || die "must run as root (no sudo here) to install: ${missing[*]}"
    echo "install-deps: sudo is needed to install: ${missing[*]}"
    exec sudo -- "$BASH" "${BASH_SOURCE[0]}" "$@"
  fi

  echo "install-deps: installing ${missing[*]}"
  install_packages "${missing[@]}"
  if [[ " ${missing[*]} " == *" redis-server "* ]]; then
    disable_service redis-server
  fi
  if [[ " ${missing[*]} " == *" openssh-server "* ]]; then
    disable_service ssh
  fi
}

main "$@"
