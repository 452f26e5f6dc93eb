"""The demo: MovieLens-100K as a stream of events, learnt, published and served while it runs."""
