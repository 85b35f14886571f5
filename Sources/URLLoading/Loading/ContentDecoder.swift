import ByteKernels
import ContentCodings
import Deflate
import Foundation
import HTTPSemantics
import HTTPTypes

/// Decodes content codings incrementally: however well the content was compressed, memory holds at most one decoded piece
/// per coding.
///
/// Call `feed`, then `next` until `nil`, and so on; `finish` after the last byte. Not thread-safe.
package final class ContentDecoder {
    /// The value of `Accept-Encoding`: the codings whose libraries are installed.
    package static let acceptEncodingValue = [
        "gzip", "deflate", BrotliDecoder.isAvailable ? "br" : nil, ZstandardDecoder.isAvailable ? "zstd" : nil,
    ].compactMap(\.self).joined(separator: ", ")
    /// Most bytes returned by one `next`.
    package static let pieceLimit = 64 << 10
    /// Most pieces passed between codings in one `next`: many nested codings of empty content would otherwise occupy the
    /// thread for minutes.
    private static let stepBudget = 64

    /// In decoding order: the coding applied last comes first.
    private var stages: [DecodingStage] = []
    private var output: [UInt8]
    /// Whether everything that was fed is decoded.
    private(set) var needsInput = true

    /// - Parameter codings: in the order in which they were applied.
    /// - Returns: `nil` if there is none, or an unknown one: the content then stays encoded.
    package init?(_ codings: [ContentCoding]) {
        guard !codings.isEmpty else { return nil }
        for coding in codings.reversed() {
            guard let stage = DecodingStage(coding) else { return nil }
            self.stages.append(stage)
        }
        self.output = [UInt8](repeating: 0, count: Self.pieceLimit)
    }

    /// The decoder for the `Content-Encoding` of a response. More codings than `ContentCoding.limit` are not decoded.
    package convenience init?(_ fields: HTTPFields) {
        guard let codings = ContentCoding.list(fields) else { return nil }
        self.init(codings)
    }

    package convenience init?(contentEncoding value: String) {
        self.init([.contentEncoding: value])
    }

    /// Adds a copy of the next bytes of the content. Feeding before `next` returned `nil` buffers more.
    package func feed(_ bytes: RawSpan) {
        self.stages[0].feed(bytes)
        self.needsInput = false
    }

    /// The next decoded bytes.
    /// - Returns: 1 to `pieceLimit` bytes; empty if the step budget is used up, so that the caller can yield before it calls
    ///   again; `nil` if more input is needed.
    package func next() throws(ContentDecodingFailure) -> Data? {
        var stepBudget = Self.stepBudget
        guard let count = try self.decode(self.stages.count - 1, &stepBudget) else {
            self.needsInput = true
            return nil
        }
        return Data(self.output[..<count])
    }

    /// Feeds `bytes`, and passes the decoded pieces to `sink`.
    package func decode(_ bytes: RawSpan, into sink: (Data) throws -> Void) throws {
        self.feed(bytes)
        while let piece = try self.next() {
            if !piece.isEmpty { try sink(piece) }
        }
    }

    /// Call after the last byte, and after `next` returned `nil`. Empty content is valid: it was not encoded.
    /// - Throws: `.truncated` if the content is incomplete.
    package func finish() throws(ContentDecodingFailure) {
        if self.stages[0].isUntouched { return }
        guard self.stages.allSatisfy(\.isComplete) else { throw .truncated }
    }

    /// Fills `output` from the stage at `index`, which is fed by the stages before it.
    /// - Returns: the number of bytes; 0 if the step budget is used up, `nil` if more input is needed.
    private func decode(_ index: Int, _ stepBudget: inout Int) throws(ContentDecodingFailure) -> Int? {
        while true {
            let count = try self.stages[index].decode(into: &self.output)
            if count > 0 { return count }
            guard index > 0 else { return nil }
            guard stepBudget > 0 else { return 0 }
            stepBudget -= 1
            guard let fed = try self.decode(index - 1, &stepBudget) else { return nil }
            guard fed > 0 else { return 0 }
            let output = self.output
            self.stages[index].feed(output.span.bytes.extracting(..<fed))
        }
    }
}

/// Decodes one coding.
private final class DecodingStage {
    private enum State {
        /// `deflate` before the two bytes that tell a zlib header from raw blocks.
        case undecided
        case inflating(Inflater)
        /// Another coding, of one stream or of several.
        case decoding(any CodingDecoder, repeats: Bool, DecodingProgress)
        /// After a gzip member; another may follow (RFC 1952 §2.2).
        case betweenMembers(Inflater)
        /// Further input is padding.
        case done
    }

    /// Received bytes, of which the first `consumed` are decoded.
    private(set) var input: [UInt8] = []
    private var consumed = 0
    private var state: State
    private(set) var isUntouched = true

