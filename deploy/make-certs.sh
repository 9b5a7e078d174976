#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a CA for tests and private clusters, and certificates that name a node and its roles.
set -euo pipefail

usage() {
  cat <<USAGE
Usage: ${0##*/} [--days DAYS] DIRECTORY NAME=ROLE[,ROLE|,storage:ID|,dns:HOST|,ip:ADDRESS]...
       ${0##*/} --renew [--within DAYS] [--days DAYS] DIRECTORY
       ${0##*/} --revoke DIRECTORY NAME...

Makes a CA, DIRECTORY/ca.pem and ca.key, unless it exists, and for each NAME a certificate
DIRECTORY/NAME.pem with its key NAME.key, signed by the CA. Roles: coordinator, helper, requestor,
operator. The NAME of a helper is its node_id. storage:ID: the helper is beside the node of
a storage system with this id (HDFS: the DataNode's UUID; QFS: see docs/operations.md). dns:HOST,
ip:ADDRESS: where others reach it, several if need be. Programs of ECPipe do not look at these; who
reads a daemon's pages (a browser, curl, Prometheus) does, and else trusts any node. Existing
certificates of these names are replaced, each file at once; running programs use the new files
within two seconds.
  --days DAYS   days that the new certificates are valid (default 90; the CA is valid 3650 days)
  --renew       make each certificate of DIRECTORY anew that ends within DAYS (default 30), with the
                same names and roles, and a new key; print the NAME of each. Revoked ones
                and those that name no role are left alone. Exit code, after all others were
                renewed: 1 when a file is no certificate, 3 when the CA itself ends within DAYS,
                which nothing renews
  --revoke      add all certificates of each NAME to DIRECTORY/crl.pem, the list of revoked ones for
                [tls] crl: NAME.pem, and those that it has replaced and that have not ended, which
                DIRECTORY/replaced keeps. Copy the list to all nodes, which heed it within two
                seconds; make NAME=ROLE afterwards for who is to go on

  ${0##*/} certs head=coordinator,ip:10.0.0.1 node-1=helper,dns:node-1.example,ip:10.0.0.11 \\
    ann=operator app=requestor

Whoever has ca.key can make a certificate for any name and role: keep it off the nodes.
USAGE
}

die() {
  echo "make-certs: $*" >&2
  exit 1
}

# `openssl` writes notes to standard error also when all is well: shown only when it fails.
quietly() {
  local said
  said=$("$@" 2>&1) || die "$* failed: $said"
}

new_key() {
  quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
  chmod 600 "$1"
}

make_ca() {
  new_key "$scratch/ca.key"
  quietly openssl req -x509 -new -key "$scratch/ca.key" -sha256 -days 3650 -subj "/CN=ECPipe CA" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" \
    -addext "keyUsage=critical,keyCertSign,cRLSign" -out "$scratch/ca.pem"
  mv "$scratch/ca.key" "$directory/ca.key"
  mv "$scratch/ca.pem" "$directory/ca.pem"
}

# The alternative names: who it is, and what it may do, which ECPipe reads; and where it is.
names_of() {
  local name=$1 roles=$2 role names
  names="URI:ecpipe:node:$name"
  for role in ${roles//,/ }; do
    case $role in
      coordinator | helper | requestor | operator) names+=",URI:ecpipe:role:$role" ;;
      storage:?*) names+=",URI:ecpipe:$role" ;;
      dns:?*) names+=",DNS:${role#dns:}" ;;
      ip:?*) names+=",IP:${role#ip:}" ;;
      *) die "$name: unknown role '$role'; known are coordinator, helper, requestor, operator" ;;
    esac
  done
  printf '%s' "$names"
}

# A key that was stolen stays good until its certificate ends or is revoked: so long, and for that,
# a certificate is kept. A name has no "=".
keep_replaced() {
  local name=$1 serial file
  for file in "$directory/replaced/$name="*.pem; do
    [[ ! -e $file ]] || is_in_force "$file" || rm "$file"
  done
  file=$directory/$name.pem
  if [[ -e $file ]] && is_in_force "$file"; then
    serial=$(openssl x509 -in "$file" -noout -serial)
    mkdir -p "$directory/replaced"
    cp "$file" "$scratch/replaced"
    mv "$scratch/replaced" "$directory/replaced/$name=${serial#serial=}.pem"
  fi
}

# Whether file $1 is a certificate that has not ended and is not revoked.
is_in_force() {
  openssl x509 -in "$1" -noout -checkend 0 >/dev/null 2>&1 && ! is_revoked "$1"
}

make_certificate() {
  local name=$1 roles=$2 names
  names=$(names_of "$name" "$roles")
  new_key "$scratch/$name.key"
  quietly openssl req -new -key "$scratch/$name.key" -subj "/CN=$name" -out "$scratch/$name.csr"
  printf '%s\n' "basicConstraints=critical,CA:FALSE" "keyUsage=critical,digitalSignature" \
    "extendedKeyUsage=serverAuth,clientAuth" "subjectAltName=$names" >"$scratch/$name.ext"
  quietly openssl x509 -req -in "$scratch/$name.csr" -CA "$directory/ca.pem" \
    -CAkey "$directory/ca.key" -sha256 -days "$days" -set_serial "0x$(openssl rand -hex 16)" \
    -extfile "$scratch/$name.ext" -out "$scratch/$name.pem"
  keep_replaced "$name"
  mv "$scratch/$name.key" "$directory/$name.key"
  mv "$scratch/$name.pem" "$directory/$name.pem"
}

# openssl's own book of what is revoked, beside the CA: each list has all that was revoked before.
revoke() {
  local name file book=$directory/revoked.txt
  [[ -e $book ]] || : >"$book"
  printf '%s\n' "[ca]" "default_ca=own" "[own]" "database=$book" "default_md=sha256" \
    "unique_subject=no" >"$scratch/ca.cnf"
  for name in "$@"; do
    [[ -e $directory/$name.pem ]] || die "there is no certificate $directory/$name.pem"
    for file in "$directory/$name.pem" "$directory/replaced/$name="*.pem; do
      [[ -e $file ]] && ! is_revoked "$file" || continue
      quietly openssl ca -batch -config "$scratch/ca.cnf" -cert "$directory/ca.pem" \
        -keyfile "$directory/ca.key" -revoke "$file"
    done
  done
  quietly openssl ca -batch -config "$scratch/ca.cnf" -cert "$directory/ca.pem" \
    -keyfile "$directory/ca.key" -gencrl -crldays 3650 -out "$scratch/crl.pem"
  mv "$scratch/crl.pem" "$directory/crl.pem"
}

# Whether the certificate of file $1 ends within $within days.
ends_soon() {
  ! openssl x509 -in "$1" -noout -checkend "$((within * 86400))" >/dev/null
}

# NAME=ROLE,... as make_certificate() takes it, from the names that it has put into file $1.
roles_in() {
  openssl x509 -in "$1" -noout -ext subjectAltName | tr ',' '\n' |
    sed -n 's/^ *URI:ecpipe:role:/,/p; s/^ *URI:ecpipe:storage:/,storage:/p
      s/^ *DNS:/,dns:/p; s/^ *IP Address:/,ip:/p' | tr -d '\n' | cut -c2-
}

is_revoked() {
  local serial
  [[ -e $directory/revoked.txt ]] || return 1
  serial=$(openssl x509 -in "$1" -noout -serial)
  grep -q "^R.*[[:space:]]${serial#serial=}[[:space:]]" "$directory/revoked.txt"
}

renew() {
  local file name roles damaged=no
  [[ -e $directory/ca.pem && -e $directory/ca.key ]] || die "there is no CA in $directory"
  for file in "$directory"/*.pem; do
    name=$(basename "$file" .pem)
    [[ $name != ca && $name != crl ]] || continue
    if ! roles=$(roles_in "$file"); then
      echo "make-certs: $file is no certificate" >&2
      damaged=yes
      continue
    fi
    if [[ ! ,$roles, =~ ,(coordinator|helper|requestor|operator), ]]; then
      echo "make-certs: $file names no role: it is not of this command's making, and left alone" >&2
      continue
    fi
    if ends_soon "$file" && ! is_revoked "$file"; then
      make_certificate "$name" "$roles"
      echo "$name"
    fi
  done
  if ends_soon "$directory/ca.pem"; then
    echo "make-certs: the CA itself ends within $within days: make a new one in another" \
      "directory, and put both CAs into the files that [tls] ca names before the first" \
      "certificate of it" >&2
    exit 3
  fi
  [[ $damaged == no ]] || exit 1
}

is_number() {
  [[ $2 =~ ^-?[0-9]{1,5}$ ]] && return
  echo "make-certs: $1 takes a number of days" >&2
  exit 2
}

main() {
  days=90
  within=30
  local command=make least=2
  while [[ ${1:-} == -* ]]; do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --renew) command=renew least=1 && shift ;;
      --revoke) command=revoke && shift ;;
      --days) is_number "$1" "${2:-}" && days=$2 && shift 2 ;;
      --within) is_number "$1" "${2:-}" && within=$2 && shift 2 ;;
      *) usage >&2 && exit 2 ;;
    esac
  done
  [[ $# -ge $least && ($command != renew || $# -eq 1) ]] || { usage >&2 && exit 2; }
  command -v openssl >/dev/null || die "openssl is not installed: deploy/install-deps.sh run"
  directory=$1
  shift
  umask 077
  [[ $command == make ]] || [[ -d $directory ]] || die "there is no directory $directory"
  mkdir -p "$directory"
  # In the same directory, so that each file can be put in place by renaming it.
  scratch=$(mktemp -d "$directory/.make-certs-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  if [[ $command != make ]]; then
    "$command" "$@"
    return
  fi
  [[ -e $directory/ca.pem && -e $directory/ca.key ]] || make_ca
  local pair
  for pair in "$@"; do
    [[ $pair =~ ^[A-Za-z0-9._-]+=[A-Za-z0-9._,:-]+$ && $pair != ca=* ]] ||
      die "'$pair' is not of the form NAME=ROLE[,ROLE]..., with a NAME other than ca"
    make_certificate "${pair%%=*}" "${pair#*=}"
  done
}

main "$@"
