"""What is stored rather than sent: keys and values of the internal topics, and the producer snapshot file."""
