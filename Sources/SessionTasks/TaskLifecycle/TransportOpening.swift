import ByteKernels
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// Connects, through a proxy if there is one, sends the preamble, secures: gives a transport that is ready for its owner's
/// own bytes, paused. If a proxy cannot be reached, the next way to the server is tried.
package final class TransportOpening {
    package typealias Completion = (Result<any Transport, TransportFailure>) -> Void

    private enum Step {
        /// The ways to the server are being decided on.
        case selecting
        case lookingUp(NameLookup)
        case connecting(ConnectAttempt)
        case securing(SecureTransport?)
        /// The handshake with the proxy.
        case tunnelling(ProxyTunnel)
        /// The fields of a `CONNECT` request are being decided on.
        case authorizing
        /// This machine has no way to the server.
        case waiting
        /// Between two steps, or over.
        case none
    }

    private let target: OpeningTarget
    /// The ways that are left; `nil` is the direct one.
    private var routes: ArraySlice<ProxyServer?> = []
    private let loop: Loop
    private let didConnect: () -> Void
    private var step = Step.none {
        didSet { if self.isHeld { self.holdTimeout(true) } }
    }
    private var completion: Completion?
    /// `nil` before the first wait.
    private var pathWait: PathWait?
    private var hasConnected = false
    /// Whether no timeout runs, and no attempt begins when the networks have changed, as for a task that is suspended.
    package var isHeld = false {
        didSet {
            self.holdTimeout(self.isHeld)
            if !self.isHeld { self.pathWait?.resume() }
        }
    }

    /// `completion` is called once, in a later turn, unless the opening is cancelled.
    /// - Parameter connected: called before TLS begins.
    package init(
        _ target: OpeningTarget, on loop: Loop, connected: @escaping () -> Void = {}, completion: @escaping Completion
    ) {
        self.target = target
        self.loop = loop
        self.didConnect = connected
        self.completion = completion
        self.start()
    }

    private func holdTimeout(_ isHeld: Bool) {
        switch self.step {
        case .lookingUp(let lookup): lookup.isHeld = isHeld
        case .connecting(let attempt): attempt.isHeld = isHeld
        case .securing(let transport): transport?.isTimeoutHeld = isHeld
        case .tunnelling(let tunnel): tunnel.isHeld = isHeld
        case .selecting, .authorizing, .waiting, .none: break
        }
    }

    private func start() {
        self.routes = [self.target.proxy]
        if let select = self.target.selectProxies { self.select(select) } else { self.begin() }
    }

    private func select(_ select: OpeningTarget.SelectProxies) {
        self.step = .selecting
        let opening = LoopIsolated(self, on: self.loop)
        select { selection in
            opening.execute { opening in
                guard case .selecting = opening.step else { return }
                opening.step = .none
                switch selection {
                case .success(let routes) where !routes.isEmpty:
                    opening.routes = routes[...]
                    opening.begin()
                case .success: opening.finish(.failure(TransportFailure(.closed)))
                case .failure(let failure): opening.finish(.failure(failure))
                }
            }
        }
    }

    /// Takes the next way to the server.
    private func begin() {
        if let proxy = self.routes.popFirst() ?? nil { self.prepare(proxy) } else { self.connectDirectly() }
    }

    private func connectDirectly() {
        self.target.watch?(.began(self.target.place, isProxied: false))
        let resolve = self.target.resolveServer ?? self.target.resolve
        self.connect(to: self.target.place, resolve: resolve, permits: self.target.permits) { result in
            switch result {
            case .success(let connection): self.established(connection)
            case .failure(let failure): self.finish(.failure(failure))
            }
        }
    }

    private func connect(
        to place: ConnectTarget, resolve: ConnectAttempt.Resolve?, permits: ConnectAttempt.Permission?,
        _ completion: @escaping (Result<SocketConnection, TransportFailure>) -> Void
    ) {
        let attempt = ConnectAttempt(
            place, on: self.loop, options: self.target.socket, path: self.target.path,
            timeout: self.target.connectTimeout,
            resolve: resolve, permits: permits, didResolve: { self.target.watch?(.resolved) }
        ) { result in
            self.step = .none
            if case .success(let connection) = result {
                self.didConnect()
                self.hasConnected = true
                self.pathWait.take()?.end()
                self.target.watch?(.connected(local: connection.localAddress, peer: connection.peerAddress))
                if self.target.path.isReported { self.target.watch?(.took(connection.path(self.target.path))) }
            }
            completion(result)
        }
        self.step = .connecting(attempt)
    }

    /// The connection leads to the server.
    private func established(_ transport: any Transport) {
        if !self.target.preamble.isEmpty { self.target.preamble.withRawSpan { transport.write($0) } }
        guard let settings = self.target.secure else { return self.finish(.success(transport)) }
        self.target.watch?(.securing)
        self.secure(transport, settings) { result in
            if case .success(let transport) = result, let metadata = transport.metadata {
                self.target.watch?(.secured(metadata))
            }
            self.finish(result.map { $0 as any Transport })
        }
    }

    private func secure(
        _ transport: any Transport, _ settings: SecureSettings, _ completion: @escaping SecureTransport.Completion
    ) {
        var isOver = false
        let securing = SecureTransport.upgrade(transport, settings: settings, received: []) { result in
            isOver = true
            self.step = .none
            completion(result)
        }
        if !isOver { self.step = .securing(securing) }
    }

    private func finish(_ result: Result<any Transport, TransportFailure>) {
        if case .failure(let failure) = result {
            self.target.watch?(.failed(failure))
            if self.waits(after: failure) { return }
        }
        self.pathWait.take()?.end()
        self.completion.take()?(result)
    }

    /// - Returns: whether to connect when this machine's networks have changed.
    private func waits(after failure: TransportFailure) -> Bool {
        guard self.target.waitsForPath, !self.hasConnected, self.completion != nil else { return false }
        let isFirst = self.pathWait == nil
        let wait = self.pathWait ?? PathWait(on: self.loop) { [weak self] in self?.isHeld ?? true }
        let waits = wait.wait(after: failure) {
            self.step = .none
            self.start()
        }
        guard waits else { return false }
        self.pathWait = wait
        self.step = .waiting
        if isFirst { self.target.watch?(.waiting) }
        return true
    }

    /// Gives the opening up; the completion is not called.
    package func cancel() {
        self.completion = nil
        let step = self.step
        self.step = .none
        switch step {
        case .lookingUp(let lookup): lookup.cancel()
        case .connecting(let attempt): attempt.cancel()
        case .securing(let transport): transport?.reset()
        case .tunnelling(let tunnel): tunnel.cancel()
        case .selecting, .authorizing, .waiting, .none: break
        }
        self.pathWait.take()?.end()
    }
}

