"""What every test in the workspace shares."""

from hypothesis import settings

# The same examples on every machine, and no failure because a machine is slow.
# `--hypothesis-profile=default` searches at random instead.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")
