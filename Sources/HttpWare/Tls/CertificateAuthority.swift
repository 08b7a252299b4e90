import COpenSSL
import COpenSSLShims
import Glibc
import Synchronization

/// The authority of a local proxy: its root certificate, which clients trust, and a certificate for each intercepted host,
/// signed when the first client asks for the host.
///
/// All host certificates of a process share one key. The root's own key is kept in a memory page that is excluded from core dumps;
/// OpenSSL has it only while it signs.
///
/// Unchecked: the pointers are set up in `init`, and OpenSSL counts its references atomically; a lock guards the
/// certificates.
public final class CertificateAuthority: @unchecked Sendable {
    /// The validity of a root, in days.
    public static let rootDays = 3653
    /// The validity of a host's certificate, in days: clients refuse more than 398.
    static let leafDays = 397
    /// The maximum number of cached host certificates.
    static let mostLeaves = 1000

    /// The names of the two files in a folder.
    public static let certificateFile = "ca.pem"
    public static let keyFile = "ca.key"

    private let root: OpaquePointer
    private let rootKey: OpaquePointer
    let leafKey: OpaquePointer
    private let leaves = Mutex(Leaves())
    /// The clients that refused its certificates.
    public let pinned = PinnedHosts()

    /// The certificates of recent hosts, in two generations: when the newer one is full, the older one is dropped.
    private struct Leaves {
        var newer: [String: UInt] = [:]
        var older: [String: UInt] = [:]
        /// The number of certificates signed.
        var signed = 0
    }

    /// Takes over a root and its key.
    private init(_ root: OpaquePointer, _ key: OpaquePointer) throws(TlsFault) {
        guard let leafKey = authority_make_leaf_key() else {
            X509_free(root)
            authority_free(key)
            throw .material("OpenSSL cannot make a key")
        }
        self.root = root
        rootKey = key
        self.leafKey = leafKey
    }

    deinit {
        leaves.withLock { leaves in
            for leaf in leaves.newer.values { X509_free(OpaquePointer(bitPattern: leaf)) }
            for leaf in leaves.older.values { X509_free(OpaquePointer(bitPattern: leaf)) }
        }
        X509_free(root)
        authority_free(rootKey)
        EVP_PKEY_free(leafKey)
    }

    // MARK: Certificates of hosts

    /// The certificate for a host: a name in lower case, or an address, with or without brackets. `nil` if memory is exhausted, and for
    /// a host that cannot have a certificate of its own, such as `*.example.com`. The caller frees it. Safe to call from any thread; a new host costs one signature.
    func certificate(for host: String) -> OpaquePointer? {
        guard Authority.isCertifiable(host) else { return nil }
        // A second loop that asks for the same host waits for the first one's signature instead of making its own.
        let pointer = leaves.withLock { leaves -> UInt? in
            if let known = leaves.newer[host] { return CertificateAuthority.retained(known) }
            let made: UInt
            if let known = leaves.older.removeValue(forKey: host) {
                made = known
            } else {
                guard let new = makeLeaf(host) else { return nil }
                leaves.signed += 1
                made = UInt(bitPattern: new)
            }
            if leaves.newer.count >= CertificateAuthority.mostLeaves / 2 {
                for leaf in leaves.older.values { X509_free(OpaquePointer(bitPattern: leaf)) }
                leaves.older = leaves.newer
                leaves.newer = [:]
            }
            leaves.newer[host] = made
            return CertificateAuthority.retained(made)
        }
        return pointer.flatMap { OpaquePointer(bitPattern: $0) }
    }

    private static func retained(_ leaf: UInt) -> UInt {
        X509_up_ref(OpaquePointer(bitPattern: leaf))
        return leaf
    }

    private func makeLeaf(_ host: String) -> OpaquePointer? {
        guard let key = authority_unlock(rootKey) else { return nil }
        defer { EVP_PKEY_free(key) }
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        let address = IPAddress(bare)?.unmapped.bytes ?? []
        return authority_make_leaf(
            root, key, leafKey, bare, address, address.count, Int32(CertificateAuthority.leafDays))
    }

    /// The number of certificates signed, and of those cached.
    var counts: (signed: Int, kept: Int) { leaves.withLock { ($0.signed, $0.newer.count + $0.older.count) } }

    // MARK: The root

    /// The end of the root's validity, in seconds since 1970.
    public var end: Int64 {
        var (start, end): (Int64, Int64) = (0, 0)
        return authority_validity(root, &start, &end) == 1 ? end : 0
    }

    /// The subject of the root, in the format of RFC 2253.
    public var subject: String { TlsClientIdentity.subject(of: root) }

