"""The shell that serves: connections, dispatch, handlers, and what ties logs, groups and metadata together on one node."""
