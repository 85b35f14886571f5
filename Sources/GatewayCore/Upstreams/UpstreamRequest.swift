import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// The opening handshake towards a WebSocket upstream, made of the client's own (if it had one), the route and the
/// endpoint.
enum UpstreamRequest {
    static func make(
        _ upstream: UpstreamPlan, endpoint: Int, route: RoutePlan, matched: MatchedRequest?, context: ConnectionContext
    ) -> ClientHandshake {
        let url = upstream.configuration.endpoints[endpoint].url
        let query = route.configuration.passesQuery ? matched?.match.query : nil
        let resource = url.resource.resource(parameters: matched?.match.encodedParameters ?? [:], query: query)
        return ClientHandshake(
            authority: url.authority, target: resource.isEmpty ? "/" : resource,
            subprotocols: Self.subprotocols(upstream.configuration, route.configuration, matched),
            offers: route.deflate?.offers ?? [], fields: Self.fields(route.configuration, matched, context))
    }

    /// The upstream's own list wins; else what the client offered, held to what the route allows; a client without an
    /// offer of its own (a byte stream) offers the route's.
    private static func subprotocols(
        _ upstream: UpstreamConfiguration, _ route: RouteConfiguration, _ matched: MatchedRequest?
    ) -> [String] {
        guard upstream.subprotocols.isEmpty, let matched else { return upstream.subprotocols(of: route) }
        let offered = matched.request.subprotocols
        return route.subprotocols.isEmpty ? offered : offered.filter { route.subprotocols.contains($0) }
    }

    private static func fields(
        _ route: RouteConfiguration, _ matched: MatchedRequest?, _ context: ConnectionContext
    ) -> [HTTPField] {
        var fields = route.headers.map { HTTPField($0.name, $0.value) }
        var request = ForwardedRequest(
            client: context.client, isSecure: matched?.isSecure ?? false, host: matched?.head.fields["Host"])
        var trusted = false
        if let matched {
            // The source in a PROXY header wrote the request, not the proxy that wrote the header.
            trusted = TrustedPeers(matched.plan.configuration.trustedForwarders).contains(context.client)
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
