"""Several people on one server: who they are, what they may, and what they have used.

::

    team      all of it, as the routes use it
    access    who makes a request, from its token or cookie; every change and refusal is written down
    accounts  people, their API keys, what they share, and the audit log
    oidc      logging in with an OpenID provider
    quota     how much a person may ask for, counted over all servers
    vault     secrets at rest
    tables    the database of all this: next to the sessions, in SQLite or PostgreSQL
"""
