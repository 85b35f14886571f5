/// Reads one entry of `control.targets`: `public`, `loopback`, `private`, `10.0.0.0/8`, `*.example.com:443`,
/// `[fd00::/8]:1000-2000`, `unix:///run/app.sock`, `unix:///run/app/*`.
enum TargetText {
    private static let fault = TextFault(
        expected: "a place to connect to: public, loopback, private, a host, a block of addresses, or unix:///PATH",
        remedy: "write it like *.example.com:443, 10.0.0.0/8, [fd00::/8]:8000-8999 or unix:///run/app/*")

    static func rule(_ text: String) throws(TextFault) -> TargetRule {
        if text.hasPrefix("unix://") { return TargetRule(try self.socket(text)) }
        // An IPv6 address without brackets has no port behind it.
        if let block = try? ValueSyntax<AddressBlock>.addressBlock.parse(text) { return TargetRule(.block(block)) }
        guard let (host, isBracketed, port) = HostText.split(text[...]) else { throw Self.fault }
        return TargetRule(try self.place(String(host), isBracketed), ports: try self.ports(port))
    }

    private static func place(_ host: String, _ isBracketed: Bool) throws(TextFault) -> TargetRule.Place {
        if !isBracketed, let kind = AddressKind(rawValue: host) {
            // What is special is named one by one, or not at all.
            guard kind != .special else { throw Self.fault }
            return .kind(kind)
        }
        if isBracketed || AddressText.address(host.utf8.prefix { $0 != UInt8(ascii: "/") }) != nil {
            return .block(try ValueSyntax<AddressBlock>.addressBlock.parse(host))
        }
        do throws(TextFault) {
            return .host(try ValueSyntax<HostPattern>.hostPattern.parse(host))
        } catch {
            throw Self.fault
        }
    }

    private static func ports(_ text: Substring?) throws(TextFault) -> ClosedRange<UInt16> {
        guard let text else { return 1...65535 }
        let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = ends.first.flatMap({ Decimal.port($0.utf8) }),
            let last = ends.last.flatMap({ Decimal.port($0.utf8) }), first > 0, first <= last
        else {
            throw TextFault(expected: "a port from 1 to 65535, or two with a - between", remedy: "write it like 443")
        }
        return first...last
    }

    private static func socket(_ text: String) throws(TextFault) -> TargetRule.Place {
        let path = text.dropFirst("unix://".count)
        guard path.first == "/", path.utf8.count <= 107, !path.split(separator: "/").contains("..") else {
            throw TextFault(
                expected: "an absolute path of at most 107 bytes behind unix://", remedy: "write unix:///run/app.sock")
        }
        return path.hasSuffix("/*") ? .socketFolder(String(path.dropLast())) : .socketFile(String(path))
    }
}

extension ValueSyntax<TargetRule> {
    package static var targetRule: ValueSyntax {
        ValueSyntax(.text("10.0.0.0/8")) { text throws(TextFault) in try TargetText.rule(text) }
    }
}
