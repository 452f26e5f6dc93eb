"""Zero-collision hashing on CPU: maps from raw ids to rows, and the tables behind them."""
