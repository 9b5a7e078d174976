#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes Debian packages, and an archive for other systems, from the programs of a release build.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'USAGE'
Usage: deploy/make-packages.sh [--build DIR] [--output DIR] [--revision NUMBER]
                               [--contact "NAME <ADDRESS>"] [--fast]

Makes the packages ecpipe-coordinator, ecpipe-helper, ecpipe, libecpipe0, libecpipe-dev and
ecpipe-qfs, those with their debug symbols (-dbgsym), and ecpipe-VERSION-Linux.tar.gz. Where Maven
has made the jar of integrations/hdfs, ecpipe-hdfs as well. Needs `cmake --preset release` to have
been built.
  --build DIR        the build (default: build/release)
  --output DIR       where the packages go (default: DIR/packages/out)
  --revision NUMBER  the Debian revision: VERSION-NUMBER (default: 1)
  --contact "NAME <ADDRESS>"  who answers for these packages (default: an address that is none)
  --fast             for tests: little compression, no debug symbols, no archive, and manual pages
                     as they are there
USAGE
}

die() {
  echo "make-packages: $*" >&2
  exit 1
}

# The last change, so that the same sources give the same packages.
changed_at() {
  git -C "$repository" log -1 --format=%ct 2>/dev/null ||
    stat --format=%Y "$repository/CMakeLists.txt"
}

# NAME: what the build says of it.
setting() {
  sed -n "s/^set($1 \"\(.*\)\")$/\1/p" "$build/CPackConfig.cmake"
}

make_changelog() {
  cat <<CHANGELOG | gzip -9n >"$made/changelog.Debian.gz"
ecpipe ($version-$revision) unstable; urgency=medium

  * Packages of ECPipe $version.

 -- $contact  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
CHANGELOG
}

# FOLDER PAGE SUMMARY PROGRAM [COMMAND]
make_page() {
  help2man --no-info --section=1 --manual="ECPipe" --source="ECPipe" --name="$3" \
    --version-string="$version" --help-option="${5:-} --help" "$4" |
    sed "s|${4%/*}/||g" | gzip -9n >"$made/man/$1/$2.1.gz" || die "no manual page of $2"
}

make_documents() {
  local name command completion=$repository/deploy/packages/bash_completion.py
  rm -rf "$made/man" "$made/completions"
  mkdir -p "$made/completions"
  for name in ecpipe ecpipe-coordinator ecpipe-helper; do
    [[ -x $build/bin/$name ]] || die "$build/bin/$name is missing: cmake --build --preset release"
    mkdir -p "$made/man/$name"
    "$completion" "$build/bin/$name" >"$made/completions/$name"
  done
  make_page ecpipe-coordinator{,} "plans repairs of erasure-coded blocks" \
    "$build/bin/ecpipe-coordinator"
  make_page ecpipe-helper{,} "serves a node's blocks to repairs" "$build/bin/ecpipe-helper"
  make_page ecpipe{,} "repairs erasure-coded blocks" "$build/bin/ecpipe"
  for command in $("$completion" "$build/bin/ecpipe" --commands); do
    make_page ecpipe "ecpipe-$command" "the command $command of ecpipe" "$build/bin/ecpipe" \
      "$command"
  done
  cp "$repository/deploy/make-certs.sh" "$scratch/ecpipe-make-certs"
  make_page ecpipe ecpipe-make-certs "makes a CA and certificates" "$scratch/ecpipe-make-certs"
}

# CPack 3.25 leaves out the documents of a package of debug symbols, and writes the build folder
# into its sums. Debian calls the file .deb.
mend_symbols() {
  local tree=$scratch/symbols name
  name=$(dpkg-deb --field "$1" Package)
  rm -rf "$tree"
  dpkg-deb --raw-extract "$1" "$tree"
  mkdir -p "$tree/usr/share/doc"
  ln -s "${name%-dbgsym}" "$tree/usr/share/doc/$name"
  (cd "$tree" && find usr -type f -exec md5sum {} +) >"$tree/DEBIAN/md5sums"
  dpkg-deb --root-owner-group --build "$tree" "${1%.ddeb}.deb" >"$scratch/dpkg-deb.log"
}

run_cpack() {
  (cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -B "$scratch" "$@") \
    >"$scratch/cpack.log" 2>&1 || { cat "$scratch/cpack.log" >&2 && die "cpack failed"; }
}

make_packages() {
  local components="coordinator;helper;command;library;development;qfs"
  local jar=("$repository"/build/hdfs/maven/ecpipe-hdfs-*.jar)
  if [[ -e ${jar[0]} ]]; then
    components+=";hdfs"
  else
    echo "make-packages: without ecpipe-hdfs: Maven has not made its jar" >&2
  fi
  local options=(-D CPACK_DEBIAN_PACKAGE_RELEASE="$revision" -D CPACK_COMPONENTS_ALL="$components"
    -D CPACK_PACKAGE_CONTACT="$contact")
  if [[ $fast == yes ]]; then
    options+=(-D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -D CPACK_DEBIAN_DEBUGINFO_PACKAGE=OFF
      -D CPACK_STRIP_FILES=ON)
  else
    run_cpack -G TGZ -D CPACK_STRIP_FILES=ON
    mv "$scratch"/ecpipe-*.tar.gz "$output"
  fi
  # /etc and /usr in one package: files are installed below DESTDIR, as their final names.
  run_cpack -G DEB -D CPACK_SET_DESTDIR=ON -D CPACK_INSTALL_PREFIX=/usr "${options[@]}"
  local package
  for package in "$scratch"/*.ddeb; do
    [[ ! -e $package ]] || mend_symbols "$package"
  done
  mv "$scratch"/*.deb "$output"
}

main() {
  build=$repository/build/release output="" revision=1 contact="" fast=no
  while (($#)); do
    case $1 in
      --build) build=$(cd "${2:?--build needs a directory}" && pwd) && shift ;;
      --output) output=${2:?--output needs a directory} && shift ;;
      --revision) revision=${2:?--revision needs a number} && shift ;;
      --contact) contact=${2:?--contact needs "NAME <ADDRESS>"} && shift ;;
      --fast) fast=yes ;;
      -h | --help) usage && exit 0 ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  local tool
  for tool in cpack help2man dpkg-shlibdeps; do
    command -v "$tool" >/dev/null || die "no $tool here: deploy/install-deps.sh build package"
  done
  [[ -e $build/CPackConfig.cmake ]] || die "$build is no build: cmake --preset release"
  made=$build/packages
  version=$(setting CPACK_PACKAGE_VERSION)
  contact=${contact:-$(setting CPACK_PACKAGE_CONTACT)}
  SOURCE_DATE_EPOCH=$(changed_at)
  export SOURCE_DATE_EPOCH
  umask 022
  output=${output:-$made/out}
  mkdir -p "$output"
  output=$(cd "$output" && pwd)
  scratch=$(mktemp -d "$made/cpack-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  make_changelog
  [[ $fast == yes && -d $made/man ]] || make_documents
  make_packages
  ls "$output"
}

main "$@"