    /// - Returns: `nil` for an unknown coding, without its library, or if memory is exhausted.
    init?(_ coding: ContentCoding) {
        switch coding {
        case .gzip:
            guard let inflater = Inflater(format: .gzip) else { return nil }
            self.state = .inflating(inflater)
        case .deflate: self.state = .undecided
        case .brotli:
            guard let decoder = BrotliDecoder() else { return nil }
            self.state = .decoding(decoder, repeats: false, .needsInput)
        case .zstandard:
            guard let decoder = ZstandardDecoder() else { return nil }
            self.state = .decoding(decoder, repeats: true, .needsInput)
        case .other: return nil
        }
    }

    /// Whether all input is decoded, and the coding has ended.
    var isComplete: Bool {
        guard self.consumed == self.input.count else { return false }
        switch self.state {
        case .betweenMembers, .done, .decoding(_, _, .ended): return true
        case .undecided, .inflating, .decoding: return false
        }
    }

    func feed(_ bytes: RawSpan) {
        guard bytes.byteCount > 0 else { return }
        self.isUntouched = false
        if self.consumed == self.input.count {
            self.input.removeAll(keepingCapacity: true)
            self.consumed = 0
        }
        self.input.append(bytes)
    }

    /// Decodes into the front of `room`.
    /// - Returns: the number of bytes; 0 if more input is needed.
    func decode(into output: inout [UInt8]) throws(ContentDecodingFailure) -> Int {
        var written = 0
        while written == 0 {
            switch self.state {
            case .undecided:
                guard try self.decide() else { return 0 }
            case .inflating(let inflater):
                guard try self.inflate(inflater, into: &output, &written) else { return written }
            case .decoding(let decoder, let repeats, let progress):
                guard self.consumed < self.input.count || progress == .outputFull else { return 0 }
                if progress == .ended, !repeats {
                    self.state = .done
                    continue
                }
                let step = try self.decode(decoder, into: &output, &written)
                self.state = .decoding(decoder, repeats: repeats, step)
            case .betweenMembers(let inflater):
                guard self.consumed < self.input.count else { return 0 }
                guard self.input[self.consumed] == 0x1F else {
                    self.state = .done
                    continue
                }
                inflater.reset()
                self.state = .inflating(inflater)
            case .done:
                self.consumed = self.input.count
                return 0
            }
        }
        return written
    }

    /// `deflate` is the zlib format (RFC 9110 §8.4.1.2), but some servers send raw deflate blocks. A valid zlib header
    /// cannot begin raw data: it would be a stored block with a padding bit set that no encoder sets.
    private func decide() throws(ContentDecodingFailure) -> Bool {
        guard self.input.count - self.consumed >= 2 else { return false }
        let header = Int(self.input[self.consumed]) << 8 | Int(self.input[self.consumed + 1])
        let isZlib = header >> 8 & 0x0F == 8 && header >> 12 <= 7 && header.isMultiple(of: 31)
        guard let inflater = Inflater(format: isZlib ? .zlib : .raw) else { throw .outOfMemory }
        self.state = .inflating(inflater)
        return true
    }

    private func decode(
        _ decoder: any CodingDecoder, into output: inout [UInt8], _ written: inout Int
    ) throws(ContentDecodingFailure) -> DecodingProgress {
        var taken = self.consumed
        defer { self.consumed = taken }
        do throws(CodingFailure) {
            let input = self.input
            var elements = output.mutableSpan
            var target = elements.mutableBytes
            return try decoder.decode(input.span.bytes, consumed: &taken, into: &target, written: &written)
        } catch {
            throw ContentDecodingFailure(error)
        }
    }

    /// - Returns: whether the stream ended and the state has changed.
    private func inflate(
        _ inflater: Inflater, into output: inout [UInt8], _ written: inout Int
    ) throws(ContentDecodingFailure) -> Bool {
        var taken = self.consumed
        defer { self.consumed = taken }
        do throws(InflateFailure) {
            let input = self.input
            var elements = output.mutableSpan
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

/// Why content could not be decoded.
package enum ContentDecodingFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The bytes are invalid; the reason is for a log.
    case corrupt(reason: String)
    /// The content ended before the end of its coding.
    case truncated
    case outOfMemory

    init(_ failure: InflateFailure) {
        switch failure {
        case .corrupt(let reason): self = .corrupt(reason: reason)
        case .dictionaryRequired: self = .corrupt(reason: "preset dictionary required")
        case .outOfMemory: self = .outOfMemory
        }
    }

    init(_ failure: CodingFailure) {
        switch failure {
        case .corrupt(let reason): self = .corrupt(reason: reason)
        case .outOfMemory: self = .outOfMemory
        }
    }

    /// `cannotDecodeRawData` is for known codings; `cannotDecodeContentData` is for unknown ones.
    package var code: URLError.Code { .cannotDecodeRawData }

    package var description: String {
        switch self {
        case .corrupt(let reason): "the encoded content is corrupt: \(reason)"
        case .truncated: "the encoded content is truncated"
        case .outOfMemory: "out of memory while decoding the content"
        }
    }
}
