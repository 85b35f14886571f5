import ControlAPI
import GatewayCore
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// Makes an order of what a client asks for, or says what is wrong with it.
package struct ClientOrderReading {
    package static let labelLimit = 64
    package static let labelLength = 256
    package static let descriptionLength = 1024

    package let request: OpenRequest

    package init(_ request: OpenRequest) {
        self.request = request
    }

    package func order() throws(ControlProblem) -> ClientOrder {
        let url = try self.url()
        var order = ClientOrder(url)
        if url.scheme.speaksWebSocket { try self.readHandshake(into: &order) } else { try self.refuseHandshake() }
        order.options = try self.options()
        order.connectTimeout =
            try Self.time(
                self.request.connectTimeoutMs, "/connectTimeoutMs", in: 1...600_000) ?? order.connectTimeout
        order.keepAlive = try self.keepAlive()
        if url.scheme.speaksTLS {
            order.context = try TLSRequestReading(
                self.request.tls ?? TLSRequest(), speaksWebSocket: url.scheme.speaksWebSocket
            )
            .context()
            order.serverName = self.request.tls?.serverName
        } else if self.request.tls != nil {
            throw .invalid("/tls", "tls is for wss:// and tls:// alone; start TLS later with :startSecureConnection.")
        }
        order.description = try Self.description(self.request.description)
        order.priority = try Self.priority(self.request.priority) ?? 0.5
        order.labels = try Self.labels(self.request.labels)
        return order
    }

    private func url() throws(ControlProblem) -> EndpointURL {
        do throws(TextFault) {
            return try EndpointURL(self.request.url)
        } catch {
            throw .invalid("/url", "url is to be \(error.expected)\(error.remedy.isEmpty ? "" : ": \(error.remedy)").")
        }
    }

    // MARK: WebSocket

    private func readHandshake(into order: inout ClientOrder) throws(ControlProblem) {
        order.resource = order.url.resource.description.isEmpty ? "/" : order.url.resource.description
        for (name, value) in (self.request.headers ?? [:]).sorted(by: { $0.key < $1.key }) {
            let field = WebSocketProtocol.HTTPField(name, value)
            guard field.isWellFormed else {
                throw .invalid(
                    JSONPointer.member(name, of: "/headers"),
                    "A header needs a token for its name, and a value on one line.")
            }
            order.fields.append(field)
        }
        order.subprotocols = self.request.subprotocols ?? []
        order.deflate = self.request.compress == true ? DeflatePolicy() : nil
        do throws(HandshakeUsageError) {
            try ClientHandshake(
                authority: order.url.authority, target: order.resource, subprotocols: order.subprotocols,
                fields: order.fields
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
        let day = 86_400_000.0
        let interval = try Self.time(self.request.pingIntervalMs, "/pingIntervalMs", in: 0...day)
        options.pingInterval = interval == .zero ? nil : interval
        if let interval = options.pingInterval, interval < .milliseconds(100) {
            throw .invalid("/pingIntervalMs", "pingIntervalMs is to be 0, or from 100 to 86400000.")
        }
        options.pongTimeout =
            try Self.time(self.request.pongTimeoutMs, "/pongTimeoutMs", in: 100...day) ?? options.pongTimeout
        options.handshakeTimeout =
            try Self.time(self.request.handshakeTimeoutMs, "/handshakeTimeoutMs", in: 1...600_000)
            ?? options.handshakeTimeout
        return options
    }

    /// By either of its names.
    private func maximumMessageSize() throws(ControlProblem) -> Int? {
        let (size, other) = (self.request.maximumMessageSizeBytes, self.request.maximumMessageSize)
        let name = size == nil ? "maximumMessageSize" : "maximumMessageSizeBytes"
        guard size == nil || other == nil || size == other else {
            throw .invalid("/maximumMessageSize", "Give maximumMessageSizeBytes alone: the two are the same.")
        }
        guard let size = size ?? other else { return nil }
        guard (1...(256 << 20)).contains(size) else {
            throw .invalid("/\(name)", "\(name) is to be from 1 to 268435456.")
        }
        return size
    }

    // MARK: What every connection has

    private func keepAlive() throws(ControlProblem) -> KeepAliveSettings {
        var settings = KeepAliveSettings()
        guard let wanted = self.request.keepAlive else { return settings }
        let hours = 32_400_000.0
        settings.idle = try Self.time(wanted.idleMs, "/keepAlive/idleMs", in: 1000...hours) ?? settings.idle
        settings.interval =
            try Self.time(wanted.intervalMs, "/keepAlive/intervalMs", in: 1000...hours) ?? settings.interval
        settings.userTimeout =
            try Self.time(wanted.userTimeoutMs, "/keepAlive/userTimeoutMs", in: 1000...86_400_000)
            ?? settings.userTimeout
        if let probes = wanted.probes {
            guard (1...127).contains(probes) else {
                throw .invalid("/keepAlive/probes", "probes is to be from 1 to 127.")
            }
            settings.probes = probes
        }
        return settings
    }

    package static func time(
        _ milliseconds: Double?, _ pointer: String, in range: ClosedRange<Double>
    ) throws(ControlProblem) -> Duration? {
        guard let milliseconds else { return nil }
        guard range.contains(milliseconds), let duration = Duration(milliseconds: milliseconds) else {
            throw .invalid(
                pointer, "\(pointer.dropFirst()) is to be from \(Int(range.lowerBound)) to \(Int(range.upperBound)) ms."
            )
        }
        return duration
    }

    package static func description(_ text: String?) throws(ControlProblem) -> String? {
        guard let text else { return nil }
        guard text.utf8.count <= Self.descriptionLength else {
            throw .invalid("/description", "description is to have at most \(Self.descriptionLength) bytes.")
        }
        return text
    }

    package static func priority(_ value: Double?) throws(ControlProblem) -> Float? {
        guard let value else { return nil }
        guard (0...1).contains(value) else { throw .invalid("/priority", "priority is to be from 0 to 1.") }
        return Float(value)
    }

    package static func labels(_ labels: [String: String]?) throws(ControlProblem) -> [String: String] {
        guard let labels else { return [:] }
        guard labels.count <= Self.labelLimit else {
            throw .invalid("/labels", "labels is to have at most \(Self.labelLimit) members.")
        }
        for (name, value) in labels {
            guard !name.isEmpty, max(name.utf8.count, value.utf8.count) <= Self.labelLength, !name.contains(":") else {
                throw .invalid(
                    "/labels/\(name.prefix(64))",
                    "A label is a name without a colon and a value, of at most \(Self.labelLength) bytes each.")
            }
        }
        return labels
    }
}
