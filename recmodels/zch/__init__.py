"""Zero-collision hashing on CPU: maps from raw ids to rows, the tables behind them, and what they owe the commit log."""
