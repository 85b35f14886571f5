/// The grammar of `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
public enum ExtensionGrammar {
    /// Parses the values of all fields of that name as one list.
    ///
    /// - Returns: the extensions in order of preference; empty list elements are skipped (RFC 9110 §5.6.1.2).
    /// - Throws: for a malformed value, and for a value without any extension.
    public static func parse(_ values: [String]) throws(ExtensionSyntaxViolation) -> [WebSocketExtension] {
        var extensions: [WebSocketExtension] = []
        for value in values {
            var scanner = FieldValueScanner(value)
            guard let found = self.list(&scanner), !found.isEmpty else {
                throw ExtensionSyntaxViolation(value: value, offset: scanner.offset)
            }
            extensions += found
        }
        return extensions
    }

    /// extension-list = 1#extension
    private static func list(_ scanner: inout FieldValueScanner) -> [WebSocketExtension]? {
        var extensions: [WebSocketExtension] = []
        while true {
            scanner.skipWhitespace()
            if scanner.isAtEnd { return extensions }
            if scanner.skip(",") { continue }
            guard let element = self.element(&scanner) else { return nil }
            extensions.append(element)
            guard scanner.isAtEnd || scanner.skip(",") else { return nil }
        }
    }

    /// extension = extension-token *( ";" extension-param )
    private static func element(_ scanner: inout FieldValueScanner) -> WebSocketExtension? {
        guard let name = scanner.token() else { return nil }
        var parameters: [ExtensionParameter] = []
        scanner.skipWhitespace()
        while scanner.skip(";") {
            scanner.skipWhitespace()
            guard let parameter = self.parameter(&scanner) else { return nil }
            parameters.append(parameter)
            scanner.skipWhitespace()
        }
        return WebSocketExtension(name, parameters)
    }

    /// extension-param = token [ "=" (token | quoted-string) ]
    private static func parameter(_ scanner: inout FieldValueScanner) -> ExtensionParameter? {
        guard let name = scanner.token() else { return nil }
        scanner.skipWhitespace()
        guard scanner.skip("=") else { return ExtensionParameter(name) }
        scanner.skipWhitespace()
        guard let value = scanner.token() ?? scanner.quotedToken() else { return nil }
        return ExtensionParameter(name, value)
    }
}

/// An extension parameter, such as `server_max_window_bits=10`.
public struct ExtensionParameter: Equatable, Sendable {
    /// As received; parameter names are case-sensitive.
    public let name: String
    /// Without quotes and escapes; `nil` without `=`.
    public let value: String?

    /// - Parameter value: a token, or `nil`.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }
}

/// An element of `Sec-WebSocket-Extensions`: an extension with its parameters (RFC 6455 §9.1).
public struct WebSocketExtension: Equatable, Sendable {
    /// The registered name, such as `permessage-deflate`.
    public let name: String
    /// In order, repetitions included.
    public let parameters: [ExtensionParameter]

    public init(_ name: String, _ parameters: [ExtensionParameter] = []) {
        self.name = name
        self.parameters = parameters
    }

    /// The element as text for the header field.
    public var rendered: String {
        self.parameters.reduce(into: self.name) { text, parameter in
            text += "; " + parameter.name
            if let value = parameter.value { text += "=" + value }
        }
    }
}

/// A malformed `Sec-WebSocket-Extensions` field (RFC 6455 §9.1).
public struct ExtensionSyntaxViolation: Error, Equatable, Sendable {
    /// The malformed field value.
    public let value: String
    /// Offset of the syntax error in `value`, in bytes.
    public let offset: Int

    public init(value: String, offset: Int) {
        self.value = value
        self.offset = offset
    }
}
