import WireText

/// A header field whose name is a token and whose value has no control characters (RFC 9110 §5).
package struct ExtraHeader: Sendable, Equatable {
    /// Bytes of a value.
    package static let valueLimit = 4096

    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Messages that fields are added to.
    enum Message {
        /// An opening handshake towards an upstream.
        case request
        /// A response with a file.
        case file
    }

    /// Fields that the gateway writes in the opening handshake.
    private static let reserved: Set<String> = [
        "host", "upgrade", "connection", "content-length", "transfer-encoding", "te", "trailer", "keep-alive",
        "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol", "sec-websocket-extensions",
        "sec-websocket-accept", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host",
    ]

    /// Fields of a response that concern the connection or its framing (RFC 9110 §7.6.1).
    private static let framing: Set<String> = [
        "connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
    ]

    /// Fields of a response that the gateway makes for each file.
    private static let ofFile: Set<String> = [
        "accept-ranges", "content-encoding", "content-range", "content-type", "date", "etag", "last-modified",
        "location", "vary", "x-content-type-options",
    ]

    /// - Parameters:
    ///   - name: a token; not a field that the gateway writes itself.
    ///   - value: at most 4096 bytes of visible characters, spaces and tabs (RFC 9110 §5.5).
    init(checking name: String, value: String, for message: Message) throws(ValueSyntaxError) {
        guard NameText.isToken(name) else {
            throw ValueSyntaxError(expected: "a header name of letters, digits and !#$%&'*+-.^_`|~")
        }
        try Self.checkMeaning(of: name, in: message)
        guard value.utf8.count <= Self.valueLimit, value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else {
            throw ValueSyntaxError(expected: "a header value of at most 4096 bytes without control characters")
        }
        // Those of requests are checked with the whole opening handshake.
        guard message == .request || FieldLine(name, value).isWellFormed else {
            throw ValueSyntaxError(expected: "a header value without leading and trailing spaces")
        }
        self.init(name: name, value: value)
    }

    private static func checkMeaning(of name: String, in message: Message) throws(ValueSyntaxError) {
        let field = name.lowercased()
        switch message {
        case .request:
            guard Self.reserved.contains(field) else { return }
            throw ValueSyntaxError(
                expected: "a header that the gateway does not write itself", remedy: "leave out \(name)")
        case .file:
            if field == "cache-control" {
                throw ValueSyntaxError(
                    expected: "a header without a key of its own", remedy: "set cache-control beside headers")
            }
            if Self.framing.contains(field) {
                throw ValueSyntaxError(
                    expected: "a header about the file, not about the connection or the length of the response",
                    remedy: "leave out \(name)")
            }
            if Self.ofFile.contains(field) {
                throw ValueSyntaxError(
                    expected: "a header that the gateway does not make for each file", remedy: "leave out \(name)")
            }
        }
    }

    /// A mapping of names to values, or a list of `Name: value`.
    static let form = ConfigurationSchema.Form.either([
        .map(.value(ValueSyntax<String>.text)), .list(.value(ValueSyntax.headerLine)),
    ])
}

extension SectionReader {
    /// Reads a mapping of names to values, or a list of `Name: value`.
    func headers(_ key: Key, for message: ExtraHeader.Message) -> [ExtraHeader] {
        guard let node = self.node(key) else { return [] }
        let path = self.path(key)
        switch node.content {
        case .mapping(let entries):
            return entries.compactMap { entry in
                self.parse(
                    entry.value, at: path.key(QuotedText.shortened(entry.key)),
                    as: ValueSyntax { value throws(ValueSyntaxError) in
                        try ExtraHeader(checking: entry.key, value: value, for: message)
                    })
            }
        case .sequence(let nodes):
            return nodes.enumerated().compactMap { index, node in
                self.parse(node, at: path.index(index), as: .headerLine(for: message))
            }
        case .empty, .scalar:
            self.add(key, expected: "a mapping of header names and values")
            return []
        }
    }
}

extension ValueSyntax<ExtraHeader> {
    /// `Name: value` of a request.
    package static var headerLine: ValueSyntax { self.headerLine(for: .request) }

    /// `Name: value`.
    static func headerLine(for message: ExtraHeader.Message) -> ValueSyntax {
        ValueSyntax(.text("X-Served-By: sluice", "`Name: value`")) { text throws(ValueSyntaxError) in
            guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
                throw ValueSyntaxError(expected: "a header as Name: value")
            }
            let value = text[colon...].dropFirst().drop { $0 == " " || $0 == "\t" }
            return try ExtraHeader(checking: String(text[..<colon]), value: String(value), for: message)
        }
    }
}
