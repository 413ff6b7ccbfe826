"""The frameworks' own suites and real clients against a running Commonhold: `make compat`.

A folder per framework:

- `about.toml`: `title`, `package` (whose version the table names) and `guide`;
- `requirements.txt` with `test_*.py` (an environment of its own, with `clients/python` in it), or
  `package.json` with a lock and a `test` script that hands `$REPORT` to `node --test`.

`shared/` has what several use. A suite finds a server and a token of an admin in `COMMONHOLD_URL`
and `COMMONHOLD_TOKEN`.
"""
