"""The generator of the files in this folder, run by `grafana/build.py`."""
