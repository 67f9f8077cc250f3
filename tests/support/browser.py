"""A real Chromium without a window, steered over a pipe; it counts what a page asks of the network.

with Browser(path, profile) as browser:
    browser.open(page)
    browser.run("document.title")
    assert browser.requests == [page.as_uri()]
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final, Self

from certkit.ground import canonical

if TYPE_CHECKING:
    from pathlib import Path

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROGRAM: Final = next(filter(None, map(shutil.which, NAMES)), None)
_OPTIONS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """A page in a browser.

    Attributes:
        requests: the address of everything that the page asked for, the page itself first.
        complaints: what the console was told, and exceptions that nothing caught.
    """

    def __init__(self, program: str, folder: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number, self._session = 0, ""
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        line = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", line, program, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._answers = os.fdopen(self._in, "rb")
        self._rest = b""

    def __enter__(self) -> Self:
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(item["targetId"] for item in targets if item["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._session = ""
        self._call("Browser.close")
        self._process.wait(30)
        os.close(self._out)
        self._answers.close()

    def open(self, page: Path) -> None:
        """Open a file, and wait until it is loaded."""
        self.requests.clear()
        self.complaints.clear()
        self._loaded = False
        self._call("Page.navigate", url=page.as_uri())
        while not self._loaded:
            self._take()

    def screen(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the screen, and whether the user wants it dark."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,  # a phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page, promises awaited."""
        done = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def picture(self) -> bytes:
        """Return what is on the screen as a PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, canonical.line(message).rstrip() + b"\0")
        while (answer := self._take()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _take(self) -> dict[str, Any]:
        """Return the next message, and note what it says of the page."""
        while b"\0" not in self._rest:
            block = os.read(self._in, 1 << 16)
            assert block, "the browser has gone"
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = canonical.loads(line, max_bytes=1 << 30)
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method in {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}:
            self.complaints.append(str(parameters))
        return message
