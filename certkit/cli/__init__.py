"""The command line: read the options, call one function, print, exit. It decides nothing.

One file per noun; `render` turns results into tables, `output` says where and how things are printed,
`bar` draws progress. Clock, seed and environment are read here and nowhere below. Whatever loads a heavy
package is imported inside the command that needs it, so that help and completion stay fast.
"""
