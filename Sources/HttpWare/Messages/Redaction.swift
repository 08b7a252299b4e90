import Synchronization

/// What is not shown in logs and records: credentials.
public enum Redaction {
    /// The fields whose values are not shown, unless somebody says otherwise.
    public static let fields: [FieldName] = [
        .authorization, .proxyAuthorization, .cookie, .setCookie, "X-Api-Key",
    ]

    /// What stands in place of a value.
    public static let mark = "…"

    /// A target as received or as it goes upstream, with the values of query parameters that are named like credentials, and
    /// user information before a host, in place of which stands a mark.
    public static func target(_ target: String) -> String {
        var target = target
        // RFC 3986 §3.2.1; the part before `@` may be a password.
        if let slashes = target.firstRange(of: "//") {
            let authority = target[slashes.upperBound...].prefix { $0 != "/" && $0 != "?" }
            if let at = authority.lastIndex(of: "@") { target.replaceSubrange(authority.startIndex..<at, with: mark) }
        }
        guard let question = target.firstIndex(of: "?") else { return target }
        let parameters = target[target.index(after: question)...].split(
            separator: "&", omittingEmptySubsequences: false
        ).map { parameter -> Substring in
            guard let equals = parameter.firstIndex(of: "="), isSecret(String(parameter[..<equals])) else {
                return parameter
            }
            return parameter[...equals] + mark
        }
        return target[...question] + parameters.joined(separator: "&")
    }

    /// Never shows the values of query parameters of that name: a configuration says that they are credentials. For the rest
    /// of the process, from any thread.
    public static func hide(parameter name: String) { hidden.withLock { _ = $0.insert(decoded(name)) } }

    private static let hidden = Mutex<Set<String>>([])

    /// Whether a parameter is named like a credential; the name may be percent-encoded, in any case.
    static func isSecret(_ name: String) -> Bool {
        let plain = decoded(name)
        return hidden.withLock { $0.contains(plain) } || exact.contains(plain) || plain.hasSuffix("key")
            || parts.contains { plain.contains($0) }
    }

    private static let exact: Set<String> = ["auth", "sig", "pwd", "pin", "otp", "code", "sid"]
    private static let parts = [
        "token", "secret", "passw", "passphrase", "passcode", "signature", "credential", "session", "authorization",
        "oauth",
        "jwt", "assertion",
    ]

    /// In lower case, with percent-encodings decoded: `%74oken` is a token too.
    private static func decoded(_ name: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(name.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == 0x25, rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                rest = rest.dropFirst(2)
                bytes.append(ByteClass.lower(value))
            } else {
                bytes.append(ByteClass.lower(byte))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension HttpRequest {
    /// Gives the target as it stood in the request line, with a mark in place of what is named like a credential, as bytes that
    /// are valid during the call only: for logs.
    public func withShownTarget(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        // Without a query or user information there is nothing to hide.
        guard target.bytes[target.received.range].contains(where: { $0 == 0x3f || $0 == 0x40 }) else {
            return withReceivedTarget(body)
        }
        let received = receivedTarget
        var shown = Redaction.target(received)
        if shown == received { return withReceivedTarget(body) }
        shown.withUTF8 { body($0) }
    }
}
