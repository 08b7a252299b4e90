import Glibc

/// A failed system call and its error.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call, such as `bind`.
    public let call: String

    /// Its `errno`.
    public let code: Int32

    /// Makes an error of a call and its `errno`.
    public init(_ call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// Makes an error of the call that has just failed, with the thread's current `errno`.
    public init(_ call: String) { self.init(call, code: errno) }

    /// Whether the process or the machine has no descriptor left (`EMFILE`, `ENFILE`).
    public var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }

    /// The call and the system's text: `bind: Address already in use`.
    public var description: String { "\(call): \(SystemError.text(of: code))" }

    /// The system's text for an `errno`.
    public static func text(of code: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
            guard let start = buffer.baseAddress else { return "error \(code)" }
            start.initialize(repeating: 0, count: buffer.count)
            return strerror_r(code, start, buffer.count) == 0 ? String(cString: start) : "error \(code)"
        }
    }
}
