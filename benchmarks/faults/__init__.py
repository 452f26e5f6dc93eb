"""Kills of real processes at named points, and the proof that nothing is lost and nothing is learnt twice."""
