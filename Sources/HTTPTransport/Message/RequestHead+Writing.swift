import ByteKernels
import NIOCore

extension RequestHead {
    /// The head as it goes on the wire (RFC 9112 §3). The plan has seen to it that no part of it holds a line break.
    var bytes: ByteBuffer {
        let line = self.method.utf8.count + self.target.utf8.count + " ".utf8.count + " HTTP/1.1\r\n".utf8.count
        let fields = self.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + ": \r\n".utf8.count }
        var buffer = ByteBuffer(repeating: 0, count: line + fields + "\r\n".utf8.count)
        var room = buffer.mutableReadableBytesSpan
        var offset = 0
        Self.put(self.method, at: &offset, in: &room)
        Self.put(" ", at: &offset, in: &room)
        Self.put(self.target, at: &offset, in: &room)
        Self.put(" HTTP/1.1\r\n", at: &offset, in: &room)
        for field in self.fields {
            Self.put(field.name, at: &offset, in: &room)
            Self.put(": ", at: &offset, in: &room)
            Self.put(field.value, at: &offset, in: &room)
            Self.put("\r\n", at: &offset, in: &room)
        }
        Self.put("\r\n", at: &offset, in: &room)
        return buffer
    }

    private static func put(_ text: String, at offset: inout Int, in room: inout MutableRawSpan) {
        room.copy(text.utf8.span.bytes, at: offset)
        offset += text.utf8.count
    }
}
