import GatewayConfiguration
import WebSocketProtocol
import WireText

/// Finds the route of a request by its host and path.
///
/// Of several matches the most exact wins: an exact host before a wildcard before any host; then, segment by segment
/// from the left, literal text before a parameter before the rest; then the first one declared. Of two with the same host
/// and path, one for WebSockets and one for plain HTTP, the request's own kind decides.
package struct RouteTable: Sendable {
    private struct Entry: Sendable {
        let index: Int
        let host: HostPattern?
        let path: PathPattern
        let answersHTTP: Bool

        /// Whether both match the same requests but for their kind.
        func hasPattern(of other: Entry) -> Bool {
            self.host == other.host && self.path.shape == other.path.shape
        }
    }

    /// The most exact first.
    private let entries: [Entry]
    /// Routes without parameters, by the only target that matches them. Empty if any route names a host: otherwise no
    /// route can be more exact.
    private let exact: [String: Pair]

    /// The first route of each kind for a target.
    private struct Pair: Sendable {
        var webSocket: Int?
        var http: Int?
    }

    /// - Parameter routes: those without a path are never found.
    package init(_ routes: [RouteConfiguration]) {
        let entries = routes.enumerated().compactMap { index, route in
            route.path.map {
                Entry(index: index, host: route.host, path: $0, answersHTTP: route.target.answersHTTP)
            }
        }
        let sorted = entries.sorted { Self.precedes($0, $1) }
        self.entries = sorted
        self.exact = Self.exact(sorted)
    }

    private static func exact(_ entries: [Entry]) -> [String: Pair] {
        guard entries.allSatisfy({ $0.host == nil }) else { return [:] }
        return entries.reduce(into: [:]) { pairs, entry in
            guard let target = entry.path.onlyTarget else { return }
            let known = pairs[target] ?? Pair()
            pairs[target] =
                entry.answersHTTP
                ? Pair(webSocket: known.webSocket, http: known.http ?? entry.index)
                : Pair(webSocket: known.webSocket ?? entry.index, http: known.http)
        }
    }

    /// - Parameters:
    ///   - host: the `Host` field; case and port do not count. `nil` or empty fits only routes for any host.
    ///   - target: as in the request line.
    ///   - isUpgrade: whether the request asks for a WebSocket.
    package func find(host: String?, target: String, isUpgrade: Bool = true) -> RouteResult {
        if let pair = self.exact[target], host?.utf8.first != UInt8(ascii: "["),
            let index = isUpgrade ? pair.webSocket ?? pair.http : pair.http ?? pair.webSocket
        {
            return .route(RouteMatch(index: index, parameters: [], query: nil))
        }
        guard let request = RequestTarget(target) else { return .malformed }
        var name: String?
        if let authority = request.authority ?? host.map({ $0[...] }), !authority.isEmpty {
            guard let parts = HostText.split(authority) else { return .malformed }
            name = Self.withoutFinalDot(parts.host)
        }
        var best: (entry: Entry, match: RouteMatch)?
        for entry in self.entries {
            if let best, !entry.hasPattern(of: best.entry) { continue }
            guard best == nil || entry.answersHTTP != isUpgrade,
                entry.host.map({ pattern in name.map { pattern.matches($0) } ?? false }) ?? true,
                let parameters = Self.parameters(of: request.segments, in: entry.path)
            else { continue }
            let match = RouteMatch(
                index: entry.index, parameters: parameters, query: request.query.map { String($0) })
            // Another of the same pattern may be of the request's kind.
            if entry.answersHTTP != isUpgrade { return .route(match) }
            best = (entry, match)
        }
        return best.map { .route($0.match) } ?? .none
    }

    /// `example.com.` is the same name, fully qualified (RFC 1034 §3.1).
    private static func withoutFinalDot(_ host: Substring) -> String {
        String(host.hasSuffix(".") ? host.dropLast() : host)
    }

    /// - Returns: `nil` where the path does not fit.
    private static func parameters(of segments: [RequestTarget.Segment], in path: PathPattern) -> [RouteParameter]? {
        var parameters: [RouteParameter] = []
        // `/` is one empty segment to a request and none to a pattern.
        var rest = segments.count == 1 && segments[0].encoded.isEmpty ? [] : segments[...]
        for part in path.segments {
            switch part {
            case .rest(let name):
                let encoded = rest.map(\.encoded).joined(separator: "/")
                let value = rest.map(\.decoded).joined(separator: "/")
                return parameters + [RouteParameter(name: name, encoded: encoded, value: value)]
            case .literal(let text):
                // Bytes are compared (RFC 3986 §6.2.2), as by the servers before and behind the gateway.
                guard let segment = rest.popFirst(), segment.decoded.utf8.elementsEqual(text.utf8) else { return nil }
            case .parameter(let name):
                guard let segment = rest.popFirst(), !segment.encoded.isEmpty else { return nil }
                parameters.append(
                    RouteParameter(name: name, encoded: String(segment.encoded), value: segment.decoded))
            }
        }
        return rest.isEmpty ? parameters : nil
    }

    private static func precedes(_ left: Entry, _ right: Entry) -> Bool {
        let hosts = (Self.rank(left.host), Self.rank(right.host))
        if hosts.0 != hosts.1 { return hosts.0 < hosts.1 }
        let paths = (left.path.segments.map(Self.rank), right.path.segments.map(Self.rank))
        if paths.0 != paths.1 { return paths.0.lexicographicallyPrecedes(paths.1) }
        return left.index < right.index
    }

    private static func rank(_ host: HostPattern?) -> Int {
        switch host {
        case .exact?: 0
        case .wildcard?: 1
        case nil: 2
        }
    }

    private static func rank(_ segment: PathPattern.Segment) -> Int {
        switch segment {
        case .literal: 0
        case .parameter: 1
        case .rest: 2
        }
    }
}

