import Glibc

@testable import HttpWare

/// libFuzzer's own loop; it reads the command line.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Shared parts of the fuzz targets.
public enum Fuzzing {
    /// Runs until libFuzzer has enough, or found something.
    public static func run(_ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt) {
        #if !HTTPWARE_EXTRAS
            var count = CommandLine.argc
            var arguments = CommandLine.unsafeArgv
            exit(runDriver(&count, &arguments, test))
        #endif
    }

    /// An input: its first byte chooses among variants, the rest is what a peer sent.
    static func input(_ start: UnsafePointer<UInt8>?, _ count: Int) -> (choice: Int, wire: [UInt8])? {
        guard let start, count > 0 else { return nil }
        return (Int(start[0]), Array(UnsafeBufferPointer(start: start + 1, count: count - 1)))
    }

    static func require(_ claim: Bool, _ text: @autoclosure () -> String) {
        if !claim { fatalError(text()) }
    }

    /// Small limits or the default ones.
    static func limits(_ choice: Int) -> HeadLimits {
        var limits = HeadLimits()
        if choice & 1 != 0 {
            limits.head = 120
            limits.requestTarget = 24
            limits.fieldLines = 4
        }
        return limits
    }

    static func encode(_ body: (inout HeadEncoder) -> Void) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
            var encoder = HeadEncoder(UnsafeMutableRawBufferPointer(buffer))
            body(&encoder)
            require(!encoder.isOverflown, "the head does not fit")
            count = encoder.count
        }
    }

    /// Checks that a head is lines that end in CRLF, the last one empty, with at most one framing, and answers the number
    /// of those and of `Host` lines.
    static func checkHead(_ head: [UInt8]) -> (framings: Int, hosts: Int) {
        var framings = 0
        var hosts = 0
        var lineStart = 0
        var index = 0
        while index < head.count {
            if head[index] == 0x0d {
                require(index + 1 < head.count && head[index + 1] == 0x0a, "a bare CR in \(text(head))")
                let line = text(Array(head[lineStart..<index])).lowercased()
                if line.hasPrefix("content-length:") || line.hasPrefix("transfer-encoding:") { framings += 1 }
                if line.hasPrefix("host:") { hosts += 1 }
                require(!line.isEmpty || index + 2 == head.count, "an empty line inside \(text(head))")
                index += 2
                lineStart = index
            } else {
                require(head[index] != 0x0a && head[index] != 0, "a bare LF or NUL in \(text(head))")
                index += 1
            }
        }
        require(head.suffix(4) == [0x0d, 0x0a, 0x0d, 0x0a], "no end in \(text(head))")
        require(framings <= 1, "two framings in \(text(head))")
        return (framings, hosts)
    }

    static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
