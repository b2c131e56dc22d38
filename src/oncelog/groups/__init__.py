"""Consumer groups: who is in a group, who does what in it, and how far each has read. Pure: no clock, no loop, no files.

`decide_*` says what follows from a command; the records it asks for are appended to `__consumer_offsets`; `Shard.apply` makes
them true. A restart applies the same records and arrives at the same groups.
"""
