"""Origin servers that are killed, hang, reset, are all down, or slow."""

from __future__ import annotations

import select
import signal
import socket
import time

from Rig.results import line
from Rig.stand import Traffic
from Rig.waits import Why, pause

from .stand import ROUNDS, Beside, FaultStand, beside_both


def harmed(options, name: str, stand: FaultStand, harm) -> list[dict]:
    """Traffic on two origin servers of which one is harmed: one is well at any time, so no request may fail whose response had not begun."""
    beside = Beside(stand)
    traffic = Traffic(stand, readers=8, writers=2, think=0.005)
    try:
        rounds = [(beside.during(options.seconds / 2), beside.during(options.seconds, harm)) for _ in range(ROUNDS)]
    finally:
        traffic.end()
    gets = [failure for failure in traffic.failures if failure[0] == "GET" and not failure[2].startswith("cut off")]
    seen: dict[str, int] = {}
    for identifier in stand.ids.read_text().split():
        seen[identifier] = seen.get(identifier, 0) + 1
    twice = [identifier for identifier, count in seen.items() if identifier.startswith("p") and count > 1]
    return [line(f"an origin server of two {name}", "no GET fails, no POST is sent twice",
                 {"requests": traffic.succeeded, "failed": len(gets), "example": gets[:2], "POST twice": len(twice), "slowest ms": round(traffic.slowest * 1000)},
                 not gets and not twice and traffic.succeeded > 100),
            beside.verdict(f"an origin server of two {name}", *rounds)]


def killed(options) -> list[dict]:
    with FaultStand(options) as stand:
        def harm() -> None:
            for turn in range(max(2, round(options.seconds / 2))):
                port = stand.ports[turn % 2]
                stand.origins[port].signal(signal.SIGKILL)
                stand.origins[port].wait(5)
                pause(1, Why.PASSES)
                stand.start_origin(port)
                pause(1, Why.MEASURED)

        return harmed(options, "killed and started again every 2 s", stand, harm)


def hung(options) -> list[dict]:
    with FaultStand(options, patience="500ms") as stand:
        def harm() -> None:
            for turn in range(max(2, round(options.seconds / 3))):
                port = stand.ports[turn % 2]
                stand.origins[port].signal(signal.SIGSTOP)
                pause(2, Why.PASSES)
                stand.origins[port].signal(signal.SIGCONT)
                pause(1, Why.MEASURED)

        return harmed(options, "hangs for 2 s of 3", stand, harm)


def resetting(options) -> list[dict]:
    with FaultStand(options) as stand:
        def harm() -> None:
            port = stand.ports[0]
            for resets in (10, 0):
                stand.origins[port].signal(signal.SIGKILL)
                stand.origins[port].wait(5)
                stand.start_origin(port, reset_every=resets)
                pause(options.seconds if resets else 0, Why.MEASURED)

        return harmed(options, "resets every tenth request", stand, harm)


def all_down(options) -> list[dict]:
    """Requests are refused at once while no server runs, and the first that can succeed does."""
    with FaultStand(options) as stand:
        beside, answers = Beside(stand), []
        calm = beside.during(options.seconds / 2)

        def harm() -> None:
            for port in stand.ports:
                stand.origins[port].signal(signal.SIGKILL)
                stand.origins[port].wait(5)
            end = time.monotonic() + 10
            while time.monotonic() < end:
                began = time.monotonic()
                answers.append((stand.status(), time.monotonic() - began))
                pause(0.05, Why.MEASURED)

        under = beside.during(0, harm)
        for port in stand.ports:
            stand.start_origin(port)
        took = stand.recovery()
        slowest = round(max(each for _, each in answers) * 1000)
        wrong = [status for status, _ in answers if status not in (502, 503, 504)]
        return [line("all origin servers down for 10 s", "each request is answered 502, 503 or 504 within 1 s; recovery within 1 s",
                     {"requests": len(answers), "wrong": wrong[:5], "slowest ms": slowest, "recovery s": took}, len(answers) > 20 and not wrong and slowest < 1000 and took <= 1),
                beside.verdict("all origin servers down for 10 s", (calm, under))]


def slow(options) -> list[dict]:
    """5,000 clients wait for an origin server that takes three seconds."""
    count = 5000
    with FaultStand(options, delay=3) as control, FaultStand(options, delay=3) as stand:
        # The failures, by stage and by the outcome in place of an answer.
        answered, failures, socks = {control: 0, stand: 0}, {}, {}

        def failed(stage: str, what: object) -> None:
            failures[f"{stage}: {what}"] = failures.get(f"{stage}: {what}", 0) + 1

        def begin(poll: select.epoll, stand: FaultStand, index: int) -> None:
            sock = socket.socket()
            sock.settimeout(20)
            stage = "connect"
            try:
                sock.bind((f"127.0.1.{1 + index % 64}", 0))
                sock.connect(("127.0.0.1", stand.web))
                stage = "send"
                sock.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            except OSError as problem:
                sock.close()
                return failed(stage, problem)
            socks[sock.fileno()] = (sock, bytearray(), time.monotonic())
            poll.register(sock, select.EPOLLIN)

        def read(poll: select.epoll, stand: FaultStand, descriptor: int) -> None:
            sock, content, began = socks[descriptor]
            end = "end"
            try:
                data = sock.recv(65536)
            except OSError as problem:
                data, end = b"", problem
            content += data
            if data:
                return
            if content.startswith(b"HTTP/1.1 200") and content.endswith(b"x" * 1024):
                answered[stand] += 1
            elif content.startswith(b"HTTP/1.1 200"):
                failed("read", f"{end} behind {len(content)} bytes")
            elif content:
                lines = content.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
                reason = next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("proxy-status:")), "")
                failed("status", f"{lines[0].split(' ')[1]} {reason} after {round(time.monotonic() - began)} s")
            else:
                failed("read", f"{end} without an answer after {round(time.monotonic() - began)} s")
            poll.unregister(descriptor)
            sock.close()
            del socks[descriptor]

        def harm(stand: FaultStand) -> None:
            with select.epoll() as poll:
                for index in range(count):
                    begin(poll, stand, index)
                deadline = time.monotonic() + 60
                while socks and time.monotonic() < deadline:
                    for descriptor, _ in poll.poll(1):
                        read(poll, stand, descriptor)

        name = "a slow origin server with 5,000 waiting clients"
        beside = beside_both(name, stand, control, harm)
        for sock, _, _ in socks.values():
            sock.close()
        return [line(name, "each gets its answer",
                     {"answered": answered[stand], "failed": failures, "waiting": len(socks), "memory KiB": stand.resident()},
                     answered[stand] == answered[control] == count * ROUNDS),
                beside]
