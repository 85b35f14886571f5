/// Finds the route of a request by its host and path.
///
/// Of several that fit, the most exact wins: an exact host before a wildcard before any host; then, segment by segment
/// from the left, literal text before a parameter before the rest; then the one that comes first.
package struct RouteTable: Sendable {
    private struct Entry: Sendable {
        let index: Int
        let host: HostPattern?
        let path: PathPattern
    }

    /// The most exact first.
    private let entries: [Entry]
    /// Routes without parameters by the one target that they fit, where no route asks for a host: what then fits the
    /// target to the letter is the most exact there is.
    private let exact: [String: Int]

    /// - Parameter routes: those without a path are never found.
    package init(_ routes: [RouteConfiguration]) {
        let entries = routes.enumerated().compactMap { index, route in
            route.path.map { Entry(index: index, host: route.host, path: $0) }
        }
        let sorted = entries.sorted { Self.precedes($0, $1) }
        self.entries = sorted
        self.exact = Self.exact(sorted)
    }

    private static func exact(_ entries: [Entry]) -> [String: Int] {
        guard entries.allSatisfy({ $0.host == nil }) else { return [:] }
        let pairs = entries.compactMap { entry in entry.path.onlyTarget.map { ($0, entry.index) } }
        return Dictionary(pairs) { first, _ in first }
    }

    /// - Parameters:
    ///   - host: the `Host` field; case and port do not count. `nil` or empty fits only routes for any host.
    ///   - target: as in the request line.
    package func find(host: String?, target: String) -> RouteAnswer {
        if let index = self.exact[target], host?.utf8.first != UInt8(ascii: "[") {
            return .route(RouteMatch(index: index, parameters: [], query: nil))
        }
        guard let request = RequestTarget(target) else { return .malformed }
        var name: String?
        if let authority = request.authority ?? host.map({ $0[...] }), !authority.isEmpty {
            guard let parts = HostText.split(authority) else { return .malformed }
            name = Self.withoutFinalDot(parts.host)
        }
        for entry in self.entries {
            guard entry.host.map({ pattern in name.map { pattern.matches($0) } ?? false }) ?? true,
                let parameters = Self.parameters(of: request.segments, in: entry.path)
            else { continue }
            return .route(
                RouteMatch(index: entry.index, parameters: parameters, query: request.query.map { String($0) }))
        }
        return .none
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
                guard let segment = rest.popFirst(), segment.decoded == text else { return nil }
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
