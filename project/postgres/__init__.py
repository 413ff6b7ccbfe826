"""Django's database engine `project.postgres`: PostgreSQL, and without DATABASE_URL an embedded one.

`base` is what Django loads, `cluster` starts and stops the server, `binaries` finds its programs.
"""
