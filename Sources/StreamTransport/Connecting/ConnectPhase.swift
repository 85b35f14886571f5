/// The steps of opening a connection, in order.
package enum ConnectPhase: String, Hashable, Sendable {
    case resolving
    case connecting
    case securing
}
