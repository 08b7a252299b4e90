import HttpWare

/// A database of Mozilla's NSS. Each profile of Firefox has one, and Chromium's is in the user's home.
struct NssDatabase {
    let folder: String
    /// The path of `certutil`.
    let tool: String

    /// Finds `certutil`. If it is missing, the error names the package that contains it.
    static func tool(_ user: [String: String]) throws(TrustProblem) -> String {
        guard let tool = SearchPath.program("certutil", user) else {
            throw TrustProblem(
                "certutil is not installed; it is in the package libnss3-tools (Debian) or nss-tools (Fedora)")
        }
        return tool
    }

    /// Makes an empty database without a password.
    func make() throws(TrustProblem) { try run("-N", "--empty-password") }

    /// Adds an authority for TLS, replacing an older one of that name.
    func add(_ file: String, name: String) throws(TrustProblem) {
        while has(name) { try run("-D", "-n", name) }
        try run("-A", "-t", "C,,", "-n", name, "-i", file)
    }

    /// Removes the authorities of that name. Returns whether there were any.
    func remove(name: String) throws(TrustProblem) -> Bool {
        var hasAny = false
        while has(name) {
            hasAny = true
            try run("-D", "-n", name)
        }
        return hasAny
    }

    /// Whether the database trusts this certificate under that name.
    func trusts(_ certificate: [UInt8], name: String) -> Bool {
        guard let text = ToolRun.output([tool, "-L", "-d", "sql:\(folder)", "-n", name, "-a"]) else { return false }
        var bundle = CertificateBundle()
        bundle.add(pem: text)
        return bundle.certificates.contains(certificate)
    }

    private func has(_ name: String) -> Bool {
        ToolRun.run([tool, "-L", "-d", "sql:\(folder)", "-n", name])?.status == 0
    }

    private func run(_ arguments: String...) throws(TrustProblem) {
        guard let result = ToolRun.run([tool] + [arguments[0], "-d", "sql:\(folder)"] + arguments.dropFirst()) else {
            throw TrustProblem("\(tool) cannot be started")
        }
        guard result.status == 0 else { throw TrustProblem(result.reason) }
    }
}

/// Why a store of certificates could not be changed.
struct TrustProblem: Error {
    let text: String

    init(_ text: String) { self.text = text }
}

extension CertificateAuthority {
    /// The name that people see. It contains the user and the machine.
    var commonName: String {
        let part = subject.split(separator: ",").first { $0.hasPrefix("CN=") }
        return part.map { String($0.dropFirst(3)).replacing("\\", with: "") } ?? "httpware CA"
    }
}
