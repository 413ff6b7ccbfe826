"""The change feed for many subscribers: one reader per process, no thread per subscriber."""
