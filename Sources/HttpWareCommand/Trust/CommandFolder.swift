import FoundationEssentials
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
        // can list the folder, but the names of the files are known: each has the rights of what it was made from.
        if getuid() == 0 { chmod(path, 0o711) }
    }

    /// Removes the folder and its content.
    func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a new file, with these rights from its first byte on. By default, every user who knows its path can read it, as programs
    /// that drop the rights of root must: that is for certificates and other constants only.
    func write(_ bytes: [UInt8], to file: String, rights: mode_t = 0o644) throws {
        let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemError("open", code: errno) }
        defer { close(descriptor) }
        try PrivateFile.write(bytes, to: descriptor)
        guard fchmod(descriptor, rights) == 0 else { throw SystemError("fchmod", code: errno) }
    }

    /// A file of the user, whose lines a file here begins with.
    struct Original {
        let text: String
        /// The rights of a copy: no more than the file has where it is, and none for a group, because a copy may have another. A missing
        /// file has no secrets.
        let rights: mode_t

        init(_ path: String?) {
            var status = Glibc.stat()
            guard let path, let content = CertificateBundle.text(path, &status) else {
                text = ""
                rights = 0o644
                return
            }
            text = content
            rights = status.st_mode & 0o044 == 0o044 && Original.isReachable(path) ? 0o644 : 0o600
        }

        /// Whether every user may pass all folders above the file.
        private static func isReachable(_ path: String) -> Bool {
            guard let real = realpath(path, nil) else { return false }
            defer { free(real) }
            var folder = FilePath.directory(of: String(cString: real))
            while !folder.isEmpty {
                var status = Glibc.stat()
                guard stat(folder, &status) == 0, status.st_mode & 0o001 != 0 else { return false }
                if folder == "/" { return true }
                folder = FilePath.directory(of: folder)
            }
            return false
        }
    }

    /// Writes the files of an environment. `note` gets a line for each file of the user that cannot be read.
    func write(
        for environment: CommandEnvironment, authority: CertificateAuthority?, user: [String: String],
        note: (String) -> Void
    ) throws {
        let files = environment.files
        try write(Array(NodePreload.text.utf8), to: files.node)
        let own = environment.own
        let (ofWget, ofCurl) = (Original(own.wget), Original(own.curl))
        if own.curl != nil {
            try write(Array(environment.curlText(ofCurl.text).utf8), to: files.curl, rights: ofCurl.rights)
        }
        if authority != nil || own.wget != nil {
            try write(Array(environment.wgetText(ofWget.text).utf8), to: files.wget, rights: ofWget.rights)
        }
        guard let authority else { return }
        let ofApt = Original(user["APT_CONFIG"])
        var bundle = CertificateBundle()
        if let system = CertificateBundle.systemFile { bundle.add(path: system) }
        let ofNpm = own.npm.compactMap { CertificateBundle.text($0) }
        let named =
            CommandEnvironment.wgetCertificates(ofWget.text).map { ("ca_certificate of wget", $0) }
            + CommandEnvironment.curlCertificates(ofCurl.text).map { ("cacert of curl", $0) }
            + ofNpm.flatMap(CommandEnvironment.npmCertificates).map { ("cafile of npm", $0) }
        bundle.addCertificates(of: user, named: named, note: note)
        bundle.add(authority.der)
        try write(authority.pem, to: files.authority)
        try write(Array(bundle.pem.utf8), to: files.bundle)
        try write(Array(environment.aptText(ofApt.text).utf8), to: files.apt, rights: ofApt.rights)
        bundle.addJavaCertificates(of: user, note: note)
        try write(JavaTrustStore.pkcs12(bundle.certificates), to: files.java)
    }
}

extension CertificateBundle {
    /// Adds the certificates that the user's variables name, and those of files with a name for people.
    mutating func addCertificates(
        of user: [String: String], named files: [(String, String)] = [], note: (String) -> Void = { _ in }
    ) {
        let names = CommandEnvironment.replacing + CommandEnvironment.adding + CommandEnvironment.optional
        var named = names.compactMap { name in user[name].map { (name, $0) } }
        named += (user["SSL_CERT_DIR"] ?? "").split(separator: ":").map { ("SSL_CERT_DIR", String($0)) }
        named += files
        // The variable of Conda may be a word, too.
        for (name, path) in named
        where !path.isEmpty && !["true", "false", "truststore"].contains(path) && !add(path: path) {
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
