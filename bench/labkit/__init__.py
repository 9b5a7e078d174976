# SPDX-License-Identifier: Apache-2.0
"""ECPipe clusters of real processes, for the quickstart, the lab and the cluster tests.

process.py  one child process: start, wait until ready, stop within a deadline, CPU time
netns.py    a network namespace a node, with shaped links
cluster.py  a coordinator, its helpers and their redis-servers, and the `ecpipe` command
measure.py  one measured repair, the direct send, and what the numbers of many runs come to
"""
