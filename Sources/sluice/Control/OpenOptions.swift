import ArgumentParser
import ControlAPI
import ControlClient
import GatewayCore
import WebSocketProtocol

/// Options of `open` about the connection.
struct OpenOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Header field for the opening handshake. Repeat for several.", valueName: "Name: value"))
    var header: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Subprotocol to offer. Repeat for several, best first.", valueName: "name"))
    var subprotocol: [String] = []

    @Flag(help: "Offer permessage-deflate.")
    var compress = false

    @Option(
        help: ArgumentHelp(
            "A longer message fails the connection with 1009, 1B to 256MiB. (default: 1MiB)", valueName: "size"))
    var maxMessageSize: String?

    @Option(help: ArgumentHelp("Between keep-alive pings, or none. (default: none)", valueName: "duration"))
    var pingInterval: String?

    @Option(help: ArgumentHelp("How long a Pong may take. (default: 20s)", valueName: "duration"))
    var pongTimeout: String?

    @Option(help: ArgumentHelp("For name resolution and connecting. (default: 10s)", valueName: "duration"))
    var connectTimeout: String?

    @Option(help: ArgumentHelp("For TLS, and again for the opening handshake. (default: 10s)", valueName: "duration"))
    var handshakeTimeout: String?

    @Option(help: ArgumentHelp("TCP keep-alive: before the first probe.", valueName: "duration"))
    var keepAliveIdle: String?

    @Option(help: ArgumentHelp("TCP keep-alive: between probes.", valueName: "duration"))
    var keepAliveInterval: String?

    @Option(help: ArgumentHelp("TCP keep-alive: probes without an answer.", valueName: "number"))
    var keepAliveProbes: String?

    @Option(
        help: ArgumentHelp("How long sent data may go unacknowledged.", valueName: "duration"))
    var userTimeout: String?

    @OptionGroup
    var notes: NoteOptions

    func apply(to request: inout OpenRequest, _ reader: inout OptionReader) {
        request.headers = self.headers(&reader)
        request.subprotocols = self.subprotocol.isEmpty ? nil : self.subprotocol
        request.compress = self.compress ? true : nil
        request.maximumMessageSizeBytes = reader.value(
            "--max-message-size", self.maxMessageSize, .size(1...256 << 20))
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400))
        let ping = reader.value("--ping-interval", self.pingInterval, span.orNone)
        request.pingIntervalMs = ping.map { ($0 ?? .zero) / .milliseconds(1) }
        request.pongTimeoutMs = Self.milliseconds("--pong-timeout", self.pongTimeout, &reader)
        request.connectTimeoutMs = Self.milliseconds("--connect-timeout", self.connectTimeout, &reader)
        request.handshakeTimeoutMs = Self.milliseconds("--handshake-timeout", self.handshakeTimeout, &reader)
        let keepAlive = KeepAliveRequest(
            idleMs: Self.milliseconds("--keep-alive-idle", self.keepAliveIdle, &reader),
            intervalMs: Self.milliseconds("--keep-alive-interval", self.keepAliveInterval, &reader),
            probes: reader.value("--keep-alive-probes", self.keepAliveProbes, .integer(1...127)),
            userTimeoutMs: Self.milliseconds("--user-timeout", self.userTimeout, &reader))
        request.keepAlive = keepAlive == KeepAliveRequest() ? nil : keepAlive
        let notes = self.notes.patch(&reader)
        request.description = notes.description
        request.priority = notes.priority
        request.labels = notes.labels
    }

    static func milliseconds(_ option: String, _ text: String?, _ reader: inout OptionReader) -> Double? {
        reader.value(option, text, .duration(.zero ... .seconds(86400))).map { $0 / .milliseconds(1) }
    }

    /// Several of one name are one list (RFC 9110 §5.3).
    private func headers(_ reader: inout OptionReader) -> [String: String]? {
        var headers: [String: String] = [:]
        for text in self.header {
            guard let field = reader.value("--header", text, ValueSyntax<HTTPField>.headerField) else { continue }
            let name = headers.keys.first { $0.lowercased() == field.name.lowercased() } ?? field.name
            headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
        }
        return headers.isEmpty ? nil : headers
    }
}
