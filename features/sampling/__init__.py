"""Negative samples and sample masks: more rows or items for a batch, drawn from tables in memory.

Nothing is imported here: configurations without a sampler, and replicas, load none of it but its options.
"""
