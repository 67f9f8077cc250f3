"""A checker: the order of the run was refunded once, with the right amount, and the agent said so."""

import json
import os
import sys
from pathlib import Path

refunds = Path(f"refunds-{os.environ['CERTKIT_RUN']}")
lines = refunds.read_text().splitlines() if refunds.exists() else []
right = f"{os.environ['CERTKIT_TASK']} 30"
Path(os.environ["CERTKIT_RESULT"]).write_text(json.dumps({"violations": len(set(lines) - {right})}))
sys.exit(lines != [right] or "efunded" not in sys.stdin.read())
