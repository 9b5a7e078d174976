# SPDX-License-Identifier: Apache-2.0
"""The quickstart, after the build.

setup.py       how much data, which code, which schemes; the command line
workplace.py   the folder in which all of it happens, and the real file
links.py       where the nodes are and what limits their links
screen.py      steps, the table, a live line
schemes.py     the table: one repair by each scheme
trials.py      a degraded read, a killed helper, the recovery of a node
hold.py        what to type while the cluster is held
"""
