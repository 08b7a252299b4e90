public import Capturing
import Glibc
public import HttpWare

/// The admin listener: its address, and the token that gives access.
public struct AdminDefinition: Sendable {
    /// The address that the listener listens on; 127.0.0.1:9900 by default.
    public internal(set) var bind = SocketAddress.loopback.with(port: 9900)
    /// Whether `/` is the inspector page.
    public internal(set) var ui = true
    /// The token that a client must send; `nil` if none is written.
    public internal(set) var token: Secret?
    /// Whether every program of this machine has access without a token: `token: none`.
    public internal(set) var isOpen = false
    /// Whether the gateway makes a token by itself, because none is written. A Unix socket is protected by its rights.
    public var makesToken: Bool {
        if case .unix = bind { return false }
        return token == nil && !isOpen
    }
    /// The settings of captures; `nil` if exchanges are not captured.
    public internal(set) var capture: CaptureSettings?

    /// The folder of the archives that temporary rules read and write.
    public internal(set) var rulesDir = FilePath(AdminDefinition.usualRulesDir)

    /// The place of the address in the file; without an address, the place of the options.
    public let bindLocation: SourceLocation

    /// Makes a definition that is not from a file.
    init(bind: SocketAddress, token: Secret, capture: CaptureSettings) {
        self.capture = capture
        self.bind = bind
        self.token = token
        bindLocation = .code
    }

    /// Reads the options under `admin`.
    init(options: inout OptionsReader) {
        bindLocation = options.location(of: "bind")
        options.recognize(["port": "bind", "listen": "bind", "address": "bind", "host": "bind"])
        options.read("bind", into: &bind, doc: "host:port, [::1]:port or unix:/path")
        options.read("ui", into: &ui, doc: "whether / is the inspector page")
        options.readSecret(
            "token", into: &token,
            doc:
                "the token that a client sends as Authorization: Bearer; by default one that the gateway makes for its user, but none on a Unix socket; none lets every program of this machine use the listener"
        )
        if token?.revealed == AdminDefinition.noToken {
            token = nil
            isOpen = true
        }
        options.read("capture", doc: "keeps what passes: both sides of each message, bounded in bytes") {
            let settings = CaptureSettings(options: &$0)
            if $0.isWritten { capture = settings }
        }
        var folder: FilePath?
        options.read(
            "rulesDir", into: &folder,
            doc: "folder of the archives that rules for a while read and write; by default in the user's state folder")
        if let folder { rulesDir = folder }
        if let token, !Self.canBeSent(token.revealed) {
            options.fail(at: "token", "cannot be sent in a field; write letters, digits and -._~+/, and = at the end")
        } else if let token, token.revealed.utf8.count < Self.shortestToken {
            options.warn(at: "token", "is easy to guess; write at least \(Self.shortestToken) characters")
        }
        if options.isMap, !bind.isLoopback, token == nil {
            options.fail(
                at: options.isGiven("bind") ? "bind" : nil,
                "\(bind) is reachable from outside; write a token, or bind to 127.0.0.1 or a Unix socket")
        }
    }

    private static let shortestToken = 16
    /// The value of `token` for a listener without one.
    private static let noToken = "none"

    /// The default folder: `$XDG_STATE_HOME/httpware/rules`.
    static var usualRulesDir: String {
        let state = getenv("XDG_STATE_HOME").map { String(cString: $0) } ?? ""
        return FilePath.joined(
            state.hasPrefix("/") ? state : FilePath.joined(FilePath.home, ".local/state"), "httpware/rules")
    }

    /// Whether the token is a `b64token`. RFC 6750 §2.1.
    private static func canBeSent(_ token: String) -> Bool {
        let body = token.utf8.reversed().drop { $0 == UInt8(ascii: "=") }
        return !body.isEmpty
            && body.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "-._~+/".utf8.contains(byte)
                }
            }
    }
}
