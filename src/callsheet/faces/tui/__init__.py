"""The workbench: one terminal program for stored, followed and live sessions (Textual).

It draws the rows of ``rows`` with the painter of ``paint``, line by line in one scrolling view, and owns nothing of
what a row says. Needs the extra ``tui``.

Must never know: native shapes, what a row says, click.
"""
