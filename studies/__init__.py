"""Measurements behind the pages of the documentation; not a part of the wheel."""
