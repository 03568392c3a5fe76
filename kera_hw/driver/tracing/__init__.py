"""Programs written in Python: a function is called once with values that stand for its parameters.

What it does with them is written down as Kera text, which the front end compiles. So every name, type, shape
and index means what it means in a `.kera` file, and equal programs have equal graphs.
"""
