import NIOCore

extension RequestHead {
    /// Writes the head as it goes on the wire (RFC 9112 §3). The plan has seen to it that no part of it holds a line
    /// break.
    func write(to buffer: inout ByteBuffer) {
        buffer.writeString(self.method)
        buffer.writeStaticString(" ")
        buffer.writeString(self.target)
        buffer.writeStaticString(" HTTP/1.1\r\n")
        for field in self.fields {
            buffer.writeString(field.name)
            buffer.writeStaticString(": ")
            buffer.writeString(field.value)
            buffer.writeStaticString("\r\n")
        }
        buffer.writeStaticString("\r\n")
    }
}
