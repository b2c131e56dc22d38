"""The command line: `oncelog serve`, `demo`, `transactions`, `explain-lag`. Nothing imports this package."""
