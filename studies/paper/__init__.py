"""The evaluation of the paper: five methods, four scenarios, tables and figures.

cells       what is run, in profiles of different length
methods     the compared estimators
run_cell    one fit and its errors
store       results on disk
runner      the missing cells, over several processes
tables      errors, order of methods, divergences
figures     the figures of the paper
page        docs/reproducing-the-paper.md

`make paper` does it all; `python -m studies.paper --help` tells how to do a part of it.
"""
