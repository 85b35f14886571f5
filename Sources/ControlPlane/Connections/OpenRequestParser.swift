import ControlAPI
import GatewayConfiguration
import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import WebSocketProtocol

/// Converts the body of an `openConnection` request, and checks what the rules of its members do not say.
package struct OpenRequestParser {
    package static let labelByteLimit = 256

    private let request: OpenRequest

    package init(_ request: OpenRequest) {
        self.request = request
    }

    package func parse() throws(ControlProblem) -> ClientConnectionRequest {
        let url = try self.url()
        var connection = ClientConnectionRequest(url)
        if url.scheme.speaksWebSocket { try self.readHandshake(into: &connection) } else { try self.refuseHandshake() }
        connection.options = try self.options()
        connection.connectTimeout = Self.duration(self.request.connectTimeoutMs) ?? connection.connectTimeout
        connection.keepAlive = self.keepAlive()
        if url.scheme.speaksTLS {
            connection.context = try TLSRequestParser(
                request: self.request.tls ?? TLSRequest(), speaksWebSocket: url.scheme.speaksWebSocket
            )
            .context()
            connection.serverName = self.request.tls?.serverName
        } else if self.request.tls != nil {
            throw .invalid("/tls", "tls is for wss:// and tls:// alone; start TLS later with :startSecureConnection.")
        }
        connection.description = self.request.description
        connection.priority = self.request.priority.map { Float($0) } ?? 0.5
        connection.labels = try Self.labels(self.request.labels)
        return connection
    }

    private func url() throws(ControlProblem) -> EndpointURL {
        do throws(ValueSyntaxError) {
            return try EndpointURL(self.request.url)
        } catch {
            throw ControlProblem(error, at: "/url")
        }
    }

    // MARK: WebSocket

    private func readHandshake(into connection: inout ClientConnectionRequest) throws(ControlProblem) {
        connection.resource = connection.url.resource.description.isEmpty ? "/" : connection.url.resource.description
        for (name, value) in (self.request.headers ?? [:]).sorted(by: { $0.key < $1.key }) {
            let field = WebSocketProtocol.HTTPField(name, value)
            guard field.isWellFormed else {
                throw .invalid(
                    JSONPointer.member(name, of: "/headers"),
                    "A header's name must be a token, and its value one line.")
            }
            connection.fields.append(field)
        }
        connection.subprotocols = self.request.subprotocols ?? []
        connection.deflate = self.request.compress == true ? DeflatePolicy() : nil
        do throws(HandshakeUsageError) {
            try ClientHandshake(
                authority: connection.url.authority, target: connection.resource, subprotocols: connection.subprotocols,
                fields: connection.fields
            ).validate()
        } catch {
            throw ControlProblem(error)
        }
    }

    private func refuseHandshake() throws(ControlProblem) {
        let given = [
            ("/headers", self.request.headers != nil), ("/subprotocols", self.request.subprotocols != nil),
            ("/compress", self.request.compress != nil),
            ("/maximumMessageSizeBytes", self.request.maximumMessageSizeBytes != nil),
            ("/maximumMessageSize", self.request.maximumMessageSize != nil),
            ("/pingIntervalMs", self.request.pingIntervalMs != nil),
        ]
        if let wrong = given.first(where: \.1) {
            throw .invalid(wrong.0, "\(wrong.0.dropFirst()) is for ws:// and wss:// alone; leave it out.")
        }
    }

    private func options() throws(ControlProblem) -> WebSocketOptions {
        var options = WebSocketOptions()
        options.maximumMessageSize = try self.maximumMessageSize() ?? options.maximumMessageSize
        let interval = Self.duration(self.request.pingIntervalMs)
        options.pingInterval = interval == .zero ? nil : interval
        if let interval = options.pingInterval, interval < .milliseconds(100) {
            throw .invalid("/pingIntervalMs", "pingIntervalMs must be 0, or from 100 to 86400000.")
        }
        options.pongTimeout = Self.duration(self.request.pongTimeoutMs) ?? options.pongTimeout
        options.handshakeTimeout = Self.duration(self.request.handshakeTimeoutMs) ?? options.handshakeTimeout
        return options
    }

    /// The member has two names.
    private func maximumMessageSize() throws(ControlProblem) -> Int? {
        let (size, other) = (self.request.maximumMessageSizeBytes, self.request.maximumMessageSize)
        guard size == nil || other == nil || size == other else {
            throw .invalid("/maximumMessageSize", "Give maximumMessageSizeBytes only: the two are synonyms.")
        }
        return size ?? other
    }

    // MARK: All connections

    private func keepAlive() -> KeepAliveSettings {
        var settings = KeepAliveSettings()
        guard let request = self.request.keepAlive else { return settings }
        settings.idle = Self.duration(request.idleMs) ?? settings.idle
        settings.interval = Self.duration(request.intervalMs) ?? settings.interval
        settings.userTimeout = Self.duration(request.userTimeoutMs) ?? settings.userTimeout
        settings.probes = request.probes ?? settings.probes
        return settings
    }

    static func duration(_ milliseconds: Double?) -> Duration? {
        milliseconds.flatMap { Duration(milliseconds: $0) }
    }

    package static func labels(_ labels: [String: String]?) throws(ControlProblem) -> [String: String] {
        guard let labels else { return [:] }
        for (name, value) in labels {
            guard !name.isEmpty, max(name.utf8.count, value.utf8.count) <= Self.labelByteLimit, !name.contains(":")
            else {
                throw .invalid(
                    "/labels/\(name.prefix(64))",
                    "A label is a name without a colon and a value, of at most \(Self.labelByteLimit) bytes each.")
            }
        }
        return labels
    }
}

