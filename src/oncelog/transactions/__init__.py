"""The transaction coordinator's rules: what state a transactional id is in, and what may happen to it. Pure."""
