import NIOCore
import NIOPosix
import StreamTransport
import TLSEngine

/// Opens one connection for one exchange: looks the name up, tries its addresses (RFC 8305), secures.
///
/// Confined to its event loop.
final class ConnectionAttempt: @unchecked Sendable {
    let pool: ConnectionPool
    let key: PoolKey
    private(set) var timings = ConnectTimings()
    private let lookup: NameLookup
    /// `nil` once the attempt is over.
    private var exchange: Exchange?
    private let order: ExchangeRequest
    private var connection: ClientConnection?
    private var handshakeTimer: Scheduled<Void>?
    private var refusedSettings: TLSFailure?

    /// - Parameter exchange: whose consumer answers the questions of the handshake.
    init(for exchange: Exchange, in pool: ConnectionPool) {
        self.exchange = exchange
        self.order = exchange.order
        self.pool = pool
        self.key = PoolKey(exchange.order)
        let (host, settings) = (exchange.order.origin.host, pool.settings)
        self.lookup = NameLookup(
            on: pool.eventLoop, admits: { settings.admits($0, host) }, resolve: settings.resolve)
    }

    func begin() {
        guard DescriptorReserve.process.isAvailable() else {
            return self.pool.eventLoop.execute { self.fail(.connecting(.ownResources(.processDescriptorsExhausted))) }
        }
        let bootstrap = ClientBootstrap(group: self.pool.eventLoop)
            .resolver(self.lookup)
            .connectTimeout(.bounded(self.order.connectTimeout))
            .channelOption(.autoRead, value: false)
            // One read for each time that there is something: a response of one piece costs no second call that only
            // learns that there is no more.
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
        let origin = self.order.origin
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

    /// Several channels may be made, of which one wins.
    private func configure(_ channel: any Channel) throws {
        // Many lookups may have ended at once since the attempts began.
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
        guard let secure = self.order.secure, self.order.origin.scheme == .https else { return nil }
        do throws(TLSFailure) {
            let handler = try SecureHandler(
                secure.context, serverName: secure.serverName ?? self.order.origin.host,
                resumptionKey: secure.resumptionKey, questions: self.questions(), records: self.pool.records)
            handler.decisionPendingChanged = { [weak self] asking in self?.decisionPendingChanged(asking) }
            return handler
        } catch {
            self.refusedSettings = error
            throw error
        }
    }

    private func questions() -> TLSCallbacks {
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

    /// Goes on with a channel that stands, in place of one that is opened.
    func adopt(_ channel: any Channel) throws {
        try self.configure(channel)
        self.connectEnded(.success(channel))
    }

    // MARK: Steps

    private func connectEnded(_ result: Result<any Channel, any Error>) {
        self.noteLookup()
        switch result {
        case .failure(let error): self.fail(self.failure(error))
        case .success(let channel):
            guard self.exchange != nil,
                let connection = try? channel.pipeline.syncOperations.handler(type: ClientConnection.self)
            else { return channel.close(promise: nil) }
            self.connection = connection
            if self.order.origin.scheme == .https {
                self.timings.secureStart = .now
                self.startHandshakeTimer()
            } else {
                self.finish(nil)
            }
        }
    }

    /// With a lookup that is under way, or was given up.
    var timingsSoFar: ConnectTimings {
        self.noteLookup()
        return self.timings
    }

    private func noteLookup() {
        self.timings.lookupStart = self.lookup.start
        self.timings.lookupEnd = self.lookup.end
        guard self.lookup.start != nil else { return }
        self.timings.connectStart = self.lookup.failure == nil ? self.lookup.end : nil
    }

    private func failure(_ error: any Error) -> ExchangeFailure {
        if let refused = self.refusedSettings { return .securing(refused) }
        if self.lookup.isRefused || error as? ExchangeFailure == .notAdmitted { return .notAdmitted }
        if let failure = self.lookup.failure { return .connecting(.nameResolution(failure)) }
        let failure = TransportFailure(connecting: error, isSocketFile: self.order.origin.socketPath != nil)
        if failure == .deadlinePassed(.connecting), self.lookup.isUnderWay {
            return .connecting(.deadlinePassed(.resolving))
        }
        return .connecting(failure)
    }

    func secured(_ facts: TLSMetadata, on connection: ClientConnection) {
        guard connection === self.connection else { return }
        self.timings.secureEnd = .now
        self.finish(facts)
    }

    private func finish(_ tls: TLSMetadata?) {
        guard let exchange = self.exchange, let connection = self.connection else { return }
        self.handshakeTimer?.cancel()
        self.exchange = nil
        self.timings.connectEnd = .now
        connection.facts.tls = tls
        connection.facts.timings = self.timings
        connection.noteAddresses()
        connection.run(exchange)
    }

    // MARK: Failing

    /// - Parameter connection: who found out; one that lost the race does not count.
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
        exchange.phase = .ordered
        self.pool.openingFailed(self.key)
        exchange.fail(failure)
    }

    /// The exchange gave up. A connection that still comes about is closed.
    func cancel() {
        guard self.exchange != nil else { return }
        self.noteLookup()
        self.stop()
        self.pool.openingFailed(self.key)
    }

    private func stop() {
        self.exchange = nil
        self.handshakeTimer?.cancel()
        self.connection?.discard()
        self.connection = nil
    }

    // MARK: The handshake's clock

    private func startHandshakeTimer() {
        guard let timeout = self.order.secure?.timeout else { return }
        self.handshakeTimer = self.pool.eventLoop.assumeIsolated().scheduleTask(in: .bounded(timeout)) {
            self.fail(.connecting(.deadlinePassed(.securing)))
        }
    }

    private func decisionPendingChanged(_ asking: Bool) {
        guard self.exchange != nil else { return }
        self.handshakeTimer?.cancel()
        if !asking { self.startHandshakeTimer() }
    }
}
