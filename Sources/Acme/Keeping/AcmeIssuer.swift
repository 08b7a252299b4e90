import Credentials
import HttpWare

/// Orders certificates from one authority, with the account that is stored for it.
struct AcmeIssuer: Sendable {
    /// The settings. `directory` is the authority's.
    let settings: AcmeSettings
    /// The account is stored here.
    let records: AcmeRecords
    let http: any HttpClient
    let limits: AcmeLimits

    private func client(_ account: AcmeRecords.Account, on loop: EventLoop) -> AcmeClient {
        AcmeClient(
            settings.directory, key: account.key, account: account.url, http: http, limits: limits, loop: loop)
    }

    /// The features of an authority.
    struct Features: Sendable {
        /// The names of the profiles; empty if the authority has none.
        let profiles: [String]
        /// Whether the authority suggests renewal times. RFC 9773.
        let hasRenewalInfo: Bool
    }

    /// Requests the authority's directory. Throws if the directory is invalid or does not fit the settings.
    func check(on loop: EventLoop) async throws(AcmeFailure) -> Features {
        let directory = try await client(try await account(), on: loop).directory()
        try directory.require(profile: settings.profile)
        try directory.require(external: settings.externalAccount)
        return Features(profiles: directory.profiles ?? [], hasRenewalInfo: directory.renewalInfo != nil)
    }

    /// The renewal information of a certificate; `nil` if the authority has none.
    func renewalInfo(
        of id: String, on loop: EventLoop
    ) async throws(AcmeFailure) -> (info: RenewalInfo, again: Duration?)? {
        // Renewal information is public: no account is used.
        let account = AcmeRecords.Account(key: try await account().key, url: nil)
        return try await client(account, on: loop).renewalInfo(of: id)
    }

    /// Orders a certificate. Returns its chain and its key.
    func issue(
        _ name: String, replacing former: String?, answering answerer: any ChallengeAnswerer, on loop: EventLoop
    ) async throws(AcmeFailure) -> ([UInt8], CertificateKey) {
        let key: CertificateKey
        do throws(TlsFault) { key = try CertificateKey() } catch { throw AcmeFailure(.local, error.reason) }
        let wanted = AcmeRequest(
            names: [name], key: key, challenge: settings.challenge, profile: settings.profile, replaced: former)
        var account = try await account()
        // A second time if the authority no longer knows the account.
        for isLast in [false, true] {
            let client = client(account, on: loop)
            do throws(AcmeFailure) {
                if account.url == nil {
                    account.url = try await client.makeAccount(
                        email: settings.email, external: settings.externalAccount)
                    try await records.keep(account)
                }
                return (try await client.issue(wanted, answering: answerer), key)
            } catch {
                guard error.isRefusal("accountDoesNotExist"), !isLast else { throw error }
                account.url = nil
            }
        }
        throw AcmeFailure(.local, "the account cannot be made")
    }

    /// The stored account, or else a new one with a new key.
    private func account() async throws(AcmeFailure) -> AcmeRecords.Account {
        if let account = try await records.account() { return account }
        do throws(TlsFault) {
            return AcmeRecords.Account(key: try CertificateKey(), url: nil)
        } catch {
            throw AcmeFailure(.local, error.reason)
        }
    }
}
