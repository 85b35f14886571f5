/// The body of a chunked response, behind a head that is good.
enum ChunkedBodiesCheck {
    private static let head = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)

    static func run(_ bytes: [UInt8]) throws(FuzzFault) {
        let whole = try ResponseFeed([self.head + bytes])
        for split in [InputSplit.whole(bytes)] + InputSplit.cuts(of: bytes) {
            let found = try ResponseFeed([self.head] + split.pieces(of: bytes))
            try FuzzFault.expect(
                found.end == whole.end, "\(split): \(found.end as Any), but whole: \(whole.end as Any)")
            // Of a body that is refused, more or less comes out before that is seen.
            let isPrefix = found.content.starts(with: whole.content) || whole.content.starts(with: found.content)
            let isSame = found.content.count == whole.content.count || whole.end == .refused
            try FuzzFault.expect(isPrefix && isSame, "\(split): \(found.content), but whole: \(whole.content)")
        }
        try self.compare(whole, ChunkedTwin.read(bytes))
    }

    /// What is taken for whole is so to the letter: two readers that disagree over the end of a body are how requests are
    /// smuggled (RFC 9112 §11.2).
    private static func compare(_ found: ResponseFeed, _ twin: ChunkedTwin.Body?) throws(FuzzFault) {
        if case .finished = found.end {
            try FuzzFault.expect(twin?.content == found.content, "\(found.content), but to the letter \(twin as Any)")
        } else {
            try FuzzFault.expect(twin?.isPlain != true, "\(found.end as Any), though to the letter it is whole")
        }
    }
}
