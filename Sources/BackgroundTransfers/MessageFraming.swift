import ByteKernels
import Foundation

/// Messages on a socket: four bytes of length, the most significant first, then so many bytes of JSON.
package enum MessageFraming {
    /// Largest message in bytes, without its length.
    package static let limit = 4 << 20
    package static let prefixSize = 4

    /// - Throws: `.tooLong` above the limit; `.malformed` for what JSON cannot express, such as NaN.
    package static func encode(_ message: some Encodable) throws(FramingFailure) -> [UInt8] {
        guard let body = try? JSONEncoder().encode(message) else { throw .malformed }
        guard body.count <= self.limit else { throw .tooLong(body.count) }
        var frame: [UInt8] = []
        frame.reserveCapacity(self.prefixSize + body.count)
        for shift in [24, 16, 8, 0] { frame.append(UInt8(truncatingIfNeeded: body.count >> shift)) }
        frame.append(contentsOf: body)
        return frame
    }
}

/// Why bytes are no message.
package enum FramingFailure: Error, Hashable, Sendable {
    /// In bytes.
    case tooLong(Int)
    case malformed
}

/// Takes messages of one type off a stream of bytes. After a failure the stream cannot be read any further.
package struct MessageReader<Message: Decodable> {
    private var buffer: [UInt8] = []
    /// Bytes of the buffer that were taken.
    private var taken = 0
    private var failure: FramingFailure?

    package init() {}

    /// Bytes that no message was made of yet: less than one message and the bytes of one read.
    package var bufferedCount: Int { self.buffer.count - self.taken }

    package mutating func bytesReceived(_ bytes: RawSpan) {
        guard self.failure == nil else { return }
        if self.taken > 0 {
            self.buffer.removeFirst(self.taken)
            self.taken = 0
        }
        self.buffer.append(bytes)
    }

    /// - Returns: `nil` until the next message is complete.
    package mutating func nextMessage() throws(FramingFailure) -> Message? {
        if let failure { throw failure }
        guard self.bufferedCount >= MessageFraming.prefixSize else { return nil }
        let start = self.taken + MessageFraming.prefixSize
        let length = self.buffer[self.taken..<start].reduce(0) { $0 << 8 | Int($1) }
        guard length <= MessageFraming.limit else { throw self.fail(.tooLong(length)) }
        guard self.buffer.count - start >= length else { return nil }
        let body = Data(self.buffer[start..<(start + length)])
        self.taken = start + length
        guard let message = try? JSONDecoder().decode(Message.self, from: body) else { throw self.fail(.malformed) }
        return message
    }

    private mutating func fail(_ failure: FramingFailure) -> FramingFailure {
        self.failure = failure
        self.buffer = []
        self.taken = 0
        return failure
    }
}
