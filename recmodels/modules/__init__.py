"""Building blocks of the models: each one takes and returns tensors and knows nothing of features or configs."""
