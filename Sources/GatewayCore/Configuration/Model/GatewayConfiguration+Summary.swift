extension GatewayConfiguration {
    /// `2 listeners, 3 routes, 1 upstream`.
    package var summary: String {
        func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
        return [
            count(self.listeners.count, "listener"), count(self.routes.count, "route"),
            count(self.upstreams.count, "upstream"),
        ].joined(separator: ", ")
    }
}
