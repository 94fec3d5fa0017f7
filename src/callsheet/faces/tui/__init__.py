"""The workbench: one terminal program for stored, followed and live sessions (Textual).

It draws the rows of ``rows`` with the painter of ``paint``, line by line in one scrolling view, and owns nothing of
what a row says. Needs the extra ``tui``.

Must never know: native shapes, what a row says, click.
"""

import os

# Textual reads these when it is imported. It draws at most so often a second, and a key is on the screen after two of
# its frames: at its usual 60 that is 33 ms. Nothing glides: each step of it would be a screen to draw and to send.
os.environ.setdefault("TEXTUAL_FPS", "240")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
