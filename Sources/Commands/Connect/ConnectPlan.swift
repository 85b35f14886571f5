import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration
import GatewayCore
import SessionTasks
import TLSEngine
import WebSocketProtocol
import WireText

/// Validated arguments of `connect`.
struct ConnectPlan: Sendable {
    /// How standard input is split into messages or writes, and how received data is written.
    enum Framing: Sendable, Equatable {
        /// Each line is a text message.
        case textLines
        /// Each line is a binary message.
        case binaryLines
        /// Binary messages on a WebSocket, unchanged bytes on a stream.
        case bytes
        /// Lines on a stream, sent with this line terminator.
        case streamLines(end: String)
    }

    enum Opening: Sendable {
        case webSocket(ClientOpening, WebSocketOptions)
        case stream(OpeningTarget, StartTLS?)
        /// An open connection of a gateway.
        case attachment(Attachment)
    }

    struct Attachment: Sendable {
        let session: ControlSession
        let id: String
        let connection: Connection
        /// Whether the end of standard input half-closes the stream.
        let halfCloses: Bool

        var isStream: Bool { self.connection.kind == "stream" }
    }

    /// A STARTTLS upgrade.
    struct StartTLS: Sendable {
        let mode: StartTLSMode
        let settings: SecureSettings
    }

    enum Verbosity: Sendable, Equatable {
        case quiet, normal, verbose
    }

    let url: EndpointURL
    let opening: Opening
    let framing: Framing
    let settings: Conversation.Settings
    let timeout: Duration
    /// Longest message or line, in bytes.
    let messageLimit: Int
    let closeCode: CloseCode
    let closeReason: String
    let printsJSON: Bool
    let verbosity: Verbosity
    /// TLS without verification (`-k`).
    let skipsVerification: Bool

    var speaksWebSocket: Bool {
        if case .attachment(let attachment) = self.opening { return !attachment.isStream }
        return self.url.scheme.speaksWebSocket
    }
}

extension ConnectPlan {
    /// Whether received data is written in lines.
    var writesLines: Bool {
        switch self.framing {
        case .textLines, .binaryLines, .streamLines: true
        case .bytes: false
        }
    }
}

extension ConnectPlan {
    /// Reads the options.
    /// - Returns: `nil` if `reader` has problems that prevent continuing.
    /// - Throws: `UnusableFiles` for certificates, keys and files of headers.
    init?(
        _ text: String, _ transport: ConnectTransportOptions, _ webSocket: ConnectWebSocketOptions,
        _ security: ConnectTLSOptions, reading reader: inout OptionReader
    ) throws {
        guard let url = reader.value("URL", text, .endpointURL) else { return nil }
        ConnectConflicts(url: url).note(transport, webSocket, security, in: &reader)
        let timeout =
            reader.value("--timeout", transport.timeout, .duration(.milliseconds(10) ... .seconds(600))) ?? .seconds(10)
        let wait = reader.value(
            "--wait", transport.wait, ValueSyntax<Duration>.duration(.zero ... .seconds(86400)).orNone)
        let limit = reader.value("--max-message-size", webSocket.maxMessageSize, .size(1...1 << 30)) ?? 16 << 20
        let code = reader.value("--close-code", webSocket.closeCode, .closeCode) ?? .normalClosure
        let reason = reader.value("--close-reason", webSocket.closeReason, .closeReason) ?? ""
        let secure = try Self.secure(url, security, timeout: timeout, reading: &reader)
        var target = OpeningTarget(url.connectTarget)
        target.connectTimeout = timeout
        if let option = ProxyOption(transport.proxy, to: url, reading: &reader) {
            target.proxy = try ProxyMaterial.server(option.proxy)
        }
        let opening =
            url.scheme.speaksWebSocket
            ? try Self.webSocketOpening(
                target, secure, url, webSocket, limit: limit, timeout: timeout, reading: &reader)
            : Self.streamOpening(target, secure, startTLS: security.starttls, reading: &reader)
        guard let opening, reader.problems.isEmpty else { return nil }
        self.init(
            url: url, opening: opening, framing: Self.framing(url, transport),
            settings: Self.conversationSettings(url, transport, wait: wait), timeout: timeout, messageLimit: limit,
            closeCode: code,
            closeReason: reason, printsJSON: transport.json,
            verbosity: transport.quiet ? .quiet : transport.verbose ? .verbose : .normal,
            skipsVerification: secure != nil && security.insecure)
    }

