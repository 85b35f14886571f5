import Foundation
import HTTPSemantics
import HTTPTypes

/// Undoes the codings of a content, as much at a time as is asked for: however far the content unfolds, no more than a
/// piece of it per coding is in memory.
///
/// `feed`, then `next` until `nil`, and so on; `finish` behind the last. Not to be used by two threads at a time.
package final class ContentDecoder {
    /// What is asked for with `Accept-Encoding`.
    package static let acceptEncodingValue = "gzip, deflate"
    /// Most bytes that `next` gives at once.
    package static let pieceLimit = 64 << 10
    /// Pieces that are decoded between two codings in one call of `next`: a content that is empty but for the many
    /// layers of it would otherwise keep its thread for minutes.
    private static let patience = 64

    /// The coding that was put on last first.
    private var stages: [DecodingStage] = []
    private var room: [UInt8]

    /// - Parameter codings: in the order in which they were put on.
    /// - Returns: `nil` where there is none to undo, or one that is not known: the content is then left as it is.
    package init?(_ codings: [ContentCoding]) {
        guard !codings.isEmpty else { return nil }
        for coding in codings.reversed() {
            if case .other = coding { return nil }
            guard let stage = DecodingStage(gzip: coding == .gzip) else { return nil }
            self.stages.append(stage)
        }
        self.room = [UInt8](repeating: 0, count: Self.pieceLimit)
    }

    /// The decoder that the `Content-Encoding` of a response asks for. More codings than `ContentCoding.limit` are not
    /// undone.
    package convenience init?(_ fields: HTTPFields) {
        guard let codings = ContentCoding.list(fields) else { return nil }
        self.init(codings)
    }

    /// The same, from the value of the one field.
    package convenience init?(contentEncoding value: String) {
        self.init([.contentEncoding: value])
    }

    /// Adds the next bytes of the content; they are copied. Who feeds again before `next` gave `nil` makes more wait in
    /// memory.
    package func feed(_ bytes: RawSpan) {
        self.stages[0].feed(bytes)
    }

    /// The next bytes, decoded.
    /// - Returns: 1 to `pieceLimit` bytes; none at all when it took long and gave nothing yet, so that the caller may
    ///   see to others before it asks again; `nil` when more is to be fed.
    package func next() throws(ContentDecodingFailure) -> Data? {
        var patience = Self.patience
        guard let count = try self.decode(self.stages.count - 1, &patience) else { return nil }
        return Data(self.room[..<count])
    }

    /// Feeds `bytes`, and gives `sink` all that comes of them, piece by piece.
    package func decode(_ bytes: RawSpan, into sink: (Data) throws -> Void) throws {
        self.feed(bytes)
        while let piece = try self.next() {
            if !piece.isEmpty { try sink(piece) }
        }
    }

    /// Behind the last byte, and after `next` gave `nil`. A content without any byte is fine: it was not coded at all.
    /// - Throws: `.truncated` if the content is not whole.
    package func finish() throws(ContentDecodingFailure) {
        if self.stages[0].isUntouched { return }
        guard self.stages.allSatisfy(\.isComplete) else { throw .truncated }
    }

    /// Fills the room from the stage at `index`, which in turn is fed by those before it.
    /// - Returns: how many bytes; 0 when patience is over, `nil` when there is nothing.
    private func decode(_ index: Int, _ patience: inout Int) throws(ContentDecodingFailure) -> Int? {
        while true {
            let count = try self.stages[index].decode(into: &self.room)
            if count > 0 { return count }
            guard index > 0 else { return nil }
            guard patience > 0 else { return 0 }
            patience -= 1
            guard let fed = try self.decode(index - 1, &patience) else { return nil }
            guard fed > 0 else { return 0 }
            let room = self.room
            self.stages[index].feed(room.span.bytes.extracting(..<fed))
        }
    }
}
