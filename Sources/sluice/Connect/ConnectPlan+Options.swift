import CommandLineText
import GatewayCore
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

extension ConnectPlan {
    /// Reads what was typed.
    /// - Returns: `nil` where `reader` has problems that leave nothing to go on with.
    /// - Throws: `UnusableFiles` for certificates, keys and files of headers.
    init?(
        _ text: String, _ carriage: ConnectCarriageOptions, _ webSocket: ConnectWebSocketOptions,
        _ security: ConnectTLSOptions, reading reader: inout OptionReader
    ) throws {
        guard let url = reader.value("URL", text, .endpointURL) else { return nil }
        ConnectConflicts(url: url).note(carriage, webSocket, security, in: &reader)
        let timeout =
            reader.value("--timeout", carriage.timeout, .duration(.milliseconds(10) ... .seconds(600))) ?? .seconds(10)
        let wait = reader.value(
            "--wait", carriage.wait, ValueSyntax<Duration>.duration(.zero ... .seconds(86400)).orNone)
        let limit = reader.value("--max-message-size", webSocket.maxMessageSize, .size(1...1 << 30)) ?? 16 << 20
        let code = reader.value("--close-code", webSocket.closeCode, .closeCode) ?? .normalClosure
        let reason = reader.value("--close-reason", webSocket.closeReason, .closeReason) ?? ""
        let secure = try Self.secure(url, security, timeout: timeout, reading: &reader)
        var target = OpeningTarget(url.connectTarget)
        target.connectTimeout = timeout
        let opening =
            url.scheme.speaksWebSocket
            ? try Self.messages(target, secure, url, webSocket, limit: limit, timeout: timeout, reading: &reader)
            : Self.stream(target, secure, startTLS: security.starttls, reading: &reader)
        guard let opening, reader.problems.isEmpty else { return nil }
        self.init(
            url: url, opening: opening, carriage: Self.carriage(url, carriage),
            terms: Self.terms(url, carriage, wait: wait), timeout: timeout, messageLimit: limit, closeCode: code,
            closeReason: reason, printsJSON: carriage.json,
            voice: carriage.quiet ? .quiet : carriage.verbose ? .verbose : .normal,
            trustsAnyone: secure != nil && security.insecure)
    }

    private static func messages(
        _ target: OpeningTarget, _ secure: SecureSettings?, _ url: EndpointURL, _ webSocket: ConnectWebSocketOptions,
        limit: Int, timeout: Duration, reading reader: inout OptionReader
    ) throws -> Opening? {
        var target = target
        target.secure = secure
        var options = WebSocketOptions()
        options.maximumMessageSize = limit
        options.handshakeTimeout = timeout
        let spans = ValueSyntax<Duration>.duration(.seconds(1) ... .seconds(86400))
        options.pingInterval = reader.value("--ping-interval", webSocket.pingInterval, spans.orNone) ?? nil
        let patience = ValueSyntax<Duration>.duration(.seconds(1) ... .seconds(3600))
        options.pongTimeout = reader.value("--pong-timeout", webSocket.pongTimeout, patience) ?? options.pongTimeout
        guard let handshake = try Self.handshake(url, webSocket, reading: &reader) else { return nil }
        let deflate = webSocket.compress ? DeflatePolicy() : nil
        return .messages(ClientOpening(target: target, handshake: handshake, deflate: deflate), options)
    }

    private static func stream(
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

    private static func carriage(_ url: EndpointURL, _ options: ConnectCarriageOptions) -> Carriage {
        guard url.scheme.speaksWebSocket else {
            if options.crlf { return .streamLines(end: "\r\n") }
            return options.lines ? .streamLines(end: "\n") : .bytes
        }
        guard options.binary else { return .textLines }
        return options.lines ? .binaryLines : .bytes
    }

    private static func terms(_ url: EndpointURL, _ options: ConnectCarriageOptions, wait: Duration??)
        -> Conversation.Terms
    {
        var terms = Conversation.Terms(carriesMessages: url.scheme.speaksWebSocket)
        terms.wantsOneAnswer = options.one
        terms.patience = wait ?? (url.scheme.speaksWebSocket && !options.one ? .seconds(1) : nil)
        return terms
    }

    private static func mode(_ text: String, reading reader: inout OptionReader) -> StartTLSMode? {
        let mode = StartTLSMode(text)
        if mode == nil {
            reader.note(
                "--starttls", expected: StartTLSMode.forms, found: QuotedText.quoted(text),
                remedy: "for another protocol write it like line:STARTTLS:OK")
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
            reader.note(
                "--server-name", expected: "the name to verify on a Unix socket", found: "none",
                remedy: "write it like --server-name localhost")
            return nil
        }
        do throws(PlanFault) {
            let configuration = try TLSMaterial.configuration(settings, speaksWebSocket: url.scheme.speaksWebSocket)
            var secure = SecureSettings(context: try TLSMaterial.context(configuration), serverName: verified)
            secure.timeout = timeout
            return secure
        } catch {
            throw UnusableFiles("sluice: \(error)")
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
        let subprotocols = options.subprotocol.compactMap { reader.value("--subprotocol", $0, .subprotocol) }
        guard url.resource.parameters.isEmpty else {
            reader.note(
                "URL", expected: "a path without { and }", found: QuotedText.quoted("\(url.resource)"),
                remedy: "percent-encode them: %7B and %7D")
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

    /// `@FILE` stands for the lines of a file, without those that are empty.
    private static func headerLines(_ texts: [String]) throws -> [String] {
        try texts.flatMap { text -> [String] in
            guard text.hasPrefix("@") else { return [text] }
            let path = String(text.dropFirst())
            do throws(SystemError) {
                let bytes = try SystemFile.read(path, limit: 64 << 10)
                return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
            } catch {
                throw UnusableFiles("sluice: --header: \(path): \(error)")
            }
        }
    }
}
