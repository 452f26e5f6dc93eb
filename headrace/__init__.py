"""headrace: an event on Kafka changes a served prediction within a second."""

__version__ = "0.1.0"
