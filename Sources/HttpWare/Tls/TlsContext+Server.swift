import COpenSSL
import COpenSSLShims
import Glibc

/// An OCSP response, and the time until which it may be sent: seconds since 1970.
struct TlsStaple {
    let bytes: [UInt8]
    let end: Int64
}

extension TlsContext {
    /// The TLS settings of a server.
    public struct Server: Sendable {
        /// The certificates. The first one is used if no name matches, or if the client names none.
        public var identities: [TlsIdentity]
        /// The protocols in order of preference.
        public var protocols: [ApplicationProtocol] = [.http11]
        /// The authorities that may sign clients' certificates, in PEM; `nil` asks for no certificate.
        public var clientAuthorities: TlsFile?
        /// Whether a client without a certificate is refused.
        public var requiresClientCertificate = true
        /// The minimum version.
        public var leastVersion = Version.tls12
        /// Replaces this context while the listener runs; `nil` without replacement.
        public var live: LiveTls?
        /// The local names that get certificates of an authority of this machine; `nil` for none.
        public var local: LocalNames?
        /// The tls-alpn-01 challenges to answer.
        public var challenges: [TlsChallenge] = []

        /// Makes settings with these certificates.
        public init(identities: [TlsIdentity]) { self.identities = identities }
    }

    /// Names for which certificates are made when a client asks for them.
    public struct LocalNames: Sendable {
        let authority: CertificateAuthority
        let names: HostList
        /// The address whose certificate a client gets that asks for no name.
        let unnamed: String

        /// Makes the names. `unnamed` is the address for clients that ask for no name.
        public init(authority: CertificateAuthority, names: HostList, unnamed: String) {
            self.authority = authority
            self.names = names
            self.unnamed = unnamed
        }
    }

    /// Certificates for the same names, with keys of different types; the client's ciphers decide which is used.
    private struct Group {
        let pointer: OpaquePointer
        let names: Set<String>
        var keyTypes: Set<Int32>
    }

    /// Makes a server's context. Throws the fault of a file, with its name.
    public convenience init(server options: Server) throws(TlsFault) {
        guard !options.identities.isEmpty || options.local != nil else {
            throw TlsFault(.material, "there is no certificate")
        }
        var groups: [Group] = []
        var staples: [OpaquePointer: TlsStaple] = [:]
        var challenges: [String: OpaquePointer] = [:]
        do throws(TlsFault) {
            for identity in options.identities {
                let leaves = try TlsContext.certificates(of: identity.chain)
                defer { for leaf in leaves { X509_free(leaf) } }
                let names = TlsContext.names(of: leaves[0])
                let type = EVP_PKEY_get_base_id(X509_get0_pubkey(leaves[0]))
                let used: OpaquePointer
                if let index = groups.firstIndex(where: { $0.names == names && !$0.keyTypes.contains(type) }) {
                    used = try TlsContext.use(identity, in: groups[index].pointer)
                    groups[index].keyTypes.insert(type)
                } else {
                    let pointer = try TlsContext.makeServer(options)
                    groups.append(Group(pointer: pointer, names: names, keyTypes: [type]))
                    used = try TlsContext.use(identity, in: pointer)
                }
                if let file = identity.staple { staples[used] = try TlsContext.staple(file) }
            }
            if let local = options.local, groups.isEmpty {
                let pointer = try TlsContext.makeServer(options)
                groups.append(Group(pointer: pointer, names: [], keyTypes: []))
                guard let leaf = local.authority.certificate(for: local.unnamed) else {
                    throw TlsFault(.material, "OpenSSL cannot make a certificate for \(local.unnamed)")
                }
                defer { X509_free(leaf) }
                guard SSL_CTX_use_certificate(pointer, leaf) == 1,
                    SSL_CTX_use_PrivateKey(pointer, local.authority.leafKey) == 1
                else { throw TlsFault(.material, "OpenSSL cannot use its own certificate") }
            }
            for challenge in options.challenges {
                let made = try TlsContext.makeChallenge(challenge)
                if let former = challenges.updateValue(made, forKey: challenge.name) { SSL_CTX_free(former) }
            }
        } catch {
            for group in groups { SSL_CTX_free(group.pointer) }
            for challenge in challenges.values { SSL_CTX_free(challenge) }
            throw error
        }
        var exact: [String: OpaquePointer] = [:]
        var wildcards: [String: OpaquePointer] = [:]
        for group in groups.reversed() {  // if two have the same name, the first wins
            for name in group.names {
                if name.hasPrefix("*.") {
                    wildcards[String(name.dropFirst(2))] = group.pointer
                } else {
                    exact[name] = group.pointer
                }
            }
        }
        // A server for HTTP/1.1 also speaks HTTP/1.0 with clients that offer nothing else. RFC 9110 §2.5.
        let former = options.protocols.contains(.http11) ? ApplicationProtocol.wire("http/1.0") : []
        self.init(
            groups[0].pointer, protocols: ApplicationProtocol.wire(options.protocols) + former,
            others: groups.dropFirst().map(\.pointer), exact: exact,
            wildcards: wildcards, staples: staples, asksForClientCertificate: options.clientAuthorities != nil,
            live: options.live, challenges: challenges, local: options.local)
        setCallbacks()
    }

