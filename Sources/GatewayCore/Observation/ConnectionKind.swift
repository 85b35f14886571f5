/// What a connection carries.
package enum ConnectionKind: String, CaseIterable, Sendable {
    case stream
    case webSocket
}
