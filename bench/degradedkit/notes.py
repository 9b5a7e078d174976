# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a figure mean; written by a person who has looked at them."""

NOTES: dict[str, str] = {
    "7b": """
The paper finds that the saving drops with the number of blocks. Ours does so with all first
heartbeats at once, and not with heartbeats apart.
""",
    "7d": """
The paper's 33.2, 22.3 and 5.9 % do not go together with its own formulas at 1 Gb/s: twice the
lost blocks are twice the time of reading in LF, and still fit behind the local tasks in EDF, so
that the saving has to grow from one node to two. It drops where reads fill the links in EDF as
well, and all three are met within some points with racks' links of 350 to 400 Mb/s. At 500 Mb/s
and one node, which puts the same bytes by rate on each link, the paper itself has 35.1 % (Figure
7(c)).
""",
    "7e": """
EDF's degraded tasks compete with the shuffle of tasks that run beside them; LF's do not. How much
that costs depends on how reducers fetch, of which the paper says nothing. Ours ask once a
heartbeat for what is there.
""",
    "7f": """
Runtimes are from a job's arrival to its end. On shared links, as with TCP, later jobs gain as
much as in the paper, because the small reads of one job no longer wait behind all degraded reads
of another.
""",
    "8d": """
150 tasks fill 160 slots once, so that a single task on a slow node decides a run, and a task that
LF gives last is given to whoever asks last.
""",
    "assumptions": """
The first heartbeats decide more than all else: at once, the codes, the blocks and the extreme
cluster come out as in the paper. Two lost nodes and a lost rack do not, in any row but those with
slower racks' links. Line 2 of Algorithm 3 as printed makes no difference but in the extreme
cluster, where it loses what the prose gains.
""",
    "map-only": """
Confirmed, under both kinds of links: plain RP gains little where racks are the bottleneck (6 % of
LF's runtime at 1 Gb/s, 10 % at 250 Mb/s), since its path goes from rack to rack at random. With
rack-aware RP, EDF wins nothing over BDF. Rack-aware RP under LF is not quite as fast as the
prototype's reads with BDF, but takes more off than any scheduler does at 250 Mb/s.
""",
    "racks": """
`rp-rack` and `rp-weighted`, which knows racks' links as slow ones, cross each rack's link about
once; the others carry k blocks over them and gain little, whatever they are called. With `rp-
rack`, stock Hadoop's LF is faster at 500 Mb/s and below than EDF with conventional reads. EDF is
better than BDF with conventional reads at 250 to 500 Mb/s, and with `rp-rack` only at 100 Mb/s,
where even its few blocks fill the links.
""",
    "nics": """
Here any pipeline reads in about one timeslot. `rp-rack` pays for its choice of helpers: fewer
nodes share the work. Conventional reads are held up by the reader's own link, which no scheduler
can help.
""",
    "striped": """
A whole split reads k nodes in any case. With a node lost, more than a third of all splits have
lost a share, and the conventional way decodes it from what is read anyway and one share more: it
moves the fewest bytes, and pipelines only add to them. No task is local, so that LF and BDF are
equal. EDF loses: where so many tasks are degraded, its rule of racks leaves slots empty (20 %
where links are fast). Of partial reads the fewer shares are read, the more a rack-aware pipeline
saves, in bytes; the runtime hardly notices.
""",
    "waiting": """
Waiting pays if the recovery is under way when the job comes: then, and up to a minute before it
begins, who waits is as fast as who reads, or faster, since a block that is read degraded by a
task and rebuilt as well crosses the links twice. For the same reason LF does better than EDF
beside a recovery that has begun: its degraded tasks come last, when most blocks are back. From
two minutes on reading wins, and EDF wins among readers. With rack-aware RP at 1 Gb/s there is
hardly a difference in the first two minutes. 50 and 200 MB/s differ only where links allow the
higher rate.
""",
    "sensitivity": """
Nothing here changes an order. Longer heartbeats hide degraded reads (the healthy run is slower,
too). A spread of task times helps all. With t_s wrong by a half EDF is what BDF is, or a little
better.
""",
}
