import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A client's connection to an upstream, to be opened at one of its endpoints.
struct UpstreamRequest {
    let route: RoutePlan
    let upstream: UpstreamPlan
    /// The client's opening request; `nil` for a byte stream.
    var matched: MatchedRequest?
    var client = SocketAddress.unix(path: "")
    /// Where the client connected to; `nil` if the upstream gets no PROXY header.
    var destination: SocketAddress?

    /// A task for the endpoint. It connects when it is opened, and reads nothing before it is resumed.
    func endpoint(_ index: Int, on loop: Loop) -> RelayEndpoint {
        let target = self.upstream.target(
            index, settings: self.route.configuration.tunnel, preamble: self.proxyHeader)
        guard self.upstream.configuration.speaksWebSocket else { return .stream(StreamTask(to: target, on: loop)) }
        var options = self.route.webSocketOptions
        options.handshakeTimeout = self.upstream.configuration.handshakeTimeout
        let opening = ClientOpening(target: target, handshake: self.handshake(index), deflate: self.route.deflate)
        return .webSocket(WebSocketTask(opening: opening, on: loop, options: options, startsPaused: true))
    }

    /// The PROXY header that names the client to the upstream.
    private var proxyHeader: [UInt8] {
        guard let version = self.route.configuration.proxyProtocol else { return [] }
        guard let destination = self.destination else { return ProxyHeader.local.encoded(version) }
        return ProxyHeader.proxied(source: self.client, destination: destination).encoded(version)
    }

    // MARK: Opening handshake

    /// Made of the client's own (if it had one), the route and the endpoint.
    private func handshake(_ endpoint: Int) -> ClientHandshake {
        let url = self.upstream.configuration.endpoints[endpoint].url
        let query = self.route.configuration.passesQuery ? self.matched?.match.query : nil
        let resource = url.resource.resource(parameters: self.parameters, query: query)
        return ClientHandshake(
            authority: url.authority, target: resource.isEmpty ? "/" : resource, subprotocols: self.subprotocols,
            offers: self.route.deflate?.offers ?? [], fields: self.fields)
    }

    /// Parameters of the path, and claims of the token.
    private var parameters: [String: String] {
        let ofPath = self.matched?.match.encodedParameters ?? [:]
        return ofPath.merging(self.matched?.grant?.parameters ?? [:]) { own, _ in own }
    }

    /// The upstream's own list wins; else what the client offered, held to what the route allows; a client without an
    /// offer of its own (a byte stream) offers the route's.
    private var subprotocols: [String] {
        let (upstream, route) = (self.upstream.configuration, self.route.configuration)
        guard upstream.subprotocols.isEmpty, let matched = self.matched else { return upstream.subprotocols(of: route) }
        let offered = matched.subprotocols
        return route.subprotocols.isEmpty ? offered : offered.filter { route.subprotocols.contains($0) }
    }

    private var fields: [HTTPField] {
        let own = self.route.configuration.headers.map { HTTPField($0.name, $0.value) }
        var fields = self.matched?.grant?.fields ?? own
        var request = ForwardedRequest(
            client: self.client, isSecure: self.matched?.isSecure ?? false, host: self.matched?.head.fields["Host"])
        var trusted = false
        if let matched = self.matched {
            trusted = matched.plan.trustsFields(of: self.client)
            request.forwarded = matched.head.fields.values("Forwarded")
            request.forwardedFor = matched.head.fields.values("X-Forwarded-For")
            request.forwardedProto = matched.head.fields.values("X-Forwarded-Proto")
            request.forwardedHost = matched.head.fields.values("X-Forwarded-Host")
            fields += Self.forwardedFields(matched.head, unless: fields)
        }
        return fields + ForwardedFields(request, trusted: trusted).fields.map { HTTPField($0.name, $0.value) }
    }

    /// End-to-end fields of the client are forwarded; hop-by-hop fields are not (RFC 9110 §7.6.1).
    private static func forwardedFields(_ head: RequestHead, unless own: [HTTPField]) -> [HTTPField] {
        let names = ["Origin", "Cookie", "Authorization", "User-Agent", "Accept-Language"]
        return names.filter { name in !own.contains { $0.name.lowercased() == name.lowercased() } }
            .flatMap { head.fields.fields($0) }
    }
}
