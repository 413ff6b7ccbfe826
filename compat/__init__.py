"""The frameworks' own suites and real clients against a running Commonhold: `make compat`.

A folder per framework:

- `about.toml`: `title`, `package` (its version is shown in the table) and `guide`;
- `requirements.txt` with `test_*.py` (run in a separate environment with `clients/python`), or
  `package.json` with a lock file and a `test` script that passes `$REPORT` to `node --test`.

`shared/` has code of several suites. `COMMONHOLD_URL` and `COMMONHOLD_TOKEN` contain the server's
URL and an admin token.
"""
