/// Permitted targets of connections opened through the control plane: those that at least one rule allows.
package struct TargetRules: Sendable, Equatable {
    package let rules: [TargetRule]

    package init(_ rules: [TargetRule]) {
        self.rules = rules
    }

    /// Where only this machine can reach the control plane: addresses that a caller could connect to without us.
    /// Networks of one's own are left out, and metadata services, for whose sake a page or a program might ask; and
    /// Unix sockets, whose files' modes hold the caller but not us.
    package static let ofLocalCallers = TargetRules([TargetRule(.kind(.worldwide)), TargetRule(.kind(.loopback))])
    /// Where others can reach it too.
    package static let ofRemoteCallers = TargetRules([TargetRule(.kind(.worldwide))])
}

/// One entry of `control.targets`: targets for connections opened through the control plane.
package struct TargetRule: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        /// Every address of a kind.
        case kind(AddressKind)
        case block(AddressBlock)
        /// A name; it may lead to any address but a special one.
        case host(HostPattern)
        /// A Unix socket by its path.
        case socketFile(String)
        /// Every Unix socket below a folder, whose path ends in `/`.
        case socketFolder(String)
    }

    package let place: Place
    package let ports: ClosedRange<UInt16>

    package init(_ place: Place, ports: ClosedRange<UInt16> = 1...65535) {
        self.place = place
        self.ports = ports
    }

    /// - Parameter host: the requested name in lower case; `nil` where an address was requested.
    package func allows(_ address: IPAddress, port: UInt16, requestedHost host: String?) -> Bool {
        guard self.ports.contains(port) else { return false }
        switch self.place {
        case .kind(let kind): return address.kind == kind
        case .block(let block): return block.contains(address)
        case .host(let pattern): return host.map(pattern.matches) == true && address.kind != .special
        case .socketFile, .socketFolder: return false
        }
    }

    package func allows(socketPath path: String) -> Bool {
        switch self.place {
        case .socketFile(let allowed): path == allowed
        // A path with dots could lead out of the folder again.
        case .socketFolder(let folder): path.hasPrefix(folder) && !path.split(separator: "/").contains("..")
        case .kind, .block, .host: false
        }
    }
}

/// Reads one entry of `control.targets`: `public`, `loopback`, `private`, `10.0.0.0/8`, `*.example.com:443`,
/// `[fd00::/8]:1000-2000`, `unix:///run/app.sock`, `unix:///run/app/*`.
private enum TargetText {
    private static let fault = ValueSyntaxError(
        expected: "a place to connect to: public, loopback, private, a host, a block of addresses, or unix:///PATH",
        remedy: "write it like *.example.com:443, 10.0.0.0/8, [fd00::/8]:8000-8999 or unix:///run/app/*")

    static func rule(_ text: String) throws(ValueSyntaxError) -> TargetRule {
        if text.hasPrefix("unix://") { return TargetRule(try self.socket(text)) }
        // An IPv6 address without brackets has no port behind it.
        if let block = try? ValueSyntax<AddressBlock>.addressBlock.parse(text) { return TargetRule(.block(block)) }
        guard let (host, isBracketed, port) = HostText.split(text[...]) else { throw Self.fault }
        return TargetRule(try self.place(String(host), isBracketed), ports: try self.ports(port))
    }

    private static func place(_ host: String, _ isBracketed: Bool) throws(ValueSyntaxError) -> TargetRule.Place {
        if !isBracketed, let kind = AddressKind(rawValue: host) {
            // Special addresses must be allowed one by one, or not at all.
            guard kind != .special else { throw Self.fault }
            return .kind(kind)
        }
        if isBracketed || AddressText.address(host.utf8.prefix { $0 != UInt8(ascii: "/") }) != nil {
            return .block(try ValueSyntax<AddressBlock>.addressBlock.parse(host))
        }
        do throws(ValueSyntaxError) {
            return .host(try ValueSyntax<HostPattern>.hostPattern.parse(host))
        } catch {
            throw Self.fault
        }
    }

    private static func ports(_ text: Substring?) throws(ValueSyntaxError) -> ClosedRange<UInt16> {
        guard let text else { return 1...65535 }
        let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = ends.first.flatMap({ Decimal.port($0.utf8) }),
            let last = ends.last.flatMap({ Decimal.port($0.utf8) }), first > 0, first <= last
        else {
            throw ValueSyntaxError(
                expected: "a port from 1 to 65535, or two with a - between", remedy: "write it like 443")
        }
        return first...last
    }

    private static func socket(_ text: String) throws(ValueSyntaxError) -> TargetRule.Place {
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

/// Path and query towards a WebSocket endpoint, with places for the parameters of the route's path.
package struct ResourceTemplate: Sendable, Hashable {
    package enum Part: Sendable, Hashable {
        case text(String)
        case parameter(String)
    }

    package let parts: [Part]

    package init(_ parts: [Part] = []) {
        self.parts = parts
    }

    package var isEmpty: Bool { self.parts.isEmpty }

    /// Names of the parameters it has places for.
    package var parameters: [String] {
        self.parts.compactMap { part in
            if case .parameter(let name) = part { name } else { nil }
        }
    }

    /// The resource of one request.
    ///
    /// - Parameters:
    ///   - parameters: values still percent-encoded, as the client sent them; a missing one is empty.
    ///   - query: the client's query without `?`, appended with `?` or `&`; `nil` or empty appends nothing.
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

    /// Percent-encodes characters that would end a value in a query or have a meaning there.
    private static func queryValue(_ value: String) -> String {
        guard value.utf8.contains(where: { self.escapes[$0] != nil }) else { return value }
        return value.utf8.reduce(into: "") { text, byte in
            text += self.escapes[byte] ?? String(UnicodeScalar(byte))
        }
    }

    private static let escapes = [
        UInt8(ascii: "&"): "%26", UInt8(ascii: ";"): "%3B", UInt8(ascii: "+"): "%2B", UInt8(ascii: "="): "%3D",
    ]
}

extension ResourceTemplate: CustomStringConvertible {
    package var description: String {
        self.parts.reduce(into: "") { text, part in
            switch part {
            case .text(let piece): text += piece
            case .parameter(let name): text += "{\(name)}"
            }
        }
    }
}

extension ResourceTemplate {
    /// Characters of a path and query (RFC 3986), with `{name}` where a parameter goes. Nothing, and a query alone, are
    /// about `/`.
    package init(parsing text: Substring) throws(ValueSyntaxError) {
        let fault = ValueSyntaxError(
            expected: "a path of RFC 3986's characters, with parameters as {name}",
            remedy: "percent-encode other characters, and close each { with }")
        var parts: [Part] = []
        var literal = text.first == "/" ? "" : "/"
        guard text.isEmpty || text.first == "/" || text.first == "?" else { throw fault }
        var rest = text
        while let first = rest.first {
            if first == "{" {
                guard let end = rest.firstIndex(of: "}") else { throw fault }
                let name = rest[..<end].dropFirst()
                guard NameText.isParameter(name) else { throw fault }
                if !literal.isEmpty { parts.append(.text(literal)) }
                literal = ""
                parts.append(.parameter(String(name)))
                rest = rest[end...].dropFirst()
            } else {
                guard let byte = first.asciiValue, NameText.isResourceByte(byte) else { throw fault }
                literal.append(first)
                rest = rest.dropFirst()
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
        self.init(parts)
    }
}
