"""What there is on this machine: devices with their adapters, versions, and whether they are supported together."""
