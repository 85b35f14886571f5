import WireText

/// A signed token in its compact form (RFC 7515 §7.1), taken apart and not verified.
struct CompactSignature {
    /// Nesting that is accepted in a header or claims.
    static let depthLimit = 32

    /// The bytes that the signature is of: header, dot and payload as they were received.
    let signed: [UInt8]
    let signature: [UInt8]
    let payload: [UInt8]
    /// The `alg` of the header, as text.
    let algorithm: String
    /// The `kid` of the header.
    let keyIdentifier: String?

    init(_ token: [UInt8]) throws(TokenError) {
        let parts = token.split(separator: UInt8(ascii: "."), maxSplits: 5, omittingEmptySubsequences: false)
        guard parts.count != 5 else { throw .malformed("encrypted tokens are not supported") }
        guard parts.count == 3 else { throw .malformed("not three parts separated by dots") }
        guard let header = Base64.decodedURLSafe(parts[0]) else { throw .malformed("the header is not base64url") }
        guard let payload = Base64.decodedURLSafe(parts[1]) else { throw .malformed("the payload is not base64url") }
        guard let signature = Base64.decodedURLSafe(parts[2]) else {
            throw .malformed("the signature is not base64url")
        }
        self.signed = Array(token[..<parts[1].endIndex])
        self.payload = payload
        self.signature = signature
        (self.algorithm, self.keyIdentifier) = try Self.readHeader(header)
    }

    /// Reads the algorithm and the key's name. A key or its address in the header is not used: the one who
    /// makes the token could choose it.
    private static func readHeader(_ bytes: [UInt8]) throws(TokenError) -> (algorithm: String, key: String?) {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw .malformed("the header is not UTF-8") }
        var algorithm: String?
        var key: String?
        var names: Set<MemberName> = []
        do throws(JSONSyntaxError) {
            var reader = JSONReader(bytes, maximumDepth: Self.depthLimit)
            try reader.readObject { (name, value) throws(JSONSyntaxError) in
                guard names.insert(name).inserted else {
                    throw JSONSyntaxError(.invalid("a member twice"), at: value.offset)
                }
                switch name {
                case "alg": algorithm = try value.readString()
                case "kid": key = try value.readString()
                default: try value.skipValue()
                }
            }
            try reader.finish()
        } catch {
            throw .malformed("header: \(error)")
        }
        // Extensions that must be understood (RFC 7515 §4.1.11): none is.
        guard !names.contains("crit") else { throw .malformed("the header requires extensions (crit)") }
        guard let algorithm else { throw .malformed("the header has no alg") }
        return (algorithm, key)
    }
}