/// The way through a proxy.
extension TransportOpening {
    private func fail(_ failure: ProxyFailure, at proxy: ProxyServer) {
        if failure.isUnreachable {
            // Where this machine has no network, nothing is known of the proxy.
            if !TransportFailure(failure).isOffline { proxy.didFail?() }
            if !self.routes.isEmpty { return self.begin() }
        }
        self.finish(.failure(TransportFailure(failure)))
    }

    private func prepare(_ proxy: ProxyServer) {
        guard let destination = ProxyDestination(self.target.place) else {
            return self.failLater(TransportFailure(.inexpressible("no proxy leads to a Unix socket")))
        }
        if case .address(let address) = destination, self.target.permits?(address) == false {
            return self.failLater(.notPermitted(address))
        }
        let needsAddress = self.target.resolveServer != nil || proxy.needsAddress(of: destination)
        self.target.watch?(.began(needsAddress ? self.target.place : proxy.place, isProxied: true))
        guard needsAddress, case .name(let host, let port) = destination else {
            return self.authorize(proxy, destination, after: nil)
        }
        self.step = .lookingUp(
            NameLookup(
                host, port: port, on: self.loop, timeout: self.target.connectTimeout,
                resolve: self.target.resolveServer ?? self.target.resolve
            ) { result in
                self.step = .none
                switch result {
                case .success(let addresses): self.resolved(addresses, proxy)
                case .failure(let failure): self.finish(.failure(failure))
                }
            })
    }

