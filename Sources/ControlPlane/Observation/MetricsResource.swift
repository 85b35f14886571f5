import CoreMetrics
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import SessionTasks
import Synchronization
import TLSEngine

/// `/metrics`, in the OpenMetrics text format.
struct MetricsResource: Sendable {
    let context: ControlContext

    var operations: [Operation] {
        [
            Operation(
                "getMetrics", .get, "/metrics", .metrics,
                OperationDocument(
                    "Counters, gauges and histograms",
                    responses: [
                        .init(200, "OpenMetrics text", .text("application/openmetrics-text", example: Examples.metrics))
                    ])
            ) { _ in
                let text = await self.text()
                return Response(
                    status: .ok,
                    headers: [
                        .contentType: "application/openmetrics-text; version=1.0.0; charset=utf-8",
                        .cacheControl: "no-store",
                    ], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
            }
        ]
        .flatMap(\.withVersionedAlias)
    }

    private func text() async -> String {
        let metrics = await self.context.gateway.metrics()
        var text = OpenMetricsText()
        self.writeConnections(metrics, to: &text)
        self.writeCertificates(to: &text)
        self.writeTraffic(metrics, to: &text)
        self.writeEndpoints(to: &text)
        self.writeCounters(self.context.gateway.counters.all, to: &text)
        RoomMetrics(self.context.hub).write(to: &text)
        Self.writeDistributions(metrics, to: &text)
        self.writeControlPlane(to: &text)
        text.end()
        return text.text
    }

    private func writeConnections(_ metrics: GatewayMetrics, to text: inout OpenMetricsText) {
        text.family("sluice_connections", .gauge, "Open connections.")
        let groups = metrics.live.map { group, count in
            (
                labels: [
                    ("kind", group.kind.rawValue), ("direction", group.isAccepted ? "accepted" : "opened"),
                    ("state", group.stage.rawValue), ("route", group.route),
                ], count: count
            )
        }
        for group in groups.sorted(by: { "\($0.labels)" < "\($1.labels)" }) {
            text.sample("sluice_connections", group.labels, group.count)
        }
        text.family(
            "sluice_connections_stalled", .gauge, "Connections that are not read, as their data cannot be forwarded.")
        text.sample("sluice_connections_stalled", [], metrics.stalled)
        text.family("sluice_queued_bytes", .gauge, unit: "bytes", "Payload queued in the process.")
        text.sample("sluice_queued_bytes", [], metrics.queuedBytes)
        text.family("sluice_loops", .gauge, "Event loops that carry connections.")
        text.sample("sluice_loops", [], metrics.loops)
        text.family("sluice_slow_turns", .counter, "Turns of event loops that took longer than 5 ms.")
        text.sample("sluice_slow_turns_total", [], metrics.slowTurns)
    }

    private func writeCertificates(to text: inout OpenMetricsText) {
        let name = "sluice_certificate_not_after_seconds"
        text.family(name, .gauge, unit: "seconds", "End of a certificate in use, in seconds since 1970.")
        let ends = self.context.gateway.certificates.map { ($0.file, $0.validity.notAfter) }
        for (file, end) in Dictionary(ends, uniquingKeysWith: { first, _ in first }).sorted(by: { $0.key < $1.key }) {
            text.sample(name, [("file", file)], end)
        }
    }

    private func writeTraffic(_ metrics: GatewayMetrics, to text: inout OpenMetricsText) {
        let routes = metrics.traffic.sorted { $0.key < $1.key }
        func family(
            _ name: String, _ unit: String?, _ help: String, _ received: KeyPath<TrafficMetrics, UInt64>,
            _ sent: KeyPath<TrafficMetrics, UInt64>
        ) {
            text.family(name, .counter, unit: unit, help)
            for (route, traffic) in routes {
                text.sample("\(name)_total", [("route", route), ("way", "received")], traffic[keyPath: received])
                text.sample("\(name)_total", [("route", route), ("way", "sent")], traffic[keyPath: sent])
            }
        }
        family("sluice_payload_bytes", "bytes", "Payload of all connections.", \.bytesReceived, \.bytesSent)
        family("sluice_messages", nil, "WebSocket messages.", \.messagesReceived, \.messagesSent)
        family("sluice_frames", nil, "WebSocket frames of every kind.", \.framesReceived, \.framesSent)
    }

    private func writeEndpoints(to text: inout OpenMetricsText) {
        let endpoints = self.context.gateway.endpointMetrics
        func family(
            _ name: String, _ kind: OpenMetricsText.Kind, unit: String? = nil, _ help: String,
            _ value: (GatewayMetrics.Endpoint) -> String
        ) {
            text.family(name, kind, unit: unit, help)
            for one in endpoints {
                let labels = [("upstream", one.upstream), ("endpoint", one.url)]
                text.sample(kind == .counter ? "\(name)_total" : name, labels, value(one))
            }
        }
        family("sluice_endpoint_connections", .gauge, "Connections to an endpoint, connecting and open.") {
            "\($0.reading.connections)"
        }
        family("sluice_endpoint_ejected", .gauge, "Whether an endpoint is not chosen because of failures.") {
            $0.isEjected ? "1" : "0"
        }
        family("sluice_endpoint_connects", .counter, "Connections to an endpoint that were opened.") {
            "\($0.reading.connected)"
        }
        family("sluice_endpoint_failures", .counter, "Attempts that failed because of the endpoint.") {
            "\($0.reading.failures)"
        }
        family(
            "sluice_endpoint_connect_seconds", .counter, unit: "seconds",
            "Time until connections to an endpoint were opened, TLS and opening handshake included."
        ) { "\($0.reading.connectTime / .seconds(1))" }
    }

    /// Counters named `ended/PARTY/PHASE/CAUSE`, and all others as incidents.
    private func writeCounters(_ counters: [String: UInt64], to text: inout OpenMetricsText) {
        text.family("sluice_connections_ended", .counter, "Closed connections, by termination reason.")
        for (name, count) in counters.sorted(by: { $0.key < $1.key }) {
            let parts = name.split(separator: "/")
            guard parts.count == 4, parts[0] == "ended" else { continue }
            let labels = [("party", parts[1]), ("phase", parts[2]), ("cause", parts[3])].map { ($0.0, String($0.1)) }
            text.sample("sluice_connections_ended_total", labels, count)
        }
        text.family("sluice_incidents", .counter, "Refusals and failures, by kind.")
        for (name, count) in counters.sorted(by: { $0.key < $1.key }) where !name.hasPrefix("ended/") {
            text.sample("sluice_incidents_total", [("what", name)], count)
        }
    }

    private static func writeDistributions(_ metrics: GatewayMetrics, to text: inout OpenMetricsText) {
        let million = 1_000_000.0
        text.family(
            "sluice_handshake_seconds", .histogram, unit: "seconds",
            "Time from the creation of a connection to its first payload.")
        text.histogram("sluice_handshake_seconds", metrics.handshakes, exponents: 6...25, divisor: million)
        text.family(
            "sluice_life_seconds", .histogram, unit: "seconds",
            "Time from the first payload to the end of a connection.")
        text.histogram(
            "sluice_life_seconds", metrics.lifetimes, exponents: stride(from: 10, through: 38, by: 2), divisor: million)
        text.family("sluice_message_size_bytes", .histogram, unit: "bytes", "Payload of received WebSocket messages.")
        text.histogram("sluice_message_size_bytes", metrics.messageSizes, exponents: 0...28)
        text.family("sluice_ping_rtt_seconds", .histogram, unit: "seconds", "Time from a Ping to its Pong.")
        text.histogram("sluice_ping_rtt_seconds", metrics.roundTrips, exponents: 5...24, divisor: million)
        text.family(
            "sluice_added_latency_seconds", .histogram, unit: "seconds",
            "Time from reading relayed data until the kernel has taken it on the other side; one read in 64 is measured."
        )
        text.histogram("sluice_added_latency_seconds", metrics.addedLatencies, exponents: 0...24, divisor: million)
    }

    private func writeControlPlane(to text: inout OpenMetricsText) {
        text.family("sluice_control_requests", .counter, "Requests of the control plane.")
        for (labels, value) in self.context.requestMetrics.all {
            text.sample("sluice_control_requests_total", labels, value)
        }
        text.family("sluice_events", .counter, "Events logged.")
        text.sample("sluice_events_total", [], self.context.gateway.eventLog?.last ?? 0)
    }
}

/// A swift-metrics factory for counters only, whose values can be read.
private final class CounterRegistry: MetricsFactory {
    /// Most distinct counters; further ones are not listed.
    private static let limit = 1024

