"""The simulation kit: a scenario runs on virtual time without faults, and then under many schedules of faults.

| module | what it does |
|---|---|
| `options` | what an author passes to `simulate`, and the exception of a failed check |
| `schedules` | faults as data: a schedule is a tuple of entries, drawn from a seed and shrunk by removing entries |
| `audits` | what reached the server: writes, creates, deletes, by whom |
| `transports` | applies the entries of a schedule to the requests of the operator |
| `foreign` | edits by other clients |
| `processes` | runs one process of the operator after another: crashes, restarts, lost leases, hot loops |
| `snapshots` | the state of the cluster without what differs from run to run |
| `runs` | one run: steps, rest, cleanup, and what it observed |
| `simulate` | the decorator: the run without faults, the runs with faults, the report |
"""
