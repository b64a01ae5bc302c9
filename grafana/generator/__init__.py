"""What `grafana/build.py` makes the files of this folder from."""
