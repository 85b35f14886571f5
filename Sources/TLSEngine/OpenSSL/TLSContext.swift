import COpenSSL
import Synchronization

/// The state shared by connections of one role: certificates, trust, sessions. Thread-safe.
public final class TLSContext: Sendable {
    private let current: Mutex<ContextSnapshot>

    /// Loads all certificates and keys of the configuration.
    /// - Throws: `.configuration`, or the failure of reading a certificate, which names the file.
    public init(_ configuration: TLSConfiguration) throws(TLSFailure) {
        self.current = Mutex(try ContextSnapshot(configuration, replacing: nil))
    }

    /// Replaces the configuration atomically and reads all files again. New connections use it; existing ones are not
    /// affected. Tickets issued earlier stay valid unless the requirements for peers changed.
    /// - Throws: as `init`; the previous configuration then stays in use.
    public func reload(_ configuration: TLSConfiguration) throws(TLSFailure) {
        let snapshot = try ContextSnapshot(configuration, replacing: self.snapshot)
        self.current.withLock { $0 = snapshot }
    }

    public var configuration: TLSConfiguration { self.snapshot.configuration }

    /// Number of sessions in a client's cache.
    public var cachedSessionCount: Int { self.snapshot.sessions.count }

    var snapshot: ContextSnapshot { self.current.withLock { $0 } }
}

/// An SSL_CTX with the data that its callbacks need. Immutable; a connection keeps the one that it was created with.
@safe
final class ContextSnapshot: Sendable {
    let configuration: TLSConfiguration
    /// An SSL_CTX that is complete may be used by any thread; it locks its own session cache.
    nonisolated(unsafe) let handle: OpaquePointer
    let identities: ServerNameTable<TLSIdentity>
    /// The server's ALPN protocols in order of preference.
    let preferredProtocols: [[UInt8]]
    let sessions: ClientSessionCache
    let keyLog: KeyLogWriter?
    private let resumptionDigest: [UInt8]

