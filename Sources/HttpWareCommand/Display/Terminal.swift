import ArgumentParser
import Glibc
import HttpWare

/// Standard output and standard error.
enum Terminal {
    /// Reserves the numbers of closed standard streams. Otherwise a file or socket that is opened later would get such a number,
    /// and receive the messages for people. Reading and writing there still fails. Call it first.
    static func reserveDescriptors() {
        for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
        where fcntl(descriptor, F_GETFD) < 0 {
            // The system gives the lowest free number.
            _ = open("/dev/null", mode)
        }
    }

    /// Prints a line for people on standard error.
    static func error(_ text: String) { _ = write(text + "\n", to: STDERR_FILENO) }

    /// Prints a line about requests while they arrive; returns false if the reader has closed the output.
    @discardableResult
    static func print(_ text: String, end: String = "\n") -> Bool { write(text + end, to: STDOUT_FILENO) == 0 }

    /// Prints the result of a command, or a part of it. If it cannot be written, the program ends. If the reader has closed the
    /// output, it ends without a message, as by SIGPIPE; otherwise with a line that states the reason.
    static func result(_ text: String, end: String = "\n") throws { try result(Array((text + end).utf8)) }

    /// The same with bytes.
    static func result(_ bytes: [UInt8]) throws {
        let code = bytes.withUnsafeBytes { write($0, to: STDOUT_FILENO) }
        if code == EPIPE {
            // Loops ignore SIGPIPE.
            signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
        }
        guard code == 0 else {
            error("standard output cannot be written: \(SystemError.text(of: code))")
            throw ExitCode(3)
        }
    }

    /// Writes the text in one piece, so that the lines of several threads do not mix. Returns 0 or an `errno`.
    private static func write(_ text: String, to descriptor: Int32) -> Int32 {
        var text = text
        return text.withUTF8 { write(UnsafeRawBufferPointer($0), to: descriptor) }
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        var rest = bytes
        while let start = rest.baseAddress, !rest.isEmpty {
            let count = Glibc.write(descriptor, start, rest.count)
            if count > 0 {
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            } else if errno == EAGAIN {
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wanted, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}
