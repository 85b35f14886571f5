import ByteKernels
import NIOCore

/// The parts of a head that a `HeadScanner` has held to the letter: every line has its name, its colon, and its end.
struct HeaderLines {
    private let bytes: ByteBuffer

    /// - Parameter bytes: a whole head, or whole trailers, with the empty line.
    init(_ bytes: ByteBuffer) {
        self.bytes = bytes
    }

    /// - Parameter limit: most fields.
    func head(limit: Int) throws(ResponseViolation) -> ResponseHead {
        let span = self.bytes.readableBytesSpan
        guard span.byteCount > 12 else { throw .statusLine }
        let status = (9..<12).reduce(0) { $0 * 10 + Int(span[byte: $1] &- 0x30) }
        let fields = try self.fields(from: self.lineEnd(from: 12) + 2, limit: limit)
        return ResponseHead(status: status, minorVersion: Int(span[byte: 7] &- 0x30), fields: fields)
    }

    /// The fields of the lines from `start` on.
    func fields(from start: Int = 0, limit: Int) throws(ResponseViolation) -> [HeaderField] {
        var fields: [HeaderField] = []
        fields.reserveCapacity(min(limit, 16))
        var line = start
        while true {
            let end = self.lineEnd(from: line)
            guard end > line else { return fields }
            guard fields.count < limit else { throw .headTooLarge }
            fields.append(self.field(line, end))
            line = end + 2
        }
    }

    private func field(_ line: Int, _ end: Int) -> HeaderField {
        let span = self.bytes.readableBytesSpan
        var colon = line
        while colon < end, span[byte: colon] != 0x3A { colon += 1 }
        var (start, stop) = (min(colon + 1, end), end)
        while start < stop, Self.isBlank(span[byte: start]) { start += 1 }
        while start < stop, Self.isBlank(span[byte: stop - 1]) { stop -= 1 }
        return HeaderField(self.text(line, colon), self.text(start, stop))
    }

    /// Where the carriage return of the line stands that begins at `start`.
    private func lineEnd(from start: Int) -> Int {
        let span = self.bytes.readableBytesSpan
        var index = start
        while index < span.byteCount, span[byte: index] != 0x0D { index += 1 }
        return index
    }

    private func text(_ start: Int, _ end: Int) -> String {
        self.bytes.getString(at: self.bytes.readerIndex + start, length: end - start) ?? ""
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
