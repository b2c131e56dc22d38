"""Record batches, format v2: the unit in which records are produced, stored, replicated and fetched.

`batch` reads headers, `validation` says what a producer may send, `record` and `builder` go to single records and back,
`control` writes transaction markers. The broker itself treats a batch as opaque bytes behind its 61-byte header.
"""
