/// What a frame is for (RFC 6455 §5.2).
public enum Opcode: UInt8, Sendable, Hashable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Close, Ping and Pong: never fragmented, at most 125 bytes (§5.5).
    public var isControl: Bool {
        self.rawValue & 0x8 != 0
    }
}
