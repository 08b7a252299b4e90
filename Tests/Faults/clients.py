"""Clients that are slow, idle, or do not read."""

from __future__ import annotations

import select
import socket
import time

from Rig.results import line
from Rig.waits import Why, pause

from .stand import ROUNDS, Cgroup, FaultStand, beside_both

HEAD = b"GET /said HTTP/1.1\r\nHost: a.test\r\nX-A: " + b"a" * 60 + b"\r\n\r\n"


def opened(stand: FaultStand, index: int) -> socket.socket:
    sock = socket.socket()
    sock.settimeout(20)
    sock.bind((f"127.0.1.{1 + index % 64}", 0))
    sock.connect(("127.0.0.1", stand.web))
    return sock


def slow(options) -> list[dict]:
    """5,000 clients that send a byte at a time, and 5,000 that are idle between two requests."""
    with FaultStand(options) as control, FaultStand(options) as stand:
        lost, answered, before = [0], [0], stand.resident()
        memory = {control: 0, stand: before}

        def harm(stand: FaultStand) -> None:
            idle, dribbling = [], []
            for index in range(10_000):
                sock = opened(stand, index)
                if index % 2:
                    sock.sendall(HEAD)
                    idle.append(sock)
                else:
                    dribbling.append(sock)
            for sock in idle:
                lost[0] += b"said" not in sock.recv(4096)
            between = max(0.02, options.seconds / len(HEAD))
            for place in range(len(HEAD)):
                began = time.monotonic()
                for sock in dribbling:
                    try:
                        sock.send(HEAD[place : place + 1])
                    except OSError:
                        lost[0] += 1
                memory[stand] = max(memory[stand], stand.resident() if place % 20 == 0 else 0)
                pause(between - (time.monotonic() - began), Why.SLOW)
            for sock in dribbling:
                try:
                    answered[0] += b"said" in sock.recv(4096)
                except OSError:
                    pass
            poll = select.poll()
            for sock in idle:
                poll.register(sock, select.POLLIN)
            lost[0] += len(poll.poll(0))
            for sock in idle + dribbling:
                sock.close()

        name = "5,000 clients a byte at a time and 5,000 idle ones"
        beside = beside_both(name, stand, control, harm)
        each = round((memory[stand] - before) / 10_000, 2)
        return [line(name, "each request is answered, no connection is lost, 4 KiB each",
                     {"answered": answered[0], "lost": lost[0], "KiB each": each}, answered[0] == 5000 * 2 * ROUNDS and not lost[0] and each < 4),
                beside]


def readers(options) -> list[dict]:
    """500 clients ask for 1 GiB each and read a little now and then; the gateway may have 128 MiB."""
    limit = 128 << 20
    group, other = Cgroup("stand", limit), Cgroup("control", limit)
    try:
        with FaultStand(options, preexec=other.enter) as control, FaultStand(options, preexec=group.enter) as stand:
            fed, amount = [], [0]

            def harm(stand: FaultStand) -> None:
                moved: dict[int, int] = {}
                socks = []
                for _ in range(500):
                    sock = socket.socket()
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    sock.settimeout(20)
                    sock.connect(("127.0.0.1", stand.web))
                    sock.sendall(b"GET /big HTTP/1.1\r\nHost: a.test\r\n\r\n")
                    sock.setblocking(False)
                    socks.append(sock)
                began = time.monotonic()
                while (passed := time.monotonic() - began) < 30 and (passed < options.seconds or len(moved) < len(socks)):
                    for sock in socks:
                        try:
                            moved[sock.fileno()] = moved.get(sock.fileno(), 0) + len(sock.recv(1024))
                        except OSError:
                            pass
                    pause(0.2, Why.SLOW)
                fed.append(len(moved))
                amount[0] += sum(moved.values())
                for sock in socks:
                    sock.close()

            name = "500 readers that hardly read, under 128 MiB"
            beside = beside_both(name, stand, control, harm)
            alive = stand.gateway.is_running and stand.status("/said") == 200
            return [line(name, "no process is killed, every reader receives bytes",
                         {"killed": group.killed(), "peak MiB": group.peak() >> 20, "readers that got some": min(fed), "KiB moved": amount[0] >> 10, "serves": alive},
                         alive and not group.killed() and min(fed) == 500),
                    beside]
    finally:
        group.remove()
        other.remove()
