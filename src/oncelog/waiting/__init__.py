"""Delayed operations: answers that come later, what they wait for, and when they give up. Pure: no clock, no loop, no thread."""
