# SPDX-License-Identifier: Apache-2.0
"""Reads, repairs and recoveries on a real cluster to which faults are done all the time.

    ledger.py      what is wrong at each moment, so that an operation's outcome can be judged
    blocks.py      the blocks, a good copy of each, and where each one is
    faults.py      the kinds of faults: each is begun, and undone
    schedule.py    which fault comes next, drawn from the seed, and when it ends
    operations.py  workers that read and repair, and judge each outcome
    mover.py       recoveries of nodes and repairs to nodes
    leaks.py       what must not have grown when all is quiet again
    history.py     what the daemons have logged, judged
    command.py     `bench/lab.py chaos`
"""
