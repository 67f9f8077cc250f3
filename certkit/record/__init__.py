"""The record of a run: what its fields mean, and how strictly it is read.

`record` holds the fields, `rules` the combinations that a record may not have. `reader` reads a line and
reports all its faults; `layout` reads a block of lines fast, into `columns`. `trace`, `outcome` and
`transcript` read what a run did: for its fields, for its verdict, for people.
"""
