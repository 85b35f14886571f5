/// The body of a chunked response, after a valid head.
enum ChunkedBodiesCheck {
    private static let head = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let whole = try ResponseFeed([self.head + bytes])
        for split in [InputSplit.whole(bytes)] + InputSplit.cuts(of: bytes) {
            let found = try ResponseFeed([self.head] + split.pieces(of: bytes))
            try InvariantViolation.expect(
                found.end == whole.end, "\(split): \(found.end as Any), but whole: \(whole.end as Any)")
            // Of a body that is refused, more or less comes out before that is seen.
            let isPrefix = found.content.starts(with: whole.content) || whole.content.starts(with: found.content)
            let isSame = found.content.count == whole.content.count || whole.end == .refused
            try InvariantViolation.expect(isPrefix && isSame, "\(split): \(found.content), but whole: \(whole.content)")
        }
        try self.compare(whole, ChunkedTwin.read(bytes))
    }

    /// A body that is read as complete is exactly so: two parsers that disagree about the end of a body permit request
    /// smuggling (RFC 9112 §11.2).
    private static func compare(_ found: ResponseFeed, _ twin: ChunkedTwin.Body?) throws(InvariantViolation) {
        if case .finished = found.end {
            try InvariantViolation.expect(
                twin?.content == found.content, "\(found.content), but to the letter \(twin as Any)")
        } else {
            try InvariantViolation.expect(
                twin?.isPlain != true, "\(found.end as Any), though to the letter it is whole")
        }
    }
}
