# SPDX-License-Identifier: Apache-2.0
"""The harness: ECPipe clusters of real processes, as tests, quickstart and integrations start them.

What is measured with it is told apart: bench/experiments has the paper's evaluation and the chaos
run, bench/degradedkit and bench/guardkit serve the scripts of these names, and the *_bench.cc files
are micro-benchmarks. Nothing here imports any of them.

process.py    commands and waits that always end
host.py       where a node's files and processes are; LocalHost is this machine
daemon.py     one child process: start, wait until ready, stop within a deadline, CPU time
cluster.py    a coordinator, its helpers and their redis-servers, and the `ecpipe` command
links.py      what links there are, and how long a plan takes over them
netns.py      a network namespace a node (namespace.py), with shaped links; shaping.py has the tc
              commands
stripes.py    encoded noise on the nodes
measure.py    one measured repair, and the direct send
ssh.py        nodes on other machines; agent.py is what it starts there
link_faults.py, strangers.py  what goes wrong with links, and who should not be there
hdfs/         a real HDFS beside the cluster
"""
