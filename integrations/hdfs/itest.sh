#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The integration test with a real HDFS on loopback: itest/main.py --help tells the options.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$here/../../bench${PYTHONPATH:+:$PYTHONPATH}"
exec python3 "$here/itest/main.py" "$@"
