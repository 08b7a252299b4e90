import Glibc
public import HttpWare

/// The token of admin listeners whose configuration has none: made at the first start, and kept in a file that only its user can read.
///
/// The file is in the first of these folders in which it can be kept: `$STATE_DIRECTORY` (of a systemd service),
/// `$XDG_STATE_HOME/httpware`, `~/.local/state/httpware`, `$XDG_RUNTIME_DIR/httpware`, and `/tmp/httpware-UID`.
public struct AdminTokenFile: Sendable {
    /// A folder that a service of this name has by the packages, for commands of root.
    private static let serviceFolder = "/var/lib/httpware"
    private static let name = "admin-token"

    private let folders: [String]

    /// The token and its place.
    struct Kept: Equatable {
        let token: String
        /// The path of the file; `nil` if the token could not be kept.
        let path: String?
        /// Whether the token was made by this call.
        let isNew: Bool
    }

    /// The file of the process' user.
    public static var ofUser: AdminTokenFile {
        AdminTokenFile { name in getenv(name).map { String(cString: $0) } }
    }

    /// The file in the folders that these variables name.
    init(temporary: String = "/tmp", _ variable: (String) -> String?) {
        func folder(_ name: String) -> String? { variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let state = folder("STATE_DIRECTORY").map { String($0.prefix { $0 != ":" }) }
        let home = folder("HOME") ?? getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) }
        folders =
            [
                state, folder("XDG_STATE_HOME").map { FilePath.joined($0, "httpware") },
                home.flatMap { $0 == "/" ? nil : FilePath.joined($0, ".local/state/httpware") },
                folder("XDG_RUNTIME_DIR").map { FilePath.joined($0, "httpware") },
                FilePath.joined(temporary, "httpware-\(geteuid())"),
            ].compactMap(\.self)
    }

    /// The tokens that gateways of this user keep; for root, also that of the service. The first is the most likely.
    public func tokens() -> [Secret] {
        var found: [String] = []
        for folder in folders + (geteuid() == 0 ? [Self.serviceFolder] : []) {
            if let token = Self.read(folder), !found.contains(token) { found.append(token) }
        }
        return found.map { Secret($0) }
    }

    /// The kept token, or a new one.
    func takeOrMake() -> Kept {
        if let kept = firstKept() { return kept }
        let token = AdminSessions.random()
        for folder in folders {
            let path = FilePath.joined(folder, Self.name)
            do throws(SystemError) {
                try PrivateFile.makeFolder(folder)
                try PrivateFile.write(Array(token.utf8), to: path, replaces: false)
                return Kept(token: token, path: path, isNew: true)
            } catch {
                // Another process of this user has made one in the meantime.
                if error.code == EEXIST, let other = Self.read(folder) {
                    return Kept(token: other, path: path, isNew: false)
                }
            }
        }
        return Kept(token: token, path: nil, isNew: true)
    }

    private func firstKept() -> Kept? {
        for folder in folders {
            if let token = Self.read(folder) {
                return Kept(token: token, path: FilePath.joined(folder, Self.name), isNew: false)
            }
        }
        return nil
    }

    /// The token in a folder that no other user can change; `nil` without one.
    private static func read(_ folder: String) -> String? {
        var status = Glibc.stat()
        guard stat(folder, &status) == 0, status.st_uid == geteuid() || status.st_uid == 0 || geteuid() == 0,
            status.st_mode & 0o022 == 0, let bytes = PrivateFile.read(FilePath.joined(folder, name))
        else { return nil }
        let token = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first.map(String.init)
        return token.flatMap { $0.utf8.count >= 16 && $0.utf8.allSatisfy { (0x21...0x7e).contains($0) } ? $0 : nil }
    }
}