    private final class RegisteredCounter: CounterHandler {
        let labels: [(String, String)]
        private let value = Atomic<Int64>(0)

        init(_ labels: [(String, String)]) {
            self.labels = labels
        }

        var current: Int64 { self.value.load(ordering: .relaxed) }

        func increment(by amount: Int64) { self.value.add(amount, ordering: .relaxed) }
        func reset() { self.value.store(0, ordering: .relaxed) }
    }

    private let counters = Mutex<[String: RegisteredCounter]>([:])

    var all: [(labels: [(String, String)], value: Int64)] {
        self.counters.withLock { counters in
            counters.sorted { $0.key < $1.key }.map { ($0.value.labels, $0.value.current) }
        }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let key = label + dimensions.map { " \($0.0)=\($0.1)" }.joined()
        return self.counters.withLock { counters in
            if let counter = counters[key] { return counter }
            let counter = RegisteredCounter(dimensions)
            if counters.count < Self.limit { counters[key] = counter }
            return counter
        }
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { NOOPMetricsHandler.instance }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { NOOPMetricsHandler.instance }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}

/// Counts the control plane's own requests through swift-metrics, by operation and status.
final class RequestMetrics: Sendable {
    private let registry = CounterRegistry()

    func recordResponse(_ operation: String, status: Int) {
        Counter(
            label: "control_requests", dimensions: [("operation", operation), ("status", "\(status)")],
            factory: self.registry
        ).increment()
    }

