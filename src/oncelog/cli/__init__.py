"""The command line: `oncelog serve`, `oncelog demo`. Nothing imports this package."""
