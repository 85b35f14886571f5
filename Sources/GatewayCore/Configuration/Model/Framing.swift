/// How a byte stream on one side and messages on the other stand for each other. Without effect where both sides are
/// streams or both are WebSockets.
package enum Framing: String, Sendable, Equatable, CaseIterable {
    /// Bytes as they come are binary messages; boundaries mean nothing.
    case binary
    /// Text messages; a character split over two reads is put together again. Bytes that are not UTF-8 end it (1007).
    case text
    /// A line is a text message; LF and CRLF end a line, and an unfinished last line is a message.
    case lines
    /// Four bytes of length, the highest first, stand before each message; boundaries are kept both ways.
    case lengthPrefixed = "length-prefixed"
    /// Text messages of base64 (the old `base64` subprotocol). Text that is not base64 ends it (1007).
    case base64

    /// The subprotocol by which clients ask for this framing, as websockify names them; `nil` where there is none.
    package var subprotocol: String? {
        switch self {
        case .binary, .base64: self.rawValue
        case .text, .lines, .lengthPrefixed: nil
        }
    }
}
