/// One thing to send: a message, or bytes of a stream.
enum Outgoing: Sendable, Equatable {
    case text(String)
    case data([UInt8])

    var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let bytes): bytes.count
        }
    }
}
