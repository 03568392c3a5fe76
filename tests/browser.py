"""Chromium without a window, spoken to over pipes in its DevTools protocol; without it tests are skipped."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run")
_LIMIT_S = 60
_WATCHING = """
window.shifts = [];
new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput)
  window.shifts.push(one.value); }).observe({ type: "layout-shift", buffered: true });
"""


def browser_path() -> str:
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium (apt-get install chromium-headless-shell)")
    return found


class Browser:
    """One page. What it complains of is in ``complaints``."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        its_input, self._to = os.pipe()
        self._from, its_output = os.pipe()
        command = " ".join([
            "exec", browser_path(), *_OPTIONS, f"--user-data-dir={self._directory.name}", "about:blank",
            f"3<&{its_input}", f"4>&{its_output}",
        ])  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(its_input, its_output), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(its_input)
        os.close(its_output)
        self._number = 0
        self._read = b""
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCHING)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._directory.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command's answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            if answer.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(str(answer["params"]["exceptionDetails"]))
            elif answer.get("method") == "Log.entryAdded":
                self.complaints.append(answer["params"]["entry"]["text"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            part = os.read(self._from, 1 << 16)
            assert part, "the browser is gone"
            self._read += part
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def ask(self, expression: str) -> Any:
        """What an expression of JavaScript gives."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def load(self, path: Path) -> str:
        """Loads the page; how it ended."""
        self.call("Page.navigate", url=path.as_uri())
        end = time.monotonic() + _LIMIT_S
        state = "working"
        while state == "working" and time.monotonic() < end:
            time.sleep(0.05)
            state = self.ask("document.documentElement?.dataset.state ?? 'working'")
        return state

    def press(self, key: str) -> None:
        text = {"Enter": "\r", " ": " "}.get(key)
        code = {"Tab": 9, "Enter": 13, " ": 32}[key]
        event = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)
