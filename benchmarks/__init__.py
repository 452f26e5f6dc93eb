"""Measurements, and the harnesses that tests share with them."""
