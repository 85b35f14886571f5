import NIOCore
import NIOPosix
import StreamTransport
import TLSEngine

/// Opens one connection for one exchange: name lookup, happy eyeballs (RFC 8305), TLS handshake.
///
/// Confined to its event loop.
final class ConnectionAttempt: @unchecked Sendable {
    let pool: ConnectionPool
    let key: PoolKey
    private(set) var timings = ConnectTimings()
    private let lookup: NameLookup
    /// `nil` after the attempt has ended.
    private var exchange: Exchange?
    private let request: ExchangeRequest
    private var connection: ClientConnection?
    private var handshakeTimer: Scheduled<Void>?
    private var tlsSetupFailure: TLSFailure?

    /// - Parameter exchange: its consumer decides about the server's certificate and the client identity.
    init(for exchange: Exchange, in pool: ConnectionPool) {
        self.exchange = exchange
        self.request = exchange.request
        self.pool = pool
        self.key = PoolKey(exchange.request)
        let (host, settings) = (exchange.request.origin.host, pool.settings)
        self.lookup = NameLookup(
            on: pool.eventLoop, admits: { settings.admits($0, host) }, resolve: settings.resolve)
    }

    func begin() {
        guard DescriptorReserve.process.isAvailable() else {
            return self.pool.eventLoop.execute { self.fail(.connecting(.ownResources(.processDescriptorsExhausted))) }
        }
        let bootstrap = ClientBootstrap(group: self.pool.eventLoop)
            .resolver(self.lookup)
            .connectTimeout(.bounded(self.request.connectTimeout))
            .channelOption(.autoRead, value: false)
            // One read per readiness event: a response that fits one read costs no second call that returns EAGAIN.
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 2 << 10, initial: 8 << 10, maximum: 256 << 10)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.configure(channel) }
            }
        self.timings.connectStart = .now
        self.connect(bootstrap).assumeIsolated().whenComplete { self.connectEnded($0) }
    }

    private func connect(_ bootstrap: ClientBootstrap) -> EventLoopFuture<any Channel> {
        let origin = self.request.origin
        if let path = origin.socketPath { return bootstrap.connect(unixDomainSocketPath: path) }
        if let literal = StreamTransport.SocketAddress(literal: origin.host, port: origin.port),
            let address = NIOCore.SocketAddress(literal)
        {
            guard self.pool.settings.admits(literal, origin.host) else {
                return self.pool.eventLoop.submit { throw ExchangeFailure.notAdmitted }
            }
            return bootstrap.connect(to: address)
        }
        return bootstrap.connect(host: origin.host, port: Int(origin.port))
    }

    /// Happy eyeballs may make several channels, of which one wins.
    private func configure(_ channel: any Channel) throws {
        // Checked again: many attempts may have passed the first check during their lookups.
        guard DescriptorReserve.process.isAvailable() else {
            throw TransportFailure.ownResources(.processDescriptorsExhausted)
        }
        let pipeline = channel.pipeline.syncOperations
        if let secure = try self.secureHandler() { try pipeline.addHandler(secure) }
        let wire = WireHandler(limits: self.pool.settings.limits)
        try pipeline.addHandler(wire)
        try pipeline.addHandler(ClientConnection(self, wire: wire, limits: self.pool.settings.limits))
    }

    private func secureHandler() throws -> SecureHandler? {
        guard let secure = self.request.secure, self.request.origin.scheme == .https else { return nil }
        do throws(TLSFailure) {
            let handler = try SecureHandler(
                secure.context, serverName: secure.serverName ?? self.request.origin.host,
                resumptionKey: secure.resumptionKey, callbacks: self.tlsCallbacks(), records: self.pool.records)
            handler.decisionPendingChanged = { [weak self] isPending in self?.decisionPendingChanged(isPending) }
            return handler
        } catch {
            self.tlsSetupFailure = error
            throw error
        }
    }

    private func tlsCallbacks() -> TLSCallbacks {
        TLSCallbacks(
            verify: { [weak self] request, answer in
                guard let consumer = self?.exchange?.consumer else { return answer(.reject) }
                consumer.verificationRequested(request, answer: answer)
            },
            chooseIdentity: { [weak self] issuers, answer in
                guard let consumer = self?.exchange?.consumer else { return answer(nil) }
                consumer.identityRequested(issuers: issuers, answer: answer)
            })
    }

    /// Continues with a channel that is already connected.
    func adopt(_ channel: any Channel) throws {
        try self.configure(channel)
        self.connectEnded(.success(channel))
    }

    // MARK: Steps

    private func connectEnded(_ result: Result<any Channel, any Error>) {
        self.recordLookup()
        switch result {
        case .failure(let error): self.fail(self.failure(error))
        case .success(let channel):
            guard self.exchange != nil,
                let connection = try? channel.pipeline.syncOperations.handler(type: ClientConnection.self)
            else { return channel.close(promise: nil) }
            self.connection = connection
            if self.request.origin.scheme == .https {
                self.timings.secureStart = .now
                self.startHandshakeTimer()
            } else {
                self.finish(nil)
            }
        }
    }

    /// Includes a lookup that has not ended.
    var timingsSoFar: ConnectTimings {
        self.recordLookup()
        return self.timings
    }

    private func recordLookup() {
        self.timings.lookupStart = self.lookup.start
        self.timings.lookupEnd = self.lookup.end
        guard self.lookup.start != nil else { return }
        self.timings.connectStart = self.lookup.failure == nil ? self.lookup.end : nil
    }

    private func failure(_ error: any Error) -> ExchangeFailure {
        if let refused = self.tlsSetupFailure { return .securing(refused) }
        if self.lookup.isRefused || error as? ExchangeFailure == .notAdmitted { return .notAdmitted }
        if let failure = self.lookup.failure { return .connecting(.nameResolution(failure)) }
        let failure = TransportFailure(connecting: error, isSocketFile: self.request.origin.socketPath != nil)
        if failure == .deadlinePassed(.connecting), self.lookup.isUnderWay {
            return .connecting(.deadlinePassed(.resolving))
        }
        return .connecting(failure)
    }

    func secured(_ metadata: TLSMetadata, on connection: ClientConnection) {
        guard connection === self.connection else { return }
        self.timings.secureEnd = .now
        self.finish(metadata)
    }

    private func finish(_ tls: TLSMetadata?) {
        guard let exchange = self.exchange, let connection = self.connection else { return }
        self.handshakeTimer?.cancel()
        self.exchange = nil
        self.timings.connectEnd = .now
        connection.metadata.tls = tls
        connection.metadata.timings = self.timings
        connection.recordAddresses()
        connection.run(exchange)
    }

    // MARK: Failing

    /// - Parameter connection: ignored if it lost the race.
    func failed(_ failure: ExchangeFailure, on connection: ClientConnection) {
        guard connection === self.connection else { return }
        self.fail(failure)
    }

    func connectionEnded(_ cause: TransportFailure?, on connection: ClientConnection) {
        self.failed(.connecting(cause ?? .reset), on: connection)
    }

    private func fail(_ failure: ExchangeFailure) {
        guard let exchange = self.exchange else { return }
        exchange.metrics.timings = self.timings
        self.stop()
        exchange.phase = .created
        self.pool.openingFailed(self.key)
        exchange.fail(failure)
    }

    /// Ends the attempt for its exchange. A connection that is still established is closed.
    func cancel() {
        guard self.exchange != nil else { return }
        self.recordLookup()
        self.stop()
        self.pool.openingFailed(self.key)
    }

    private func stop() {
        self.exchange = nil
        self.handshakeTimer?.cancel()
        self.connection?.discard()
        self.connection = nil
    }

    // MARK: Handshake timeout

    private func startHandshakeTimer() {
        guard let timeout = self.request.secure?.timeout else { return }
        self.handshakeTimer = self.pool.eventLoop.assumeIsolated().scheduleTask(in: .bounded(timeout)) {
            self.fail(.connecting(.deadlinePassed(.securing)))
        }
    }

    private func decisionPendingChanged(_ isPending: Bool) {
        guard self.exchange != nil else { return }
        self.handshakeTimer?.cancel()
        if !isPending { self.startHandshakeTimer() }
    }
}
