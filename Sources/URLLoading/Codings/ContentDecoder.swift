import ByteKernels
import Deflate
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

/// Undoes one coding: bytes that were put into `input` are taken from there as output is asked for.
final class DecodingStage {
    private enum State {
        /// Of `deflate`: whether a header of zlib comes is told by its two bytes.
        case undecided
        case inflating(Inflater)
        /// A member of gzip is done, and a further one may follow (RFC 1952 §2.2).
        case betweenMembers(Inflater)
        /// What still comes is padding.
        case done
    }

    /// Bytes to be decoded, of which the first `taken` are.
    private(set) var input: [UInt8] = []
    private var taken = 0
    private var state: State
    private(set) var isUntouched = true

    /// - Returns: `nil` when there is no memory.
    init?(gzip: Bool) {
        guard gzip else {
            self.state = .undecided
            return
        }
        guard let inflater = Inflater(format: .gzip) else { return nil }
        self.state = .inflating(inflater)
    }

    /// Whether everything that came is decoded, and the coding is at its end.
    var isComplete: Bool {
        guard self.taken == self.input.count else { return false }
        switch self.state {
        case .betweenMembers, .done: return true
        case .undecided, .inflating: return false
        }
    }

    func feed(_ bytes: RawSpan) {
        guard bytes.byteCount > 0 else { return }
        self.isUntouched = false
        if self.taken == self.input.count {
            self.input.removeAll(keepingCapacity: true)
            self.taken = 0
        }
        self.input.append(bytes)
    }

    /// Decodes into the front of `room`.
    /// - Returns: how many bytes; 0 when all input is used up and gives nothing more.
    func decode(into room: inout [UInt8]) throws(ContentDecodingFailure) -> Int {
        var written = 0
        while written == 0 {
            switch self.state {
            case .undecided:
                guard try self.decide() else { return 0 }
            case .inflating(let inflater):
                guard try self.inflate(inflater, into: &room, &written) else { return written }
            case .betweenMembers(let inflater):
                guard self.taken < self.input.count else { return 0 }
                guard self.input[self.taken] == 0x1F else {
                    self.state = .done
                    continue
                }
                inflater.reset()
                self.state = .inflating(inflater)
            case .done:
                self.taken = self.input.count
                return 0
            }
        }
        return written
    }

    /// `deflate` is the zlib format (RFC 9110 §8.4.1.2), and yet some servers send the bare blocks. What begins as zlib
    /// does cannot be such: it would be a stored block with a bit set that nobody sets.
    private func decide() throws(ContentDecodingFailure) -> Bool {
        guard self.input.count - self.taken >= 2 else { return false }
        let header = Int(self.input[self.taken]) << 8 | Int(self.input[self.taken + 1])
        let isZlib = header >> 8 & 0x0F == 8 && header >> 12 <= 7 && header.isMultiple(of: 31)
        guard let inflater = Inflater(format: isZlib ? .zlib : .raw) else { throw .outOfMemory }
        self.state = .inflating(inflater)
        return true
    }

    /// - Returns: whether the stream ended, so that another state goes on.
    private func inflate(
        _ inflater: Inflater, into room: inout [UInt8], _ written: inout Int
    ) throws(ContentDecodingFailure) -> Bool {
        var taken = self.taken
        defer { self.taken = taken }
        do throws(InflateFailure) {
            let input = self.input
            var elements = room.mutableSpan
            var target = elements.mutableBytes
            let progress = try inflater.inflate(
                input.span.bytes, consumed: &taken, into: &target, written: &written)
            guard progress == .streamEnd else { return false }
        } catch {
            throw ContentDecodingFailure(error)
        }
        self.state = inflater.format == .gzip ? .betweenMembers(inflater) : .done
        return true
    }
}

/// Why the coding of a content could not be undone.
package enum ContentDecodingFailure: Error, Equatable, Sendable {
    /// The bytes are not what the coding allows; the reason is for a log.
    case corrupt(reason: String)
    /// The content ended before its coding did.
    case truncated
    case outOfMemory

    init(_ failure: InflateFailure) {
        switch failure {
        case .corrupt(let reason): self = .corrupt(reason: reason)
        case .dictionaryRequired: self = .corrupt(reason: "a preset dictionary that nobody agreed on")
        case .limitExceeded: self = .corrupt(reason: "too long")
        case .outOfMemory: self = .outOfMemory
        }
    }

    /// A known coding that could not be undone is `cannotDecodeRawData`; `cannotDecodeContentData` is for unknown ones.
    package var code: URLError.Code { .cannotDecodeRawData }
}

extension ContentDecodingFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .corrupt(let reason): "the coding of the content is corrupt: \(reason)"
        case .truncated: "the content ended in the middle of its coding"
        case .outOfMemory: "no memory to undo the coding of the content"
        }
    }
}
