"""The continuous trainer: feed, learn, commit, without an end unless the source has one."""
