"""The workbench: one terminal program for stored, followed and live sessions (Textual).

It draws the rows of ``rows`` with the painter of ``paint``, line by line in one scrolling view, and owns nothing of
what a row says. Needs the extra ``tui``.

Must never know: native shapes, what a row says, click.
"""

import os

# Textual draws at most so often a second, and reads this when it is imported. A key is on the screen after two frames:
# at its usual 60 that is 33 ms.
os.environ.setdefault("TEXTUAL_FPS", "120")
