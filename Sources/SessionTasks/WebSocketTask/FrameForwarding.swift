import WebSocketProtocol

/// What a task needs that passes data frames on as they come: who takes its peer's, and what of our own waits while a
/// frame from the other WebSocket is under way to its peer. At most one control frame of each kind waits.
final class FrameForwarding {
    let relay: any FrameRelay
    var input: FrameForwarder
    /// A frame went out in part: until its rest has, whatever else were written would become its payload.
    var isInsideFrame = false
    /// The answer to the latest Ping alone: a peer need not be answered more than that one (RFC 6455 §5.5.3).
    private(set) var pong: [UInt8]?
    private(set) var ping: [UInt8]?
    private(set) var close: [UInt8]?
    /// Whether any of the three waits, in one look.
    private(set) var holdsSome = false

    init(_ relay: any FrameRelay, input: FrameForwarder) {
        self.relay = relay
        self.input = input
    }

    /// - Returns: whether the frame must wait; else it is to be written now.
    func holds(_ opcode: Opcode, _ payload: [UInt8]) -> Bool {
        guard self.isInsideFrame, opcode.isControl else { return false }
        self.holdsSome = true
        switch opcode {
        case .pong: self.pong = payload
        case .ping: self.ping = payload
        case .close: self.close = payload
        case .continuation, .text, .binary: return false
        }
        return true
    }

    /// What has waited, in the order to be sent; the Close last, as nothing may follow it (RFC 6455 §5.5.1).
    func popHeld() -> (opcode: Opcode, payload: [UInt8])? {
        if let payload = self.pong.take() { return (.pong, payload) }
        if let payload = self.ping.take() { return (.ping, payload) }
        self.holdsSome = false
        return self.close.take().map { (.close, $0) }
    }
}
