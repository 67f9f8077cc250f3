"""The version, said once: the package metadata is built from this file."""

__version__ = "0.1.0"
