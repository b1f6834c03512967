"""T10: a list of 20,000 objects in pages, whose token expires half-way, in a process whose memory is measured."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from faulty_server import ReceivedRequest, serving

REFLECTOR_PROCESS = Path(__file__).parent.parent / "support" / "reflector_process.py"
OBJECTS = 20_000
PAYLOAD = "x" * 2600
WIDGET = (
    '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"widget-%06d","namespace":"team-%d",'
    '"uid":"00000000-0000-4000-8000-%012d","resourceVersion":"%d","labels":{"app":"app-%d"}},'
    '"spec":{"payload":"' + PAYLOAD + '"}}'
)


class Pages:
    """Serves a collection in pages; the token of page 7 expires the first time."""

    def __init__(self) -> None:
        self.expired = 0
        self.largest = 0

    async def __call__(self, request: ReceivedRequest) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
        if query.get("watch"):
            await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            return
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        if start == 6 * limit and not self.expired:
            self.expired += 1
            await request.respond(410, json.dumps({"kind": "Status", "code": 410, "reason": "Expired"}).encode())
            return
        await request.respond(200, self._page(start, min(start + limit, OBJECTS)))

    def _page(self, start: int, end: int) -> bytes:
        more = f',"continue":"{end}"' if end < OBJECTS else ""
        items = ",".join(WIDGET % (n, n % 50, n, n + 1, n % 100) for n in range(start, end))
        body = f'{{"metadata":{{"resourceVersion":"900000"{more}}},"items":[{items}]}}'.encode()
        self.largest = max(self.largest, len(body))
        return body


@pytest.mark.real_time
async def test_t10_a_list_that_expires_at_page_seven_is_complete_and_never_in_memory_twice() -> None:
    pages = Pages()
    async with serving(pages) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(REFLECTOR_PROCESS), server.url, stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(60):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    result = json.loads(output)

    assert pages.expired == 1
    assert result["objects"] == OBJECTS
    assert result["pages"] == 7 + OBJECTS // 500
    assert result["peak"] <= 1.6 * result["now"]
    growth = result["peak"] - result["before"]
    assert growth <= 1.15 * OBJECTS * (len(PAYLOAD) + 400) + 8 * pages.largest, f"{growth / 2**20:.0f} MiB"
