"""The outputs of a process and the managers that use them: `start`, the pipeline, its sinks, and the options."""
