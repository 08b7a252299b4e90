import ArgumentParser
import FoundationEssentials
import Glibc
import HttpWare

/// The kinds of stores in which programs look for authorities.
enum TrustStoreKind: String, ExpressibleByArgument, CaseIterable {
    case system, nss, java, macos, ios, android

    /// The kinds on this machine; for the others, commands are printed.
    static let here: [TrustStoreKind] = [.system, .nss, .java]
}

/// A store of certificates on this machine.
struct TrustStore {
    /// The name for people, such as `system (/usr/local/share/ca-certificates)`.
    let label: String
    let kind: TrustStoreKind
    /// Whether the authority is in the store.
    let isTrusting: () -> Bool
    let install: () throws(TrustProblem) -> Void
    /// Removes the authority; returns whether it was there.
    let uninstall: () throws(TrustProblem) -> Bool
}

/// Finds the stores of this machine for an authority.
struct TrustStores {
    let authority: CertificateAuthority
    /// The file with the authority's certificate.
    let file: String
    let user: [String: String]
    /// The folder used as the root of the file system.
    var root = "/"

    /// The stores of a kind, or the reason why there are none.
    struct Found {
        var stores: [TrustStore] = []
        var problem: String?
    }

    private var home: String { user["HOME"] ?? "/" }

    /// The name in stores. Later authorities of this user and machine have the same name, and replace older ones.
    private var name: String { authority.commonName }
    private var fileName: String {
        let slug = String(name.lowercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
        return slug.hasPrefix("httpware") ? slug : "httpware-" + slug
    }

    /// The stores of a kind on this machine.
    func stores(_ kind: TrustStoreKind) -> Found {
        switch kind {
        case .system: system()
        case .nss: nss()
        case .java: java()
        case .macos, .ios, .android: Found()
        }
    }

    // MARK: The system

    /// The folders for authorities that an administrator adds, and the tool that adds them to the system's file.
    private static let systemFolders = [
        ("usr/local/share/ca-certificates", "crt", ["update-ca-certificates"]),  // Debian, Alpine
        ("etc/pki/ca-trust/source/anchors", "pem", ["update-ca-trust", "extract"]),  // Fedora
        ("etc/ca-certificates/trust-source/anchors", "crt", ["update-ca-trust"]),  // Arch
        ("etc/pki/trust/anchors", "pem", ["update-ca-certificates"]),  // openSUSE
    ]

    private func system() -> Found {
        for (path, end, command) in TrustStores.systemFolders {
            let folder = FilePath.joined(root, path)
            guard FileManager.default.fileExists(atPath: folder) else { continue }
            guard let tool = SearchPath.program(command[0], administrators) else {
                return Found(problem: "\(folder) exists, but \(command[0]) is not installed")
            }
            let target = FilePath.joined(folder, "\(fileName).\(end)")
            let update = [tool] + command.dropFirst()
            let store = TrustStore(
                label: "system (\(folder))", kind: .system,
                isTrusting: { holds(target) },
                install: { () throws(TrustProblem) in
                    try write(target)
                    try TrustStores.run(update)
                },
                uninstall: { () throws(TrustProblem) in
                    guard access(target, F_OK) == 0 else { return false }
                    guard unlink(target) == 0 else { throw systemProblem(target, "uninstall") }
                    try TrustStores.run(update)
                    return true
                })
            return Found(stores: [store])
        }
        return Found(problem: "no folder for authorities was found, such as /usr/local/share/ca-certificates")
    }

    /// For ordinary users, PATH may lack the folders of an administrator's tools.
    private var administrators: [String: String] {
        user.merging(["PATH": (user["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"]) { $1 }
    }

    private func write(_ target: String) throws(TrustProblem) {
        let bytes = authority.pem
        let descriptor = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw systemProblem(target) }
        defer { close(descriptor) }
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw systemProblem(target) }
    }

    private func systemProblem(_ path: String, _ verb: String = "install") -> TrustProblem {
        let code = errno
        guard code == EACCES || code == EPERM else {
            return TrustProblem("\(path): \(SystemError.text(of: code).lowercased())")
        }
        return rootNeeded(verb, .system)
    }

    private func rootNeeded(_ verb: String, _ kind: TrustStoreKind) -> TrustProblem {
        let folder = CommandText.quoted(FilePath.directory(of: file))
        return TrustProblem("needs root; run: sudo \(Program.name) ca \(verb) --store \(kind.rawValue) --dir \(folder)")
    }

    // MARK: NSS

    private func nss() -> Found {
        let folders = nssFolders()
        guard !folders.isEmpty else { return Found(problem: "no profile of Firefox and no ~/.pki/nssdb was found") }
        let tool: String
        do throws(TrustProblem) {
            tool = try NssDatabase.tool(user)
        } catch {
            return Found(problem: error.text)
        }
        return Found(
            stores: folders.map { folder in
                let database = NssDatabase(folder: folder, tool: tool)
                return TrustStore(
                    label: "NSS (\(folder))", kind: .nss,
                    isTrusting: { database.trusts(authority.der, name: name) },
                    install: { () throws(TrustProblem) in
                        if access(FilePath.joined(folder, "cert9.db"), F_OK) != 0 {
                            try? FileManager.default.createDirectory(
                                atPath: folder, withIntermediateDirectories: true,
                                attributes: [.posixPermissions: 0o700])
                            try database.make()
                        }
                        try database.add(file, name: name)
                    },
                    uninstall: { () throws(TrustProblem) in try database.remove(name: name) })
            })
    }

    /// Chromium's folder, even if it does not exist yet, and the profiles of Firefox.
    private func nssFolders() -> [String] {
        var folders: [String] = []
        let usual = FilePath.joined(home, ".pki/nssdb")
        let hasChromium = ["chromium", "chromium-browser", "google-chrome", "brave-browser", "microsoft-edge"]
            .contains { SearchPath.program($0, user) != nil }
        if hasChromium || access(usual, F_OK) == 0 { folders.append(usual) }
        for place in [
            ".mozilla/firefox", ".librewolf", "snap/firefox/common/.mozilla/firefox",
            ".var/app/org.mozilla.firefox/.mozilla/firefox",
        ] {
            let parent = FilePath.joined(home, place)
            for profile in ((try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []).sorted() {
                let folder = FilePath.joined(parent, profile)
                if access(FilePath.joined(folder, "cert9.db"), F_OK) == 0 { folders.append(folder) }
            }
        }
        return folders
    }

    // MARK: Java

    private func java() -> Found {
        let environment =
            user["JAVA_HOME"].map { home in
                user.merging(["PATH": FilePath.joined(home, "bin") + ":" + (user["PATH"] ?? "/usr/bin")]) { $1 }
            } ?? user
        guard let store = JavaTrustStore.usualStore(user) else { return Found(problem: "no JDK was found") }
        guard let keytool = SearchPath.program("keytool", environment) else {
            return Found(problem: "keytool is not installed; it comes with a JDK")
        }
        let arguments = ["-keystore", store, "-storepass", CaExportCommand.password]
        let remove = { (aliases: [String]) throws(TrustProblem) in
            for alias in aliases { try TrustStores.run([keytool, "-delete", "-alias", alias] + arguments) }
        }
        return Found(stores: [
            TrustStore(
                label: "JDK (\(store))", kind: .java,
                isTrusting: {
                    if let held = CertificateBundle.bytes(store).flatMap(JavaTrustStore.certificates) {
                        return held.contains(authority.der)
                    }
                    return !aliases(keytool, arguments, isNamed: { _ in false }).isEmpty
                },
                install: { () throws(TrustProblem) in
                    guard access(store, W_OK) == 0 else { throw rootNeeded("install", .java) }
                    try remove(aliases(keytool, arguments, isNamed: { $0 == fileName }))
                    try TrustStores.run(
                        [keytool, "-importcert", "-noprompt", "-alias", fileName, "-file", file] + arguments)
                },
                uninstall: { () throws(TrustProblem) in
                    // Debian copies the system's authorities into this store, and does not remove them.
                    let ours = [fileName, "debian:\(fileName).pem"]
                    let found = aliases(keytool, arguments, isNamed: ours.contains)
                    guard !found.isEmpty else { return false }
                    guard access(store, W_OK) == 0 else { throw rootNeeded("uninstall", .java) }
                    try remove(found)
                    return true
                })
        ])
    }

    /// The entries of a trust store that contain our certificate or have its name.
    private func aliases(_ keytool: String, _ arguments: [String], isNamed: (String) -> Bool) -> [String] {
        let list = [keytool, "-J-Duser.language=en", "-list", "-rfc"]
        guard let text = ToolRun.output(list + arguments) else { return [] }
        return text.split(separator: "Alias name: ", omittingEmptySubsequences: false).dropFirst().compactMap { part in
            let alias = part.prefix { !$0.isNewline }.description
            var bundle = CertificateBundle()
            bundle.add(pem: String(part))
            return isNamed(alias) || bundle.certificates.contains(authority.der) ? alias : nil
        }
    }

    // MARK: Parts

    private static func run(_ command: [String]) throws(TrustProblem) {
        guard let result = ToolRun.run(command) else { throw TrustProblem("\(command[0]) cannot be started") }
        guard result.status == 0 else {
            throw TrustProblem("\(URL(filePath: command[0]).lastPathComponent): \(result.reason)")
        }
    }

    private func holds(_ path: String) -> Bool {
        var bundle = CertificateBundle()
        return bundle.add(path: path) && bundle.certificates.contains(authority.der)
    }

    // MARK: Other machines

    /// The commands for machines of a kind that this program does not run on.
    func commands(_ kind: TrustStoreKind) -> [String] {
        let path = CommandText.quoted(file)
        switch kind {
        case .system, .nss, .java: return []
        case .macos:
            return [
                "sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain \(path)"
            ]
        case .ios:
            return [
                "xcrun simctl keychain booted add-root-cert \(path)",
                "# a device: open http://httpware.proxy/ca.crt in Safari through the proxy, install the profile, and turn it on in",
                "# Settings > General > About > Certificate Trust Settings",
            ]
        case .android:
            return [
                "adb push \(path) /sdcard/Download/httpware-ca.crt",
                "# then Settings > Security > Encryption & credentials > Install a certificate > CA certificate",
                "# an emulator with a writable system: adb root && adb remount, and push the file as",
                "# /system/etc/security/cacerts/$(openssl x509 -subject_hash_old -noout -in \(path)).0",
            ]
        }
    }
}
