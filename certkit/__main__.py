"""Run the command line as ``python -m certkit``."""

from certkit.cli.main import run

if __name__ == "__main__":
    run()
