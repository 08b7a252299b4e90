import Credentials
import Glibc
import HttpWare

/// The files of one certificate authority in the store: the account, and for each name the certificate with its key in one file, so
/// that the two are replaced together, and what is remembered about its renewal. All are readable by their owner alone and replaced in
/// one step. Every call blocks: never on a loop.
struct AcmeFolder: Sendable {
    let path: String
    private let accountName: String

    /// More is not one of ours.
    private static let mostBytes = 1 << 20

    /// An account: its key, and its URL at the authority.
    struct Account: Sendable {
        var key: CertificateKey
        var url: String?
    }

    init(_ settings: AcmeSettings) {
        let place = settings.directory.text.split(separator: "/", omittingEmptySubsequences: true).dropFirst()
        path = FilePath.joined(settings.store, AcmeFolder.plain(place.joined(separator: "-")))
        accountName = settings.externalAccount.map { "account-\(AcmeFolder.plain($0.keyId)).json" } ?? "account.json"
    }

    /// A text as part of a file's name.
    private static func plain(_ text: String) -> String {
        let bytes = text.utf8.prefix(120).map { byte -> UInt8 in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: byte
            // No name begins with a dot.
            case 0x2e: byte
            default: 0x5f
            }
        }
        return (bytes.first == 0x2e ? "_" : "") + String(decoding: bytes, as: UTF8.self)
    }

    // MARK: What is kept

    /// The account; `nil` where there is none.
    func account() throws(AcmeFailure) -> Account? {
        guard let bytes = try read(accountName) else { return nil }
        guard let json = try? JsonValue(bytes), let pem = json["key"]?.string,
            let key = CertificateKey(pem: Array(pem.utf8))
        else {
            throw AcmeFailure(.local, "\(file(accountName)): is not a file of an account; move it away")
        }
        return Account(key: key, url: json["url"]?.string)
    }

    func keep(_ account: Account) throws(AcmeFailure) {
        let json = Json.object(given: [
            ("url", account.url.map { .text($0) }), ("key", .text(String(decoding: account.key.pem, as: UTF8.self))),
        ])
        try write(accountName, json.bytes)
    }

    /// The certificate of a name with its key; `nil` where there is none, or one that cannot be used.
    func identity(of name: String) throws(AcmeFailure) -> TlsIdentity? {
        guard let bytes = try read("\(name).pem") else { return nil }
        let both = TlsFile(name: file("\(name).pem"), bytes: bytes)
        let identity = TlsIdentity(chain: both, key: both)
        do throws(TlsFault) {
            _ = try identity.hasExpired()
            return identity
        } catch {
            WareLog.shared.log(.warning, "acme: \(error.reason); another certificate will be ordered")
            return nil
        }
    }

    func keep(_ chain: [UInt8], key: CertificateKey, of name: String) throws(AcmeFailure) {
        try write("\(name).pem", key.pem + chain)
    }

    func state(of name: String) throws(AcmeFailure) -> RenewalState {
        guard let bytes = try read("\(name).json"), let json = try? JsonValue(bytes) else { return RenewalState() }
        return RenewalState(json)
    }

    func keep(_ state: RenewalState, of name: String) throws(AcmeFailure) {
        try write("\(name).json", state.json.bytes)
    }

    // MARK: The lock

    /// Held until it is given back, or the process ends: another process orders no certificate for the name meanwhile.
    struct Lock: Sendable {
        fileprivate let descriptor: Int32

        func release() { close(descriptor) }
    }

    /// Takes the lock of a name; `nil` while another process has it.
    func tryLock(_ name: String) throws(AcmeFailure) -> Lock? {
        try makeFolder()
        let place = file("\(name).lock")
        let descriptor = open(place, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw fault("cannot be opened", place) }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return Lock(descriptor: descriptor) }
        let isTaken = errno == EWOULDBLOCK
        let fault = fault("cannot be locked", place)
        close(descriptor)
        if isTaken { return nil }
        throw fault
    }

    // MARK: Files

    private func file(_ name: String) -> String { FilePath.joined(path, name) }

    private func fault(_ what: String, _ place: String) -> AcmeFailure {
        AcmeFailure(.local, "\(place.quotedForErrors): \(what): \(SystemError.text(of: errno).lowercased())")
    }

    private func read(_ name: String) throws(AcmeFailure) -> [UInt8]? {
        let place = file(name)
        let descriptor = open(place, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw fault("cannot be read", place)
        }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw fault("cannot be read", place) }
            if count == 0 { return content }
            content += buffer[..<count]
            guard content.count <= AcmeFolder.mostBytes else {
                throw AcmeFailure(.local, "\(place.quotedForErrors): is larger than 1 MiB")
            }
        }
    }

    private func makeFolder() throws(AcmeFailure) {
        var parts: [String] = []
        var next = path
        while mkdir(next, 0o700) != 0 {
            if errno == EEXIST { break }
            let above = FilePath.directory(of: next)
            guard errno == ENOENT, !above.isEmpty, above != next else { throw fault("cannot be made", next) }
            parts.append(next)
            next = above
        }
        for part in parts.reversed() where mkdir(part, 0o700) != 0 && errno != EEXIST {
            throw fault("cannot be made", part)
        }
    }

    private func write(_ name: String, _ bytes: [UInt8]) throws(AcmeFailure) {
        try makeFolder()
        let place = file(name)
        let fresh = "\(place).\(getpid()).new"
        unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw fault("cannot be written", place) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        let isWhole = written == bytes.count && fsync(descriptor) == 0
        let failure = isWhole ? nil : fault("cannot be written", place)
        close(descriptor)
        guard failure == nil, rename(fresh, place) == 0 else {
            let failure = failure ?? fault("cannot be replaced", place)
            unlink(fresh)
            throw failure
        }
    }
}
