import FoundationEssentials
import GatewayCore
import SessionTasks

/// Writes what a tap saw as JSON, in the form of the wire model.
enum TapWriter {
    /// - Parameter skipped: what was left out before it.
    static func json(_ piece: TapPiece, skipped: Int) -> [UInt8] {
        var text = JSONText(capacity: 128 + piece.bytes.count * 2)
        text.beginObject()
        text.member("number", piece.number)
        text.member("at", time: piece.at)
        text.member("way", piece.way.rawValue)
        text.member("content", piece.content.rawValue)
        text.member("sizeBytes", piece.count)
        text.member("startsMessage", piece.startsMessage)
        text.member("endsMessage", piece.endsMessage)
        if piece.content == .text, let whole = String(validating: piece.bytes, as: UTF8.self) {
            text.member("text", whole)
        } else if piece.content != .frames {
            text.member("data", Data(piece.bytes).base64EncodedString())
        }
        text.member("skipped", skipped)
        text.endObject()
        return text.bytes
    }

    static func end(skipped: Int) -> [UInt8] {
        var text = JSONText(capacity: 32)
        text.beginObject()
        text.member("skipped", skipped)
        text.endObject()
        return text.bytes
    }
}
