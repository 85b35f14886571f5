/// Reading `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
public enum ExtensionGrammar {
    /// Reads the values of all header fields of that name as the one list that they are.
    ///
    /// - Returns: the extensions in order of preference; empty elements of the list are skipped (RFC 9110 §5.6.1.2).
    /// - Throws: where the grammar is left, which includes a field that holds no extension at all.
    public static func parse(_ values: [String]) throws(ExtensionSyntaxViolation) -> [NamedExtension] {
        var extensions: [NamedExtension] = []
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
    private static func list(_ scanner: inout FieldValueScanner) -> [NamedExtension]? {
        var extensions: [NamedExtension] = []
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
    private static func element(_ scanner: inout FieldValueScanner) -> NamedExtension? {
        guard let name = scanner.token() else { return nil }
        var parameters: [ExtensionParameter] = []
        scanner.skipWhitespace()
        while scanner.skip(";") {
            scanner.skipWhitespace()
            guard let parameter = self.parameter(&scanner) else { return nil }
            parameters.append(parameter)
            scanner.skipWhitespace()
        }
        return NamedExtension(name, parameters)
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
