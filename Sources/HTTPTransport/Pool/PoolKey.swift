import TLSEngine

/// What two connections must have in common to be interchangeable.
struct PoolKey: Sendable, Hashable {
    let origin: Origin
    /// Held, so that no other context can come to stand at its address.
    let context: TLSContext?
    let serverName: String?
    let proxy: ProxyHop?

    init(_ order: ExchangeOrder) {
        self.origin = order.origin
        self.context = order.origin.scheme == .https ? order.secure?.context : nil
        self.serverName = self.context == nil ? nil : order.secure?.serverName
        self.proxy = order.proxy
    }

    static func == (left: PoolKey, right: PoolKey) -> Bool {
        left.origin == right.origin && left.context === right.context && left.serverName == right.serverName
            && left.proxy == right.proxy
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.origin)
        hasher.combine(self.context.map { ObjectIdentifier($0) })
    }
}
