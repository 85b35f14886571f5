import Rooms
import SessionTasks
import WebSocketProtocol

/// How a session's messages are written.
enum SessionEncoding: Hashable {
    /// Replies and pushes of a client that sends commands.
    case commands(ProtocolEncoding)
    /// Pushes alone, each a line of JSON.
    case lines
    /// Pushes alone, as Server-Sent Events.
    case events
}

extension SessionEncoding {
    /// Whether the client only receives.
    var isUnidirectional: Bool { if case .commands = self { false } else { true } }

    /// A push of JSON as it is sent to a client that only receives.
    func framed(_ push: [UInt8]) -> [UInt8] {
        switch self {
        case .commands: push
        case .lines: push + [0x0A]
        case .events: Array("data: ".utf8) + push + [0x0A, 0x0A]
        }
    }

    /// An event as `framed` makes it, with its id.
    func identified(_ event: [UInt8], by id: String) -> [UInt8] {
        // Behind the data, so that a client which takes each line as it comes has that already.
        event.dropLast() + Array("id: \(id)\n\n".utf8)
    }

    /// - Parameter channel: empty for a push outside of all rooms.
    func message(_ push: Reply.Push, in channel: String) -> SharedMessage {
        switch self {
        case .commands(.json): SharedMessage(.text, Reply.push(channel: channel, push).encoded(.json))
        case .commands(.protobuf): SharedMessage(.binary, Reply.push(channel: channel, push).encoded(.protobuf))
        case .lines, .events: SharedMessage(.text, self.framed(Reply.unidirectional(push, channel: channel)))
        }
    }
}
