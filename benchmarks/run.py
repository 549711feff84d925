"""`make bench`: everything that is measured, one table after the other."""

from __future__ import annotations

import classical
import selection

if __name__ == "__main__":
    selection.main()
    classical.main()
