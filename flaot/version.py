"""The version of flaot: of the distribution, and as plans record their compiler."""

VERSION = "0.1.0"
