"""A replica: joining its pair, fetching epochs, its outbox."""
