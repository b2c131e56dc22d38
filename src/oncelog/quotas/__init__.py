"""How much a client may ask for, and how long it is held back when it asks for more."""
