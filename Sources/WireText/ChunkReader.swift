import ByteKernels

/// A strict, incremental parser of chunked content (RFC 9112 §7.1): sizes, extensions, content. Trailers are left to
/// `TrailerParser`.
///
/// It buffers nothing, and bounds the number of framing bytes between two pieces of content.
package struct ChunkReader {
    package enum Step: Equatable {
        /// The range of `bytes` that is content.
        case content(Range<Int>)
        /// The trailers begin at this offset: field lines up to the empty line.
        case trailers(from: Int)
        /// All bytes were consumed, and the body is not complete.
        case more
    }

    private enum State {
        case size(digits: Int)
        /// After whitespace that followed the size: only an extension may follow.
        case extensionStart
        case extensionText
        /// After the CR of the size line.
        case sizeEnd
        case content
        case contentReturn
        case contentEnd
        case trailers
    }

    private let limit: Int
    private let extensionLimit: Int
    private let digitLimit: Int
    private var state = State.size(digits: 0)
    /// Remaining bytes of the current chunk.
    private var chunkSize: Int64 = 0
    /// Content that further chunks may have, in bytes.
    private var contentLeft: Int64
    /// Bytes since the last byte of content.
    private var framingBytes = 0
    /// Of all chunks.
    private var extensionBytes = 0

    /// - Parameters:
    ///   - limit: most consecutive bytes that are not content.
    ///   - extensionLimit: most bytes of the extensions of all chunks.
    ///   - digitLimit: most digits of a size, zeros before it included.
    ///   - contentLimit: most bytes of content; a chunk that exceeds it is refused by its size.
    package init(
        limit: Int, extensionLimit: Int = .max, digitLimit: Int = .max, contentLimit: Int64 = .max
    ) {
        self.limit = limit
        self.extensionLimit = extensionLimit
        self.digitLimit = digitLimit
        self.contentLeft = contentLimit
    }

    /// Reads `bytes` from `offset` on, up to content or to the trailers.
    package mutating func next(_ bytes: RawSpan, from offset: Int) throws(ChunkViolation) -> Step {
        var index = offset
        while index < bytes.byteCount {
            switch self.state {
            case .content: return self.consumeContent(index, bytes.byteCount)
            case .trailers: return .trailers(from: index)
            default: try self.consume(bytes[byte: index])
            }
            index += 1
        }
        return .more
    }

    private mutating func consumeContent(_ start: Int, _ end: Int) -> Step {
        let count = Int(min(self.chunkSize, Int64(end - start)))
        self.chunkSize -= Int64(count)
        self.framingBytes = 0
        if self.chunkSize == 0 { self.state = .contentReturn }
        return .content(start..<(start + count))
    }

    private mutating func consume(_ byte: UInt8) throws(ChunkViolation) {
        self.framingBytes += 1
        guard self.framingBytes <= self.limit else { throw .framingWithoutContent }
        switch self.state {
        case .size(let digits): try self.consumeSize(byte, digits)
        case .extensionStart:
            guard byte == 0x3B || byte == 0x20 || byte == 0x09 else { throw .chunk }
            if byte == 0x3B { self.state = .extensionText }
            try self.countExtensionByte()
        case .extensionText: try self.consumeExtension(byte)
        case .sizeEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            self.contentLeft -= self.chunkSize
            self.state = self.chunkSize == 0 ? .trailers : .content
        case .contentReturn:
            guard byte == 0x0D else { throw .chunk }
            self.state = .contentEnd
        case .contentEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            self.state = .size(digits: 0)
            self.chunkSize = 0
        case .content, .trailers: break
        }
    }

    private mutating func consumeSize(_ byte: UInt8, _ digits: Int) throws(ChunkViolation) {
        if let value = byte.hexadecimalValue {
            guard self.chunkSize <= Int64.max >> 4, digits < self.digitLimit else { throw .chunk }
            self.chunkSize = self.chunkSize << 4 | Int64(value)
            return self.state = .size(digits: digits + 1)
        }
        guard digits > 0 else { throw .chunk }
        guard self.chunkSize <= self.contentLeft else { throw .contentTooLong }
        switch byte {
        case 0x0D: self.state = .sizeEnd
        case 0x3B: self.state = .extensionText
        case 0x20, 0x09: self.state = .extensionStart
        case 0x0A: throw .bareLineBreak
        default: throw .chunk
        }
    }

    private mutating func consumeExtension(_ byte: UInt8) throws(ChunkViolation) {
        try self.countExtensionByte()
        switch byte {
        case 0x0D: self.state = .sizeEnd
        case 0x0A: throw .bareLineBreak
        case 0x20..., 0x09:
            guard byte != 0x7F else { throw .chunk }
        default: throw .chunk
        }
    }

    private mutating func countExtensionByte() throws(ChunkViolation) {
        self.extensionBytes += 1
        guard self.extensionBytes <= self.extensionLimit else { throw .chunk }
    }

    /// What precedes the content of a chunk.
    package static func header(_ count: Int) -> [UInt8] { Array("\(String(count, radix: 16))\r\n".utf8) }
}

/// Why chunked content cannot be read.
package enum ChunkViolation: Error, Sendable, Hashable {
    /// A malformed size, a missing line end, or a longer size or extensions than the limit.
    case chunk
    /// A CR without LF, or an LF without CR.
    case bareLineBreak
    /// More consecutive bytes of framing than the limit.
    case framingWithoutContent
    /// A chunk with more content than the limit leaves.
    case contentTooLong
}
