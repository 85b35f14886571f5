/// What a WebSocket's message holds.
public enum NSURLSessionWebSocketMessageType: Int, Sendable {
    case data = 0
    case string = 1
}