    init(_ configuration: TLSConfiguration, replacing previous: ContextSnapshot?) throws(TLSFailure) {
        let trust = try TrustStore(configuration)
        let clientIdentity = configuration.role == .client ? configuration.identities.first : nil
        let certificate = clientIdentity.map { unsafe CertificateFields.derBytes(of: $0.certificate) } ?? []
        let digest = CertificateFields.sha256(trust.digest + certificate)
        let compatible = previous.flatMap { $0.resumptionDigest == digest ? $0 : nil }
        self.keyLog = try configuration.keyLog.map { keyLog throws(TLSFailure) in try KeyLogWriter(keyLog) }
        unsafe self.handle = try Self.makeHandle(configuration, trust: trust, sessionContext: digest)
        self.configuration = configuration
        self.preferredProtocols = configuration.applicationProtocols.map { Array($0.utf8) }
        self.identities = Self.table(of: configuration.identities)
        self.resumptionDigest = digest
        self.sessions = compatible?.sessions ?? ClientSessionCache(limit: configuration.clientSessionLimit)
        if let compatible { unsafe _ = sluice_ctx_copy_ticket_keys(compatible.handle, self.handle) }
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

    /// The identities for `name`, the first of each key type.
    func identities(for name: String) -> [TLSIdentity] {
        var chosen: [TLSIdentity] = []
        for identity in self.identities.values(for: name)
        where !chosen.contains(where: { $0.keyType == identity.keyType }) {
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

/// Configures a new SSL_CTX.
@safe
private struct ContextBuilder {
    let handle: OpaquePointer
    let configuration: TLSConfiguration

    func build(trust: TrustStore, sessionContext: [UInt8]) throws(TLSFailure) {
        ErrorQueue.clear()
        unsafe sluice_ctx_set_modes(self.handle)
        try self.setVersionsAndCiphers()
        try self.setProtocols()
        try self.setIdentities()
        unsafe SSL_CTX_set1_cert_store(self.handle, trust.handle)
        try self.setVerification()
        try self.setSessions(context: sessionContext)
        unsafe SSL_CTX_set_info_callback(self.handle, infoCallback)
        if self.configuration.keyLog != nil || SecureConnection.usesCompactRecords(self.configuration) {
            unsafe SSL_CTX_set_keylog_callback(self.handle, keyLogCallback)
        }
    }

    private func setVersionsAndCiphers() throws(TLSFailure) {
        let configuration = self.configuration
        guard configuration.minimumVersion <= configuration.maximumVersion else {
            throw TLSFailure(.configuration, reasons: ["the minimum TLS version is above the maximum"])
        }
        guard (0...5).contains(configuration.securityLevel) else {
            throw TLSFailure(.configuration, reasons: ["the security level is not 0 to 5"])
        }
        unsafe SSL_CTX_set_security_level(self.handle, Int32(configuration.securityLevel))
        let minimum = Int32(configuration.minimumVersion.rawValue)
        let maximum = Int32(configuration.maximumVersion.rawValue)
        guard unsafe sluice_ctx_set_versions(self.handle, minimum, maximum) == 1 else {
            throw ErrorQueue.failure(.configuration, "these TLS versions are not available")
        }
        let list = configuration.cipherList
        guard unsafe SSL_CTX_set_cipher_list(self.handle, list) == 1 else {
            throw ErrorQueue.failure(.configuration, "the cipher list \"\(list)\" names no usable cipher")
        }
        let suites = configuration.cipherSuites
        guard unsafe SSL_CTX_set_ciphersuites(self.handle, suites) == 1 else {
            throw ErrorQueue.failure(.configuration, "the cipher suites \"\(suites)\" are not all known")
        }
        if configuration.role == .server { unsafe sluice_ctx_prefer_server_order(self.handle) }
    }

    private func setProtocols() throws(TLSFailure) {
        let names = self.configuration.applicationProtocols
        guard !names.isEmpty else { return }
        guard let encoded = ApplicationProtocols.encode(names) else {
            throw TLSFailure(.configuration, reasons: ["an application protocol's name is not 1 to 255 bytes"])
        }
        switch self.configuration.role {
        case .client:
            guard unsafe SSL_CTX_set_alpn_protos(self.handle, encoded, UInt32(encoded.count)) == 0 else {
                throw ErrorQueue.failure(.engine, "the application protocols cannot be set")
            }
        case .server:
            unsafe SSL_CTX_set_alpn_select_cb(self.handle, alpnSelectCallback, nil)
        }
    }

    private func setIdentities() throws(TLSFailure) {
        let identities = self.configuration.identities
        switch self.configuration.role {
        case .client:
            if self.configuration.delegatesClientCertificate {
                unsafe SSL_CTX_set_cert_cb(self.handle, certificateCallback, nil)
            }
            if let identity = identities.first, !self.configuration.delegatesClientCertificate {
                try self.install(identity)
            }
        case .server:
            guard let first = identities.first else {
                throw TLSFailure(.configuration, reasons: ["a server needs a certificate"])
            }
            // A second certificate for the same names is installed too if its key has another type.
            var keyTypes: Set<Int32> = []
            for identity in identities where identity.serverNames == first.serverNames {
                if keyTypes.insert(identity.keyType).inserted { try self.install(identity) }
            }
            unsafe SSL_CTX_set_cert_cb(self.handle, certificateCallback, nil)
            unsafe _ = sluice_ctx_set_server_name_callback(self.handle, serverNameCallback)
        }
    }

    private func install(_ identity: TLSIdentity) throws(TLSFailure) {
        guard unsafe identity.install(onContext: self.handle) else {
            throw ErrorQueue.failure(.configuration, "the certificate is not acceptable")
        }
    }

    private func setVerification() throws(TLSFailure) {
        let configuration = self.configuration
        unsafe SSL_CTX_set_verify(self.handle, self.verificationMode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(self.handle, certificateVerifyCallback, nil)
        let parameters = unsafe SSL_CTX_get0_param(self.handle)
        switch configuration.revocation {
        case .off: break
        case .peer: unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_CRL_CHECK))
        case .wholeChain:
            unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL))
        }
        // A configured anchor is trusted even if it is not self-signed.
        if !configuration.trust.extra.isEmpty {
            unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        }
        guard configuration.role == .server, configuration.peerVerification != .none else { return }
        for source in configuration.trust.extra {
            let reader = try source.reader()
            unsafe try reader.eachCertificate { unsafe SSL_CTX_add_client_CA(self.handle, $0) }
        }
    }

    private var verificationMode: Int32 {
        switch (self.configuration.role, self.configuration.peerVerification) {
        case (.client, .none):
            self.configuration.delegatesVerification || !self.configuration.pins.isEmpty
                ? SSL_VERIFY_PEER : SSL_VERIFY_NONE
        case (.client, .optional), (.client, .required), (.server, .optional): SSL_VERIFY_PEER
        case (.server, .none): SSL_VERIFY_NONE
        case (.server, .required): SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
        }
    }

    private func setSessions(context: [UInt8]) throws(TLSFailure) {
        guard (1...604_800).contains(self.configuration.sessionLifetime) else {
            throw TLSFailure(.configuration, reasons: ["the session lifetime is not 1 to 604800 seconds"])
        }
        unsafe SSL_CTX_set_timeout(self.handle, self.configuration.sessionLifetime)
        unsafe SSL_CTX_set_session_id_context(self.handle, context, UInt32(context.count))
        switch (self.configuration.resumption, self.configuration.role) {
        case (.off, _):
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_off), 0)
            unsafe sluice_ctx_use_tickets(self.handle, 0)
            unsafe SSL_CTX_set_num_tickets(self.handle, 0)
        case (.tickets, .client), (.serverCache, .client):
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_client), 0)
            unsafe SSL_CTX_sess_set_new_cb(self.handle, newSessionCallback)
        case (.tickets, .server):
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_off), 0)
        case (.serverCache(let limit), .server):
            // For OpenSSL 0 means unlimited.
            unsafe sluice_ctx_set_sessions(self.handle, Int32(sluice_sessions_server), max(1, limit))
            unsafe sluice_ctx_use_tickets(self.handle, 0)
        }
        try self.setEarlyData()
    }

    private func setEarlyData() throws(TLSFailure) {
        guard self.configuration.role == .server, self.configuration.earlyDataLimit > 0 else { return }
        guard case .serverCache = self.configuration.resumption, self.configuration.recordLayer == .openSSL else {
            throw TLSFailure(
                .configuration, reasons: ["early data needs a cache of sessions, and OpenSSL's record layer"])
        }
        let limit = UInt32(clamping: self.configuration.earlyDataLimit)
        unsafe SSL_CTX_set_max_early_data(self.handle, limit)
        unsafe SSL_CTX_set_recv_max_early_data(self.handle, limit)
    }
}

