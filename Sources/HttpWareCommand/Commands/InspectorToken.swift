import FoundationEssentials
import Glibc
import HttpGateway
import HttpWare

/// The token of an admin listener that a command opens. It is made at each start and shown in the inspector's URL. For other
/// commands it is kept in a file that only this user can read, named by the listener's address.
struct InspectorToken: Sendable {
    let secret: Secret

    /// A new token of 190 random bits.
    init() {
        var generator = SystemRandomNumberGenerator()
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        secret = Secret(String((0..<32).map { _ in letters[Int.random(in: 0..<letters.count, using: &generator)] }))
    }

    /// The page with the token, for a browser.
    func url(at address: SocketAddress) -> String { "http://\(address)/?token=\(secret.revealed)" }

    /// Prints the page's URL and writes the file. The result removes the file when the listener has ended.
    func announce(at address: SocketAddress) -> File? {
        Terminal.error("\(Program.name): inspector on \(url(at: address))")
        let environment = ProcessInfo.processInfo.environment
        do throws(SystemError) {
            return try File(secret, for: address, environment)
        } catch {
            Terminal.error(
                "\(Program.name): the token cannot be kept for other commands, which need --token: "
                    + SystemError.text(of: error.code))
            return nil
        }
    }

    // MARK: The file

    /// The file with the token of one listener, while that listener is open.
    struct File: Sendable {
        let path: String
        private let bytes: [UInt8]

        /// Writes the token beside its place and moves it there, so that no command reads half of it.
        fileprivate init(_ secret: Secret, for address: SocketAddress, _ environment: [String: String])
            throws(SystemError)
        {
            let folder = InspectorToken.folder(environment)
            try PrivateFile.makeFolder(folder)
            path = FilePath.joined(folder, InspectorToken.name(of: address))
            bytes = Array(secret.revealed.utf8)
            try PrivateFile.write(bytes, to: path)
        }

        /// Removes the file, unless another listener at the address has replaced it since.
        func remove() { if PrivateFile.read(path) == bytes { unlink(path) } }
    }

    /// The token that a command of this user has stored for the listener at an address; `nil` if there is none.
    static func kept(
        for address: SocketAddress, _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> Secret? {
        PrivateFile.read(FilePath.joined(folder(environment), name(of: address))).map {
            Secret(String(decoding: $0, as: UTF8.self))
        }
    }

    /// The name of the file, such as `127.0.0.1:9900.token`. A listener on a wildcard address is reached at the loopback address.
    static func name(of address: SocketAddress) -> String {
        var shown = "\(address)"
        if let ip = address.address, let port = address.port, ip.isUnspecified {
            shown = "\(SocketAddress.ip(ip.isIPv4 ? IPAddress(ipv4: 0x7f00_0001) : IPAddress(ipv6: 0, 1), port: port))"
        }
        return shown.replacing("/", with: "_") + ".token"
    }

    /// The folder with the files of this user's running commands.
    static func folder(_ environment: [String: String]) -> String {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        if let runtime = variable("XDG_RUNTIME_DIR") { return FilePath.joined(runtime, "httpware") }
        let home = variable("HOME") ?? getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? "/"
        return FilePath.joined(variable("XDG_STATE_HOME") ?? FilePath.joined(home, ".local/state"), "httpware")
    }
}