    private static func webSocketOpening(
        _ target: OpeningTarget, _ secure: SecureSettings?, _ url: EndpointURL, _ webSocket: ConnectWebSocketOptions,
        limit: Int, timeout: Duration, reading reader: inout OptionReader
    ) throws -> Opening? {
        var target = target
        target.secure = secure
        var options = WebSocketOptions()
        options.maximumMessageSize = limit
        options.handshakeTimeout = timeout
        let pingSyntax = ValueSyntax<Duration>.duration(.seconds(1) ... .seconds(86400))
        options.pingInterval = reader.value("--ping-interval", webSocket.pingInterval, pingSyntax.orNone) ?? nil
        let pongSyntax = ValueSyntax<Duration>.duration(.seconds(1) ... .seconds(3600))
        options.pongTimeout = reader.value("--pong-timeout", webSocket.pongTimeout, pongSyntax) ?? options.pongTimeout
        guard let handshake = try Self.handshake(url, webSocket, reading: &reader) else { return nil }
        let deflate = webSocket.compress ? DeflatePolicy() : nil
        return .webSocket(ClientOpening(target: target, handshake: handshake, deflate: deflate), options)
    }

    private static func streamOpening(
        _ target: OpeningTarget, _ secure: SecureSettings?, startTLS: String?, reading reader: inout OptionReader
    ) -> Opening? {
        var target = target
        guard let startTLS else {
            target.secure = secure
            return .stream(target, nil)
        }
        guard let mode = Self.mode(startTLS, reading: &reader), let secure else { return nil }
        return .stream(target, StartTLS(mode: mode, settings: secure))
    }

    private static func framing(_ url: EndpointURL, _ options: ConnectTransportOptions) -> Framing {
        guard url.scheme.speaksWebSocket else {
            if options.crlf { return .streamLines(end: "\r\n") }
            return options.lines ? .streamLines(end: "\n") : .bytes
        }
        guard options.binary else { return .textLines }
        return options.lines ? .binaryLines : .bytes
    }

    private static func conversationSettings(_ url: EndpointURL, _ options: ConnectTransportOptions, wait: Duration??)
        -> Conversation.Settings
    {
        var settings = Conversation.Settings(carriesMessages: url.scheme.speaksWebSocket)
        settings.expectsSingleReply = options.one
        settings.idleTimeout = wait ?? (url.scheme.speaksWebSocket && !options.one ? .seconds(1) : nil)
        return settings
    }

    private static func mode(_ text: String, reading reader: inout OptionReader) -> StartTLSMode? {
        let mode = StartTLSMode(text)
        if mode == nil {
            reader.reject(
                "--starttls", "expected \(StartTLSMode.forms), found \(QuotedText.quoted(text))",
                remedy: "for other protocols, use a form like line:STARTTLS:OK")
        }
        return mode
    }

    // MARK: TLS

    private static func secure(
        _ url: EndpointURL, _ options: ConnectTLSOptions, timeout: Duration, reading reader: inout OptionReader
    ) throws -> SecureSettings? {
        let name = reader.value("--server-name", options.serverName, .host)
        guard url.scheme.speaksTLS || options.starttls != nil else { return nil }
        var settings = ClientTLSSettings()
        settings.authorities = options.ca
        settings.identity = options.certificate.map { CertificateFiles(certificate: $0, key: options.key) }
        settings.verifies = !options.insecure
        let verified = name ?? url.hostName
        if verified == nil, settings.verifies {
            reader.reject(
                "--server-name", "required to verify TLS on a Unix socket",
                remedy: "for example --server-name localhost")
            return nil
        }
        do throws(GatewayPlanError) {
            let configuration = try TLSMaterial.configuration(settings, speaksWebSocket: url.scheme.speaksWebSocket)
            var secure = SecureSettings(context: try TLSMaterial.context(configuration), serverName: verified)
            secure.timeout = timeout
            return secure
        } catch {
            var remedy = ""
            if case .tls(let failure) = error.cause, failure.kind == .wrongPassword {
                remedy = "; decrypt it with openssl pkey or openssl pkcs12"
            }
            throw UnusableFiles("sluice: \(error)\(remedy)")
        }
    }

