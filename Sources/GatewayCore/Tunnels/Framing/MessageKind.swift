/// The two kinds of WebSocket message (RFC 6455 §5.6).
package enum MessageKind: Sendable {
    case text
    case binary
}
