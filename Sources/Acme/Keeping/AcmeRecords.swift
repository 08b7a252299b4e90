import HttpWare

/// A place that keeps bytes under names: a folder, or a store that gateways share.
protocol AcmeStorage: Sendable {
    /// The place of a name, as shown to people.
    func place(of name: String) -> String
    /// Reads the bytes under a name; `nil` if there are none.
    func read(_ name: String) async throws(AcmeFailure) -> [UInt8]?
    func write(_ name: String, _ bytes: [UInt8]) async throws(AcmeFailure)
    /// Takes the lock for ordering a certificate for a name; `nil` while another process has it.
    func tryLock(_ name: String) async throws(AcmeFailure) -> (any AcmeLock)?
}

/// The lock for ordering a certificate. While it is held, no other process orders one for the name.
protocol AcmeLock: Sendable {
    /// Gives the lock back. Must be called exactly once.
    func release() async
}

/// The records of one certificate authority: the account, and for each name its certificate and the state of its
/// renewal. A certificate and its key are one record, so that both are replaced together.
struct AcmeRecords: Sendable {
    let storage: any AcmeStorage
    private let accountName: String

    /// An account: its key, and its URL at the authority; the URL is `nil` until the authority has made the account.
    struct Account: Sendable {
        var key: CertificateKey
        var url: String?
    }

    /// The record of one name.
    struct Record: Sendable {
        /// `nil` if there is no certificate, or it cannot be used.
        let identity: TlsIdentity?
        /// `nil` if there is no state, or it is damaged.
        let state: RenewalState?
    }

    init(_ storage: any AcmeStorage, _ settings: AcmeSettings) {
        self.storage = storage
        accountName =
            settings.externalAccount.map { "account-\(AcmeFolder.plain($0.keyId)).json" } ?? "account.json"
    }

    /// Reads the account; `nil` if there is none.
    func account() async throws(AcmeFailure) -> Account? {
        guard let bytes = try await storage.read(accountName) else { return nil }
        guard let json = try? JsonValue(bytes), let pem = json["key"]?.string,
            let key = CertificateKey(pem: Array(pem.utf8))
        else {
            throw AcmeFailure(.local, "\(storage.place(of: accountName)): is not a file of an account; move it away")
        }
        return Account(key: key, url: json["url"]?.string)
    }

    func keep(_ account: Account) async throws(AcmeFailure) {
        let json = Json.object(given: [
            ("url", account.url.map { .text($0) }), ("key", .text(String(decoding: account.key.pem, as: UTF8.self))),
        ])
        try await storage.write(accountName, json.bytes)
    }

    /// Reads the record of a name.
    func record(of name: String) async throws(AcmeFailure) -> Record {
        record(of: name, try await storage.read("\(name).pem"), state: try await storage.read("\(name).json"))
    }

    /// Makes the record of a name from its bytes. Damaged bytes are ignored.
    func record(of name: String, _ both: [UInt8]?, state: [UInt8]?) -> Record {
        let state = state.flatMap { try? JsonValue($0) }.map { RenewalState($0) }
        return Record(identity: both.flatMap { identity($0, of: name) }, state: state)
    }

    /// Reads a key and its certificates from one text; `nil` if they cannot be used.
    func identity(_ both: [UInt8], of name: String) -> TlsIdentity? {
        let file = TlsFile(name: storage.place(of: "\(name).pem"), bytes: both)
        let identity = TlsIdentity(chain: file, key: file)
        do throws(TlsFault) {
            _ = try identity.hasExpired()
            return identity
        } catch {
            WareLog.shared.log(.warning, "acme: \(error.reason); another certificate will be ordered")
            return nil
        }
    }

    func keep(_ identity: TlsIdentity, of name: String) async throws(AcmeFailure) {
        try await storage.write("\(name).pem", identity.chain.bytes)
    }

    func keep(_ state: RenewalState, of name: String) async throws(AcmeFailure) {
        try await storage.write("\(name).json", state.json.bytes)
    }
}
