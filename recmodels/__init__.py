"""The model layer: embedding tables and groups, the model catalogue, losses, metrics and optimizers."""
