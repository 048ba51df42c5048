"""Tools of other programs: a client of the Model Context Protocol, over pipes and over HTTP.

Servers are strangers: what they say is bounded, delimited and never an instruction, and what their tools do is of unknown risk.
"""
