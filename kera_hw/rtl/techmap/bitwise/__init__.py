"""Irregular logic bit by bit: restructured, covered again, and relieved of what nobody can tell apart.

Vectors are covered as they stand (``techmap.cover``), which suits datapaths. Control logic is no vector: here
its LUTs become a graph of gates, are made smaller as such, and become LUTs again.
"""
