/// Reading `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
public enum ExtensionGrammar {
    /// Reads the values of all header fields of that name as the one list that they are.
    ///
    /// - Returns: the extensions in order of preference; empty elements of the list are skipped (RFC 9110 §5.6.1.2).
    /// - Throws: where the grammar is left, which includes a field that holds no extension at all.
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
            guard let named = self.element(&scanner) else { return nil }
            extensions.append(named)
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

/// One parameter of an extension, as `server_max_window_bits=10`.
public struct ExtensionParameter: Equatable, Sendable {
    /// As it was written; names of parameters are compared exactly.
    public let name: String
    /// `nil` where there is no `=`; a quoted value without its quotes and escapes.
    public let value: String?

    /// - Parameter value: a token, or `nil` for a parameter that needs none.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }
}

/// An extension with its parameters: one element of `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
public struct WebSocketExtension: Equatable, Sendable {
    /// The registered name, such as `permessage-deflate`.
    public let name: String
    /// In the order written, repetitions included.
    public let parameters: [ExtensionParameter]

    public init(_ name: String, _ parameters: [ExtensionParameter] = []) {
        self.name = name
        self.parameters = parameters
    }

    /// The element as it goes into the header field.
    public var rendered: String {
        self.parameters.reduce(into: self.name) { text, parameter in
            text += "; " + parameter.name
            if let value = parameter.value { text += "=" + value }
        }
    }
}

/// `Sec-WebSocket-Extensions` does not follow the grammar of RFC 6455 §9.1.
public struct ExtensionSyntaxViolation: Error, Equatable, Sendable {
    /// The value of the header field at fault.
    public let value: String
    /// Where the grammar was left, in bytes from the start of `value`.
    public let offset: Int

    public init(value: String, offset: Int) {
        self.value = value
        self.offset = offset
    }
}
