"""Value types without logic: everything above this package may import it, and it imports nothing of Oncelog."""
