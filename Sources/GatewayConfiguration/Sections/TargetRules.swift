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

    /// The entries of `control.targets`; other texts permit nothing.
    package init(texts: [String]) {
        self.rules = texts.compactMap { try? TargetText.rule($0) }
    }

    /// The rules as entries of `control.targets`.
    package var texts: [String] { self.rules.map(\.description) }
}

/// One entry of `control.targets`.
package struct TargetRule: Sendable, Hashable, CustomStringConvertible {
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

    /// As in `control.targets`.
    package var description: String {
        switch self.destination {
        case .kind(let kind): kind.rawValue + self.portText
        case .block(let block):
            block.address.bitWidth == 128 && !self.portText.isEmpty
                ? "[\(block)]\(self.portText)" : "\(block)\(self.portText)"
        case .host(let pattern): pattern.description + self.portText
        case .socketFile(let path): "unix://\(path)"
        case .socketFolder(let folder): "unix://\(folder)*"
        }
    }

    private var portText: String {
        if self.ports == 1...65535 { return "" }
        return ":\(self.ports.lowerBound)" + (self.ports.count > 1 ? "-\(self.ports.upperBound)" : "")
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
                expected: "an absolute path of at most 107 bytes after unix://", remedy: "write unix:///run/app.sock")
        }
        return path.hasSuffix("/*") ? .socketFolder(String(path.dropLast())) : .socketFile(String(path))
    }
}

extension ValueSyntax<TargetRule> {
    package static var targetRule: ValueSyntax {
        ValueSyntax(
            .text(
                "10.0.0.0/8",
                """
                `public`, `loopback`, `private`, a host or a block of addresses, each perhaps with `:PORT` or \
                `:FIRST-LAST`; `unix:///PATH` or `unix:///FOLDER/*`
                """
            )
        ) { text throws(ValueSyntaxError) in try TargetText.rule(text) }
    }
}
