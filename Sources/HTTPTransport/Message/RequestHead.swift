import WireText

extension RequestHead {
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
        // Through a view, which copies no field.
        let fields = self.fields.all.span
        for index in fields.indices {
            guard !fields[index].name.isEmpty, fields[index].name.hasOnly(\.isTokenCharacter) else { return .fieldName }
            guard fields[index].value.hasOnly({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return .fieldValue }
        }
        return nil
    }

    /// The serialized head (RFC 9112 §3). `validationError` has ruled out line breaks in its parts.
    var bytes: [UInt8] {
        var head = HeadWriter(method: self.method, target: self.target, capacity: 512)
        let fields = self.fields.all.span
        for index in fields.indices { head.add(fields[index]) }
        return head.finished()
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
    /// Larger than HTTP/2 can send.
    case headTooLarge
    /// The fields contradict the length of the body.
    case bodyLength
    /// A port of 0, an empty host, or `https` without `ExchangeRequest.secure`.
    case origin
}
