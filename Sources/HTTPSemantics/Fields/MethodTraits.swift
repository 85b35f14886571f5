import HTTPTypes

/// What a method promises (RFC 9110 §9.2). Of a method unknown here the worst is thought.
package enum MethodTraits {
    /// It asks and changes nothing.
    package static func isSafe(_ method: HTTPRequest.Method) -> Bool {
        [.get, .head, .options, .trace].contains(method)
    }

    /// Twice does what once does: the request may be sent again when its connection broke and no answer came.
    package static func isIdempotent(_ method: HTTPRequest.Method) -> Bool {
        self.isSafe(method) || [.put, .delete].contains(method)
    }
}
