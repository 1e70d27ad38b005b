"""Maps a stream's columns to Arrow types, and brings rows into canonical form.

It reads and writes no file, needs no Spark, and imports nothing else of Tandem but the model.
"""
