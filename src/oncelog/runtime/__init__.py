"""The outside world behind ports: clock, timers, disk, metadata store. The simulator brings its own of each."""
