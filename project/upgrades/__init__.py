"""What an upgrade would do to the database: migrations are rehearsed on an empty copy of its schema
(docs/adr/0027-migrations-are-rehearsed.md)."""
