import HTTP2Engine
import SessionTasks
import StreamTransport
import TLSEngine

/// Opens one connection for one exchange.
///
/// Confined to the pool's loop.
final class ConnectionAttempt: @unchecked Sendable {  // Its vars are used on the pool's loop only.
    static var socketOptions: SocketOptions {
        var options = SocketOptions()
        // The timeouts of exchanges and of idle connections find out sooner.
        options.keepAliveIdle = nil
        return options
    }

    let pool: ConnectionPool
    let key: PoolKey
    private(set) var timings = ConnectTimings()
    /// `nil` after the attempt has ended.
    private var exchange: Exchange?
    private var opening: TransportOpening?
    private var metadata = ConnectionMetadata()
    private var isHeld = false
    private let holdTimer = LoopTimer()

    /// - Parameter exchange: its consumer decides about the server's certificate and the client identity.
    init(for exchange: Exchange, in pool: ConnectionPool) {
        self.exchange = exchange
        self.pool = pool
        self.key = PoolKey(exchange.request)
    }

    func begin() {
        guard let request = self.exchange?.request else { return }
        let (host, settings) = (request.origin.host, self.pool.settings)
        var target = OpeningTarget(request.place)
        target.proxy = request.proxy
        target.connectTimeout = request.connectTimeout
        target.socket = Self.socketOptions
        target.path = request.path
        target.resolve = settings.resolve
        if request.needsAuthenticatedName { target.resolveServer = settings.resolveAuthenticated }
        if request.origin.socketPath == nil { target.permits = { settings.admits($0, host) } }
        target.secure = self.secureSettings(request)
        target.watch = { self.record($0) }
        self.opening = TransportOpening(target, on: self.pool.loop) { self.opened($0) }
        self.demandChanged()
    }

    /// No timeout of the exchange runs while it is suspended, and no other exchange waits for the connection. It counts as
    /// one of the host only for as long as opening it may take.
    func demandChanged() {
        if let exchange { self.hold(exchange.isSuspended) }
    }

    private func hold(_ isHeld: Bool) {
        guard isHeld != self.isHeld else { return }
        self.isHeld = isHeld
        self.opening?.isHeld = isHeld
        self.pool.loop.disarm(self.holdTimer)
        if isHeld, let exchange {
            self.pool.loop.arm(self.holdTimer, after: exchange.request.connectTimeout, target: self)
        }
        self.pool.openingHeld(isHeld, self.key)
    }

    private func secureSettings(_ request: ExchangeRequest) -> SecureSettings? {
        guard let secure = request.secure, request.origin.scheme == .https else { return nil }
        var settings = SecureSettings(context: secure.context, serverName: secure.serverName ?? request.origin.host)
        settings.resumptionKey = secure.resumptionKey
        settings.timeout = secure.timeout
        // An exchange whose request is sent as early data leaves the attempt before the handshake.
        settings.decide = { [weak exchange] request, answer in
            guard let consumer = exchange?.consumer else { return answer(.reject) }
            consumer.verificationRequested(request, answer: answer)
        }
        settings.chooseIdentity = { [weak exchange] issuers, answer in
            guard let consumer = exchange?.consumer else { return answer(nil) }
            consumer.identityRequested(issuers: issuers, answer: answer)
        }
        settings.sendsEarlyData = request.allowsEarlyData && exchange?.isRepeated == false
        return settings
    }

    private func record(_ step: OpeningStep) {
        self.timings.record(step)
        switch step {
        case .began(_, let isProxied):
            self.metadata = ConnectionMetadata()
            self.metadata.isProxied = isProxied
        case .connected(let local, let peer):
            self.metadata.localAddress = local
            self.metadata.peerAddress = peer
        case .took(let path): self.metadata.path = path
        case .securedProxy(let metadata): self.metadata.proxyTLS = metadata
        case .secured(let metadata): self.metadata.tls = metadata
        case .resolved, .tunnelled, .securing, .requested, .answered, .failed, .waiting: break
        }
    }

    private func opened(_ result: Result<any Transport, TransportFailure>) {
        self.opening = nil
        guard let exchange = self.exchange else { return }
        self.exchange = nil
        self.hold(false)
        switch result {
        case .success(let transport):
            exchange.stopWaiting()
            self.metadata.timings = self.timings
            self.metadata.sendsEarlyData = (transport as? SecureTransport)?.isSecured == false
            self.begin(exchange, on: transport)
        case .failure(let failure):
            exchange.metrics.timings = self.timings
            if exchange.request.isMeasured, self.metadata.peerAddress != nil {
                self.metadata.networkProtocol = nil
                exchange.metrics.connection = self.metadata
            }
            exchange.phase = .created
            // Another exchange may take the place: it waits too, or uses a connection that it finds.
            if exchange.waits(after: failure) { return self.pool.openingCancelled(self.key) }
            self.pool.openingFailed(self.key)
            exchange.fail(ExchangeFailure(connecting: failure))
        }
    }

    /// The protocol is what the server chose by ALPN; without TLS, what the exchange demands.
    private func begin(_ exchange: Exchange, on transport: any Transport) {
        guard self.key.assumesHTTP2 || self.metadata.tls?.applicationProtocol == "h2" else {
            let connection = HTTPConnection(transport, self.metadata, key: self.key, in: self.pool)
            return self.pool.connectionOpened(connection, for: exchange)
        }
        do throws(HTTP2Failure) {
            let connection = try HTTP2ClientConnection(transport, self.metadata, key: self.key, in: self.pool)
            self.pool.connectionOpened(connection, for: exchange)
        } catch {
            transport.close(linger: .zero)
            exchange.phase = .created
            self.pool.openingFailed(self.key)
            exchange.fail(.http2(HTTP2Error(error)))
        }
    }

    /// Ends the attempt for its exchange.
    func cancel() {
        guard self.exchange != nil else { return }
        self.exchange = nil
        self.opening?.cancel()
        self.opening = nil
        self.hold(false)
        self.pool.openingCancelled(self.key)
    }
}

extension ConnectionAttempt: TimerTarget {
    /// The exchange is suspended: it begins again when it is resumed.
    func timerFired(_ timer: LoopTimer) {
        guard let exchange = self.exchange else { return }
        exchange.phase = .suspended(needsFresh: exchange.request.needsFreshConnection || exchange.isRepeated)
        self.cancel()
    }
}

extension ExchangeRequest {
    fileprivate var place: ConnectTarget {
        self.origin.socketPath.map { .address(.unix(path: $0)) } ?? .host(self.origin.host, port: self.origin.port)
    }
}

extension ExchangeFailure {
    fileprivate init(connecting failure: TransportFailure) {
        switch failure {
        case .notPermitted: self = .notAdmitted
        case .tls(let layer): self = (layer.cause as? TLSFailure).map { .securing($0) } ?? .connecting(failure)
        default: self = .connecting(failure)
        }
    }

    /// The failure of an open connection's TLS; `nil` for other failures.
    init?(tls failure: TransportFailure?) {
        guard case .tls(let layer)? = failure, let cause = layer.cause as? TLSFailure else { return nil }
        self = .securing(cause)
    }
}
