#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inventory for bench/cluster.py of one of the paper's clusters on EC2.

    aws ec2 describe-instances --region REGION --filters Name=tag:ecpipe,Values=* \\
        Name=instance-state-name,Values=running > REGION.json      # for each region
    deploy/ec2/make_inventory.py north-america --user admin --key key.pem *.json > hosts.toml

Instances must have the tag `ecpipe` with their role: node, requestor or coordinator. Exits with 1
if there are more or fewer instances than instances.csv lists.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Iterator

TABLE = Path(__file__).with_name("instances.csv")
TAG = "ecpipe"


def wanted(cluster: str) -> list[dict[str, str]]:
    with TABLE.open(newline="") as file:
        return [line for line in csv.DictReader(file) if line["cluster"] == cluster]


def instances(files: list[Path]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """AWS region, role, and what describe-instances says."""
    for file in files:
        for reservation in json.loads(file.read_text())["Reservations"]:
            for instance in reservation["Instances"]:
                tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
                if TAG in tags:
                    zone = instance["Placement"]["AvailabilityZone"]
                    yield zone.rstrip("abcdef"), tags[TAG], instance


def entry(head: str, region: str, instance: dict[str, Any], user: str) -> str:
    return (f"{head}\nssh = \"{user}@{instance['PublicIpAddress']}\"\n"
            f"address = \"{instance['PrivateIpAddress']}\"\nrack = \"/{region}\"\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cluster", choices=("north-america", "asia"), help="the paper's cluster")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE",
                        help="output of describe-instances, one file for each region")
    parser.add_argument("--user", default="admin",
                        help="login on the instances (default admin, as in Debian's images)")
    parser.add_argument("--key", default="~/.ssh/id_ed25519", metavar="FILE",
                        help="private key for ssh (default %(default)s)")
    arguments = parser.parse_args()
    there = defaultdict(list)
    for aws_region, role, instance in instances(arguments.files):
        there[aws_region, role].append(instance)
    print(f"[ssh]\noptions = {json.dumps(['-i', arguments.key])}\n")
    heads = {"coordinator": "[coordinator]", "requestor": "[[requestor]]", "node": "[[node]]"}
    for line in wanted(arguments.cluster):
        found = there[line["aws_region"], line["role"]]
        if len(found) != int(line["count"]):
            print(f"{line['region']}: found {len(found)} instances with {TAG}={line['role']}, but "
                  f"{line['count']} are needed", file=sys.stderr)
            return 1
        for instance in found:
            print(entry(heads[line["role"]], line["region"], instance, arguments.user))
    return 0


if __name__ == "__main__":
    sys.exit(main())
