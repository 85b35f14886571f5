import ByteKernels
import WireText

/// Reads the responses of one connection from its bytes. Heads are parsed strictly; the framing of the content comes from
/// the caller, who knows the request.
///
/// Bytes after a 101 are not HTTP and are left to the caller.
package struct ResponseReader {
    package enum Event {
        /// Any head. After a final one call `begin(_:)`, unless it has no content.
        case head(ResponseHead)
        /// The range of `bytes` that is content.
        case content(Range<Int>)
        /// The response is complete. The trailers are those of chunked content.
        case end(trailers: [FieldLine])
    }

    private enum Mode {
        /// No request was sent: received bytes are a violation.
        case idle
        case head
        case length(left: Int64)
        case chunks(ChunkReader)
        case trailers
        case untilClose
        /// The response has ended, which is still to be reported.
        case ending([FieldLine])
        case complete
        /// After a 101.
        case switched
        /// Received bytes are discarded.
        case stopped
    }

    private let limits: MessageLimits
    private var mode = Mode.idle
    // Large values, which would be copied as payloads of the mode.
    private var headParser: ResponseParser
    private var trailerParser: TrailerParser
    /// Bytes of the current response.
    package private(set) var headBytes: Int64 = 0
    package private(set) var bodyBytes: Int64 = 0
    /// Whether bytes followed the end of the response.
    private var hasExcessBytes = false
    /// Bytes of line breaks before the status line, which some servers send behind the content before it.
    private var skippedBytes = 0
    /// Two line breaks.
    private static let skippedLimit = 4

    package init(limits: MessageLimits) {
        self.limits = limits
        self.headParser = ResponseParser(limits: limits.ofHead)
        self.trailerParser = TrailerParser(limits: limits.ofHead)
    }

    /// Call before a request is sent.
    package mutating func beginResponse() {
        self.mode = .head
        self.headBytes = 0
        self.bodyBytes = 0
        self.hasExcessBytes = false
        self.skippedBytes = 0
    }

    /// Whether bytes that follow a complete response are left to the next one.
    package var leavesExcess = false

    /// - Returns: whether the response is complete and no byte followed it, so that the connection can be reused.
    package mutating func endResponse() -> Bool {
        guard case .complete = self.mode else { return false }
        self.mode = .idle
        return !self.hasExcessBytes
    }

    /// Discards what is received from now on, because the connection is closing.
    package mutating func stop() {
        self.mode = .stopped
    }

    /// The content that follows the final head.
    package mutating func begin(_ framing: ResponseFraming) {
        switch framing {
        case .none, .length(0): self.mode = .ending([])
        case .length(let length): self.mode = .length(left: length)
        case .chunked: self.mode = .chunks(ChunkReader(limit: self.limits.framingBytes))
        case .untilClose: self.mode = .untilClose
        }
    }

    /// The server finished sending.
    /// - Returns: whether this completes the response.
    package mutating func inputEnded() -> Bool {
        guard case .untilClose = self.mode else { return false }
        self.mode = .complete
        return true
    }

    /// Reads `bytes` from `offset` on, up to the next event.
    /// - Returns: `nil` when nothing more can be read from them: they are used up, or follow a 101.
    package mutating func next(_ bytes: RawSpan, at offset: inout Int) throws(ResponseViolation) -> Event? {
        while true {
            if case .ending(let trailers) = self.mode {
                self.mode = .complete
                return .end(trailers: trailers)
            }
            guard offset < bytes.byteCount else { return nil }
            switch self.mode {
            case .idle: throw .unsolicited
            case .head where self.skips(bytes[byte: offset]): offset += 1
            case .head:
                if let head = try self.readHead(bytes, at: &offset) { return .head(head) }
            case .length(let left): return self.readContent(bytes.byteCount, at: &offset, left)
            case .untilClose: return self.readContent(bytes.byteCount, at: &offset, .max)
            case .chunks(let reader):
                if let content = try self.readChunk(bytes, at: &offset, reader) { return content }
            case .trailers: try self.readTrailers(bytes, at: &offset)
            case .complete:
                if self.leavesExcess { return nil }
                self.hasExcessBytes = true
                offset = bytes.byteCount
            case .stopped: offset = bytes.byteCount
            case .ending, .switched: return nil
            }
        }
    }

    private mutating func skips(_ byte: UInt8) -> Bool {
        guard self.headBytes == 0, self.skippedBytes < Self.skippedLimit, byte == 0x0D || byte == 0x0A else {
            return false
        }
        self.skippedBytes += 1
        return true
    }

    private mutating func readHead(
        _ bytes: RawSpan, at offset: inout Int
    ) throws(ResponseViolation) -> ResponseHead? {
        var consumed = 0
        let head: ResponseHead?
        do throws(HeadViolation) {
            head = try self.headParser.parse(bytes.extracting(offset..<bytes.byteCount), consumed: &consumed)
        } catch {
            self.mode = .stopped
            throw self.violation(error)
        }
        self.headBytes += Int64(consumed)
        offset += consumed
        guard let head else { return nil }
        if head.status == 101 { self.mode = .switched }
        // A later minor version is answered like 1.1 (RFC 9110 §2.5).
        guard head.version.major == 1 else { throw .statusLine(.malformedStartLine) }
        return head
    }

    /// Distinguishes a server of another protocol, or of HTTP/0.9, from one that sends a malformed HTTP/1.1 head.
    private func violation(_ violation: HeadViolation) -> ResponseViolation {
        switch violation {
        case .tooLong, .tooManyFields: .head(violation)
        case .malformedStartLine, .foldedField, .whitespaceBeforeColon, .malformedFieldName, .bareCarriageReturn,
            .bareLineFeed, .controlCharacter:
            self.headParser.hasStatusLine ? .head(violation) : .statusLine(violation)
        }
    }

    private mutating func readContent(_ end: Int, at offset: inout Int, _ left: Int64) -> Event {
        let count = Int(min(left, Int64(end - offset)))
        let range = offset..<(offset + count)
        offset += count
        self.bodyBytes += Int64(count)
        if left != .max { self.mode = left == Int64(count) ? .ending([]) : .length(left: left - Int64(count)) }
        return .content(range)
    }

    private mutating func readChunk(
        _ bytes: RawSpan, at offset: inout Int, _ reader: ChunkReader
    ) throws(ResponseViolation) -> Event? {
        var reader = reader
        let start = offset
        defer { self.bodyBytes += Int64(offset - start) }
        let step: ChunkReader.Step
        do throws(ChunkViolation) {
            step = try reader.next(bytes, from: offset)
        } catch {
            throw ResponseViolation(error)
        }
        self.mode = .chunks(reader)
        switch step {
        case .more: offset = bytes.byteCount
        case .trailers(let end):
            offset = end
            self.trailerParser = TrailerParser(limits: self.limits.ofHead, isTolerant: true)
            self.mode = .trailers
        case .content(let range):
            offset = range.upperBound
            return .content(range)
        }
        return nil
    }

    private mutating func readTrailers(_ bytes: RawSpan, at offset: inout Int) throws(ResponseViolation) {
        var consumed = 0
        let trailers: FieldLines?
        do throws(HeadViolation) {
            trailers = try self.trailerParser.parse(bytes.extracting(offset..<bytes.byteCount), consumed: &consumed)
        } catch {
            self.mode = .stopped
            throw .head(error)
        }
        self.bodyBytes += Int64(consumed)
        offset += consumed
        if let trailers { self.mode = .ending(trailers.all) }
    }
}
