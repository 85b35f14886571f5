extension ValueSyntax<String> {
    /// The name of a listener, route or upstream.
    package static var name: ValueSyntax {
        ValueSyntax(.text(example: "web", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")) { text throws(TextFault) in
            guard NameText.isName(text) else {
                throw TextFault(
                    expected: "a name of 1 to 64 letters, digits, -, _ and . that begins with a letter or digit")
            }
            return text
        }
    }

    /// A subprotocol (RFC 6455 §4.1: a token).
    package static var subprotocol: ValueSyntax {
        ValueSyntax(.text("chat.v1")) { text throws(TextFault) in
            guard NameText.isToken(text) else {
                throw TextFault(
                    expected: "a subprotocol: letters, digits and !#$%&'*+-.^_`|~", remedy: "give each one by itself")
            }
            return text
        }
    }

    /// An application protocol of TLS (RFC 7301): 1 to 255 bytes.
    package static var applicationProtocol: ValueSyntax {
        ValueSyntax(.text("http/1.1")) { text throws(TextFault) in
            guard (1...255).contains(text.utf8.count) else {
                throw TextFault(expected: "an application protocol of 1 to 255 bytes")
            }
            return text
        }
    }

    /// A host name or an address.
    package static var host: ValueSyntax {
        ValueSyntax(.text("backend.example.com")) { text throws(TextFault) in
            if let address = AddressText.address(text[...].utf8) { return address.description }
            guard let name = HostText.name(text[...]) else { throw TextFault(expected: "a host name or an IP address") }
            return name
        }
    }

    /// The path of a file.
    package static var path: ValueSyntax {
        ValueSyntax(.text("/etc/sluice/server.pem")) { text throws(TextFault) in
            guard (1...4095).contains(text.utf8.count), !text.utf8.contains(0) else {
                throw TextFault(expected: "the path of a file")
            }
            return text
        }
    }

    /// Any text, even none.
    package static var text: ValueSyntax {
        ValueSyntax(.text("text")) { text throws(TextFault) in text }
    }
}

extension ValueSyntax<HostPattern> {
    /// `example.com`, `*.example.com` or an address.
    package static var hostPattern: ValueSyntax {
        ValueSyntax(.text("*.example.com")) { text throws(TextFault) in
            let fault = TextFault(
                expected: "a host name without port, or *. and a host name", remedy: "write it like *.example.com")
            if text.hasPrefix("*.") {
                guard let suffix = HostText.name(text.dropFirst(2)) else { throw fault }
                return .wildcard(suffix: suffix)
            }
            let bare = text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text[...]
            if let address = AddressText.address(bare.utf8) { return .exact(address.description) }
            guard let name = HostText.name(text[...]) else { throw fault }
            return .exact(name)
        }
    }
}

extension ValueSyntax<OriginPattern> {
    /// `https://example.com`, `https://*.example.com:8443`, `*` or `null`.
    package static var originPattern: ValueSyntax {
        ValueSyntax(.text("https://app.example.com")) { text throws(TextFault) in
            if text == "*" { return .any }
            if text == "null" { return .opaque }
            let fault = TextFault(
                expected: "an origin: scheme, host and port, without a path",
                remedy: "write it like https://app.example.com, \"*\" for all, or \"null\" in quotes for pages "
                    + "without an origin")
            guard text.contains("://") else { throw fault }
            let url = try URLText(text)
            guard url.carrier.isEmpty, url.resource.isEmpty, NameText.isName(url.scheme),
                let (host, isBracketed, port) = HostText.split(url.authority)
            else { throw fault }
            let pattern = try ValueSyntax<HostPattern>.hostPattern.parse(isBracketed ? "[\(host)]" : String(host))
            return OriginPattern(
                scheme: url.scheme, host: pattern, port: port == nil ? nil : try url.port(port, standard: nil))
        }
    }
}

extension ValueSyntax<AddressBlock> {
    /// `10.0.0.0/8`, `fd00::/8`, or an address alone.
    package static var addressBlock: ValueSyntax {
        ValueSyntax(.text("10.0.0.0/8")) { text throws(TextFault) in
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, let address = AddressText.address(first.utf8) else {
                throw TextFault(
                    expected: "a block of addresses", remedy: "write it like 10.0.0.0/8, fd00::/8 or 192.0.2.7")
            }
            guard parts.count == 2 else { return try Self.block(address, prefixLength: address.bitWidth) }
            guard let length = Decimal.integer(parts[1].utf8), length <= address.bitWidth else {
                throw TextFault(expected: "a prefix length from 0 to \(address.bitWidth) behind /")
            }
            return try Self.block(address, prefixLength: length)
        }
    }

    private static func block(_ address: IPAddress, prefixLength: Int) throws(TextFault) -> AddressBlock {
        guard let block = AddressBlock(address, prefixLength: prefixLength) else {
            throw TextFault(
                expected: "a block whose address has no bits behind the prefix",
                remedy: "write \(address.prefix(prefixLength))/\(prefixLength)")
        }
        return block
    }
}

extension ValueSyntax<ExtraHeader> {
    /// `Name: value`.
    package static var headerLine: ValueSyntax {
        ValueSyntax(.text("X-Served-By: sluice")) { text throws(TextFault) in
            guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
                throw TextFault(expected: "a header as Name: value")
            }
            let value = text[colon...].dropFirst().drop { $0 == " " || $0 == "\t" }
            return try ExtraHeader(checking: String(text[..<colon]), value: String(value))
        }
    }
}
