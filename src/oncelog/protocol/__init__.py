"""The wire, sans-io: message classes whose annotations are their schema, the codec compiled from them, and frames.

Importing this package costs nothing: a message's module is loaded when its API is first used, and its codec is compiled for
a version when that version is first seen.
"""
