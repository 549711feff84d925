"""`make bench`: speed of the model selection beside the work that cannot be avoided."""

from __future__ import annotations

import selection

if __name__ == "__main__":
    selection.main()
