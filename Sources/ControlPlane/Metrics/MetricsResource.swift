import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import SessionTasks

/// `/metrics`, in the OpenMetrics text format.
struct MetricsResource: Sendable {
    let context: ControlContext

    var operations: [Operation] {
        [
            Operation("getMetrics", .get, "/metrics", .metrics) { _ in
                let text = await self.text()
                return Response(
                    status: .ok,
                    headers: [
                        .contentType: "application/openmetrics-text; version=1.0.0; charset=utf-8",
                        .cacheControl: "no-store",
                    ], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
            }
        ]
        .flatMap(\.alsoUnderVersion)
    }

    private func text() async -> String {
        let figures = await self.context.gateway.figures()
        var text = OpenMetricsText()
        self.writeConnections(figures, to: &text)
        self.writeTraffic(figures, to: &text)
        self.writeCounters(self.context.gateway.counters.all, to: &text)
        Self.writeDistributions(figures, to: &text)
        self.writeOwn(to: &text)
        text.end()
        return text.text
    }

    private func writeConnections(_ figures: GatewayFigures, to text: inout OpenMetricsText) {
        text.family("sluice_connections", .gauge, "Connections that live.")
        let groups = figures.live.map { group, count in
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
        text.family("sluice_connections_stalled", .gauge, "Connections not read because their data has nowhere to go.")
        text.sample("sluice_connections_stalled", [], figures.stalled)
        text.family("sluice_queued_bytes", .gauge, unit: "bytes", "Payload waiting in the process.")
        text.sample("sluice_queued_bytes", [], figures.queuedBytes)
        text.family("sluice_loops", .gauge, "Event loops that carry connections.")
        text.sample("sluice_loops", [], figures.loops)
    }

    private func writeTraffic(_ figures: GatewayFigures, to text: inout OpenMetricsText) {
        let routes = figures.sums.sorted { $0.key < $1.key }
        func family(
            _ name: String, _ unit: String?, _ help: String, _ received: KeyPath<TrafficSums, UInt64>,
            _ sent: KeyPath<TrafficSums, UInt64>
        ) {
            text.family(name, .counter, unit: unit, help)
            for (route, sums) in routes {
                text.sample("\(name)_total", [("route", route), ("way", "received")], sums[keyPath: received])
                text.sample("\(name)_total", [("route", route), ("way", "sent")], sums[keyPath: sent])
            }
        }
        family("sluice_payload_bytes", "bytes", "Payload of all connections.", \.bytesReceived, \.bytesSent)
        family("sluice_messages", nil, "WebSocket messages.", \.messagesReceived, \.messagesSent)
        family("sluice_frames", nil, "WebSocket frames of every kind.", \.framesReceived, \.framesSent)
    }

    /// `ended/PARTY/PHASE/CAUSE`, and the plain ones.
    private func writeCounters(_ counters: [String: UInt64], to text: inout OpenMetricsText) {
        text.family("sluice_connections_ended", .counter, "Connections that are over, by the reason.")
        for (name, count) in counters.sorted(by: { $0.key < $1.key }) {
            let parts = name.split(separator: "/")
            guard parts.count == 4, parts[0] == "ended" else { continue }
            let labels = [("party", parts[1]), ("phase", parts[2]), ("cause", parts[3])].map { ($0.0, String($0.1)) }
            text.sample("sluice_connections_ended_total", labels, count)
        }
        text.family("sluice_incidents", .counter, "What was refused or failed.")
        for (name, count) in counters.sorted(by: { $0.key < $1.key }) where !name.hasPrefix("ended/") {
            text.sample("sluice_incidents_total", [("what", name)], count)
        }
    }

    private static func writeDistributions(_ figures: GatewayFigures, to text: inout OpenMetricsText) {
        let million = 1_000_000.0
        text.family(
            "sluice_handshake_seconds", .histogram, unit: "seconds",
            "From a connection's beginning to its first payload.")
        text.histogram("sluice_handshake_seconds", figures.handshakes, exponents: 6...25, divisor: million)
        text.family("sluice_life_seconds", .histogram, unit: "seconds", "From there to the connection's end.")
        text.histogram(
            "sluice_life_seconds", figures.lives, exponents: stride(from: 10, through: 38, by: 2), divisor: million)
        text.family("sluice_message_size_bytes", .histogram, unit: "bytes", "Payload of received WebSocket messages.")
        text.histogram("sluice_message_size_bytes", figures.messageSizes, exponents: 0...28)
        text.family("sluice_ping_rtt_seconds", .histogram, unit: "seconds", "From pings to their Pongs.")
        text.histogram("sluice_ping_rtt_seconds", figures.roundTrips, exponents: 5...24, divisor: million)
        text.family(
            "sluice_added_latency_seconds", .histogram, unit: "seconds",
            "From the read of what a tunnel relays until the kernel has taken it on the other side; of one read in 64.")
        text.histogram("sluice_added_latency_seconds", figures.addedLatencies, exponents: 0...24, divisor: million)
    }

    private func writeOwn(to text: inout OpenMetricsText) {
        text.family("sluice_control_requests", .counter, "Requests of the control plane.")
        for (labels, value) in self.context.requests.all {
            text.sample("sluice_control_requests_total", labels, value)
        }
        text.family("sluice_events", .counter, "Events noted.")
        text.sample("sluice_events_total", [], self.context.gateway.journal?.last ?? 0)
    }
}
