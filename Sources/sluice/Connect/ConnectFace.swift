/// How `connect` shows what happens.
protocol ConnectFace: Sendable {
    /// Returns when it is written: who awaits it lets a slow reader slow the peer.
    func tell(_ events: [ConnectEvent]) async throws(ConnectFailure)
    /// A line that is no event: an answer to a command, a warning. Safe to print.
    func note(_ text: String) async
}

extension ConnectFace {
    func tell(_ event: ConnectEvent) async throws(ConnectFailure) {
        try await self.tell([event])
    }
}
