"""Several people on one server: who they are, what they may, and what they have used.

::

    tables    the database of all this: next to the sessions, in SQLite or PostgreSQL
    accounts  people, their API keys, what they share, and the audit log
    oidc      logging in with an OpenID provider
    quota     how much a person may ask for
    vault     secrets at rest
    access    who makes a request, from its token or cookie
"""