    // MARK: The opening handshake

    private static func handshake(
        _ url: EndpointURL, _ options: ConnectWebSocketOptions, reading reader: inout OptionReader
    ) throws -> ClientHandshake? {
        var fields: [HTTPField] = []
        for text in try Self.headerLines(options.header) {
            if let field = reader.value("--header", text, .headerField) { fields.append(field) }
        }
        if let origin = options.origin { fields.append(HTTPField("Origin", origin)) }
        // RFC 6454 §7.3: a client sends one at most.
        guard fields.count(where: { $0.name.lowercased() == "origin" }) < 2 else {
            reader.reject(
                options.origin == nil ? "--header" : "--origin", "expected one Origin, found several",
                remedy: "leave out all but one of --origin and --header 'Origin: …'")
            return nil
        }
        let subprotocols = options.subprotocol.compactMap { reader.value("--subprotocol", $0, .subprotocol) }
        guard url.resource.parameters.isEmpty else {
            reader.reject(
                "URL", "expected a path without { and }, found \(QuotedText.quoted("\(url.resource)"))",
                remedy: "percent-encode them as %7B and %7D")
            return nil
        }
        let handshake = ClientHandshake(
            authority: url.authority, target: url.resource.resource(parameters: [:], query: nil),
            subprotocols: subprotocols, offers: options.compress ? DeflatePolicy().offers : [], fields: fields)
        do throws(HandshakeUsageError) {
            try handshake.validate()
        } catch {
            HandshakeProblem.note(error, in: &reader)
            return nil
        }
        return handshake
    }

    /// `@FILE` is replaced by the non-empty lines of a file.
    private static func headerLines(_ texts: [String]) throws -> [String] {
        try texts.flatMap { text -> [String] in
            guard text.hasPrefix("@") else { return [text] }
            let bytes = try OptionReader.file(String(text.dropFirst()), "--header", limit: 64 << 10)
            return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
        }
    }
}

/// Rejects options that do not apply to a URL's scheme or exclude one another.
private struct ConnectConflicts {
    let url: EndpointURL

    func note(
        _ transport: ConnectTransportOptions, _ webSocket: ConnectWebSocketOptions, _ security: ConnectTLSOptions,
        in reader: inout OptionReader
    ) {
        let scheme = self.url.scheme
        if !scheme.speaksWebSocket {
            self.refuse(
                Self.givenOptions(webSocket) + (transport.text ? ["--text"] : []), unless: "ws or wss", in: &reader)
        } else {
            self.refuse(transport.crlf ? ["--crlf"] : [], unless: "tcp, tls or unix", in: &reader)
        }
        if scheme != .tcp, scheme != .unix {
            self.refuse(security.starttls == nil ? [] : ["--starttls"], unless: "tcp or unix", in: &reader)
        } else if security.starttls == nil {
            self.refuse(Self.givenOptions(security), unless: "tls or wss, or with --starttls", in: &reader)
        }
        if scheme == .ws { self.refuse(Self.givenOptions(security), unless: "tls or wss", in: &reader) }
        if transport.text, transport.binary {
            reader.reject("--text", "cannot be combined with --binary")
        }
        if transport.quiet, transport.verbose {
            reader.reject("--quiet", "cannot be combined with --verbose")
        }
        if security.key != nil, security.certificate == nil {
            reader.reject("--key", "requires --certificate")
        }
        if security.ca != nil, security.insecure, scheme.speaksTLS || security.starttls != nil {
            reader.reject("--insecure", "cannot be combined with --ca")
        }
        if scheme.speaksWebSocket, transport.lines, !transport.binary {
            reader.reject("--lines", "requires --binary on a WebSocket", remedy: "text is sent by lines anyway")
        }
    }

