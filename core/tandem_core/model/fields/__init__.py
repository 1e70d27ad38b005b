"""How fields of a resource are declared: kinds of values, documents, problems, defaults."""
