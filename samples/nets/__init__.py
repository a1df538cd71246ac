"""Networks of the export samples, in plain torch.nn, one family per file."""
