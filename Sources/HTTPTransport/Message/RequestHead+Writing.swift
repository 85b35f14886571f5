import NIOCore

extension RequestHead {
    /// Writes the head as it goes on the wire (RFC 9112 §3). The plan has seen to it that no part of it holds a line
    /// break.
    func write(to buffer: inout ByteBuffer) {
        let lineEnd: UInt16 = 0x0D0A
        buffer.writeString(self.method)
        buffer.writeInteger(UInt8(ascii: " "))
        buffer.writeString(self.target)
        buffer.writeStaticString(" HTTP/1.1\r\n")
        for field in self.fields {
            buffer.writeString(field.name)
            // A colon and a blank.
            buffer.writeInteger(UInt16(0x3A20))
            buffer.writeString(field.value)
            buffer.writeInteger(lineEnd)
        }
        buffer.writeInteger(lineEnd)
    }
}
