/// An object that a test does not keep alive.
struct WeakObject {
    let name: String
    private(set) weak var object: AnyObject?

    /// All objects of the gateway's connections that can be reached from `roots`; not what lives as long as their loop.
    static func graph(of roots: [AnyObject]) -> [WeakObject] {
        var found: [ObjectIdentifier: WeakObject] = [:]
        for root in roots { Self.visit(root, 0, &found) }
        return Array(found.values)
    }

    private static let shared: Set<String> = [
        "LoopGateway", "Loop", "GatewayShared", "RoutePlan", "ListenerPlan", "UpstreamPlan", "DeflateContext",
        "MaskingKeys", "RelaySettings",
        "SimulatedSystem", "LoopListener", "LoopRooms", "RoomHub", "SharedRoom",
        "LoopRoom", "RoomSession", "TLSContext", "ContextSnapshot",
        "CiphertextBuffer", "PlaintextBuffer",
    ]

    private static func visit(_ value: Any, _ depth: Int, _ found: inout [ObjectIdentifier: WeakObject]) {
        guard depth < 12 else { return }
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .class {
            let object = value as AnyObject
            let name = "\(type(of: value))"
            guard !Self.shared.contains(name), found[ObjectIdentifier(object)] == nil else { return }
            found[ObjectIdentifier(object)] = WeakObject(name: name, object: object)
        }
        guard mirror.displayStyle != .collection, mirror.displayStyle != .dictionary else { return }
        for child in mirror.children { Self.visit(child.value, depth + 1, &found) }
    }
}