    /// The SHA-256 of the root, in the format of `openssl x509 -fingerprint`: `AB:CD:…`.
    public var fingerprint: String {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 32
        X509_digest(root, EVP_sha256(), &digest, &count)
        return digest.map { String(decoding: [Hex.upper($0 >> 4), Hex.upper($0 & 15)], as: UTF8.self) }.joined(
            separator: ":")
    }

    /// The root in PEM.
    public var pem: [UInt8] {
        var bytes: [UInt8] = []
        withUnsafeMutablePointer(to: &bytes) { authority_pem(root, takeBytes, $0) }
        return bytes
    }

    /// The root in DER.
    public var der: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: max(0, Int(i2d_X509(root, nil))))
        bytes.withUnsafeMutableBufferPointer { bytes in
            var place = bytes.baseAddress
            if !bytes.isEmpty { i2d_X509(root, &place) }
        }
        return bytes
    }

    /// The root in PKCS#12, as a trusted entry for Java.
    public func pkcs12(password: String) -> [UInt8] {
        var bytes: [UInt8] = []
        _ = withUnsafeMutablePointer(to: &bytes) { authority_pkcs12(root, "httpware", password, takeBytes, $0) }
        return bytes
    }

    // MARK: Files

    /// Reads the authority in a folder. Throws the faults of its files, with their names.
    public convenience init(folder: String) throws(TlsFault) {
        do throws(TlsFault) {
            try self.init(files: folder)
        } catch {
            // Another process may be writing the files; it holds the lock meanwhile.
            guard error.reason.contains("is not the key of"), let lock = Lock(folder, isExclusive: false) else {
                throw error
            }
            defer { lock.release() }
            try self.init(files: folder)
        }
    }

    private convenience init(files folder: String) throws(TlsFault) {
        try CertificateAuthority.judge(folder)
        let path = FilePath.joined(folder, CertificateAuthority.keyFile)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw TlsFault(.material, "\(path): \(SystemError.text(of: errno).lowercased())")
        }
        defer { Glibc.close(descriptor) }
        var status = Glibc.stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw TlsFault(.material, "\(path): is not a file")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw TlsFault(.material, "\(path): others than its owner can read the key; run chmod 600 \(path)")
        }
        guard CertificateAuthority.isOwn(status) else {
            throw TlsFault(.material, "\(path): belongs to another user; run chown \(geteuid()) \(path)")
        }
        guard let held = authority_read_key(descriptor) else {
            throw TlsFault(.material, "\(path): contains no private key in PEM on the curve P-256")
        }
        let name = FilePath.joined(folder, CertificateAuthority.certificateFile)
        let root: OpaquePointer
        do throws(TlsFault) {
            var certificates = try TlsContext.certificates(of: try CertificateAuthority.read(name))
            root = certificates.removeFirst()
            for other in certificates { X509_free(other) }
        } catch {
            authority_free(held)
            throw error
        }
        let key = authority_unlock(held)
        defer { EVP_PKEY_free(key) }
        do throws(TlsFault) {
            guard X509_check_private_key(root, key) == 1 else {
                ERR_clear_error()
                throw TlsFault(
                    .material,
                    "\(path): is not the key of the certificate in \(name); make another authority with httpware ca init --force"
                )
            }
            guard authority_is_root(root) == 1 else {
                throw TlsFault(.material, "\(name): is not the certificate of an authority")
            }
            guard X509_cmp_current_time(X509_get0_notAfter(root)) > 0 else {
                throw TlsFault(.material, "\(name): has expired; make another one with httpware ca init --force")
            }
        } catch {
            X509_free(root)
            authority_free(held)
            throw error
        }
        try self.init(root, held)
    }

    /// Checks the folder: a user who can write to it can replace the authority.
    private static func judge(_ folder: String) throws(TlsFault) {
        var status = Glibc.stat()
        // A missing folder is reported later, with the name of the missing file.
        guard stat(folder, &status) == 0 else { return }
        guard isOwn(status) else {
            throw TlsFault(.material, "\(folder): belongs to another user; run chown \(geteuid()) \(folder)")
        }
        guard status.st_mode & 0o022 == 0 else {
            throw TlsFault(
                .material, "\(folder): others than its owner can write to the folder; run chmod 700 \(folder)")
        }
    }

    /// Whether it belongs to this user or to root; root may read the files of other users.
    private static func isOwn(_ status: stat) -> Bool {
        let user = geteuid()
        return status.st_uid == user || status.st_uid == 0 || user == 0
    }

    /// A lock for writing the files of a folder, and for reading them while no process writes.
    private struct Lock {
        private let descriptor: Int32

        init?(_ folder: String, isExclusive: Bool) {
            descriptor = open(FilePath.joined(folder, ".lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0, flock(descriptor, isExclusive ? LOCK_EX : LOCK_SH) == 0 else { return nil }
        }

        func release() { Glibc.close(descriptor) }
    }

    private static func read(_ path: String) throws(TlsFault) -> TlsFile {
        guard let file = fopen(path, "re") else {
            throw TlsFault(.material, "\(path): \(SystemError.text(of: errno).lowercased())")
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 65536)
        let count = fread(&bytes, 1, bytes.count, file)
        return TlsFile(name: path, bytes: Array(bytes[..<count]))
    }

    /// The authority in a folder: the same object until its files change, so that its certificates are not signed again.
    public static func shared(folder: String) throws(TlsFault) -> CertificateAuthority {
        let stamp = stamp(of: folder)
        if let known = known.withLock({ $0[folder] }), known.stamp == stamp { return known.authority }
        let made = try CertificateAuthority(folder: folder)
        known.withLock { $0[folder] = (stamp, made) }
        return made
    }

    /// An authority that exists in memory only, the same one for the whole process: for a run of cases, where no client has to trust it.
    package static func unwritten() throws(TlsFault) -> CertificateAuthority {
        if let known = known.withLock({ $0[""] }) { return known.authority }
        guard let key = authority_make_key() else { throw .material("OpenSSL cannot make a key") }
        defer { EVP_PKEY_free(key) }
        let root = ([nil] as [UnsafePointer<CChar>?]).withUnsafeBufferPointer {
            authority_make_root(key, "httpware test", Int32(rootDays), $0.baseAddress)
        }
        guard let root, let held = authority_hold(key) else { throw .material("OpenSSL cannot make a certificate") }
        let made = try CertificateAuthority(root, held)
        known.withLock { $0[""] = ("", made) }
        return made
    }

    private static let known = Mutex<[String: (stamp: String, authority: CertificateAuthority)]>([:])

    /// Identifies the state of a folder's files.
    public static func stamp(of folder: String) -> String {
        [certificateFile, keyFile].map { name in
            FileStatus(path: FilePath.joined(folder, name)).map {
                "\($0.device) \($0.inode) \($0.size) \($0.changed.seconds) \($0.changed.nanoseconds)"
            } ?? "-"
        }.joined(separator: ", ")
    }

    /// Makes an authority and writes it to a folder, which is created for its owner only. An existing authority is kept unless
    /// `isReplacing`; an incomplete one is replaced. With domains, such as `example.com`, it can sign only for them and the names below
    /// them. Throws if a file cannot be written.
    public static func make(
        in folder: String, name: String, only domains: [String] = [], isReplacing: Bool = false
    ) throws(TlsFault) {
        try told(folder) { path throws(SystemError) in try PrivateFile.makeFolders(path) }
        guard let lock = Lock(folder, isExclusive: true) else {
            throw TlsFault(.material, "\(folder): \(SystemError.text(of: errno).lowercased())")
        }
        defer { lock.release() }
        // Another process may just have made it.
        let isThere = [certificateFile, keyFile].allSatisfy { access(FilePath.joined(folder, $0), F_OK) == 0 }
        if isThere, !isReplacing { return }
        guard let key = authority_make_key() else { throw .material("OpenSSL cannot make a key") }
        defer { EVP_PKEY_free(key) }
        let texts = domains.map { strdup($0) }
        defer { for text in texts { free(text) } }
        let root = (texts.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer {
            authority_make_root(key, name, Int32(rootDays), $0.baseAddress)
        }
        guard let root, let held = authority_hold(key) else { throw .material("OpenSSL cannot make a certificate") }
        let pem = try CertificateAuthority(root, held).pem
        try told(FilePath.joined(folder, keyFile)) { path throws(SystemError) in
            try PrivateFile.write(to: path) { descriptor throws(SystemError) in
                guard authority_write_key(descriptor, key) == 1 else { throw SystemError("write") }
            }
        }
        try told(FilePath.joined(folder, certificateFile)) { path throws(SystemError) in
            try PrivateFile.write(pem, to: path, rights: 0o644)
        }
    }

    /// Does a step whose failure names the path.
    private static func told(_ path: String, _ body: (String) throws(SystemError) -> Void) throws(TlsFault) {
        do throws(SystemError) {
            try body(path)
        } catch {
            throw TlsFault(.material, "\(path): \(SystemError.text(of: error.code).lowercased())")
        }
    }

    /// The default folder of this user: in `$XDG_DATA_HOME`, or else below `~/.local/share`.
    public static func usualFolder() -> String {
        let data = getenv("XDG_DATA_HOME").map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
        return FilePath.joined(data ?? FilePath.joined("", "~/.local/share"), "httpware/ca")
    }
}

/// Appends the output of an OpenSSL function to an array of bytes.
private func takeBytes(_ argument: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int) {
    guard let argument, let bytes else { return }
    argument.assumingMemoryBound(to: [UInt8].self).pointee += UnsafeBufferPointer(start: bytes, count: count)
}