// MARK: - Callbacks of OpenSSL, which forward to the connection

private func connection(of ssl: OpaquePointer?) -> SecureConnection? {
    guard let ssl = unsafe ssl, let pointer = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
    return unsafe Unmanaged<SecureConnection>.fromOpaque(pointer).takeUnretainedValue()
}

private func certificateVerifyCallback(_ store: OpaquePointer?, _: UnsafeMutableRawPointer?) -> Int32 {
    let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
    guard let store = unsafe store, let connection = unsafe connection(of: OpaquePointer(ssl)) else { return 0 }
    return unsafe connection.verifyPeer(store) ? 1 : 0
}

/// - Returns: 1 to continue, 0 to fail, -1 to suspend the handshake.
private func certificateCallback(_ ssl: OpaquePointer?, _: UnsafeMutableRawPointer?) -> Int32 {
    guard let connection = unsafe connection(of: ssl) else { return 0 }
    return connection.provideIdentity()
}

private func serverNameCallback(
    _ ssl: OpaquePointer?, _ alert: UnsafeMutablePointer<Int32>?, _: UnsafeMutableRawPointer?
) -> Int32 {
    guard let connection = unsafe connection(of: ssl), let name = connection.requestedName else {
        return SSL_TLSEXT_ERR_NOACK
    }
    guard connection.snapshot.configuration.refusesUnknownServerNames,
        connection.snapshot.identities(for: name).isEmpty
    else { return SSL_TLSEXT_ERR_OK }
    unsafe alert?.pointee = SSL_AD_UNRECOGNIZED_NAME
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

private func alpnSelectCallback(
    _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenCount: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredCount: UInt32,
    _: UnsafeMutableRawPointer?
) -> Int32 {
    guard let connection = unsafe connection(of: ssl), let offered = unsafe offered else { return SSL_TLSEXT_ERR_NOACK }
    let list = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: offered, count: Int(offeredCount)))
    guard let range = ApplicationProtocols.select(from: list, preferred: connection.snapshot.preferredProtocols) else {
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
    unsafe chosen?.pointee = offered + range.lowerBound
    unsafe chosenCount?.pointee = UInt8(truncatingIfNeeded: range.count)
    return SSL_TLSEXT_ERR_OK
}

/// - Returns: 1 if the reference to `session` was taken over, else 0.
private func newSessionCallback(_ ssl: OpaquePointer?, _ session: OpaquePointer?) -> Int32 {
    guard let session = unsafe session, let connection = unsafe connection(of: ssl) else { return 0 }
    return unsafe connection.store(session) ? 1 : 0
}

private func keyLogCallback(_ ssl: OpaquePointer?, _ line: UnsafePointer<CChar>?) {
    guard let line = unsafe line, let connection = unsafe connection(of: ssl) else { return }
    unsafe connection.callbackState?.secrets.keyLogged(line)
    connection.snapshot.keyLog?.write(unsafe String(cString: line))
}

/// Called for record headers and handshake messages, sent and received.
func messageCallback(
    _ written: Int32, _ version: Int32, _ kind: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ ssl: OpaquePointer?,
    _: UnsafeMutableRawPointer?
) {
    guard kind == SSL3_RT_HANDSHAKE || (kind == SSL3_RT_HEADER && written == 1),
        let connection = unsafe connection(of: ssl)
    else { return }
    guard let state = connection.callbackState else {
        if written == 0 { connection.handshakeMessageReceived() }
        return
    }
    guard written == 1 else { return }
    if kind == SSL3_RT_HEADER {
        state.secrets.recordWritten()
    } else if let first = unsafe bytes?.load(as: UInt8.self), first == SSL3_MT_FINISHED {
        state.secrets.finishedWritten()
    }
}

private func infoCallback(_ ssl: OpaquePointer?, _ event: Int32, _ value: Int32) {
    guard event & SSL_CB_ALERT != 0, let connection = unsafe connection(of: ssl) else { return }
    let code = UInt8(truncatingIfNeeded: value)
    // These do not end the connection, or end one direction only; before TLS 1.3 warnings do not end it either.
    let harmless = [SSL_AD_CLOSE_NOTIFY, SSL_AD_USER_CANCELLED, SSL_AD_NO_RENEGOTIATION].contains(Int32(code))
    let warning = unsafe value >> 8 == SSL3_AL_WARNING && SSL_version(ssl) != TLS1_3_VERSION
    guard !harmless, !warning else { return }
    connection.alert = TLSAlert(code: code, origin: event & SSL_CB_READ != 0 ? .peer : .ours)
}
