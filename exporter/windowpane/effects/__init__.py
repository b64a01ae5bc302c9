"""Side effects of pure code: the commands it yields, the model calls that carry them out, the error boundary."""
