import ByteKernels
import Foundation
import URLLoading

/// The first byte of the input gives the codings, the rest is the content.
enum ContentCodingsCheck {
    private static let codings = [
        "gzip", "deflate", "gzip, deflate", "deflate, gzip", "gzip, gzip, gzip", "br", "zstd", "br, gzip",
    ]
    /// Bytes of output that are looked at.
    private static let limit = 1 << 18

    private enum End: Equatable {
        case whole
        case truncated
        case corrupt
        case limitReached
    }

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let choice = bytes.first else { return }
        let content = Array(bytes[1...])
        let contentEncoding = self.codings[Int(choice) % self.codings.count]
        let whole = try self.decode(InputSplit.whole(content).pieces(of: content), contentEncoding)
        for split in InputSplit.cuts(of: content) {
            let found = try self.decode(split.pieces(of: content), contentEncoding)
            // Of a content that is corrupt, more or less comes out before that is seen.
            let isPrefix = found.output.starts(with: whole.output) || whole.output.starts(with: found.output)
            try InvariantViolation.expect(isPrefix, "\(split): other bytes than whole")
            let isSame = found.end == whole.end && found.output.count == whole.output.count
            let sawFault = [found.end, whole.end].contains(.corrupt)
            try InvariantViolation.expect(isSame || sawFault, "\(split): \(found.end), but whole: \(whole.end)")
        }
    }

    private static func decode(
        _ pieces: [[UInt8]], _ contentEncoding: String
    ) throws(InvariantViolation) -> (output: [UInt8], end: End) {
        guard let decoder = ContentDecoder(contentEncoding: contentEncoding) else {
            throw InvariantViolation("no decoder for \(contentEncoding)")
        }
        var output: [UInt8] = []
        do throws(ContentDecodingFailure) {
            for piece in pieces {
                decoder.feed(piece.span.bytes)
                while let decoded = try decoder.next() {
                    output += decoded
                    guard output.count < self.limit else { return (Array(output.prefix(self.limit)), .limitReached) }
                }
            }
            try decoder.finish()
            return (output, .whole)
        } catch {
            return (output, error == .truncated ? .truncated : .corrupt)
        }
    }
}
