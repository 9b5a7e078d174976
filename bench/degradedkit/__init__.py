# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/degraded.py: map tasks whose block is lost, and how long stripes last.

Pure, without clock, file or unseeded chance:
formulas.py      the paper's analysis (IV-B); analysis.py: its Figure 5
schedulers.py    LF, BDF and EDF: what a heartbeat is answered with
placement.py     blocks of stripes on nodes in racks
links.py         links that are held, one read after another; circuits.py: both ends at once;
                 fair_links.py: shared max-min
reads.py         what each read puts on each link
job.py           a job's tasks, and what they have put out
simulator.py     the cluster: heartbeats, slots, tasks, shuffle, jobs; recovery.py: a lost node's
scenarios.py     the setting of a run, and the run; runs.py: over seeds
figure.py        what a figure is; paper.py: the paper's, and its numbers; beyond.py: new ones;
                 assumptions.py: which assumption each number hangs on
summary.py       what rows of samples come to; notes.py: what that means; advice.py: what to use
markov.py        chains with an absorbing state; durability.py: those of a stripe; lasting.py: their
                 figure

At the edge:
planner.py       plans from ECPipe's own planners, by the program plan_bytes
settings.py      settings of the user's own, from the command line
output.py        results as JSON and CSV; page.py: bench/DEGRADED.md
pictures.py      describes pictures; draw.py draws them
"""
