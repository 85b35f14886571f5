import COpenSSL

/// One SSL_CTX and what its callbacks need. Never changes once made; connections keep the one that they began with.
@safe
final class ContextMaterial: @unchecked Sendable {
    let configuration: TLSConfiguration
    let handle: OpaquePointer
    let identities: ServerNameTable<TLSIdentity>
    /// The server's ALPN names, the most wanted first.
    let wantedProtocols: [[UInt8]]
    let sessions: ClientSessionCache
    let keyLog: KeyLogWriter?
    private let resumptionDigest: [UInt8]

    init(_ configuration: TLSConfiguration, replacing old: ContextMaterial?) throws(TLSFailure) {
        let trust = try TrustStore(configuration)
        let shown = configuration.role == .client ? configuration.identities.first : nil
        let certificate = shown.map { unsafe CertificateFields.derBytes(of: $0.certificate) } ?? []
        let digest = CertificateFields.sha256(trust.digest + certificate)
        let continued = old.flatMap { $0.resumptionDigest == digest ? $0 : nil }
        self.keyLog = try configuration.keyLog.map { keyLog throws(TLSFailure) in try KeyLogWriter(keyLog) }
        unsafe self.handle = try Self.makeHandle(configuration, trust: trust, sessionContext: digest)
        self.configuration = configuration
        self.wantedProtocols = configuration.applicationProtocols.map { Array($0.utf8) }
        self.identities = Self.table(of: configuration.identities)
        self.resumptionDigest = digest
        self.sessions = continued?.sessions ?? ClientSessionCache(limit: configuration.clientSessionLimit)
        if let continued { unsafe _ = sluice_ctx_copy_ticket_keys(continued.handle, self.handle) }
    }

    private static func makeHandle(
        _ configuration: TLSConfiguration, trust: TrustStore, sessionContext: [UInt8]
    ) throws(TLSFailure) -> OpaquePointer {
        let method = unsafe configuration.role == .client ? TLS_client_method() : TLS_server_method()
        ErrorQueue.clear()
        guard let handle = unsafe SSL_CTX_new(method) else { throw ErrorQueue.failure(.engine, "no TLS context") }
        do throws(TLSFailure) {
            let builder = unsafe ContextBuilder(handle: handle, configuration: configuration)
            try builder.build(trust: trust, sessionContext: sessionContext)
            return unsafe handle
        } catch {
            unsafe SSL_CTX_free(handle)
            throw error
        }
    }

    deinit {
        unsafe SSL_CTX_free(self.handle)
    }

    /// The identities to show for `name`, of each key kind the first; empty if none is for it.
    func identities(for name: String) -> [TLSIdentity] {
        var chosen: [TLSIdentity] = []
        for identity in self.identities.values(for: name)
        where !chosen.contains(where: { $0.keyKind == identity.keyKind }) {
            chosen.append(identity)
        }
        return chosen
    }

    private static func table(of identities: [TLSIdentity]) -> ServerNameTable<TLSIdentity> {
        var table = ServerNameTable<TLSIdentity>()
        for identity in identities {
            for name in identity.serverNames { table.add(identity, for: name) }
        }
        return table
    }
}
