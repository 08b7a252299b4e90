#!/usr/bin/env python3
"""Real sleeps in Swift tests: only in `eventually`, and in the files listed here, which may only get fewer.

    Tests/Rooms/sleeps.py

A sleep makes a test slow on a quiet machine and wrong on a busy one. Time is a `ManualClock`; a test that waits for another process or another
thread asks again and again, in `eventually`. Waits on a loop's own clock are not counted. Python 3.11, standard library only.
Last: `N passed, N failed`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
HELPER = "HttpWareRedisTests/Servers/Eventually.swift"
SLEEP = re.compile(r"\b(?:Task|Thread)\.sleep\b|(?<![\w.])(?:u|nano)?sleep\(")
# Files and the number of their sleeps: loops of their own that ask again, answers that take longer than any test, and real times of the system.
LISTED = {
    "AcmeTests/CertificateKeeperTests.swift": 3,
    "AcmeTests/CertificateTrialsTests.swift": 1,
    "DiskCachingTests/DiskRecordsTests.swift": 2,
    "DiskCachingTests/DiskStoreTests.swift": 1,
    "DiskCapturingTests/CaptureFolderTests.swift": 1,
    "HttpWareClientTests/Manager/UnixSocketTests.swift": 1,
    "HttpWareClientTests/Routes/CallSiteTests.swift": 1,
    "HttpWareClientTests/Testing/SeamTests.swift": 1,
    "HttpWareClientTests/Testing/StreamingClientTests.swift": 3,
    "HttpWareRedisTests/Client/RedisTlsTests.swift": 2,
    "HttpWareRedisTests/Servers/TestCluster.swift": 1,
    "HttpWareRedisTests/Sharing/SharedCredentialTests.swift": 2,
    "HttpWareTests/Calls/EndpointMonitorTests.swift": 1,
    "HttpWareTests/Loop/EventLoopTests.swift": 3,
    "HttpWareTests/Messages/ContentSourceTests.swift": 2,
    "HttpWareTests/Transport/Http1DownstreamConnectionTests.swift": 2,
    "HttpWareTests/Transport/SocketStage.swift": 1,
    "Load/StoreTrial/StoreTrial.swift": 1,
    "WaresTests/Caching/CacheStage.swift": 1,
    "WaresTests/Logging/LogWriterTests.swift": 3,
    "WaresTests/Observing/AccessLogTests.swift": 1,
}


def main() -> int:
    wrong, files = [], 0
    for path in sorted(TESTS.rglob("*.swift")):
        name = str(path.relative_to(TESTS))
        lines = [re.sub(r"(?:^|\s)//.*", "", line) for line in path.read_text().splitlines()]
        count = sum(len(SLEEP.findall(line)) for line in lines)
        files += 1
        most = 1 if name == HELPER else LISTED.get(name, 0)
        if count > most:
            wrong.append(f"{name} has {count} real sleeps, {most} are allowed: use a manual clock, or `eventually`")
        elif count < most:
            wrong.append(f"{name} has {count} real sleeps, {most} are listed: lower the number in Tests/Rooms/sleeps.py")
    wrong += [f"{name} is listed and does not exist" for name in LISTED if not (TESTS / name).exists()]
    for fault in wrong:
        print(f"FAILED  {fault}")
    print(f"{files - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
