/// Permitted targets of connections opened through the control plane. A target is permitted if any rule allows it.
package struct TargetRules: Sendable, Equatable {
    package let rules: [TargetRule]

    package init(_ rules: [TargetRule]) {
        self.rules = rules
    }

    /// Default if only this machine can reach the control plane: addresses that a caller could connect to itself.
    /// Private networks and metadata services are excluded, as web pages or programs could be tricked into requesting
    /// them (SSRF), and Unix sockets, whose file modes restrict the caller but not the gateway.
    package static let localDefault = TargetRules([TargetRule(.kind(.global)), TargetRule(.kind(.loopback))])
    /// Default if other machines can reach the control plane.
    package static let remoteDefault = TargetRules([TargetRule(.kind(.global))])
}

/// One entry of `control.targets`.
package struct TargetRule: Sendable, Hashable {
    package enum Destination: Sendable, Hashable {
        /// All addresses of a kind.
        case kind(AddressKind)
        case block(AddressBlock)
        /// A host name. It may resolve to any address except a special one.
        case host(HostPattern)
        /// A Unix socket by its path.
        case socketFile(String)
        /// All Unix sockets below a directory; the path ends in `/`.
        case socketFolder(String)
    }

    package let destination: Destination
    package let ports: ClosedRange<UInt16>

    package init(_ destination: Destination, ports: ClosedRange<UInt16> = 1...65535) {
        self.destination = destination
        self.ports = ports
    }

    /// - Parameter host: the requested name in lower case; `nil` where an address was requested.
    package func allows(_ address: IPAddress, port: UInt16, requestedHost host: String?) -> Bool {
        guard self.ports.contains(port) else { return false }
        switch self.destination {
        case .kind(let kind): return address.kind == kind
        case .block(let block): return block.contains(address)
        case .host(let pattern): return host.map(pattern.matches) == true && address.kind != .special
        case .socketFile, .socketFolder: return false
        }
    }

    package func allows(socketPath path: String) -> Bool {
        switch self.destination {
        case .socketFile(let allowed): path == allowed
        // A `..` segment could lead out of the directory.
        case .socketFolder(let folder): path.hasPrefix(folder) && !path.split(separator: "/").contains("..")
        case .kind, .block, .host: false
        }
    }
}

/// Reads one entry of `control.targets`: `public`, `loopback`, `private`, `10.0.0.0/8`, `*.example.com:443`,
/// `[fd00::/8]:1000-2000`, `unix:///run/app.sock`, `unix:///run/app/*`.
private enum TargetText {
    private static let syntaxError = ValueSyntaxError(
        expected: "a target: public, loopback, private, a host, a block of addresses, or unix:///PATH",
        remedy: "write it like *.example.com:443, 10.0.0.0/8, [fd00::/8]:8000-8999 or unix:///run/app/*")

    static func rule(_ text: String) throws(ValueSyntaxError) -> TargetRule {
        if text.hasPrefix("unix://") { return TargetRule(try self.socket(text)) }
        // An IPv6 address without brackets cannot be followed by a port.
        if let block = try? ValueSyntax<AddressBlock>.addressBlock.parse(text) { return TargetRule(.block(block)) }
        guard let (host, isBracketed, port) = HostText.split(text[...]) else { throw Self.syntaxError }
        return TargetRule(try self.destination(String(host), isBracketed), ports: try self.ports(port))
    }

    private static func destination(_ host: String, _ isBracketed: Bool) throws(ValueSyntaxError)
        -> TargetRule.Destination
    {
        if !isBracketed, let kind = AddressKind(rawValue: host) {
            // Special addresses can only be allowed as single addresses or blocks.
            guard kind != .special else { throw Self.syntaxError }
            return .kind(kind)
        }
        if isBracketed || AddressText.address(host.utf8.prefix { $0 != UInt8(ascii: "/") }) != nil {
            return .block(try ValueSyntax<AddressBlock>.addressBlock.parse(host))
        }
        do throws(ValueSyntaxError) {
            return .host(try ValueSyntax<HostPattern>.hostPattern.parse(host))
        } catch {
            throw Self.syntaxError
        }
    }

