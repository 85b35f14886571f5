/// Which connections are meant; what is empty or `nil` says nothing. The gateway judges the values.
package struct ConnectionSelection: Sendable, Equatable {
    package var ids: [String] = []
    package var kinds: [String] = []
    package var states: [String] = []
    package var direction: String?
    package var listeners: [String] = []
    package var routes: [String] = []
    package var upstreams: [String] = []
    package var peers: [String] = []
    /// `NAME` or `NAME=VALUE`.
    package var labels: [String] = []
    package var minimumAge: Duration?
    package var maximumAge: Duration?
    package var minimumIdle: Duration?
    package var isStalled = false

    package init() {}

    package var isEmpty: Bool { self == ConnectionSelection() }

    /// As the query of a request.
    package var parameters: [ControlRequest.Parameter] {
        let lists = [
            ("id", self.ids), ("kind", self.kinds.map(Self.kind)), ("state", self.states), ("listener", self.listeners),
            ("route", self.routes), ("upstream", self.upstreams), ("peer", self.peers),
            ("label", self.labels.map(Self.label)), ("direction", self.direction.map { [$0] } ?? []),
        ]
        let times = [
            ("minAgeMs", self.minimumAge), ("maxAgeMs", self.maximumAge), ("minIdleMs", self.minimumIdle),
        ]
        return lists.flatMap { name, values in values.map { ControlRequest.Parameter(name, $0) } }
            + times.compactMap { name, time in time.map { ControlRequest.Parameter(name, Self.milliseconds($0)) } }
            + (self.isStalled ? [ControlRequest.Parameter("stalled", "true")] : [])
    }

    /// Tables show a WebSocket as `ws`.
    private static func kind(_ text: String) -> String {
        ["ws", "websocket"].contains(text.lowercased()) ? "webSocket" : text
    }

    /// The interface writes a label with a colon, since its names have none.
    private static func label(_ text: String) -> String {
        guard let mark = text.firstIndex(of: "=") else { return text }
        return "\(text[..<mark]):\(text[text.index(after: mark)...])"
    }

    private static func milliseconds(_ duration: Duration) -> String {
        "\(Int(duration / .milliseconds(1)))"
    }
}
