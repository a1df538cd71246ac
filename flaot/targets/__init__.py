"""Target adapters: one folder per device family."""
