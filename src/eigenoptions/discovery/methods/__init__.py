"""Discovery methods, one file each (paper, Sections 3 to 5, Appendices C and D)."""
