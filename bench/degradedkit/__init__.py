# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/degraded.py: map tasks whose block is lost, and how long stripes last.

Pure, without clock, file or unseeded chance:
formulas.py    the paper's analysis (IV-B)
schedulers.py  LF, BDF and EDF: what a heartbeat is answered with
placement.py   blocks of stripes on nodes in racks
links.py       links that are held, one read after another; fair_links.py: shared max-min
reads.py       what each read puts on each link
simulator.py   the cluster: heartbeats, slots, tasks, shuffle, jobs; recovery.py: a lost node's
markov.py      chains with an absorbing state; durability.py: those of a stripe

At the edge:
planner.py     plans from ECPipe's own planners, by the program plan_bytes
scenarios.py   the settings of each figure; runs.py runs them, summary.py counts
figures.py     the figures, and the paper's numbers
page.py        bench/DEGRADED.md; pictures.py and draw.py: box plots
"""