    /// Sorted by labels.
    var all: [(labels: [(String, String)], value: Int64)] { self.registry.all }
}

/// Writes the text format of OpenMetrics 1.0.
package struct OpenMetricsText {
    package enum Kind: String {
        case counter, gauge, histogram
    }

    package private(set) var text = ""

    /// Begins a metric family.
    package mutating func family(_ name: String, _ kind: Kind, unit: String? = nil, _ help: String) {
        self.text += "# TYPE \(name) \(kind.rawValue)\n"
        if let unit { self.text += "# UNIT \(name) \(unit)\n" }
        self.text += "# HELP \(name) \(Self.escaped(help))\n"
    }

    package mutating func sample(_ name: String, _ labels: [(String, String)] = [], _ value: String) {
        self.text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }
            self.text += "{\(pairs.joined(separator: ","))}"
        }
        self.text += " \(value)\n"
    }

    package mutating func sample(_ name: String, _ labels: [(String, String)] = [], _ value: some BinaryInteger) {
        self.sample(name, labels, "\(value)")
    }

    /// - Parameters:
    ///   - exponents: bucket bounds, as powers of two of the recorded unit.
    ///   - divisor: recorded units per unit of the family: 1 000 000 for microseconds written as seconds.
    package mutating func histogram(
        _ name: String, _ distribution: Distribution, exponents: some Sequence<Int>, divisor: Double = 1
    ) {
        for exponent in exponents {
            let bound = Double(UInt64(1) << UInt64(min(62, max(0, exponent)))) / divisor
            self.sample("\(name)_bucket", [("le", "\(bound)")], distribution.count(upTo: exponent))
        }
        self.sample("\(name)_bucket", [("le", "+Inf")], distribution.count)
        self.sample("\(name)_count", [], distribution.count)
        self.sample("\(name)_sum", [], "\(Double(distribution.sum) / divisor)")
    }

    package mutating func end() {
        self.text += "# EOF\n"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
