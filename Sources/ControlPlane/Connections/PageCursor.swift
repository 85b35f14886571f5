import GatewayCore

/// Where a page begins. Opaque to clients.
package enum PageCursor: Sendable, Equatable {
    /// Behind this connection, in the order of names.
    case after(ConnectionKey)
    /// At this place of a list that is kept.
    case kept(snapshot: UInt64, offset: Int)

    package init(_ text: String) throws(ControlProblem) {
        if text.first == "a", let key = ConnectionKey(text.dropFirst()) {
            self = .after(key)
            return
        }
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        guard text.first == "k", parts.count == 2, let snapshot = UInt64(parts[0], radix: 16),
            let offset = Int(parts[1]), offset >= 0
        else {
            throw ControlProblem(
                400, "invalid-cursor", "The cursor is none that was given out; begin without one."
            ).at(parameter: "cursor")
        }
        self = .kept(snapshot: snapshot, offset: offset)
    }

    package var text: String {
        switch self {
        case .after(let key): "a\(key)"
        case .kept(let snapshot, let offset): "k\(String(snapshot, radix: 16)).\(offset)"
        }
    }
}
