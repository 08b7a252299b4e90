import Foundation
import Glibc
import HttpWare
import Testing

@testable import HttpGateway

@Suite final class AdminTokenFileTests {
    private let place = FileManager.default.temporaryDirectory.appending(path: "httpware-test-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(
            at: place, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(at: place) }

    private func file(_ variables: [String: String], temporary: String? = nil) -> AdminTokenFile {
        AdminTokenFile(temporary: temporary ?? "\(place.path)/tmp") { variables[$0] }
    }

    private func rights(_ path: String) throws -> Int {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return Int(status.st_mode & 0o777)
    }

    @Test func `the token is made once, in a file of this user alone`() throws {
        let state = "\(place.path)/a/state"
        let file = file(["XDG_STATE_HOME": state, "HOME": "\(place.path)/home"])
        #expect(file.tokens().isEmpty)
        let made = file.takeOrMake()
        #expect(made.isNew && made.path == "\(state)/httpware/admin-token" && made.token.utf8.count == 32)
        #expect(try rights("\(state)/httpware/admin-token") == 0o600)
        #expect(try rights("\(state)/httpware") == 0o700)
        let again = file.takeOrMake()
        #expect((again.token, again.isNew) == (made.token, false))
        #expect(file.tokens().map(\.revealed) == [made.token])
    }

    @Test(arguments: [
        (["STATE_DIRECTORY": "P/service:P/other", "XDG_STATE_HOME": "P/state", "HOME": "P/home"], "service"),
        (["XDG_STATE_HOME": "P/state", "HOME": "P/home"], "state/httpware"),
        (["XDG_STATE_HOME": "relative", "HOME": "P/home"], "home/.local/state/httpware"),
        (["HOME": "/proc/none", "XDG_RUNTIME_DIR": "P/run"], "run/httpware"),
    ])
    func `the first folder that can be used has the file`(variables: [String: String], folder: String) {
        let made = file(variables.mapValues { $0.replacing("P/", with: place.path + "/") }).takeOrMake()
        #expect(made.path == "\(place.path)/\(folder)/admin-token")
    }

    @Test func `without a home, a folder of this user for temporary files is used, and none at all keeps nothing`()
        throws
    {
        let temporary = "\(place.path)/tmp"
        let made = file(["HOME": "/proc/none"]).takeOrMake()
        #expect(made.path == "\(temporary)/httpware-\(geteuid())/admin-token")
        let nowhere = file(["HOME": "/proc/none"], temporary: "/proc/none").takeOrMake()
        #expect(nowhere.path == nil && nowhere.token.utf8.count == 32)
    }

    @Test func `a folder that others can change, a file that others can read, and a link are not used`() throws {
        let open = "\(place.path)/open/httpware"
        try FileManager.default.createDirectory(atPath: open, withIntermediateDirectories: true)
        chmod(open, 0o777)
        try Data("an-old-token-of-somebody".utf8).write(to: URL(filePath: "\(open)/admin-token"))
        chmod("\(open)/admin-token", 0o600)
        let variables = ["XDG_STATE_HOME": "\(place.path)/open", "HOME": "\(place.path)/home"]
        #expect(file(variables).tokens().isEmpty)
        #expect(file(variables).takeOrMake().path == "\(place.path)/home/.local/state/httpware/admin-token")
        chmod(open, 0o700)
        #expect(file(variables).tokens().count == 2)
        chmod("\(open)/admin-token", 0o644)
        #expect(file(variables).tokens().count == 1)
        unlink("\(open)/admin-token")
        symlink("\(place.path)/home/.local/state/httpware/admin-token", "\(open)/admin-token")
        #expect(file(variables).tokens().count == 1)
    }

    @Test func `an existing file is not replaced`() throws {
        let path = "\(place.path)/kept"
        try PrivateFile.write(Array("first".utf8), to: path, replaces: false)
        #expect(throws: SystemError.self) { try PrivateFile.write(Array("second".utf8), to: path, replaces: false) }
        #expect(PrivateFile.read(path) == Array("first".utf8))
        try PrivateFile.write(Array("third".utf8), to: path)
        #expect(PrivateFile.read(path) == Array("third".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["kept"])
    }
}
