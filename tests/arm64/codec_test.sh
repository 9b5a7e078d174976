#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The codec's unit tests for arm64, cross-compiled and run under an emulator. By hand:
#   deploy/install-deps.sh arm64 && tests/arm64/codec_test.sh build/arm64
# Libraries are fetched from the archive that this machine's apt uses, and unpacked; nothing is
# installed. What qemu does not show: the speed, and the memory order of real cores.
set -euo pipefail

[[ ${1:-} != --help ]] || { echo "usage: $0 BUILD_DIRECTORY" && exit 0; }
[[ $# -eq 1 ]] || { echo "usage: $0 BUILD_DIRECTORY" >&2 && exit 2; }
repository=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
build=$(cd "$1" && pwd)
compiler=aarch64-linux-gnu-g++
root=$build/root
packages=(libisal2 libisal-dev libabsl20220623 libabsl-dev libgtest-dev libgmock-dev libssl3
  libssl-dev)

fetch() {
  [[ ! -e $build/fetched ]] || return 0
  mkdir -p "$root" "$build"/{debs,state/lists/partial,cache/archives/partial}
  : >"$build/status"
  local apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64
    -o Dir::State="$build/state" -o Dir::State::status="$build/status" -o Dir::Cache="$build/cache")
  "${apt[@]}" update
  (cd "$build/debs" && "${apt[@]}" download "${packages[@]}")
  local deb
  for deb in "$build"/debs/*.deb; do dpkg-deb --extract "$deb" "$root"; done
  # Headers that are the same everywhere.
  ln -sfn /usr/include/nlohmann "$root/usr/include/nlohmann"
  touch "$build/fetched"
}

compile() {
  local object=$build/$(tr / _ <<<"$1").o
  [[ ! $object -nt $1 ]] || return 0  # headers are not looked at: a new one wants a new directory
  "$compiler" -std=c++20 -O1 -c "$repository/$1" -o "$object" -I"$repository/src" \
    -I"$repository/tests" -isystem "$root/usr/include" \
    -isystem "$root/usr/include/aarch64-linux-gnu" \
    -DGOLDEN_PARITIES="\"$repository/tests/unit/codec/golden_parities.txt\""
}
export -f compile
export build repository compiler root

fetch
cd "$repository"
# Configuration, metrics and the daemons' parts need libraries that codes do not.
sources=(src/codec/*.cc src/model/*.cc src/model/*/*.cc src/base/*.cc src/base/bytes/*.cc
  src/base/process/log.cc tests/unit/codec/*.cc)
printf '%s\n' "${sources[@]}" | xargs -P"$(nproc)" -I{} bash -c 'set -e; compile {}'
libraries=("$root"/usr/lib/aarch64-linux-gnu/libabsl_*.so)
"$compiler" "$build"/*.o -o "$build/codec_unit_test" -L"$root/usr/lib/aarch64-linux-gnu" -lgmock \
  -lgtest_main -lgtest -lisal -lcrypto "${libraries[@]}" \
  -Wl,-rpath-link,"$root/usr/lib/aarch64-linux-gnu"
LD_LIBRARY_PATH= qemu-aarch64 -L /usr/aarch64-linux-gnu \
  -E LD_LIBRARY_PATH="$root/usr/lib/aarch64-linux-gnu" "$build/codec_unit_test" --gtest_brief=1