    private static func ports(_ text: Substring?) throws(ValueSyntaxError) -> ClosedRange<UInt16> {
        guard let text else { return 1...65535 }
        let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = ends.first.flatMap({ Decimal.port($0.utf8) }),
            let last = ends.last.flatMap({ Decimal.port($0.utf8) }), first > 0, first <= last
        else {
            throw ValueSyntaxError(
                expected: "a port from 1 to 65535, or a range like 8000-8999", remedy: "write it like 443")
        }
        return first...last
    }

    private static func socket(_ text: String) throws(ValueSyntaxError) -> TargetRule.Destination {
        let path = text.dropFirst("unix://".count)
        guard path.first == "/", path.utf8.count <= 107, !path.split(separator: "/").contains("..") else {
            throw ValueSyntaxError(
                expected: "an absolute path of at most 107 bytes behind unix://", remedy: "write unix:///run/app.sock")
        }
        return path.hasSuffix("/*") ? .socketFolder(String(path.dropLast())) : .socketFile(String(path))
    }
}

extension ValueSyntax<TargetRule> {
    package static var targetRule: ValueSyntax {
        ValueSyntax(.text("10.0.0.0/8")) { text throws(ValueSyntaxError) in try TargetText.rule(text) }
    }
}

/// Path and query of a WebSocket endpoint, with placeholders for the parameters of the route's path.
package struct ResourceTemplate: Sendable, Hashable, CustomStringConvertible {
    package enum Part: Sendable, Hashable {
        case text(String)
        case parameter(String)
    }

    package let parts: [Part]

    package init(_ parts: [Part] = []) {
        self.parts = parts
    }

    package var isEmpty: Bool { self.parts.isEmpty }

    /// Names of its parameters.
    package var parameters: [String] {
        self.parts.compactMap { part in
            if case .parameter(let name) = part { name } else { nil }
        }
    }

    /// Path and query for one request.
    ///
    /// - Parameters:
    ///   - parameters: values, percent-encoded as the client sent them; a missing one is empty.
    ///   - query: the client's query without `?`, to be appended with `?` or `&`; `nil` or empty appends nothing.
    package func resource(parameters: [String: String], query: String?) -> String {
        var text = ""
        for part in self.parts {
            switch part {
            case .text(let piece): text += piece
            case .parameter(let name):
                let value = parameters[name] ?? ""
                text += text.utf8.contains(UInt8(ascii: "?")) ? Self.queryValue(value) : value
            }
        }
        guard let query, !query.isEmpty else { return text }
        return text + (text.utf8.contains(UInt8(ascii: "?")) ? "&" : "?") + query
    }

    /// Percent-encodes the delimiters of a query.
    private static func queryValue(_ value: String) -> String {
        guard value.utf8.contains(where: { self.escapes[$0] != nil }) else { return value }
        return value.utf8.reduce(into: "") { text, byte in
            text += self.escapes[byte] ?? String(UnicodeScalar(byte))
        }
    }

    private static let escapes = [
        UInt8(ascii: "&"): "%26", UInt8(ascii: ";"): "%3B", UInt8(ascii: "+"): "%2B", UInt8(ascii: "="): "%3D",
    ]

    package var description: String {
        self.parts.reduce(into: "") { text, part in
            switch part {
            case .text(let piece): text += piece
            case .parameter(let name): text += "{\(name)}"
            }
        }
    }

    /// Parses path and query (RFC 3986) with parameters as `{name}`. An empty path becomes `/`.
    package init(parsing text: Substring) throws(ValueSyntaxError) {
        let error = ValueSyntaxError(
            expected: "a path of RFC 3986's characters, with parameters as {name}",
            remedy: "percent-encode other characters, and close each { with }")
        var parts: [Part] = []
        var literal = text.first == "/" ? "" : "/"
        guard text.isEmpty || text.first == "/" || text.first == "?" else { throw error }
        var rest = text
        while let first = rest.first {
            if first == "{" {
                guard let end = rest.firstIndex(of: "}") else { throw error }
                let name = rest[..<end].dropFirst()
                guard NameText.isParameter(name) else { throw error }
                if !literal.isEmpty { parts.append(.text(literal)) }
                literal = ""
                parts.append(.parameter(String(name)))
                rest = rest[end...].dropFirst()
            } else {
                guard let byte = first.asciiValue, NameText.isResourceByte(byte) else { throw error }
                literal.append(first)
                rest = rest.dropFirst()
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
        self.init(parts)
    }
}
