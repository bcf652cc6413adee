"""Crossovers: up to which size the first of two ways is the cheaper one.

Both ways give the same result, so a number here changes how long something takes and nothing else.
Bounds that protect memory, a format or a peer stay in the file of what they protect. Where a
comment names no place, the two ways and what they cost are in docs/performance.md, "A few rows".
`make bench ONLY=crossovers` measures those that need no service.
"""

from __future__ import annotations

# ---------------------------------------------------------------- Python values instead of Arrow

#: records that are decoded together to Python values; Arrow decodes more of them
RECORDS_DECODED_TO_VALUES = 8
#: bytes of each of these records
RECORD_BYTES_DECODED_TO_VALUES = 2048
#: rows that stay Python values from the decoder to the encoder; more become a frame
ROWS_KEPT_AS_VALUES = 8
#: rows of a frame that fastavro encodes one by one: pyruhvro takes 0.94 ms for 13
FRAME_ROWS_ENCODED_BY_FASTAVRO = 64
#: rows of Arrow records, already cut, that fastavro encodes: pyruhvro starts threads for every call
ARROW_ROWS_ENCODED_BY_FASTAVRO = 8
#: record values whose frame is read one by one: numpy's fixed costs would be ten times the work
VALUES_UNFRAMED_ONE_BY_ONE = 8
#: records of one of Spark's batches that are taken out one by one (docs/performance.md, "A record
#: alone")
BATCH_RECORDS_TAKEN_ONE_BY_ONE = 16
#: rows of a task's first batch up to which messages are read where they lie, past Spark's reader:
#: those of a backlog are mostly larger than what is read ahead (there, too)
BATCH_ROWS_READ_IN_PLACE = 2

# ---------------------------------------------------------------- columns instead of queries

#: names whose hash is looked up one by one; numpy hashes more together
NAMES_HASHED_ONE_BY_ONE = 256
#: rows whose tables are found by a dictionary; more would pay for polars' thread pool
ROWS_NAMED_BY_DICTIONARY = 2048
#: rows that Python's own set searches for duplicates; a query searches more
ROWS_COMPARED_BY_SET = 512
#: expressions that are a query each, over up to so many rows; polars gives the expressions of one
#: query to its threads
EXPRESSIONS_QUERIED_ONE_BY_ONE = 3
ROWS_QUERIED_ONE_BY_ONE = 4096
#: whole numbers are told apart by a table of all places between the least and the greatest, while
#: there are fewer places than this for each number, and these; otherwise they are sorted
PLACES_PER_NUMBER = 4
PLACES_BESIDES = 256
#: rows of a batch below which Arrow validates all columns together; in larger batches strings are
#: first looked at as bytes (not recorded where it was measured)
BATCH_ROWS_VALIDATED_TOGETHER = 2_000

# ---------------------------------------------------------------- panes instead of rows
# docs/performance.md, "Many streams"

#: streams over the same rows from which on these are laid out in panes
STREAMS_SHARING_PANES = 4
#: rows of a chunk from which on they are
ROWS_LAID_OUT_IN_PANES = 256
#: rows to a pane from which on wider windows are put together from panes that are there
ROWS_PER_FINER_PANE = 16

# ---------------------------------------------------------------- plain instead of compressed

#: bytes of a frame of the link below which compression costs more than it saves (not recorded where
#: it was measured)
FRAME_BYTES_SENT_PLAIN = 2048

# ---------------------------------------------------------------- the loop instead of a thread
# Small work costs less than handing it to a thread. It is not recorded where these were measured.

#: cells of an answer that is made in the event loop
CELLS_RENDERED_IN_LOOP = 2_000
#: bytes of a body that is decoded in the event loop
ARROW_BYTES_DECODED_IN_LOOP = 64 * 1024
#: bytes of a feed's slice, or of rows for the link, that are worked on in the event loop
SLICE_BYTES_HANDLED_IN_LOOP = 32 * 1024
#: characters of SQL that are parsed in the event loop
SQL_CHARACTERS_PARSED_IN_LOOP = 16 * 1024
#: characters of line protocol that are parsed in the event loop
LINE_CHARACTERS_PARSED_IN_LOOP = 64 * 1024
