#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a CA for tests and private clusters, and certificates that name a node and its roles.
set -euo pipefail

usage() {
  cat <<USAGE
Usage: ${0##*/} [--days DAYS] DIRECTORY NAME=ROLE[,ROLE|,storage:ID]...
       ${0##*/} --revoke DIRECTORY NAME...

Makes a CA, DIRECTORY/ca.pem and ca.key, unless it exists, and for each NAME a certificate
DIRECTORY/NAME.pem with its key NAME.key, signed by the CA. Roles: coordinator, helper, requestor,
operator. The NAME of a helper is its node_id. storage:ID: the helper is beside the node of
a storage system with this id (HDFS: the DataNode's UUID; QFS: see docs/operations.md). Existing
certificates of these names are replaced, each file at once; running programs use the new files
within two seconds.
  --days DAYS   days that the new certificates are valid (default 90; the CA is valid 3650 days)
  --revoke      add the certificates NAME.pem to DIRECTORY/crl.pem, the list of revoked ones for
                [tls] crl: copy it to all nodes, which heed it within two seconds

  ${0##*/} certs head=coordinator node-1=helper node-2=helper ann=operator app=requestor

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

# The alternative names that ECPipe reads: who it is, and what it may do.
names_of() {
  local name=$1 roles=$2 role names
  names="URI:ecpipe:node:$name"
  for role in ${roles//,/ }; do
    case $role in
      coordinator | helper | requestor | operator) names+=",URI:ecpipe:role:$role" ;;
      storage:?*) names+=",URI:ecpipe:$role" ;;
      *) die "$name: unknown role '$role'; known are coordinator, helper, requestor, operator" ;;
    esac
  done
  printf '%s' "$names"
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
  mv "$scratch/$name.key" "$directory/$name.key"
  mv "$scratch/$name.pem" "$directory/$name.pem"
}

# openssl's own book of what is revoked, beside the CA: each list has all that was revoked before.
revoke() {
  local name book=$directory/revoked.txt
  [[ -e $book ]] || : >"$book"
  printf '%s\n' "[ca]" "default_ca=own" "[own]" "database=$book" "default_md=sha256" \
    "unique_subject=no" >"$scratch/ca.cnf"
  for name in "$@"; do
    [[ -e $directory/$name.pem ]] || die "there is no certificate $directory/$name.pem"
    quietly openssl ca -batch -config "$scratch/ca.cnf" -cert "$directory/ca.pem" \
      -keyfile "$directory/ca.key" -revoke "$directory/$name.pem"
  done
  quietly openssl ca -batch -config "$scratch/ca.cnf" -cert "$directory/ca.pem" \
    -keyfile "$directory/ca.key" -gencrl -crldays 3650 -out "$scratch/crl.pem"
  mv "$scratch/crl.pem" "$directory/crl.pem"
}

main() {
  days=90
  local revoking=
  case ${1:-} in
    -h | --help) usage && exit 0 ;;
    --revoke) revoking=yes && shift ;;
    --days) days=${2:?--days needs a number} && shift 2 ;;
  esac
  [[ $# -ge 2 ]] || { usage >&2 && exit 2; }
  command -v openssl >/dev/null || die "openssl is not installed: deploy/install-deps.sh run"
  directory=$1
  shift
  umask 077
  mkdir -p "$directory"
  # In the same directory, so that each file can be put in place by renaming it.
  scratch=$(mktemp -d "$directory/.make-certs-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  if [[ $revoking ]]; then
    revoke "$@"
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
