extension ValueSyntax<ListenURL> {
    package static var listenURL: ValueSyntax {
        ValueSyntax(.text("wss://0.0.0.0:443")) { text throws(TextFault) in try ListenURL(text) }
    }
}

extension ValueSyntax<EndpointURL> {
    package static var endpointURL: ValueSyntax {
        ValueSyntax(.text("tcp://10.0.0.5:5900")) { text throws(TextFault) in try EndpointURL(text) }
    }
}

extension ValueSyntax<PathPattern> {
    package static var pathPattern: ValueSyntax {
        ValueSyntax(.text("/chat/{room}")) { text throws(TextFault) in try PathPattern(parsing: text) }
    }
}

extension ValueSyntax<RouteTarget> {
    /// `echo`, `chat`, a URL, or the name of an upstream.
    package static var routeTarget: ValueSyntax {
        ValueSyntax(.text("backend")) { text throws(TextFault) in
            if text == "echo" { return .echo }
            if text == "chat" { return .chat }
            if text.contains("://") { return .url(try EndpointURL(text)) }
            guard NameText.isName(text) else {
                throw TextFault(
                    expected: "echo, chat, a URL, or the name of an upstream",
                    remedy: "write a URL like tcp://127.0.0.1:5900")
            }
            return .upstream(text)
        }
    }
}

extension ValueSyntax<PublicKeyPin> {
    /// `sha256/` and 44 characters of base64, or 64 hexadecimal digits.
    package static var publicKeyPin: ValueSyntax {
        ValueSyntax(.text("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")) { text throws(TextFault) in
            let digest = text.hasPrefix("sha256/") ? SixtyFour.bytes(text.dropFirst(7)) : Hexadecimal.bytes(text)
            guard let digest, let pin = PublicKeyPin(digest: digest) else {
                throw TextFault(
                    expected: "the SHA-256 of a public key",
                    remedy: "write sha256/ and its base64, or its 64 hexadecimal digits")
            }
            return pin
        }
    }
}
