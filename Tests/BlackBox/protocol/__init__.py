"""The checker: it holds a server to the protocol, and knows the document alone."""
