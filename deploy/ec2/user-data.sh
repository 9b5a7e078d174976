#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# User data of the instances: cloud-init runs it once, as root, on Debian 12. Installs what the
# programs and bench/cluster.py need; the programs themselves come over ssh.
set -euo pipefail

export DEBIAN_FRONTEND=noninteractive
# redis-server is installed for its program; bench/cluster.py starts its own instances.
policy=/usr/sbin/policy-rc.d
printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod 755 "$policy"
trap 'rm -f "$policy"' EXIT
apt-get update
# python3 runs the agent; the libraries are those that the programs are linked with, and hiredis,
# which they load for slices over redis.
apt-get install --yes --no-install-recommends \
  python3 redis-server libisal2 libhiredis0.14 libgrpc++1.51 libgrpc29 libprotobuf32 \
  libabsl20220623 libtomlplusplus3 libsqlite3-0 libcurl4 \
  libprometheus-cpp-core1.0 libssl3 libstdc++6 zlib1g
update-rc.d redis-server disable
