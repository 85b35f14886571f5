import GatewayCore

/// Options that mean nothing for a URL, or contradict one another.
struct ConnectConflicts {
    let url: EndpointURL

    func note(
        _ carriage: ConnectCarriageOptions, _ webSocket: ConnectWebSocketOptions, _ security: ConnectTLSOptions,
        in reader: inout OptionReader
    ) {
        let scheme = self.url.scheme
        if !scheme.speaksWebSocket {
            self.refuse(Self.typed(webSocket) + (carriage.text ? ["--text"] : []), unless: "ws or wss", in: &reader)
        } else {
            self.refuse(carriage.crlf ? ["--crlf"] : [], unless: "tcp, tls or unix", in: &reader)
        }
        if scheme != .tcp, scheme != .unix {
            self.refuse(security.starttls == nil ? [] : ["--starttls"], unless: "tcp or unix", in: &reader)
        } else if security.starttls == nil {
            self.refuse(Self.typed(security), unless: "tls or wss, or --starttls", in: &reader)
        }
        if scheme == .ws { self.refuse(Self.typed(security), unless: "tls or wss", in: &reader) }
        if carriage.text, carriage.binary {
            reader.note("--text", expected: "one of --text and --binary", found: "both")
        }
        if carriage.quiet, carriage.verbose {
            reader.note("--quiet", expected: "one of --quiet and --verbose", found: "both")
        }
        if security.key != nil, security.certificate == nil {
            reader.note("--key", expected: "--certificate beside it", found: "none")
        }
    }

    private func refuse(_ options: [String], unless need: String, in reader: inout OptionReader) {
        for option in options {
            reader.note(
                option, expected: "a URL of \(need)", found: QuotedText.quoted("\(self.url)"),
                remedy: "leave \(option) out")
        }
    }

    private static func typed(_ options: ConnectWebSocketOptions) -> [String] {
        [
            ("--header", !options.header.isEmpty), ("--origin", options.origin != nil),
            ("--subprotocol", !options.subprotocol.isEmpty), ("--compress", options.compress),
            ("--ping-interval", options.pingInterval != nil), ("--pong-timeout", options.pongTimeout != nil),
            ("--close-code", options.closeCode != nil),
            ("--close-reason", options.closeReason != nil),
        ].filter(\.1).map(\.0)
    }

    private static func typed(_ options: ConnectTLSOptions) -> [String] {
        [
            ("--insecure", options.insecure), ("--ca", options.ca != nil),
            ("--certificate", options.certificate != nil), ("--server-name", options.serverName != nil),
        ].filter(\.1).map(\.0)
    }
}
