import Credentials
import HttpWare

/// Stores bytes under names: a folder, or a store that gateways share.
protocol AcmeStorage: Sendable {
    /// The place of a name, for people.
    func place(of name: String) -> String
    /// `nil` if there is nothing under the name.
    func read(_ name: String) async throws(AcmeFailure) -> [UInt8]?
    func write(_ name: String, _ bytes: [UInt8]) async throws(AcmeFailure)
    /// Takes the right to order a certificate for a name; `nil` while another process has it.
    func tryLock(_ name: String) async throws(AcmeFailure) -> (any AcmeLock)?
}

/// The right to order a certificate. Meanwhile no other process orders one for the name.
protocol AcmeLock: Sendable {
    /// Must be called once.
    func release() async
}

/// The records of one certificate authority. There is one record for the account. For each name, one record holds the certificate
/// with its key, so that both are replaced together, and another holds the renewal state.
struct AcmeRecords: Sendable {
    let storage: any AcmeStorage
    private let accountName: String

    /// An account: its key, and its URL at the authority.
    struct Account: Sendable {
        var key: CertificateKey
        var url: String?
    }

    /// The records of one name.
    struct Record: Sendable {
        /// `nil` if it is missing or unusable.
        let identity: TlsIdentity?
        /// `nil` if it is missing or damaged.
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

    /// Reads the records of a name.
    func record(of name: String) async throws(AcmeFailure) -> Record {
        record(of: name, try await storage.read("\(name).pem"), state: try await storage.read("\(name).json"))
    }

    /// The records in these bytes. Damaged bytes count as missing.
    func record(of name: String, _ both: [UInt8]?, state: [UInt8]?) -> Record {
        let state = state.flatMap { try? JsonValue($0) }.map { RenewalState($0) }
        return Record(identity: both.flatMap { identity($0, of: name) }, state: state)
    }

    /// A key and its certificates from one text; `nil` if they are unusable.
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
