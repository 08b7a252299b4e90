import Credentials
import HttpWare

/// Where bytes are kept under names: a folder, or a store that gateways share.
protocol AcmeStorage: Sendable {
    /// What people call the place of a name.
    func place(of name: String) -> String
    /// `nil` if there is nothing under the name.
    func read(_ name: String) async throws(AcmeFailure) -> [UInt8]?
    func write(_ name: String, _ bytes: [UInt8]) async throws(AcmeFailure)
    /// Takes the right to order a certificate for a name; `nil` while another process has it.
    func tryLock(_ name: String) async throws(AcmeFailure) -> (any AcmeLock)?
}

/// The right to order a certificate: no other process orders one for the name meanwhile.
protocol AcmeLock: Sendable {
    /// To be called once.
    func release() async
}

/// What is kept of one certificate authority: the account, and for each name the certificate with its key in one record, so that the two
/// are replaced together, and what is remembered about its renewal.
struct AcmeRecords: Sendable {
    let storage: any AcmeStorage
    private let accountName: String

    /// An account: its key, and its URL at the authority.
    struct Account: Sendable {
        var key: CertificateKey
        var url: String?
    }

    /// What is kept for one name.
    struct Record: Sendable {
        /// `nil` if there is none, or one that cannot be used.
        let identity: TlsIdentity?
        /// `nil` if there is none, or a damaged one.
        let state: RenewalState?
    }

    init(_ storage: any AcmeStorage, _ settings: AcmeSettings) {
        self.storage = storage
        accountName =
            settings.externalAccount.map { "account-\(AcmeFolder.plain($0.keyId)).json" } ?? "account.json"
    }

    /// The account; `nil` if there is none.
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

    /// What is kept for a name.
    func record(of name: String) async throws(AcmeFailure) -> Record {
        record(of: name, try await storage.read("\(name).pem"), state: try await storage.read("\(name).json"))
    }

    /// What these bytes say of a name. Damaged ones say nothing.
    func record(of name: String, _ both: [UInt8]?, state: [UInt8]?) -> Record {
        let state = state.flatMap { try? JsonValue($0) }.map { RenewalState($0) }
        return Record(identity: both.flatMap { identity($0, of: name) }, state: state)
    }

    /// A key and its certificates in one text; `nil` for anything that cannot be used.
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