    /// The completion must not be called within the initializer.
    private func failLater(_ failure: TransportFailure) {
        self.step = .authorizing
        LoopIsolated(self, on: self.loop).execute { opening in
            guard case .authorizing = opening.step else { return }
            opening.finish(.failure(failure))
        }
    }

    private func resolved(_ addresses: [SocketAddress], _ proxy: ProxyServer) {
        self.target.watch?(.resolved)
        let usable = addresses.filter { proxy.takes($0) }
        guard let address = usable.first(where: { self.target.permits?($0) ?? true }) else {
            return self.finish(.failure(usable.first.map { .notPermitted($0) } ?? .nameResolution(.nameNotFound)))
        }
        self.authorize(proxy, .address(address), after: nil)
    }

    /// Gets the fields of the next `CONNECT` request, before there is a connection that a decision could keep waiting.
    private func authorize(
        _ proxy: ProxyServer, _ destination: ProxyDestination, after refusal: ProxyFailure?,
        over tls: TLSMetadata? = nil
    ) {
        guard proxy.method == .connect, let authorize = proxy.authorize else {
            return self.connect(proxy, destination, fields: [])
        }
        self.step = .authorizing
        let opening = LoopIsolated(self, on: self.loop)
        let challenge = refusal?.challenge.map { ProxyServer.Challenge(head: $0, tls: tls, keepsConnection: false) }
        authorize(challenge) { fields in
            opening.execute { opening in
                guard case .authorizing = opening.step else { return }
                opening.step = .none
                guard let fields else { return opening.finish(.failure(TransportFailure(refusal ?? .closed))) }
                opening.connect(proxy, destination, fields: fields)
            }
        }
    }

    private func connect(_ proxy: ProxyServer, _ destination: ProxyDestination, fields: [FieldLine]) {
        do throws(ProxyFailure) {
            let client = try proxy.client(to: destination, fields: fields)
            self.connect(to: proxy.place, resolve: self.target.resolve, permits: proxy.permits) { result in
                switch result {
                case .success(let connection): self.connected(connection, proxy, client, destination)
                case .failure(let failure): self.fail(.connection(failure), at: proxy)
                }
            }
        } catch {
            self.failLater(TransportFailure(error))
        }
    }

    private func connected(
        _ connection: SocketConnection, _ proxy: ProxyServer, _ client: (any ProxyClient)?,
        _ destination: ProxyDestination
    ) {
        guard let settings = proxy.secure else { return self.tunnel(on: connection, proxy, client, destination) }
        self.secure(connection, settings) { result in
            switch result {
            case .success(let transport):
                if let metadata = transport.metadata { self.target.watch?(.securedProxy(metadata)) }
                self.tunnel(on: transport, proxy, client, destination)
            case .failure(.tls(let layer)):
                guard let cause = layer.cause as? TLSFailure else {
                    return self.fail(.connection(.tls(layer)), at: proxy)
                }
                self.fail(.securing(proxy.explain?(cause) ?? cause), at: proxy)
            case .failure(let failure): self.fail(.connection(failure), at: proxy)
            }
        }
    }

    private func tunnel(
        on transport: any Transport, _ proxy: ProxyServer, _ client: (any ProxyClient)?,
        _ destination: ProxyDestination
    ) {
        guard let client else { return self.established(transport) }
        let tls = (transport as? SecureTransport)?.metadata
        let authorize: ProxyTunnel.Authorize = { head, completion in
            guard let authorize = proxy.authorize else { return completion(nil) }
            authorize(ProxyServer.Challenge(head: head, tls: tls, keepsConnection: true), completion)
        }
        let tunnel = ProxyTunnel(
            client, on: transport, timeout: self.target.connectTimeout, authorize: authorize
        ) { failure in
            self.step = .none
            guard let failure else {
                proxy.didTunnel?()
                self.target.watch?(.tunnelled)
                return self.established(transport)
            }
            guard failure.challenge != nil, proxy.authorize != nil else { return self.fail(failure, at: proxy) }
            self.authorize(proxy, destination, after: failure, over: tls)
        }
        self.step = .tunnelling(tunnel)
        tunnel.begin()
    }
}