    /// Makes the context of an intercepting server: each session uses the authority's certificate for its
    /// host. `protocols` lists what clients may speak, in order of preference.
    public convenience init(interceptingFor authority: CertificateAuthority, protocols: [ApplicationProtocol])
        throws(TlsFault)
    {
        let pointer = try TlsContext.makeServer(Server(identities: []))
        let former = protocols.contains(.http11) ? ApplicationProtocol.wire("http/1.0") : []
        self.init(pointer, protocols: ApplicationProtocol.wire(protocols) + former, authority: authority)
        setCallbacks()
    }

    private static func makeServer(_ options: Server) throws(TlsFault) -> OpaquePointer {
        let context = try make(TLS_server_method(), least: options.leastVersion)
        do throws(TlsFault) {
            copenssl_prepare_server(context)
            // One ticket per connection: a resuming client gets another. Two tickets would cost a further write and record per handshake.
            SSL_CTX_set_num_tickets(context, 1)
            SSL_CTX_set_timeout(context, TicketKeys.lifetimeSeconds)
            SSL_CTX_set_tlsext_ticket_key_evp_cb(context, ticketKey)
            // A session that began with one set of authorities must not be resumed with another.
            var identity = Array("httpware".utf8)
            if let authorities = options.clientAuthorities {
                identity.append(options.requiresClientCertificate ? 1 : 0)
                identity += authorities.bytes
                try trust(authorities, in: context, asksFor: true)
                SSL_CTX_set_verify(
                    context,
                    options.requiresClientCertificate
                        ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_PEER, nil)
            }
            var digest = [UInt8](repeating: 0, count: 32)
            guard EVP_Digest(identity, identity.count, &digest, nil, EVP_sha256(), nil) == 1,
                SSL_CTX_set_session_id_context(context, digest, 32) == 1
            else { throw .material("OpenSSL has no digest") }
            return context
        } catch {
            SSL_CTX_free(context)
            throw error
        }
    }

    /// Sets the callbacks. They get this object unretained, because every session retains it.
    private func setCallbacks() {
        let own = Unmanaged.passUnretained(self).toOpaque()
        if !others.isEmpty || local != nil { copenssl_set_name_callback(pointer, chooseByName, own) }
        if !challenges.isEmpty { SSL_CTX_set_client_hello_cb(pointer, answerChallenge, own) }
        for context in [pointer] + others {
            SSL_CTX_set_alpn_select_cb(context, chooseProtocol, own)
            if !staples.isEmpty { copenssl_set_staple_callback(context, giveStaple, own) }
        }
    }

    private static func staple(_ file: TlsFile) throws(TlsFault) -> TlsStaple {
        let end = copenssl_staple_end(file.bytes, file.bytes.count)
        guard end >= 0 else { throw TlsFault(.material, "\(file.name): is not a successful OCSP response in DER") }
        return TlsStaple(bytes: file.bytes, end: end)
    }

    /// The names that a certificate is for, in lower case; its common name if it has no others. RFC 9525 §6.3.
    static func names(of certificate: OpaquePointer) -> Set<String> {
        var names: Set<String> = []
        TlsClientIdentity.each(certificate) { type, bytes in
            if type == "DNS" { names.insert(String(decoding: bytes, as: UTF8.self).lowercased()) }
        }
        if names.isEmpty, let name = commonName(of: certificate) { names.insert(name.lowercased()) }
        return names
    }

