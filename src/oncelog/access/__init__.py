"""Who may do what. One question, asked by every handler; today the answer is always yes."""
