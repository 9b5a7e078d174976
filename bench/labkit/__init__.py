# SPDX-License-Identifier: Apache-2.0
"""ECPipe clusters of real processes, for the quickstart, the lab and the cluster tests.

process.py    commands and waits that always end
host.py       where a node's files and processes are; LocalHost is this machine
daemon.py     one child process: start, wait until ready, stop within a deadline, CPU time
cluster.py    a coordinator, its helpers and their redis-servers, and the `ecpipe` command
links.py      what links there are, and how long a plan takes over them
netns.py      a network namespace a node (namespace.py), with shaped links; shaping.py has the tc
              commands
stripes.py    encoded noise on the nodes
measure.py    one measured repair, and the direct send
recorder.py   what the numbers of many runs come to; results.py writes them down
testbed.py    where experiments get their clusters from
experiments/  one module each
"""
