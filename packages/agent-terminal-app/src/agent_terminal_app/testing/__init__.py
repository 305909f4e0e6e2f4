"""For tests and benchmarks: a program in a terminal, as a person sees it. Needs the package `pyte`."""