    private static func commonName(of certificate: OpaquePointer) -> String? {
        var text = [UInt8](repeating: 0, count: 256)
        let count = text.withUnsafeMutableBytes { buffer in
            X509_NAME_get_text_by_NID(
                X509_get_subject_name(certificate), NID_commonName,
                buffer.baseAddress?.assumingMemoryBound(to: CChar.self), 256)
        }
        return count > 0 ? String(decoding: text.prefix(Int(count)), as: UTF8.self) : nil
    }

    /// Whether a certificate from a file is for that name.
    func hasCertificate(for name: String) -> Bool {
        var name = name.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        if exact[name] != nil { return true }
        guard let dot = name.firstIndex(of: ".") else { return false }
        return wildcards[String(name[name.index(after: dot)...])] != nil
    }

    /// The context whose certificate matches the name exactly, or by a wildcard for its first label.
    func context(for name: String) -> OpaquePointer {
        var name = name.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        if let found = exact[name] { return found }
        guard let dot = name.firstIndex(of: ".") else { return pointer }
        return wildcards[String(name[name.index(after: dot)...])] ?? pointer
    }
}

extension TlsContext.LocalNames {
    /// Gives a session the certificate for that name. A name that is not local is refused: RFC 6066 §3, `unrecognized_name`.
    fileprivate func use(_ name: String, in session: OpaquePointer) -> Int32 {
        var name = name.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        guard names.contains(name, 443), let leaf = authority.certificate(for: name) else {
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        defer { X509_free(leaf) }
        // Without the certificates of files, which may have keys of other types, and chains.
        SSL_certs_clear(session)
        guard SSL_use_certificate(session, leaf) == 1, SSL_use_PrivateKey(session, authority.leafKey) == 1 else {
            ERR_clear_error()
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        return SSL_TLSEXT_ERR_OK
    }
}

// C callbacks are outside any isolated context: inside one, they would check for it at run time and trap.

private func chooseByName(
    _ session: OpaquePointer?, _: UnsafeMutablePointer<Int32>?, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let session, let argument, let name = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name) else {
        return SSL_TLSEXT_ERR_NOACK
    }
    return Unmanaged<TlsContext>.fromOpaque(argument)._withUnsafeGuaranteedRef { context in
        let name = String(cString: name)
        if let local = context.local, !context.hasCertificate(for: name) { return local.use(name, in: session) }
        let chosen = context.context(for: name)
        if chosen != context.pointer { SSL_set_SSL_CTX(session, chosen) }
        return SSL_TLSEXT_ERR_OK
    }
}

/// Chooses by our order of preference; a client without a common protocol is refused. RFC 7301 §3.2.
private func chooseProtocol(
    _: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
    _ offered: UnsafePointer<UInt8>?, _ count: UInt32, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let argument, let chosen, let length, let offered else { return SSL_TLSEXT_ERR_NOACK }
    let wanted = Unmanaged<TlsContext>.fromOpaque(argument)._withUnsafeGuaranteedRef { $0.protocols }
    // The chosen name points into the client's message, which outlives the callback.
    let offer = UnsafeBufferPointer(start: offered, count: Int(count))
    var start = 0
    while start < wanted.count {
        let name = wanted[(start + 1)..<(start + 1 + Int(wanted[start]))]
        var place = 0
        while place < offer.count {
            let end = min(place + 1 + Int(offer[place]), offer.count)
            if offer[(place + 1)..<end].elementsEqual(name) {
                chosen.pointee = offered + place + 1
                length.pointee = UInt8(name.count)
                return SSL_TLSEXT_ERR_OK
            }
            place = end
        }
        start += 1 + name.count
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

private func giveStaple(_ session: OpaquePointer?, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    guard let session, let argument, let certificate = SSL_get_certificate(session) else {
        return SSL_TLSEXT_ERR_NOACK
    }
    return Unmanaged<TlsContext>.fromOpaque(argument)._withUnsafeGuaranteedRef { context in
        // An expired response is useless.
        guard let staple = context.staples[certificate], staple.end > Int64(time(nil)) else {
            return SSL_TLSEXT_ERR_NOACK
        }
        copenssl_staple(session, staple.bytes, staple.bytes.count)
        return SSL_TLSEXT_ERR_OK
    }
}
