"""The JVM: which Java, its flags and class archive, its launch."""
