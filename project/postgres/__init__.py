"""Django's database engine `project.postgres`: PostgreSQL, by default an embedded one.

`base` is the module that Django loads, `cluster` starts and stops the server, `binaries` finds its
programs.
"""
