"""The operator as a program: events come in, pipelines are seen to, one operator at a time."""
