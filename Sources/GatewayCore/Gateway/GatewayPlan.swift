import GatewayConfiguration
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import WebSocketProtocol
import WebTokens

/// A configuration ready to run: all certificates read, all references resolved. Built completely or not at all, so
/// that a failed reload leaves the running plan unchanged.
package struct GatewayPlan: Sendable {
    package let configuration: Configuration
    package let listeners: [ListenerPlan]
    /// In the configuration's order.
    package let tokenSources: [TokenSource]

    /// - Parameter former: the running plan. Upstreams and TLS contexts whose settings did not change are taken over,
    ///   with their state (ejected endpoints, sessions); certificates are always read again.
    /// - Parameter responders: answer plain HTTP on the routes of these names, instead of those of their targets.
    /// - Parameter log: of the gateway that runs it.
    /// - Throws: the first error; nothing was changed then.
    package init(
        _ configuration: Configuration, former: GatewayPlan? = nil, responders: [String: any HTTPResponder] = [:],
        log: TunnelLog? = nil
    ) throws(GatewayPlanError) {
        self.configuration = configuration
        let tokenSources = try Self.tokenSources(configuration, former: former)
        self.tokenSources = tokenSources
        var routes: [String: RoutePlan] = [:]
        // Routes to one upstream share its state.
        var upstreams: [String: UpstreamPlan] = [:]
        for route in configuration.routes {
            let source = route.auth.flatMap { auth in tokenSources.first { $0.settings.name == auth.tokens } }
            var upstream: UpstreamPlan?
            if let wanted = configuration.upstream(of: route) {
                upstream = upstreams[wanted.name]
                if upstream == nil { upstream = try Self.upstream(wanted, former: former, log) }
                upstreams[wanted.name] = upstream
            }
            routes[route.name] = try Self.route(
                route, upstream, source, former: former, responder: responders[route.name])
        }
        var listeners: [ListenerPlan] = []
        for listener in configuration.listeners {
            listeners.append(try Self.listener(listener, configuration, routes, log))
        }
        self.listeners = listeners
    }

    private static func tokenSources(
        _ configuration: Configuration, former: GatewayPlan?
    ) throws(GatewayPlanError) -> [TokenSource] {
        var sources: [TokenSource] = []
        for settings in configuration.tokens {
            do throws(GatewayPlanError) {
                let kept = former?.tokenSources.first { $0.settings.keys == settings.keys }
                sources.append(try TokenSource(settings, former: kept))
            } catch {
                throw error.located(at: .tokens(settings.name))
            }
        }
        return sources
    }

    /// - Parameter source: verifies the tokens of its clients; `nil` without authentication.
    private static func route(
        _ route: RouteConfiguration, _ upstream: UpstreamPlan?, _ source: TokenSource?, former: GatewayPlan?,
        responder: (any HTTPResponder)?
    ) throws(GatewayPlanError) -> RoutePlan {
        guard case .targets(let settings) = route.target else {
            return RoutePlan(route, upstream: upstream, tokens: source, responder: responder)
        }
        do throws(GatewayPlanError) {
            let targets = try TargetSource(
                settings, of: route, former: former?.routes.first { $0.configuration.name == route.name }?.targets)
            return RoutePlan(route, upstream: nil, targets: targets, tokens: source)
        } catch {
            throw error.located(at: .route(route.name))
        }
    }

    private static func upstream(
        _ upstream: UpstreamConfiguration, former: GatewayPlan?, _ log: TunnelLog?
    ) throws(GatewayPlanError) -> UpstreamPlan {
        if let kept = former?.upstream(like: upstream) { return kept }
        do throws(GatewayPlanError) {
            let usesTLS = upstream.endpoints.contains { $0.url.scheme.speaksTLS }
            let context =
                usesTLS
                ? try TLSMaterial.context(
                    TLSMaterial.configuration(upstream.tls, speaksWebSocket: upstream.speaksWebSocket, log: log)) : nil
            let proxy = try upstream.proxy.map { (proxy) throws(GatewayPlanError) in try ProxyMaterial.server(proxy) }
            return UpstreamPlan(
                upstream, context: context, proxy: proxy,
                former: former?.upstreams.first { $0.configuration.name == upstream.name })
        } catch {
            throw error.located(at: .upstream(upstream.name))
        }
    }

    private static func listener(
        _ listener: ListenerConfiguration, _ configuration: Configuration, _ routes: [String: RoutePlan],
        _ log: TunnelLog?
    ) throws(GatewayPlanError) -> ListenerPlan {
        let served = configuration.routes.filter { configuration.serves($0, on: listener) }.compactMap {
            routes[$0.name]
        }
        let context: TLSContext?
        do throws(GatewayPlanError) {
            context = try listener.tls.map { (settings) throws(GatewayPlanError) in
                try TLSMaterial.context(TLSMaterial.configuration(settings, log: log))
            }
        } catch {
            throw error.located(at: .listener(listener.name))
        }
        return ListenerPlan(
            listener, context: context, routes: served, route: listener.route.flatMap { routes[$0] })
    }

    private func upstream(like wanted: UpstreamConfiguration) -> UpstreamPlan? {
        // TLS material or a password may have changed on disk: such an upstream is created again, with its balancer.
        self.upstreams.first { $0.context == nil && $0.proxy == nil && $0.configuration == wanted }
    }

    /// Verifies the tokens of clients of the rooms' protocol; `nil` without `rooms.tokens`.
    var roomVerifier: TokenVerifier? {
        self.configuration.rooms.tokens.flatMap { name in
            self.tokenSources.first { $0.settings.name == name }?.verifier
        }
    }

    /// Number of connections to all upstreams, connecting and open.
    package var upstreamConnections: Int {
        self.upstreams.reduce(0) { sum, upstream in
            upstream.balancer.withLock { balancer in
                (0..<balancer.count).reduce(sum) { $0 + balancer.connections(of: $1) }
            }
        }
    }

    /// Every route that a listener serves, once.
    package var routes: [RoutePlan] {
        Self.unique(self.listeners.flatMap { $0.routes + [$0.route].compactMap(\.self) })
    }

    /// Every upstream of these routes, once.
    var upstreams: [UpstreamPlan] {
        Self.unique(self.routes.compactMap(\.upstream) + self.routes.flatMap { $0.targets?.upstreams ?? [] })
    }

    private static func unique<Plan: AnyObject>(_ plans: [Plan]) -> [Plan] {
        var seen: Set<ObjectIdentifier> = []
        return plans.filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    package func listener(named name: String) -> ListenerPlan? {
        self.listeners.first { $0.configuration.name == name }
    }
}

/// A listener ready to work: its settings, and the TLS context that a reload swaps the material of.
package final class ListenerPlan: Sendable {
    package let configuration: ListenerConfiguration
    let context: TLSContext?
    /// Routes of the listener's requests. The table returns indices into them.
    let routes: [RoutePlan]
    private let table: RouteTable
    /// The one route of a listener without requests.
    let route: RoutePlan?

    init(_ configuration: ListenerConfiguration, context: TLSContext?, routes: [RoutePlan], route: RoutePlan?) {
        self.configuration = configuration
        self.context = context
        self.routes = routes
        self.table = RouteTable(routes.map(\.configuration))
        self.route = route
    }

    /// Destination of a request.
    enum Destination {
        /// The opening handshake is valid.
        case webSocket(MatchedRequest)
        /// - Parameter grant: of the request's token; `nil` unless the route authenticates.
        case http(RoutePlan, RouteMatch, AccessGrant?)
    }

    /// Matches a request to a route. An unknown path is reported before other errors of the request.
    /// - Parameters:
    ///   - isSecure: whether the request was received over TLS.
    ///   - now: in milliseconds since 1970.
    func find(_ head: RequestHead, isSecure: Bool, now: Int64) throws(HandshakeRefusal) -> Destination {
        let host = head.fields.single("Host")
        guard !host.isRepeated, host.first != nil || head.version != .http11 else {
            throw HandshakeRefusal(status: 400, explanation: "Send exactly one Host field.")
        }
        let isUpgrade = head.fields.list("Upgrade", contains: "websocket")
        switch self.table.find(host: host.first, target: head.target, isUpgrade: isUpgrade) {
        case .malformed: throw .malformedTarget
        case .none: throw .noRoute
        case .route(let match):
            let route = self.routes[match.index]
            if let responder = route.responder {
                try Self.checkPlain(head)
                guard route.origins.allows(head.fields["Origin"]) else { throw .originRefused }
                let grant = try Self.admit(head, match, to: route, responder, now: now)
                return .http(route, grant?.match ?? match, grant)
            }
            let grant = try route.access?.admit(head, match, now: now)
            let request = try ServerHandshake.check(grant?.head ?? head)
            guard route.origins.allows(head.fields["Origin"]) else { throw .originRefused }
            return .webSocket(
                MatchedRequest(
                    route, grant?.match ?? match, request, isSecure: isSecure, plan: self, grant: grant))
        }
    }

    /// Verifies the token of a plain request.
    private static func admit(
        _ head: RequestHead, _ match: RouteMatch, to route: RoutePlan, _ responder: any HTTPResponder, now: Int64
    ) throws(HandshakeRefusal) -> AccessGrant? {
        // Browsers ask without credentials whether they may send some (Fetch §4.8).
        if head.method == "OPTIONS", responder.methods.contains("OPTIONS") { return nil }
        do throws(HandshakeRefusal) {
            return try route.access?.admit(head, match, now: now)
        } catch {
            throw error.adding(responder.refusalFields(head, of: route))
        }
    }

    /// The fields of a plain request that an opening handshake's check covers for a WebSocket. `Host` may be empty: the
    /// client's URL has no host then (RFC 9112 §3.2).
    private static func checkPlain(_ head: RequestHead) throws(HandshakeRefusal) {
        if let host = head.fields["Host"], !host.isEmpty, !Authority.isWellFormed(host) {
            throw .malformed("The Host field is not a valid host.")
        }
        guard !head.fields.single("Origin").isRepeated else { throw .malformed("There is more than one Origin field.") }
    }
}

/// A route ready to work.
package final class RoutePlan: Sendable {
    package let configuration: RouteConfiguration
    /// `nil` for routes without endpoints.
    let upstream: UpstreamPlan?
    /// `nil` unless each request names its target.
    let targets: TargetSource?
    /// Answers plain HTTP; `nil` for routes of WebSockets and streams.
    let responder: (any HTTPResponder)?
    /// Compression accepted from clients and offered to WebSocket upstreams; `nil` for none.
    let deflate: DeflatePolicy?
    let origins: OriginRules
    /// How a WebSocket of this route behaves, on either side. Made once, so that its connections share it.
    let webSocketOptions: WebSocketOptions
    let relaySettings: RelaySettings
    /// `nil` admits every client.
    let access: RouteAccess?

    /// - Parameters:
    ///   - tokens: present if the route authenticates its clients.
    ///   - responder: instead of that of the target.
    init(
        _ configuration: RouteConfiguration, upstream: UpstreamPlan?, targets: TargetSource? = nil,
        tokens: TokenSource? = nil, responder: (any HTTPResponder)? = nil
    ) {
        self.configuration = configuration
        self.access = Self.access(configuration, upstream, tokens)
        self.upstream = upstream
        self.targets = targets
        self.responder = responder ?? Self.responder(configuration.target)
        self.relaySettings = RelaySettings(configuration.tunnel)
        self.webSocketOptions = Self.options(of: configuration.tunnel)
        self.origins = OriginRules(of: configuration)
        self.deflate = configuration.tunnel.compression.map { policy in
            DeflatePolicy(
                ownContextTakeover: policy.keepsContext ?? !configuration.target.sharesMessages,
                peerContextTakeover: policy.keepsContext ?? true, ownWindowBits: policy.windowBits, level: policy.level,
                minimumSize: policy.minimumSize)
        }
    }

    private static func responder(_ target: RouteTarget) -> (any HTTPResponder)? {
        switch target {
        case .files(let settings): FileResponder(settings)
        case .page: PageResponder.shared
        case .roomEvents: RoomStreamResponder.shared
        case .echo, .chat, .rooms, .upstream, .url, .targets: nil
        }
    }

    private static func access(
        _ route: RouteConfiguration, _ upstream: UpstreamPlan?, _ tokens: TokenSource?
    ) -> RouteAccess? {
        guard let settings = route.auth, let tokens else {
            assert(route.auth == nil, "the validator lets no unknown name pass")
            return nil
        }
        return RouteAccess(settings, source: tokens, route: route, upstream: upstream?.configuration)
    }

    /// Compression negotiated between a client and this route.
    func negotiated(_ acceptance: HandshakeAcceptance) -> NegotiatedDeflate? {
        guard let parameters = acceptance.deflate, let policy = self.deflate else { return nil }
        return NegotiatedDeflate(parameters, policy: policy)
    }

    private static func options(of settings: TunnelSettings) -> WebSocketOptions {
        var options = WebSocketOptions()
        options.maximumMessageSize = settings.maximumMessageSize
        options.pingInterval = settings.pingInterval
        options.pongTimeout = settings.pongTimeout
        return options
    }
}

/// An upstream ready to work: its TLS context, and the balancer that all loops share.
package final class UpstreamPlan: Sendable {
    package let configuration: UpstreamConfiguration
    let context: TLSContext?
    /// `nil` connects directly.
    let proxy: ProxyServer?
    /// In the configuration's order. Made once: reports and log lines of all connections share them.
    let endpointURLs: [String]
    let balancer: SharedBalancer
    /// Of each endpoint.
    let meters: [EndpointMeter]

    /// - Parameter former: the upstream of this name before a reload.
    init(
        _ configuration: UpstreamConfiguration, context: TLSContext?, proxy: ProxyServer?, former: UpstreamPlan? = nil
    ) {
        self.configuration = configuration
        self.context = context
        self.proxy = proxy
        self.endpointURLs = configuration.endpoints.map(\.url.description)
        // Files of its TLS or its proxy may have changed, but not its endpoints.
        let kept = former?.configuration == configuration ? former?.balancer : nil
        self.balancer = kept ?? SharedBalancer(Balancer(configuration))
        // Entries with the same URL are one endpoint.
        var meters: [String: EndpointMeter] = [:]
        if let former { for (url, meter) in zip(former.endpointURLs, former.meters) { meters[url] = meter } }
        for url in self.endpointURLs where meters[url] == nil { meters[url] = EndpointMeter() }
        self.meters = self.endpointURLs.map { meters[$0] ?? EndpointMeter() }
    }

    /// As `Balancer.choose`.
    func choose(avoiding tried: [Int], excluding excluded: [Int], now: MonotonicInstant) -> Int? {
        let chosen = self.balancer.withLock { $0.choose(avoiding: tried, excluding: excluded, now: now) }
        if let chosen { self.meters[chosen].began() }
        return chosen
    }

    /// As `Balancer.release`.
    func release(_ endpoint: Int) {
        self.balancer.withLock { $0.release(endpoint) }
        self.meters[endpoint].released()
    }

    /// - Returns: whether the endpoint had been ejected.
    func connected(_ endpoint: Int, after time: Duration) -> Bool {
        self.meters[endpoint].connected(after: time)
        return self.balancer.withLock { $0.succeeded(endpoint) }
    }

    /// - Returns: whether the failure ejected the endpoint.
    func failed(_ endpoint: Int, now: MonotonicInstant) -> Bool {
        self.meters[endpoint].failed()
        return self.balancer.withLock { $0.failed(endpoint, now: now) }
    }

    /// How one endpoint is connected to.
    func target(_ endpoint: Int, settings: TunnelSettings, preamble: [UInt8]) -> OpeningTarget {
        let url = self.configuration.endpoints[endpoint].url
        var target = OpeningTarget(url.connectTarget)
        target.socket = settings.keepAlive.socketOptions
        target.proxy = self.proxy
        target.connectTimeout = self.configuration.connectTimeout
        target.preamble = preamble
        guard url.scheme.speaksTLS, let context = self.context else { return target }
        var secure = SecureSettings(context: context, serverName: self.configuration.tls.serverName ?? url.hostName)
        secure.timeout = self.configuration.handshakeTimeout
        secure.resumptionKey = url.description
        target.secure = secure
        return target
    }
}