extension ProxyFailure {
    /// The 407 to which credentials may be the answer.
    fileprivate var challenge: ResponseHead? {
        if case .refused(let head, _) = self, head.status == 407 { head } else { nil }
    }
}

/// Progress of an opening, for metrics and for classifying failures.
package enum OpeningStep: Sendable {
    /// A way to the server is tried: first of all a name is resolved or an address connected to, that of the server or of a
    /// proxy. Another way may follow where a proxy cannot be reached.
    case began(ConnectTarget, isProxied: Bool)
    /// The name is resolved. Left out where an address was given.
    case resolved
    /// The connection is established, to the proxy if there is one.
    case connected(local: SocketAddress?, peer: SocketAddress?)
    /// The way that the connection takes, if `PathOptions.isReported`.
    case took(ConnectionPath)
    /// The TLS handshake with the proxy itself is done.
    case securedProxy(TLSMetadata)
    /// This machine has no way to the server; `began` follows when it has one. At most once.
    case waiting
    /// The proxy has connected to the server.
    case tunnelled
    /// The TLS handshake begins, and is done.
    case securing
    case secured(TLSMetadata)
    /// The opening request was written, with this number of bytes.
    case requested(bytes: Int)
    /// The head of the answer is there: so many bytes, those of interim heads included.
    case answered(bytes: Int)
    case failed(TransportFailure)
}

/// Target of a connection, and the steps before its owner's first byte.
package struct OpeningTarget: Sendable {
    /// - Parameter completion: called once, from any thread, with the proxies to try in their order, `nil` among them for
    ///   a direct connection. A proxy that cannot be reached, or breaks its protocol, is followed by the next; one that
    ///   refuses is not. With an empty list the opening fails. After a failure it fails with that or, if this machine is
    ///   offline, waits as for the server; the selection is then repeated.
    package typealias SelectProxies =
        @Sendable (_ completion: @escaping @Sendable (Result<[ProxyServer?], TransportFailure>) -> Void) -> Void

    /// The server.
    package var place: ConnectTarget
    /// `nil` to connect directly.
    package var proxy: ProxyServer?
    /// Decides on the ways to the server, instead of `proxy`.
    package var selectProxies: SelectProxies?
    package var socket = SocketOptions()
    package var path = PathOptions()
    /// Waits where this machine has no way to the server, until there is one, as long as no connection was established. No
    /// timeout runs meanwhile. Default: false.
    package var waitsForPath = false
    /// For name resolution and connecting together; with a proxy, also for its answer alone.
    package var connectTimeout: Duration = .seconds(10)
    /// Sent in the clear before everything else that the server gets, such as a PROXY header.
    package var preamble: [UInt8] = []
    /// TLS from the first byte (after the preamble); `nil` for none.
    package var secure: SecureSettings?
    /// Looks the name up; `nil` asks the system.
    package var resolve: ConnectAttempt.Resolve?
    /// Looks the server's name up instead, also where a proxy would; a proxy that forwards requests does so in any case.
    /// Default: `nil`.
    package var resolveServer: ConnectAttempt.Resolve?
    /// Asked of each of the server's addresses before it is tried; `nil` permits all. A name that the proxy resolves is
    /// not checked.
    package var permits: ConnectAttempt.Permission?
    /// Called for each step, on the loop, before the completion.
    package var watch: (@Sendable (OpeningStep) -> Void)?

    package init(_ place: ConnectTarget) {
        self.place = place
    }
}
