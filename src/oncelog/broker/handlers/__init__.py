"""One file per API: authorise, translate, delegate, reply."""