/// Validates the body of an `openConnection` request for a tunnel and converts it.
package struct TunnelRequestParser {
    private let request: TunnelRequest

    package init(_ request: TunnelRequest) {
        self.request = request
    }

    /// - Parameter configure: called with each side, to install its `TargetGuard`.
    package func parse(
        _ configure: (TunnelSide, inout ClientConnectionRequest) -> Void = { _, _ in }
    ) throws(ControlProblem) -> ClientTunnelRequest {
        let settings = try self.settings()
        var downstream = try Self.parse(self.request.downstream, .downstream)
        var upstream = try Self.parse(self.request.upstream, .upstream)
        configure(.downstream, &downstream)
        configure(.upstream, &upstream)
        return ClientTunnelRequest(downstream: downstream, upstream: upstream, settings: settings)
    }

    private static func parse(_ request: OpenRequest, _ side: TunnelSide) throws(ControlProblem)
        -> ClientConnectionRequest
    {
        do throws(ControlProblem) {
            return try OpenRequestParser(request).parse()
        } catch {
            throw error.nested(under: "/\(side.rawValue)")
        }
    }

    private func settings() throws(ControlProblem) -> TunnelSettings {
        var settings = TunnelSettings()
        settings.framing = self.request.framing.flatMap { Framing(rawValue: $0) } ?? settings.framing
        settings.halfClose = self.request.halfClose.flatMap { HalfClose(rawValue: $0) } ?? settings.halfClose
        if settings.halfClose == .signal, !settings.framing.supportsEndMarker {
            throw .invalid(
                "/halfClose",
                "halfClose must be hold or close: an empty message is data in \(settings.framing.rawValue) framing.")
        }
        settings.idleTimeout = try Self.duration(self.request.idleTimeoutMs, "/idleTimeoutMs", settings.idleTimeout)
        settings.maximumAge = try Self.duration(self.request.maximumAgeMs, "/maximumAgeMs", settings.maximumAge)
        return settings
    }

    /// 0 means no limit.
    private static func duration(
        _ milliseconds: Double?, _ pointer: String, _ defaultValue: Duration?
    ) throws(ControlProblem) -> Duration? {
        guard let milliseconds else { return defaultValue }
        guard milliseconds != 0 else { return nil }
        guard milliseconds >= 1000 else {
            throw .invalid(pointer, "\(pointer.dropFirst()) must be 0, or from 1000 to 31536000000.")
        }
        return Duration(milliseconds: milliseconds)
    }
}

/// Validates the TLS settings of a request and makes a TLS context.
struct TLSRequestParser {
    let request: TLSRequest
    let speaksWebSocket: Bool
    /// JSON pointer to the settings in the body.
    var pointer = "/tls"

    func context() throws(ControlProblem) -> TLSContext {
        var configuration = TLSConfiguration.client()
        configuration.applicationProtocols =
            self.request.applicationProtocols ?? (self.speaksWebSocket ? ["http/1.1"] : [])
        guard configuration.applicationProtocols.allSatisfy({ (1...255).contains($0.utf8.count) }) else {
            throw .invalid("\(self.pointer)/applicationProtocols", "Each protocol must have 1 to 255 bytes.")
        }
        if self.request.minimumVersion == "1.3" { configuration.minimumVersion = .tls13 }
        if let pem = self.request.authorities { configuration.trust = .only([.pem(Array(pem.utf8))]) }
        if self.request.insecure == true { configuration.peerVerification = .none }
        do throws(TLSFailure) {
            return try TLSContext(configuration)
        } catch {
            throw ControlProblem(error, at: self.pointer)
        }
    }
}

/// Checks each address of a connection against the target rules when it is tried, after name resolution.
final class TargetGuard: Sendable {
    private let rules: TargetRules
    private let url: EndpointURL
    private let refused = Mutex<SocketAddress?>(nil)

    init(_ rules: TargetRules, url: EndpointURL) {
        self.rules = rules
        self.url = url
    }

    func install(on connection: inout ClientConnectionRequest) {
        let host: String? = if case .name(let name, _) = self.url.location { name } else { nil }
        let rules = self.rules
        connection.permits = { rules.allows($0, askedFor: host) }
        connection.watch = { step in
            if case .failed(.notPermitted(let address)) = step { self.refused.withLock { $0 = address } }
        }
    }

    var hasRefused: Bool { self.refused.withLock { $0 != nil } }

    var problem: ControlProblem {
        let address = self.refused.withLock { $0 }.map { "\($0)" } ?? self.url.description
        return ControlProblem.targetNotAllowed(address).at(pointer: "/url")
    }
}
