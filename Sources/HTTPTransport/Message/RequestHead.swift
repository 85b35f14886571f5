import ByteKernels
import NIOCore
import WireText

/// The request line and the fields of a request (RFC 9112 §3).
package struct RequestHead: Sendable, Hashable {
    /// A case-sensitive token.
    package var method: String
    /// The path and query, percent-encoded.
    package var target: String
    /// In the order in which they are sent. `RequestPlan` adds Host, Content-Length or Transfer-Encoding, and Expect where
    /// they are missing and needed.
    package var fields: [HeaderField]

    package init(method: String = "GET", target: String = "/", fields: [HeaderField] = []) {
        self.method = method
        self.target = target
        self.fields = fields
    }

    /// The value of the first field of this name, which is in lower case.
    package func first(_ name: String) -> String? {
        self.fields.first { $0.isNamed(name) }?.value
    }

    /// RFC 9110 §9.2.2.
    package var isIdempotent: Bool {
        switch self.method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
        default: false
        }
    }

    /// Prevents injection of fields: a line break in a value would make two fields of one.
    /// - Returns: `nil` if the head can be sent.
    func validationError() -> RequestError? {
        guard !self.method.isEmpty, self.method.hasOnly(\.isTokenCharacter) else { return .method }
        guard !self.target.isEmpty, self.target.hasOnly({ $0 > 0x20 && $0 != 0x7F }) else { return .target }
        for field in self.fields {
            guard !field.name.isEmpty, field.name.hasOnly(\.isTokenCharacter) else { return .fieldName }
            guard field.value.hasOnly({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return .fieldValue }
        }
        return nil
    }

    /// The serialized head (RFC 9112 §3). `validationError` has ruled out line breaks in its parts.
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

extension String {
    /// Whether all bytes of its UTF-8 are allowed.
    @inline(__always)
    fileprivate func hasOnly(_ isAllowed: (UInt8) -> Bool) -> Bool {
        let bytes = self.utf8
        return bytes.withContiguousStorageIfAvailable { $0.allSatisfy(isAllowed) } ?? bytes.allSatisfy(isAllowed)
    }
}

/// Why a request cannot be sent: an error of the caller.
package enum RequestError: Error, Sendable, Hashable {
    /// Not a token.
    case method
    /// Empty, or contains a space or control character.
    case target
    case fieldName
    /// A value contains a control character, such as a line break.
    case fieldValue
    /// The fields contradict the length of the body.
    case bodyLength
    /// A port of 0, an empty host, or `https` without `ExchangeRequest.secure`.
    case origin
}
