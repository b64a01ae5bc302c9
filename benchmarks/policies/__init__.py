"""The study of the policies: the comparison and its text; `bench_policies.py` runs it."""
