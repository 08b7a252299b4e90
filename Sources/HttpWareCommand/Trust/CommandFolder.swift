import Foundation
import Glibc
import HttpWare

/// The folder with the files that a command's environment names. It is removed when the command has ended.
struct CommandFolder {
    let path: String

    /// Makes a folder below `TMPDIR`.
    init() throws(SystemError) {
        let parent = ProcessInfo.processInfo.environment["TMPDIR"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
        var template = Array(FilePath.joined(parent, "httpware-with-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError("mkdtemp", code: errno) }
        path = String(decoding: template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Programs that root starts may drop their privileges before they read the certificates, as apt-get does. No other user
        // can list the folder.
        if getuid() == 0 { chmod(path, 0o711) }
    }

    /// Removes the folder and its content.
    func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file that every user can read, if the folder allows access and the path is known.
    func write(_ bytes: [UInt8], to file: String) throws {
        try Data(bytes).write(to: URL(filePath: file))
        chmod(file, 0o644)
    }

    /// Writes the files of an environment. `note` gets a line for each file of the user that cannot be read.
    func write(
        for environment: CommandEnvironment, authority: CertificateAuthority?, user: [String: String],
        note: (String) -> Void
    ) throws {
        let files = environment.files
        try write(Array(NodePreload.text.utf8), to: files.node)
        guard let authority else { return }
        let home = user["HOME"] ?? "/"
        let wget = user["WGETRC"].flatMap { $0.isEmpty ? nil : $0 } ?? FilePath.joined(home, ".wgetrc")
        let wgetText = CertificateBundle.text(wget) ?? ""
        let aptText = user["APT_CONFIG"].flatMap { CertificateBundle.text($0) } ?? ""
        var bundle = CertificateBundle()
        if let system = CertificateBundle.systemFile { bundle.add(path: system) }
        bundle.addCertificates(of: user, wget: wgetText, note: note)
        bundle.add(authority.der)
        try write(authority.pem, to: files.authority)
        try write(Array(bundle.pem.utf8), to: files.bundle)
        try write(Array(environment.wgetText(wgetText).utf8), to: files.wget)
        try write(Array(environment.aptText(aptText).utf8), to: files.apt)
        bundle.addJavaCertificates(of: user, note: note)
        try write(JavaTrustStore.pkcs12(bundle.certificates), to: files.java)
    }
}

extension CertificateBundle {
    /// Adds the certificates that the user's variables name.
    mutating func addCertificates(of user: [String: String], wget: String = "", note: (String) -> Void = { _ in }) {
        let names = CommandEnvironment.replacing + CommandEnvironment.adding + CommandEnvironment.optional
        var named = names.compactMap { name in user[name].map { (name, $0) } }
        named += (user["SSL_CERT_DIR"] ?? "").split(separator: ":").map { ("SSL_CERT_DIR", String($0)) }
        named += CommandEnvironment.wgetCertificates(wget).map { ("ca_certificate of wget", $0) }
        for (name, path) in named where !path.isEmpty && !add(path: path) {
            note("\(name): \(path) contains no certificate that can be read; it is left out")
        }
    }

    /// Adds the certificates that Java trusts: the JDK's own, and those of a store that the user's options name.
    mutating func addJavaCertificates(of user: [String: String], note: (String) -> Void) {
        if let store = JavaTrustStore.usualStore(user) { add(javaStore: store, CaExportCommand.password, user, note) }
        if let named = CommandEnvironment.javaStore(user["JAVA_TOOL_OPTIONS"] ?? "") {
            add(javaStore: named.path, named.password, user, note)
        }
    }

    private mutating func add(
        javaStore path: String, _ password: String, _ user: [String: String], _ note: (String) -> Void
    ) {
        if let certificates = CertificateBundle.bytes(path).flatMap(JavaTrustStore.certificates) {
            for certificate in certificates { add(certificate) }
        } else if let keytool = SearchPath.program("keytool", user),
            // An encrypted store, which Java's own tool can read.
            let text = ToolRun.output(
                [keytool, "-list", "-rfc", "-keystore", path, "-storepass:env", "HTTPWARE_STOREPASS"],
                environment: user.merging(["HTTPWARE_STOREPASS": password]) { $1 }), add(pem: text)
        {
        } else {
            note("\(path): the trust store of Java cannot be read; its certificates are left out")
        }
    }
}
