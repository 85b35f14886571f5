import ByteKernels
import NIOCore

/// What a request says before its body (RFC 9112 §3).
package struct RequestHead: Sendable, Hashable {
    /// A token; case matters.
    package var method: String
    /// As it goes on the request line: the path with its query, percent-encoded.
    package var target: String
    /// In the order in which they are sent. The transport adds Host, Connection, Content-Length or Transfer-Encoding,
    /// and Expect where they are missing and needed.
    package var fields: [HeaderField]

    package init(method: String = "GET", target: String = "/", fields: [HeaderField] = []) {
        self.method = method
        self.target = target
        self.fields = fields
    }

    /// The value of the first field called `name`, which is given in small letters.
    package func first(_ name: String) -> String? {
        self.fields.first { $0.isNamed(name) }?.value
    }

    /// Whether doing it twice does no more than doing it once (RFC 9110 §9.2.2).
    package var isIdempotent: Bool {
        switch self.method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
        default: false
        }
    }

    /// What would let this head say something else than its fields: a line break in a value makes two fields of one.
    /// - Returns: `nil` if it can be sent.
    func validationError() -> RequestError? {
        guard !self.method.isEmpty, self.method.hasOnly(ASCIIText.isToken) else { return .method }
        guard !self.target.isEmpty, self.target.hasOnly({ $0 > 0x20 && $0 != 0x7F }) else { return .target }
        for field in self.fields {
            guard !field.name.isEmpty, field.name.hasOnly(ASCIIText.isToken) else { return .fieldName }
            guard field.value.hasOnly({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return .fieldValue }
        }
        return nil
    }
}

extension String {
    /// Whether all bytes of its UTF-8 are allowed.
    @inline(__always)
    fileprivate func hasOnly(_ isAllowed: (UInt8) -> Bool) -> Bool {
        let bytes = self.utf8
        return bytes.withContiguousStorageIfAvailable { $0.allSatisfy(isAllowed) } ?? bytes.allSatisfy(isAllowed)
    }
}

extension RequestHead {
    /// The head as it goes on the wire (RFC 9112 §3). The plan has seen to it that no part of it holds a line break.
    var bytes: ByteBuffer {
        let line = self.method.utf8.count + self.target.utf8.count + " ".utf8.count + " HTTP/1.1\r\n".utf8.count
        let fields = self.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + ": \r\n".utf8.count }
        var buffer = ByteBuffer(repeating: 0, count: line + fields + "\r\n".utf8.count)
        var bytes = buffer.mutableReadableBytesSpan
        var offset = 0
        Self.write(self.method, at: &offset, in: &bytes)
        Self.write(" ", at: &offset, in: &bytes)
        Self.write(self.target, at: &offset, in: &bytes)
        Self.write(" HTTP/1.1\r\n", at: &offset, in: &bytes)
        for field in self.fields {
            Self.write(field.name, at: &offset, in: &bytes)
            Self.write(": ", at: &offset, in: &bytes)
            Self.write(field.value, at: &offset, in: &bytes)
            Self.write("\r\n", at: &offset, in: &bytes)
        }
        Self.write("\r\n", at: &offset, in: &bytes)
        return buffer
    }

    private static func write(_ text: String, at offset: inout Int, in bytes: inout MutableRawSpan) {
        bytes.copy(text.utf8.span.bytes, at: offset)
        offset += text.utf8.count
    }
}

/// Why a request cannot be sent: the caller's fault.
package enum RequestError: Error, Sendable, Hashable {
    /// Not a token.
    case method
    /// Empty, or with a blank or control character in it.
    case target
    case fieldName
    /// A control character, as a line break is, in a value.
    case fieldValue
    /// The fields say something else about the body's length than the body does.
    case bodyLength
    /// A port of 0, an empty host, or `https` without `ExchangeRequest.secure`.
    case origin
}