/// The route that a request takes.
package struct RouteMatch: Hashable, Sendable {
    /// Index into the list that the table was made of.
    package let index: Int
    /// From left to right.
    package let parameters: [RouteParameter]
    /// The part after the first `?`, still percent-encoded; `nil` without one.
    package let query: String?

    /// The decoded value of a parameter.
    package func value(of name: String) -> String? {
        self.parameters.first { $0.name == name }?.value
    }

    /// The decoded value of a parameter of the query; `nil` for one that occurs not once.
    func queryValue(of name: String) -> String? {
        let pieces = (self.query ?? "").split(separator: "&")
        let values = pieces.compactMap { Self.value(of: name, inQueryPiece: $0) }
        return values.count == 1 ? values[0] : nil
    }

    /// The decoded value of a piece `NAME=VALUE` of a query, empty where it cannot be decoded; `nil` for another name.
    static func value(of name: String, inQueryPiece piece: Substring) -> String? {
        let end = piece.firstIndex(of: "=") ?? piece.endIndex
        guard PercentCoding.decodedText(piece[..<end])?.utf8.elementsEqual(name.utf8) == true else { return nil }
        return PercentCoding.decodedText(piece[end...].dropFirst()) ?? ""
    }

    /// Values for the placeholders of `ResourceTemplate`.
    package var encodedParameters: [String: String] {
        Dictionary(self.parameters.map { ($0.name, $0.encoded) }, uniquingKeysWith: { first, _ in first })
    }
}

/// Value of a `{name}` or `{name...}` in a request's path.
package struct RouteParameter: Hashable, Sendable {
    package let name: String
    /// As the client sent it, percent-encoding and all.
    package let encoded: String
    /// Decoded; in `{name...}` slashes separate decoded segments, so an encoded slash looks the same.
    package let value: String
}

/// Result of matching a request.
package enum RouteResult: Hashable, Sendable {
    case route(RouteMatch)
    /// 404.
    case none
    /// 400: no request target of RFC 9112 §3.2 with a path, a percent sign without two digits, or bytes that are not
    /// UTF-8.
    case malformed
}

/// An opening request matched to a route, with the properties of the client.
final class MatchedRequest: Sendable {
    let route: RoutePlan
    /// After every check of RFC 6455 §4.2.1.
    let request: OpeningRequest
    let match: RouteMatch
    let isSecure: Bool
    let plan: ListenerPlan
    /// `nil` on a route without authentication.
    let grant: AccessGrant?

    init(
        _ route: RoutePlan, _ match: RouteMatch, _ request: OpeningRequest, isSecure: Bool, plan: ListenerPlan,
        grant: AccessGrant? = nil
    ) {
        self.grant = grant
        self.route = route
        self.request = request
        self.match = match
        self.isSecure = isSecure
        self.plan = plan
    }

    /// The request as received, without a token in its target and subprotocols.
    var head: RequestHead { self.request.head }

    /// The client's offers, without the one that announced its token.
    var subprotocols: [String] {
        guard let grant = self.grant, grant.usesSubprotocol else { return self.request.subprotocols }
        return self.request.subprotocols.filter { $0 != AccessGrant.subprotocol }
    }

    /// A browser whose offers are not answered fails the connection: `bearer` stands in for a subprotocol.
    /// - Parameter subprotocol: the chosen one; `nil` for none.
    func acceptance(subprotocol: String?) -> HandshakeAcceptance {
        let standIn = self.grant?.usesSubprotocol == true ? AccessGrant.subprotocol : nil
        return self.request.acceptance(subprotocol: subprotocol ?? standIn, deflate: self.route.deflate)
    }
}
