"""The change feed for many listeners at once: one reader per process, no thread per listener."""
