"""callsheet keeps an honest sheet of every tool call a coding agent made.

Owns: the package's version. Must never know: anything a room below it owns; importing
the package stays cheap, so nothing is imported here.
"""

__version__ = "0.1.0"
