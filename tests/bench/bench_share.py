"""How long visitors of a hosted app wait when many come at once.

    python -m tests.bench.bench_share EXPORT.duckdb [--visitors 20]

Starts `LIOB_SHARE=EXPORT.duckdb streamlit run streamlit_app.py` and opens every shared page in so many
sessions at once, each over a websocket of its own as a browser does, drawing left out. Prints one JSON
document: seconds from connecting to the end of the page's script, cold (the first visitors of a fresh
server) and warm, the server's processor time for all of them, which a busy machine does not change, and its
memory.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.util import calc_hash
from websockets.asyncio.client import connect

from liob_core.config import PROJECT_DIR
from liob_core.ui.nav import SCREENS

PAGES = tuple(screen.name for screen in SCREENS if screen.is_shared)
TIMEOUT_S = 600


async def visit(port: int, page: str) -> float:
    """Seconds from connecting until the page's script has ended; raises where it shows an error."""
    began_s = time.perf_counter()
    url = f"ws://127.0.0.1:{port}/_stcore/stream"
    async with connect(url, subprotocols=["streamlit"], max_size=None, proxy=None) as socket_:
        ask = BackMsg()
        ask.rerun_script.page_script_hash = calc_hash(page)
        ask.rerun_script.page_name = page
        await socket_.send(ask.SerializeToString())
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                message = ForwardMsg()
                message.ParseFromString(await socket_.recv())
                kind = message.WhichOneof("type")
                if kind == "delta" and is_error(message.delta.new_element):
                    raise RuntimeError(f"{page}: {message.delta.new_element}")
                if kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    return time.perf_counter() - began_s


def is_error(element: Element) -> bool:
    """Whether a page shows an error; its warnings are part of what it has to say."""
    kind = element.WhichOneof("type")
    return kind == "exception" or (kind == "alert" and element.alert.format == Alert.ERROR)


async def visit_all(port: int, page: str, n_visitors: int, server: psutil.Process) -> dict[str, float]:
    """The median and the longest wait of so many visitors at once, and the server's processor time, in s."""
    before = server.cpu_times()
    waits = await asyncio.gather(*(visit(port, page) for _ in range(n_visitors)))
    after = server.cpu_times()
    return {
        "median_s": round(statistics.median(waits), 3),
        "max_s": round(max(waits), 3),
        "server_cpu_s": round(after.user + after.system - before.user - before.system, 2),
    }


def main() -> None:
    """Print the waits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("export", type=Path)
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--page", action="append", choices=PAGES, help="all shared pages if none is given")
    asked = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "streamlit_app.py", "--server.port", str(port),
         "--server.address", "127.0.0.1", "--server.headless", "true", "--server.fileWatcherType", "none"],
        cwd=PROJECT_DIR, env={**os.environ, "LIOB_SHARE": str(asked.export.resolve())},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/_stcore/health", trust_env=False).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.2)
        watched = psutil.Process(server.pid)
        rss_before = watched.memory_info().rss
        rounds = {
            when: {
                page: asyncio.run(visit_all(port, page, asked.visitors, watched))
                for page in asked.page or PAGES
            }
            for when in ("cold", "warm")
        }
        rss_after = watched.memory_info().rss
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)
    memory = {"before_mib": rss_before // 2**20, "after_mib": rss_after // 2**20}
    print(json.dumps({"visitors": asked.visitors, "waits": rounds, "server_rss": memory}, indent=2))


if __name__ == "__main__":
    main()
