"""How copies of a partition agree: the in-sync set, the high watermark, leader epochs. Pure."""
