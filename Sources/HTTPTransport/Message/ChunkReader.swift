import ByteKernels

/// Reads the chunks of a body, to the letter (RFC 9112 §7.1): sizes, their extensions, the content between, and the
/// trailers at the end.
///
/// Nothing is kept but where it stands. What may come between two pieces of content is bounded, and so are the trailers.
package struct ChunkReader {
    package enum Step: Equatable {
        /// The bytes of `bytes` that are content, as far as they have come.
        case content(Range<Int>)
        /// A byte of the trailers: lines as those of a head, up to the empty line.
        case trailers(from: Int)
        /// All has been read, and more is to come.
        case more
    }

    private enum Place {
        case size(digits: Int)
        /// Behind blanks that followed the size: only an extension may come.
        case extensionStart
        case extensionText
        /// Behind the carriage return of the size's line.
        case sizeEnd
        case content
        case contentReturn
        case contentEnd
        case trailers
    }

    private let limit: Int
    private var place = Place.size(digits: 0)
    /// Of the chunk: its size, or what is left of it.
    private var size: Int64 = 0
    /// Bytes since the last that were content.
    private var framing = 0

    /// - Parameter limit: most bytes in a row that are no content.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Reads `bytes` from `offset` on, up to content or to the trailers.
    package mutating func next(_ bytes: RawSpan, from offset: Int) throws(ResponseViolation) -> Step {
        var index = offset
        while index < bytes.byteCount {
            switch self.place {
            case .content: return self.takeContent(index, bytes.byteCount)
            case .trailers: return .trailers(from: index)
            default: try self.take(bytes[byte: index])
            }
            index += 1
        }
        return .more
    }

    private mutating func takeContent(_ start: Int, _ end: Int) -> Step {
        let count = Int(min(self.size, Int64(end - start)))
        self.size -= Int64(count)
        self.framing = 0
        if self.size == 0 { self.place = .contentReturn }
        return .content(start..<(start + count))
    }

    private mutating func take(_ byte: UInt8) throws(ResponseViolation) {
        self.framing += 1
        guard self.framing <= self.limit else { throw .framingWithoutContent }
        switch self.place {
        case .size(let digits): try self.takeSize(byte, digits)
        case .extensionStart:
            guard byte == 0x3B || byte == 0x20 || byte == 0x09 else { throw .chunk }
            if byte == 0x3B { self.place = .extensionText }
        case .extensionText: try self.takeExtension(byte)
        case .sizeEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            self.place = self.size == 0 ? .trailers : .content
        case .contentReturn:
            guard byte == 0x0D else { throw .chunk }
            self.place = .contentEnd
        case .contentEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            self.place = .size(digits: 0)
            self.size = 0
        case .content, .trailers: break
        }
    }

    private mutating func takeSize(_ byte: UInt8, _ digits: Int) throws(ResponseViolation) {
        if let value = Self.value(byte) {
            guard self.size <= Int64.max >> 4 else { throw .chunk }
            self.size = self.size << 4 | value
            return self.place = .size(digits: 1)
        }
        guard digits > 0 else { throw .chunk }
        switch byte {
        case 0x0D: self.place = .sizeEnd
        case 0x3B: self.place = .extensionText
        case 0x20, 0x09: self.place = .extensionStart
        case 0x0A: throw .bareLineBreak
        default: throw .chunk
        }
    }

    private mutating func takeExtension(_ byte: UInt8) throws(ResponseViolation) {
        switch byte {
        case 0x0D: self.place = .sizeEnd
        case 0x0A: throw .bareLineBreak
        case 0x20..., 0x09:
            guard byte != 0x7F else { throw .chunk }
        default: throw .chunk
        }
    }

    /// Of a hexadecimal digit.
    private static func value(_ byte: UInt8) -> Int64? {
        switch byte {
        case 0x30...0x39: Int64(byte) - 0x30
        case 0x41...0x46, 0x61...0x66: Int64(byte | 0x20) - 0x57
        default: nil
        }
    }
}