    private func refuse(_ options: [String], unless need: String, in reader: inout OptionReader) {
        for option in options {
            reader.reject(option, "only valid for \(need), not for \(QuotedText.quoted("\(self.url)"))")
        }
    }

    private static func givenOptions(_ options: ConnectWebSocketOptions) -> [String] {
        [
            ("--header", !options.header.isEmpty), ("--origin", options.origin != nil),
            ("--subprotocol", !options.subprotocol.isEmpty), ("--compress", options.compress),
            ("--ping-interval", options.pingInterval != nil), ("--pong-timeout", options.pongTimeout != nil),
            ("--close-code", options.closeCode != nil),
            ("--close-reason", options.closeReason != nil),
        ].filter(\.1).map(\.0)
    }

    private static func givenOptions(_ options: ConnectTLSOptions) -> [String] {
        [
            ("--insecure", options.insecure), ("--ca", options.ca != nil),
            ("--certificate", options.certificate != nil), ("--server-name", options.serverName != nil),
        ].filter(\.1).map(\.0)
    }
}

extension ValueSyntax<HTTPField> {
    /// `Name: value`; the value may be empty.
    static var headerField: ValueSyntax {
        ValueSyntax { text throws(ValueSyntaxError) in
            guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
                throw ValueSyntaxError(
                    expected: "a header field as Name: value", remedy: "for example 'Authorization: Bearer …'")
            }
            let field = HTTPField(String(text[..<colon]), text[text.index(after: colon)...].trimmingBlanks)
            guard field.isWellFormed else {
                throw ValueSyntaxError(
                    expected: "a header field name of letters, digits and !#$%&'*+-.^_`|~, and no control characters")
            }
            return field
        }
    }
}

extension ValueSyntax<CloseCode> {
    /// A close code that is allowed in a Close frame.
    static var closeCode: ValueSyntax {
        ValueSyntax { text throws(ValueSyntaxError) in
            guard let number = UInt16(text), CloseCode(rawValue: number).isAllowedOnWire else {
                throw ValueSyntaxError(
                    expected: "a close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999",
                    remedy: "4000 to 4999 are for private use")
            }
            return CloseCode(rawValue: number)
        }
    }
}

extension ValueSyntax<String> {
    static var closeReason: ValueSyntax {
        ValueSyntax { text throws(ValueSyntaxError) in
            guard text.utf8.count <= ClosePayload.reasonLimit else {
                throw ValueSyntaxError(expected: "a close reason of at most \(ClosePayload.reasonLimit) bytes")
            }
            return text
        }
    }
}

/// Maps an invalid opening handshake to the option that caused it.
private enum HandshakeProblem {
    static func note(_ error: HandshakeUsageError, in reader: inout OptionReader) {
        switch error {
        case .malformedField(let field):
            let text = QuotedText.quoted("\(field.name): \(field.value)")
            reader.reject("--header", "expected a header field without control characters, found \(text)")
        case .reservedField(let name):
            reader.reject(
                "--header", "\(QuotedText.quoted(name)) is set by the opening handshake itself",
                remedy: "use --subprotocol and --compress instead")
        case .malformedSubprotocol(let name):
            reader.reject("--subprotocol", "expected a token, found \(QuotedText.quoted(name))")
        case .repeatedSubprotocol(let name):
            reader.reject("--subprotocol", "\(QuotedText.quoted(name)) is given twice")
        case .subprotocolsGivenTwice:
            reader.reject(
                "--subprotocol", "cannot be combined with --header 'Sec-WebSocket-Protocol: …'",
                remedy: "remove the header")
        case .malformedAuthority(let text):
            reader.reject("--header", "expected HOST[:PORT] in Host, found \(QuotedText.quoted(text))")
        case .malformedTarget(let text):
            reader.reject("URL", "expected a path of visible ASCII characters, found \(QuotedText.quoted(text))")
        case .malformedOffer:
            reader.reject("--compress", "expected window sizes of 8 to 15 bits")
        }
    }
}
